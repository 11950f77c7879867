/* loss.c - NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include "ops/move.h"
#include "ops/rows.h"

#include <string.h>

enum { LOSS_THREADS = 256 };

static int reduction_of(Compilation *c, const Node *n)
{
    static const char *const names[] = {"none", "sum", "mean"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(attr_string(n, "reduction"), names[i])) return i;
    node_error(c, n, "reduction '%s': expected none, sum or mean", attr_string(n, "reduction"));
    return -1;
}

static bool loss_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *target = node_input(c, n, 1), *weight = node_input(c, n, 2);
    const int reduction = reduction_of(c, n);
    if (reduction < 0 || !output_set(c, n, 1, x->dtype, x->rank, x->dims)) return false;
    if (x->rank >= 0 && target->rank >= 0 && (x->rank < 2 || target->rank != x->rank - 1)) {
        node_error(c, n, "the scores have rank %d, the targets %d; expected one less", x->rank, target->rank);
        return false;
    }
    for (int i = 0; x->rank >= 0 && i < target->rank; i++)
        if (!dim_equate(c, n, "loss", target->dims[i], x->dims[i ? i + 1 : 0])) return false;
    if (weight && weight->rank == 1 && x->rank >= 2 && !dim_equate(c, n, "loss", weight->dims[0], x->dims[1])) return false;
    return reduction ? output_set(c, n, 0, x->dtype, 0, NULL) : output_set(c, n, 0, x->dtype, target->rank, target->dims);
}

/* Element of the scores at target i0, i1 .. and class `pick`. */
static const char *score_place(Compilation *c, int rank)
{
    const char *text = arena_text(&c->arena, "X_OFF + i0 * X_S0 + pick * X_S1");
    for (int i = 2; i < rank; i++) text = arena_text(&c->arena, "%s + i%d * X_S%d", text, i - 1, i);
    return text;
}

static void nll_launch(Lower *l, Node *n, View x)
{
    Compilation *c = lower_compilation(l);
    const View target = lower_input(l, n, 1), y = lower_output(l, n, 0);
    const int reduction = reduction_of(c, n);
    const Dim count = dims_product(c, target.rank, target.dims);
    if (!reduction && lower_upper(l, count) == 0) return;
    Kernel *k = kernel_begin(l, n, "nll");
    kernel_in(k, "X", x);
    kernel_in(k, "T", target);
    if (node_input(c, n, 2)) kernel_in(k, "W", lower_input(l, n, 2));
    kernel_out(k, "Y", y);
    kernel_text(k, "LOSS_C", x.store == DT_F64 ? "double" : "float");
    kernel_text(k, "WEIGHT", node_input(c, n, 2) ? "(LOSS_C)W_LD(W_AT(pick))" : "1");
    kernel_text(k, "IGNORED", attr_given(n, "ignore_index") ? arena_text(&c->arena, "pick == %lldLL", (long long)attr_int(n, "ignore_index")) : "0");
    kernel_text(k, "PLACE_T", index_at(l, "T", target.rank, "i"));
    kernel_text(k, "PLACE_X", score_place(c, x.rank));
    if (!reduction) kernel_text(k, "PLACE_Y", index_at(l, "Y", y.rank, "i"));
    kernel_int(k, "REDUCE", reduction);
    kernel_dim(k, "CLASSES", x.dims[1]);
    kernel_int(k, "THREADS", LOSS_THREADS);
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index_split(l, target.rank, target.dims, "i"));
    kernel_launch(k, reduction ? 1 : grid_for(lower_upper(l, count), LOSS_THREADS), 1, 1, LOSS_THREADS);
}

static void nll_lower(Lower *l, Node *n) { nll_launch(l, n, lower_input(l, n, 0)); }

static View log_softmax(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View from = lower_input(l, n, 0);
    const Value *wanted = node_output(c, n, 1);
    const bool wide = from.store == DT_F64;
    const View to = wanted && wanted->uses ? lower_output(l, n, 1)
                  : lower_temporary(l, arena_text(&c->arena, "%s log_prob", n->name), wide ? DT_F64 : DT_F32, from.rank, from.dims);
    softmax_launch(l, n, from, to, 1, SOFTMAX_ALONE | SOFTMAX_LOG);
    return to;
}

static void sce_lower(Lower *l, Node *n) { nll_launch(l, n, log_softmax(l, n)); }

#define ATTRS " ; ignore_index:int?, reduction:string=mean | T=" TYPES_FLOAT ", I=i32 i64"
static const OpRow rows[] = {
    {.domain = "", .name = "NegativeLogLikelihoodLoss", .since = 12, .schema = "input:T, target:I, weight:T? -> loss:T" ATTRS,
     .shape = loss_shape, .lower = nll_lower},
    {.domain = "", .name = "SoftmaxCrossEntropyLoss", .since = 12, .schema = "scores:T, labels:I, weights:T? -> output:T, log_prob:T?" ATTRS,
     .shape = loss_shape, .lower = sce_lower},
};

const OpFamily ops_loss = {rows, COUNT_OF(rows), "loss.c"};
