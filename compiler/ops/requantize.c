/* requantize.c - elements from one scale to another, and DynamicQuantizeLinear, which finds the scale itself. */
#include "ops/move.h"
#include "ops/quantize.h"

#include <string.h>

const char *quantized_text(Compilation *c, DType t, const char *value, const char *zero)
{
    double low, high;
    if (dtype_is_float(t)) {
        const char *most = t == DT_F8E4M3FN ? "448.0f" : t == DT_F8E4M3FNUZ ? "240.0f" : "57344.0f";
        return arena_text(&c->arena, "gp_saturate(%s + (float)%s, %s)", value, zero ? zero : "0", most);
    }
    quantized_range(t, &low, &high);
    return arena_text(&c->arena, "(int)FMINF(FMAXF(RINTF(%s) + (float)%s, %.1ff), %.1ff)", value, zero ? zero : "0", low, high);
}

Quantisation quantisation_of(Lower *l, const Node *n, int scale, int zero)
{
    Quantisation q = {.scale = lower_input(l, n, scale)};
    if (zero >= 0 && node_input(lower_compilation(l), n, zero)) q.zero = lower_input(l, n, zero);
    return q;
}

bool one_element_each(Compilation *c, const Node *n, const int *inputs, int count)
{
    for (int i = 0; i < count; i++) {
        const Value *v = node_input(c, n, inputs[i]);
        if (!v || v->rank < 0 || dim_is(c, value_elements(c, v), 1)) continue;
        node_error(c, n, "input '%s': a scale or zero point has one element here", v->name);
        return false;
    }
    return true;
}

void requantize(Lower *l, const Node *n, View x, const Quantisation *from, View y, const Quantisation *to, DType t, const char *label)
{
    Compilation *c = lower_compilation(l);
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    const char *value = arena_text(&c->arena, "(float)X_LD(%s)", index_at(l, "X", x.rank, "i"));
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    if (from) {
        kernel_in(k, "XS", from->scale);
        if (from->zero.buffer) kernel_in(k, "XZ", from->zero);
        value = arena_text(&c->arena, "((%s%s) * XS_LD(XS_OFF))", value, from->zero.buffer ? " - (float)XZ_LD(XZ_OFF)" : "");
    }
    if (to) {
        kernel_in(k, "YS", to->scale);
        if (to->zero.buffer) kernel_in(k, "YZ", to->zero);
        value = quantized_text(c, t, arena_text(&c->arena, "%s / YS_LD(YS_OFF)", value), to->zero.buffer ? "YZ_LD(YZ_OFF)" : NULL);
    }
    kernel_text(k, "VALUE", value);
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    if (label) kernel_label(k, label);
    launch_elements(l, k, &y, NULL);
}

/* ---- DynamicQuantizeLinear */

/* The range of X: each block leaves its own, then one block makes scale and zero point of all. */
static void find_range(Lower *l, const Node *n, View x, View scale, View zero)
{
    enum { BLOCK = 256 };
    Compilation *c = lower_compilation(l);
    const Dim count = dims_product(c, x.rank, x.dims);
    const int64_t blocks = grid_for(lower_upper(l, count), BLOCK * 4);
    const Dim pairs = dim_const(c, 2 * blocks);
    const View partial = lower_temporary(l, arena_text(&c->arena, "%s.range", n->name), DT_F32, 1, &pairs);
    Kernel *k = kernel_begin(l, n, "quant_range");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", partial);
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index_split(l, x.rank, x.dims, "i"));
    kernel_text(k, "SOURCE", index_at(l, "X", x.rank, "i"));
    kernel_launch(k, blocks, 1, 1, BLOCK);
    k = kernel_begin(l, n, "quant_scale");
    kernel_in(k, "X", partial);
    kernel_out(k, "S", scale);
    kernel_out(k, "Z", zero);
    kernel_int(k, "BLOCKS", blocks);
    kernel_launch(k, 1, 1, 1, 32);
}

View dynamic_quantize(Lower *l, const Node *n, View x, Quantisation *q)
{
    Compilation *c = lower_compilation(l);
    q->scale = lower_temporary(l, arena_text(&c->arena, "%s.scale", n->name), DT_F32, 0, NULL);
    q->zero = lower_temporary(l, arena_text(&c->arena, "%s.zero", n->name), DT_U8, 0, NULL);
    const View y = lower_temporary(l, arena_text(&c->arena, "%s.quantised", n->name), DT_U8, x.rank, x.dims);
    find_range(l, n, x, q->scale, q->zero);
    requantize(l, n, x, NULL, y, q, DT_U8, arena_text(&c->arena, "%s (quantise)", n->name));
    return y;
}

static bool dynamic_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (!output_set(c, n, 0, DT_U8, x->rank, x->dims)) return false;
    return output_set(c, n, 1, DT_F32, 0, NULL) && output_set(c, n, 2, DT_U8, 0, NULL);
}

static void dynamic_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0);
    const Quantisation q = {lower_output(l, n, 1), lower_output(l, n, 2)};
    find_range(l, n, x, q.scale, q.zero);
    requantize(l, n, x, NULL, lower_output(l, n, 0), &q, DT_U8, NULL);
}

static const OpRow rows[] = {
    {.domain = "", .name = "DynamicQuantizeLinear", .since = 11, .schema = "x:f32 -> y:u8, y_scale:f32, y_zero_point:u8",
     .shape = dynamic_shape, .lower = dynamic_lower},
};

const OpFamily ops_requantize = {rows, COUNT_OF(rows), "compiler/ops/requantize.c"};
