/* extent.c - NonZero and Compress: outputs whose extent is counted by the kernel. */
#include "ops/extent.h"
#include "ops/move.h"
#include "ops/tuples.h"

enum { SOLO_ELEMENTS = 8192, SELECT_THREADS = 256, MOST_CHUNKS = 132 * 256 };

/* ---- selection, in one launch or three */

typedef struct Selection {
    View from, to, word;                  /* operands X, Y, W */
    Dim total;
    const char *index, *flag, *write;     /* statements that make indices of n; whether n is taken; its store as number `place` */
} Selection;

static void select_phase(Lower *l, Node *n, const Selection *s, const View *counts, int phase, int64_t chunks)
{
    Kernel *k = kernel_begin(l, n, "select");
    if (phase != 1) kernel_in(k, "X", s->from);
    if (phase >= 2) kernel_out(k, "Y", s->to);
    if (phase == 0) kernel_out(k, "N", *counts);
    else if (phase == 1) kernel_inout(k, "N", *counts);
    else if (phase == 2) kernel_in(k, "N", *counts);
    if (phase & 1) kernel_out(k, "W", s->word);
    kernel_int(k, "PHASE", phase);
    kernel_int(k, "CHUNKS", chunks);
    kernel_int(k, "THREADS", SELECT_THREADS);
    kernel_dim(k, "TOTAL", s->total);
    kernel_text(k, "INDEX", s->index);
    kernel_text(k, "FLAG", s->flag);
    kernel_text(k, "WRITE", s->write);
    kernel_launch(k, phase & 1 ? 1 : chunks / SELECT_THREADS, 1, 1, SELECT_THREADS);
}

static void select_launch(Lower *l, Node *n, const Selection *s)
{
    const int64_t elements = lower_upper(l, s->total);
    if (elements <= SOLO_ELEMENTS) {
        select_phase(l, n, s, NULL, 3, SELECT_THREADS);
        return;
    }
    int64_t chunks = elements / 16 / SELECT_THREADS * SELECT_THREADS;
    if (chunks > MOST_CHUNKS) chunks = MOST_CHUNKS;
    const Dim dim = dim_const(l->c, chunks);
    const View counts = lower_temporary(l, arena_text(&l->c->arena, "%s counts", n->name), DT_I64, 1, &dim);
    for (int phase = 0; phase < 3; phase++) select_phase(l, n, s, &counts, phase, chunks);
}

/* ---- NonZero */

/* Elements that are not zero, when the contents are known; -1: they are not. */
static int64_t nonzero_known(Compilation *c, const Value *x, int64_t **list, int *count)
{
    int64_t found = 0;
    if (!value_ints(c, x, list, count)) return -1;
    for (int i = 0; i < *count; i++) found += (*list)[i] != 0;
    return found;
}

static bool nonzero_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    int64_t *list, known;
    int count;
    if (x->rank < 0) return output_set(c, n, 0, DT_I64, 2, (const Dim[2]){0, 0});
    known = nonzero_known(c, x, &list, &count);
    const Dim dims[2] = {dim_const(c, x->rank), known >= 0 ? dim_const(c, known) : extent_counted(c, n, 0, 1, value_elements(c, x))};
    return output_set(c, n, 0, DT_I64, 2, dims);
}

static void nonzero_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Value *y = node_output(c, n, 0);
    int64_t *list, dims[MAX_RANK], stride[MAX_RANK], elements, total, found, at = 0;
    int count;
    Dim *out = contents_begin(c, y, &total);
    if (!out || !shape_numbers(c, x, dims, &elements) || (found = nonzero_known(c, x, &list, &count)) < 0 || count != elements) return;
    row_major(dims, x->rank, stride);
    for (int i = 0; i < count; i++) {
        if (!list[i]) continue;
        for (int k = 0; k < x->rank; k++) out[k * found + at] = dim_const(c, i / stride[k] % dims[k]);
        at++;
    }
    contents_finish(c, y, out, total);
}

static void nonzero_lower(Lower *l, Node *n)
{
    Compilation *c = l->c;
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const char *write = "";
    for (int i = 0; i < x.rank; i++) write = arena_text(&c->arena, "%s Y_ST(Y_AT(%d, place), i%d);", write, i, i);
    const Selection s = {.from = x, .to = y, .word = extent_word(l, n, node_output(c, n, 0)->dims[1]), .total = dims_product(c, x.rank, x.dims),
                         .index = index_split(l, x.rank, x.dims, "i"), .flag = arena_text(&c->arena, "(X_LD(%s) != 0)", index_at(l, "X", x.rank, "i")),
                         .write = write};
    select_launch(l, n, &s);
}

