/* cast.c - Cast and CastLike. */
#include "ops/formula.h"

#include <math.h>
#include <string.h>

static const char *compute_type(DType t)
{
    if (t == DT_F64) return "double";
    if (dtype_is_float(t)) return "float";
    return t == DT_BOOL ? "int" : "long long";
}

static const char *largest_f8(DType t)
{
    switch (t) {
    case DT_F8E4M3FN: return "448.0f";
    case DT_F8E4M3FNUZ: return "240.0f";
    case DT_F8E5M2: case DT_F8E5M2FNUZ: return "57344.0f";
    default: return NULL;
    }
}

/* Of more bits than a float has, rounded once: by way of a float with an odd last bit. */
static const char *cast_to_float(Compilation *c, const Node *n, DType from, DType to)
{
    const char *text = from == DT_U64 ? "(unsigned long long)a" : "a";
    bool wide = from == DT_F64 || (dtype_is_integer(from) && dtype_bits(from) >= 32 && to == DT_BF16);
    if (to == DT_F64 || to == DT_F32 || !wide) text = arena_text(&c->arena, "(%s)%s", compute_type(to), text);
    else text = arena_text(&c->arena, "gp_odd((double)%s)", text);
    bool saturate = n->op->since < 19 || attr_int(n, "saturate") != 0;
    if (to == DT_F8E8M0) {
        const char *mode = n->op->since < 24 ? "up" : attr_string(n, "round_mode");
        return arena_text(&c->arena, "gp_e8m0(%s, %d, %d)", text, !strcmp(mode, "up") ? 1 : !strcmp(mode, "nearest") ? 2 : 0, saturate);
    }
    if (saturate && largest_f8(to)) return arena_text(&c->arena, "gp_saturate(%s, %s)", text, largest_f8(to));
    return text;
}

static const char *cast_to(Compilation *c, const Node *n, DType to)
{
    DType from = input_type(c, n, 0);
    bool of_float = dtype_is_float(from);
    if (to == DT_BOOL) return "a != 0";
    if (dtype_is_float(to)) return cast_to_float(c, n, from, to);
    if (to == DT_U4) return "((long long)a & 15)";
    if (to == DT_I4) return "((((long long)a & 15) ^ 8) - 8)";
    if (to == DT_U2) return "((long long)a & 3)";
    if (to == DT_I2) return "((((long long)a & 3) ^ 2) - 2)";
    if (to == DT_U64 && of_float) return "(a < 0 ? (long long)a : (long long)(unsigned long long)a)";
    return "(long long)a";
}

static DType cast_target(Compilation *c, const Node *n)
{
    if (n->input_count > 1) return input_type(c, n, 1); /* CastLike */
    return attr_dtype(n, "to");
}

static const char *cast_text(Compilation *c, const Node *n)
{
    return cast_to(c, n, cast_target(c, n));
}

/* The second input gives a type alone, so this is no kernel over both. */
static void cast_like_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = lower_output(l, n, 0);
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", in);
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", cast_text(c, n));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, arena_text(&c->arena, "const X_C a = X_LD(%s);", index_at(l, "X", in.rank, "i")));
}

/* ---- contents */

static Dim fold_cast(Compilation *c, const Node *n, const Dim *in, int count)
{
    DType to = cast_target(c, n);
    int64_t v;
    (void)count;
    if (to == DT_BOOL) {
        int set = dim_truth(c, in[0]);
        return set < 0 ? 0 : dim_const(c, set);
    }
    if (to == DT_I64 || to == DT_I32) return in[0]; /* lengths fit */
    int bits = dtype_bits(to) < 8 ? dtype_bits(to) : 8; /* those that every type of the width holds */
    return dim_is_const(c, in[0], &v) && v >= 0 && v < 1 << (bits - 1) ? in[0] : 0;
}

/* Where floats are on one side, or both. */
static void cast_real_contents(Compilation *c, Node *n)
{
    Value *y = node_output(c, n, 0);
    int64_t total, v;
    Dim *ints = contents_begin(c, y, &total);
    double *floats = ints ? NULL : floats_begin(c, y, &total);
    const double *reals = NULL;
    Dim *dims = NULL;
    int have;
    if (!value_floats(c, node_input(c, n, 0), &reals, &have) && !value_dims(c, node_input(c, n, 0), &dims, &have)) return;
    if ((!ints && !floats) || have != total) return;
    if (ints && (!reals || (y->dtype != DT_BOOL && y->dtype != DT_I64 && y->dtype != DT_I32))) return;
    for (int64_t e = 0; e < total; e++) {
        if (ints && fabs(reals[e]) < INT32_MAX) ints[e] = dim_const(c, y->dtype == DT_BOOL ? reals[e] != 0 : (int64_t)reals[e]);
        else if (floats && reals) floats[e] = float_rounded(y->dtype, reals[e]);
        else if (floats && dim_is_const(c, dim_resolve(c, dims[e]), &v)) floats[e] = float_rounded(y->dtype, (double)v);
        else return;
    }
    if (ints) contents_finish(c, y, ints, total);
    else y->floats = floats;
}

static const Formula formulas[] = {
    { .name = "Cast", .make = cast_text, .fold = fold_cast, .folded = 1 },
    { .name = "CastLike", .make = cast_text, .fold = fold_cast, .folded = 1 },
};

static void cast_contents(Compilation *c, Node *n)
{
    if (dtype_is_float(input_type(c, n, 0)) || dtype_is_float(cast_target(c, n))) cast_real_contents(c, n);
    else formula_contents(c, n, formulas, COUNT_OF(formulas));
}

static bool cast_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (n->op->since >= 24) {
        const char *mode = attr_string(n, "round_mode");
        if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0) {
            node_error(c, n, "round_mode '%s': expected up, down or nearest", mode);
            return false;
        }
    }
    return output_set(c, n, 0, cast_target(c, n), x->rank, x->dims);
}

#define ROW(op, first, text, rule) \
    { .name = op, .since = first, .schema = text, .facts = OP_POINTWISE, .shape = rule, .contents = cast_contents, \
      .expr_fn = cast_text }
#define CAST_LIKE(first, attrs) \
    { .name = "CastLike", .since = first, \
      .schema = "input:T1, target_type:T2 -> output:T2" attrs " | T1=" TYPES_ANY ", T2=" TYPES_ANY, \
      .shape = cast_shape, .contents = cast_contents, .lower = cast_like_lower }
#define CAST(first, attrs) \
    { .name = "Cast", .since = first, .schema = "input:T1 -> output:T2 ; to:int" attrs " | T1=" TYPES_ANY ", T2=" TYPES_ANY, \
      .facts = OP_POINTWISE | OP_ZEROS, .shape = cast_shape, .contents = cast_contents, .expr_fn = cast_text }

static const OpRow rows[] = {
    CAST(6, ""), CAST(19, ", saturate:int=1"), CAST(24, ", saturate:int=1, round_mode:string=up"),
    CAST_LIKE(15, ""), CAST_LIKE(19, " ; saturate:int=1"), CAST_LIKE(24, " ; saturate:int=1, round_mode:string=up"),
};

const OpFamily ops_cast = { rows, (int)COUNT_OF(rows), "cast.c" };
