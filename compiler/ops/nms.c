/* nms.c - NonMaxSuppression: one block a class takes boxes, then one block writes the rows and their count. */
#include "ops/extent.h"
#include "ops/move.h"

/* The boxes that a class can give: those asked for, when that is known, and no more than there are; 0 while not known. */
static Dim boxes_bound(Compilation *c, const Node *n)
{
    const Value *boxes = node_input(c, n, 0);
    Dim *most, bound = boxes->rank == 3 ? boxes->dims[1] : 0;
    int count;
    int64_t asked, lo, hi;
    if (!node_input(c, n, 2)) return dim_const(c, 0);
    if (!bound || !value_dims(c, node_input(c, n, 2), &most, &count) || count != 1 || !dim_is_const(c, most[0], &asked)) return bound;
    dim_bounds(c, bound, &lo, &hi);
    if (asked < 0) asked = 0;
    return hi <= asked ? bound : lo >= asked ? dim_const(c, asked) : dim_op(c, DIM_MIN, bound, dim_const(c, asked));
}

static bool nms_shape(Compilation *c, Node *n)
{
    const Value *boxes = node_input(c, n, 0), *scores = node_input(c, n, 1);
    if ((boxes->rank >= 0 && boxes->rank != 3) || (scores->rank >= 0 && scores->rank != 3)) {
        node_error(c, n, "boxes and scores must have rank 3");
        return false;
    }
    Dim bound = boxes_bound(c, n);
    if (scores->rank == 3 && bound) {
        if (boxes->rank == 3 && (!dim_equate(c, n, "nms", boxes->dims[1], scores->dims[2]) || !dim_equate(c, n, "nms", boxes->dims[0], scores->dims[0])))
            return false;
        bound = dim_mul(c, bound, dim_mul(c, scores->dims[0], scores->dims[1]));
    } else {
        bound = 0;
    }
    const Dim dims[2] = {dim_is(c, bound, 0) ? bound : extent_counted(c, n, 0, 0, bound), dim_const(c, 3)};
    return output_set(c, n, 0, DT_I64, 2, dims);
}

/* Scalar input I as operand NAME, or DEFAULT as text. */
static void scalar(Lower *l, Kernel *k, const Node *n, int i, const char *name, const char *macro, const char *otherwise)
{
    Compilation *c = l->c;
    if (node_input(c, n, i)) kernel_in(k, name, lower_input(l, n, i));
    kernel_text(k, macro, node_input(c, n, i) ? arena_text(&c->arena, "%s_LD(%s_OFF)", name, name) : otherwise);
}

static void nms_lower(Lower *l, Node *n)
{
    Compilation *c = l->c;
    const View boxes = lower_input(l, n, 0), scores = lower_input(l, n, 1), out = lower_output(l, n, 0);
    const Dim pairs = dim_mul(c, scores.dims[0], scores.dims[1]), per[2] = {pairs, lower_dim(l, boxes_bound(c, n))}, left[2] = {pairs, scores.dims[2]};
    const int64_t blocks = lower_upper(l, pairs);
    if (lower_upper(l, out.dims[0]) == 0) return;
    const View taken = lower_temporary(l, arena_text(&c->arena, "%s taken", n->name), DT_I32, 2, per);
    const View counts = lower_temporary(l, arena_text(&c->arena, "%s counts", n->name), DT_I32, 1, per);
    const int threads = lower_upper(l, scores.dims[2]) > 256 ? 256 : 32;
    Kernel *k = kernel_begin(l, n, "nms");
    kernel_in(k, "B", boxes);
    kernel_in(k, "S", scores);
    scalar(l, k, n, 2, "M", "LIMIT", "0");
    scalar(l, k, n, 3, "O", "OVERLAP", "0.0f");
    scalar(l, k, n, 4, "T", "LEAST", "-INF_F");
    kernel_out(k, "LEFT", lower_temporary(l, arena_text(&c->arena, "%s left", n->name), DT_BOOL, 2, left));
    kernel_out(k, "P", taken);
    kernel_out(k, "N", counts);
    kernel_int(k, "CENTRE", attr_int(n, "center_point_box") != 0);
    kernel_int(k, "THREADS", threads);
    kernel_launch(k, blocks, 1, 1, threads);
    k = kernel_begin(l, n, "nms_rows");
    kernel_in(k, "P", taken);
    kernel_in(k, "N", counts);
    kernel_out(k, "Y", out);
    kernel_out(k, "W", extent_word(l, n, node_output(c, n, 0)->dims[0]));
    kernel_dim(k, "PAIRS", pairs);
    kernel_dim(k, "CLASSES", scores.dims[1]);
    kernel_int(k, "THREADS", 256);
    kernel_launch(k, 1, 1, 1, 256);
}

static const OpRow rows[] = {
    {.domain = "", .name = "NonMaxSuppression", .since = 10,
     .schema = "boxes:f32, scores:f32, max_output_boxes_per_class:i64?, iou_threshold:f32?, score_threshold:f32? -> selected_indices:i64 ; "
               "center_point_box:int=0",
     .facts = OP_RANDOM, .shape = nms_shape, .lower = nms_lower},
};

const OpFamily ops_nms = {rows, COUNT_OF(rows), "nms.c"};