/* ---- Compress */

/* The axis, or -1 without one (the input counts as one line), or -2 after an error. */
static int compress_axis(Compilation *c, const Node *n, int rank)
{
    if (!attr_given(n, "axis")) return -1;
    const int axis = axis_normal(c, n, attr_int(n, "axis"), rank);
    return axis < 0 ? -2 : axis;
}

static Dim smaller(Compilation *c, Dim a, Dim b)
{
    if (!a || !b) return 0;
    return dim_equal(c, a, b) ? a : dim_op(c, DIM_MIN, a, b);
}

static bool compress_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *condition = node_input(c, n, 1);
    int64_t *list, known = -1;
    int count;
    Dim dims[MAX_RANK];
    if (x->rank < 0 || condition->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    const int axis = compress_axis(c, n, x->rank);
    if (axis < -1) return false;
    if (condition->rank != 1) {
        node_error(c, n, "the condition has rank %d; expected 1", condition->rank);
        return false;
    }
    if (value_ints(c, condition, &list, &count))
    {
        known = 0;
        for (int i = 0; i < count; i++) known += list[i] != 0;
    }
    const Dim line = axis < 0 ? value_elements(c, x) : x->dims[axis];
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[axis < 0 ? 0 : axis] = known >= 0 ? dim_const(c, known) : extent_counted(c, n, 0, axis < 0 ? 0 : axis, smaller(c, condition->dims[0], line));
    return output_set(c, n, 0, x->dtype, axis < 0 ? 1 : x->rank, dims);
}

/* The numbers of the rows that are taken, then the rows. */
static void compress_lower(Lower *l, Node *n)
{
    Compilation *c = l->c;
    const View x = lower_input(l, n, 0), condition = lower_input(l, n, 1), y = lower_output(l, n, 0);
    const int axis = compress_axis(c, n, x.rank), count_axis = axis < 0 ? 0 : axis;
    const Dim line = axis < 0 ? dims_product(c, x.rank, x.dims) : x.dims[axis], total = smaller(c, condition.dims[0], line);
    const View rows = lower_temporary(l, arena_text(&c->arena, "%s rows", n->name), DT_I64, 1, &y.dims[count_axis]);
    const Selection s = {.from = condition, .to = rows, .word = extent_word(l, n, node_output(c, n, 0)->dims[count_axis]), .total = total,
                         .index = "", .flag = "(X_LD(X_AT(n)) != 0)", .write = "Y_ST(Y_AT(place), n);"};
    const char *source = "X_OFF", *pick = axis < 0 ? "i0" : arena_text(&c->arena, "i%d", axis), *more = "";
    select_launch(l, n, &s);
    for (int i = 0; i < x.rank; i++) source = text_add_term(c, source, i == axis ? "row" : axis < 0 ? arena_text(&c->arena, "x%d", i) : index_name(c, i), "X", i);
    if (axis < 0) { /* row counts elements of the whole input */
        more = "idx rest = row; (void)rest;";
        for (int i = x.rank - 1; i >= 0; i--) more = arena_text(&c->arena, "%s const idx x%d = rest %% (X_D%d); rest /= (X_D%d);", more, i, i, i);
    }
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    kernel_in(k, "I", rows);
    kernel_out(k, "Y", y);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s)", source));
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, arena_text(&c->arena, "const idx row = I_LD(I_AT(%s)); %s", pick, more));
}

#define ANY "T=" TYPES_NUMBER " bool"
static const OpRow rows[] = {
    {.domain = "", .name = "NonZero", .since = 9, .schema = "X:T -> Y:i64 | " ANY, .facts = OP_RANDOM | OP_SHAPE, .shape = nonzero_shape,
     .contents = nonzero_contents, .lower = nonzero_lower},
    {.domain = "", .name = "Compress", .since = 9, .schema = "input:T, condition:bool -> output:T ; axis:int? | " ANY, .facts = OP_RANDOM,
     .shape = compress_shape, .lower = compress_lower},
};

const OpFamily ops_extent = {rows, COUNT_OF(rows), "extent.c"};
