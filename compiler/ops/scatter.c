/* scatter.c - ScatterND, ScatterElements and Scatter: an element a thread where updates replace, one thread for all updates that
 * can meet where they are joined. */
#include "ops/move.h"
#include "ops/tuples.h"

#include <string.h>

typedef struct Join { const char *name, *integer, *real; } Join; /* a: what is there, b: the update */
static const Join joins[] = {
    {"add", "a + b", "a + b"},
    {"mul", "a * b", "a * b"},
    {"min", "(b < a ? b : a)", "(b != b || b < a ? b : a)"},
    {"max", "(b > a ? b : a)", "(b != b || b > a ? b : a)"},
};

/* False after an error; *join NULL: updates replace. */
static bool scatter_join(Compilation *c, const Node *n, const Join **join)
{
    const char *name = n->op->since >= 16 ? attr_string(n, "reduction") : "none";
    *join = NULL;
    if (!strcmp(name, "none")) return true;
    for (size_t i = 0; i < COUNT_OF(joins); i++)
        if (!strcmp(joins[i].name, name)) *join = &joins[i];
    if (*join && (n->op->since >= 18 || *join < &joins[2])) return true;
    node_error(c, n, "reduction '%s': expected none, add, mul%s", name, n->op->since >= 18 ? ", min or max" : " before opset 18");
    return false;
}

static bool scatter_shape(Compilation *c, Node *n)
{
    const Join *join;
    return scatter_join(c, n, &join) && shape_same(c, n);
}

static int scatter_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    (void)c, (void)n;
    *axis = 0;
    *append = false;
    return output == 0 ? 0 : -1;
}

/* The output, which already holds data. */
static View scatter_base(Lower *l, Node *n)
{
    View out;
    if (lower_inplace(l, n, 0, 0, &out)) {
        view_dims(l, node_output(lower_compilation(l), n, 0), &out);
        lower_set_view(l, n, 0, out);
        return out;
    }
    out = lower_output(l, n, 0);
    lower_copy(l, n, lower_input(l, n, 0), out, NULL);
    return out;
}

static Kernel *scatter_begin(Lower *l, Node *n, const char *template, View out)
{
    Kernel *k = kernel_begin(l, n, template);
    kernel_in(k, "I", lower_input(l, n, 1));
    kernel_in(k, "U", lower_input(l, n, 2));
    kernel_inout(k, "Y", out);
    return k;
}

static void scatter_replace(Lower *l, Node *n, View out, const char *picks, const char *target)
{
    const View update = lower_input(l, n, 2);
    Kernel *k = scatter_begin(l, n, "scatter", out);
    kernel_text(k, "PICKS", picks);
    kernel_text(k, "SOURCE", index_at(l, "U", update.rank, "i"));
    kernel_text(k, "TARGET", target);
    launch_elements(l, k, &update, NULL);
}

static const char *join_text(const Join *join, DType t)
{
    if (t == DT_U64 && join >= &joins[2]) return join == &joins[2] ? "((gp_u64)b < (gp_u64)a ? b : a)" : "((gp_u64)b > (gp_u64)a ? b : a)";
    if (t != DT_BOOL) return dtype_is_float(t) ? join->real : join->integer;
    return join == &joins[0] || join == &joins[3] ? "(a | b)" : "(a & b)";
}

/* One thread an element of LINES; the axes of the update that are walked have extent 1 there, and STEP sets their indices. */
static void scatter_walk(Lower *l, Kernel *k, const View *update, const View *lines, Dim steps, const char *step, const Join *join)
{
    Compilation *c = lower_compilation(l);
    const Dim count = dims_product(c, lines->rank, lines->dims);
    kernel_text(k, "SOURCE", index_at(l, "U", update->rank, "i"));
    kernel_text(k, "JOIN", join_text(join, update->store));
    kernel_dim(k, "STEPS", steps);
    kernel_text(k, "STEP", step);
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index_split(l, lines->rank, lines->dims, "j"));
    kernel_launch(k, grid_for(lower_upper(l, count), 128), 1, 1, 128);
}

static bool nothing(Lower *l, const View *v)
{
    return lower_upper(l, dims_product(lower_compilation(l), v->rank, v->dims)) == 0;
}

/* ---- ScatterND */

/* Indices i0.. of the update: those of the tuple from s, the others from the thread's j. */
static const char *nd_step(Lower *l, const View *update, int tuple_axes)
{
    Compilation *c = lower_compilation(l);
    const char *text = "idx rest = s; (void)rest;";
    for (int i = tuple_axes - 1; i >= 0; i--)
        text = arena_text(&c->arena, "%s const idx i%d = rest %% (%s); rest /= (%s);", text, i, lower_c(l, update->dims[i]),
                          lower_c(l, update->dims[i]));
    for (int i = tuple_axes; i < update->rank; i++) text = arena_text(&c->arena, "%s const idx i%d = j%d;", text, i, i);
    return text;
}

static void scatter_nd_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *index = node_input(c, n, 1);
    const int last = index->rank - 1;
    const Join *join;
    int64_t size;
    if (last < 0 || !dim_is_const(c, index->dims[last], &size)) {
        node_error(c, n, "the last extent of the indices is not known when compiling");
        return;
    }
    if (!scatter_join(c, n, &join)) return;
    const View out = scatter_base(l, n), update = lower_input(l, n, 2);
    const char *picks = tuple_picks(c, tuple_base(c, last), last, "Y", 0, (int)size);
    const char *target = tuple_place(c, "Y", out.rank, 0, (int)size, last);
    if (nothing(l, &update)) return;
    if (!join) {
        scatter_replace(l, n, out, picks, target);
        return;
    }
    View lines = update;
    Dim steps = dim_const(c, 1);
    for (int i = 0; i < last; i++) {
        steps = dim_mul(c, steps, update.dims[i]);
        lines.dims[i] = dim_const(c, 1);
    }
    Kernel *k = scatter_begin(l, n, "scatter_join", out);
    kernel_text(k, "PICKS", picks);
    kernel_text(k, "TARGET", target);
    scatter_walk(l, k, &update, &lines, steps, nd_step(l, &update, last), join);
}

/* ---- ScatterElements, Scatter */

static const char *elements_step(Compilation *c, int rank, int axis)
{
    const char *text = "";
    for (int i = 0; i < rank; i++) text = arena_text(&c->arena, i == axis ? "%s const idx i%d = s;" : "%s const idx i%d = j%d;", text, i, i);
    return text;
}

static void scatter_elements_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Join *join;
    if (!scatter_join(c, n, &join)) return;
    const View out = scatter_base(l, n), update = lower_input(l, n, 2);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), out.rank);
    const char *target = "Y_OFF";
    if (axis < 0 || nothing(l, &update)) return;
    for (int i = 0; i < out.rank; i++) target = text_add_term(c, target, i == axis ? "row" : index_name(c, i), "Y", i);
    const char *picks = arena_text(&c->arena, "idx row = I_LD(%s); if (row < 0) row += (Y_D%d);"
                                   " inside = row >= 0 && row < (Y_D%d);", index_at(l, "I", out.rank, "i"), axis, axis);
    if (!join) {
        scatter_replace(l, n, out, picks, target);
        return;
    }
    View lines = update;
    lines.dims[axis] = dim_const(c, 1);
    Kernel *k = scatter_begin(l, n, "scatter_join", out);
    kernel_text(k, "PICKS", picks);
    kernel_text(k, "TARGET", target);
    scatter_walk(l, k, &update, &lines, update.dims[axis], elements_step(c, update.rank, axis), join);
}

#define ANY " | T=" TYPES_ANY
#define REST .shape = scatter_shape, .inplace = scatter_inplace
#define ND(since_, attrs_) \
    {.domain = "", .name = "ScatterND", .since = since_, .schema = "data:T, indices:i64, updates:T -> output:T" attrs_ ANY, \
     .facts = OP_APPEND | OP_ACROSS, .lower = scatter_nd_lower, REST}
#define ELEMENTS(name_, since_, attrs_) \
    {.domain = "", .name = name_, .since = since_, .schema = "data:T, indices:I, updates:T -> output:T ; axis:int=0" attrs_ ANY \
     ", I=i64 i32", .facts = OP_APPEND, .lower = scatter_elements_lower, REST}

static const OpRow rows[] = {
    ND(11, ""),
    ND(16, " ; reduction:string=none"),
    ND(18, " ; reduction:string=none"),
    ELEMENTS("Scatter", 9, ""),
    ELEMENTS("ScatterElements", 11, ""),
    ELEMENTS("ScatterElements", 16, ", reduction:string=none"),
    ELEMENTS("ScatterElements", 18, ", reduction:string=none"),
};

const OpFamily ops_scatter = {rows, COUNT_OF(rows), "scatter.c"};
