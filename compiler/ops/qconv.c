/* qconv.c - convolutions and pools of quantised bytes: ConvInteger, QLinearConv, and onnxruntime's QLinearAveragePool and
 * QLinearGlobalAveragePool, which pool floats made for it. */
#include "ops/move.h"
#include "ops/quantize.h"
#include "ops/rows.h"
#include "ops/window.h"

#include <string.h>

/* ---- convolutions */

/* Where an operator has its operands; -1: none such. */
typedef struct Ports { int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias; } Ports;

static Ports ports_of(const Node *n)
{
    if (!strcmp(n->op_type, "ConvInteger")) return (Ports){0, -1, 2, 1, -1, 3, -1, -1, -1};
    return (Ports){0, 1, 2, 3, 4, 5, 6, 7, 8};
}

static bool conv_window(Compilation *c, const Node *n, const Value *x, const Value *w, Window *window)
{
    int64_t taps[WINDOW_AXES];
    for (int i = 2; i < w->rank && i < 2 + WINDOW_AXES; i++) {
        if (w->dims[i] && dim_is_const(c, dim_resolve(c, w->dims[i]), &taps[i - 2])) continue;
        node_error(c, n, "weight '%s': its extent along axis %d is not a known number", w->name, i);
        return false;
    }
    return window_read(c, n, x->rank - 2, taps, window) && window_slide(c, n, x->dims + 2, window);
}

static bool channels_fit(Compilation *c, const Node *n, const Value *x, const Value *w)
{
    const int64_t group = attr_int(n, "group");
    int64_t outputs;
    if (group < 1 || group > INT32_MAX) {
        node_error(c, n, "group is %lld", (long long)group);
        return false;
    }
    if (w->dims[0] && dim_is_const(c, dim_resolve(c, w->dims[0]), &outputs) && outputs % group) {
        node_error(c, n, "%lld output channels are not divisible by %lld groups", (long long)outputs, (long long)group);
        return false;
    }
    return !w->dims[1] || dim_equate(c, n, "a filter has the channels of its group", x->dims[1], dim_scale(c, dim_resolve(c, w->dims[1]), group));
}

/* Parameter I of the weight has one element or one for each output channel. */
static bool by_channel(Compilation *c, const Node *n, int i, const Value *w)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank < 0 || dim_is(c, value_elements(c, v), 1)) return true;
    if (v->rank == 1) return dim_equate(c, n, "a parameter for each output channel", v->dims[0], w->dims[0]);
    node_error(c, n, "input '%s': expected one element, or one for each output channel", v->name);
    return false;
}

static bool conv_shape(Compilation *c, Node *n)
{
    const Ports p = ports_of(n);
    const Value *x = node_input(c, n, p.x), *w = node_input(c, n, p.w);
    const int single[] = {p.x_scale, p.x_zero, p.y_scale, p.y_zero};
    const DType t = p.y_zero < 0 ? DT_I32 : node_input(c, n, p.y_zero)->dtype;
    Dim dims[MAX_RANK];
    Window window;
    if (!one_element_each(c, n, single, COUNT_OF(single))) return false;
    if (x->rank < 0 || w->rank < 0) return output_set(c, n, 0, t, -1, NULL);
    if (x->rank < 3 || w->rank != x->rank) {
        node_error(c, n, "input and weight must have one rank of 3 to %d, found %d and %d", 2 + WINDOW_AXES, x->rank, w->rank);
        return false;
    }
    if (!by_channel(c, n, p.w_scale, w) || !by_channel(c, n, p.w_zero, w) || !by_channel(c, n, p.bias, w)) return false;
    if (!channels_fit(c, n, x, w) || !conv_window(c, n, x, w, &window)) return false;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 2; i < x->rank; i++) dims[i] = window.out[i - 2];
    return output_set(c, n, 0, t, x->rank, dims);
}

/* Text of parameter I, an operand from now on, for output channel i1; OTHERWISE where there is none. */
static const char *parameter(Lower *l, const Node *n, Kernel *k, const char *name, int i, const char *otherwise)
{
    Compilation *c = lower_compilation(l);
    if (i < 0 || !node_input(c, n, i)) return otherwise;
    const View v = lower_input(l, n, i);
    const bool single = v.rank == 0 || dim_is(c, dims_product(c, v.rank, v.dims), 1);
    kernel_in(k, name, v);
    if (single) return arena_text(&c->arena, "%s_LD(%s_OFF)", name, name);
    return arena_text(&c->arena, "%s_LD(%s_OFF + i1 * %s_S0)", name, name, name);
}

static const char *conv_epilogue(Lower *l, const Node *n, Kernel *k, const Ports *p)
{
    Compilation *c = lower_compilation(l);
    if (p->x_scale < 0) return "v";
    const char *bias = parameter(l, n, k, "BIAS", p->bias, "0");
    const char *xs = parameter(l, n, k, "XS", p->x_scale, NULL), *ws = parameter(l, n, k, "WS", p->w_scale, NULL);
    const char *ys = parameter(l, n, k, "YS", p->y_scale, NULL), *yz = parameter(l, n, k, "YZ", p->y_zero, NULL);
    const char *value = arena_text(&c->arena, "(float)(v + (int)%s) * (%s * %s / %s)", bias, xs, ws, ys);
    return quantized_text(c, node_output(c, n, 0)->dtype, value, yz);
}

static void conv_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Ports p = ports_of(n);
    const View y = window_view(c, lower_output(l, n, 0));
    Window w;
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    if (!conv_window(c, n, node_input(c, n, p.x), node_input(c, n, p.w), &w)) return;
    Kernel *k = kernel_begin(l, n, "conv_integer");
    kernel_in(k, "X", window_view(c, lower_input(l, n, p.x)));
    kernel_in(k, "W", window_view(c, lower_input(l, n, p.w)));
    kernel_out(k, "Y", y);
    kernel_text(k, "X_ZERO", parameter(l, n, k, "XZ", p.x_zero, "0"));
    kernel_text(k, "W_ZERO", parameter(l, n, k, "WZ", p.w_zero, "0"));
    kernel_text(k, "EPILOGUE", conv_epilogue(l, n, k, &p));
    kernel_int(k, "GROUPS", attr_int(n, "group"));
    window_define(l, k, &w);
    launch_elements(l, k, &y, NULL);
}

/* ---- pools */

static bool channels_last(const Node *n) { return attr_int(n, "channels_last") != 0; }
static bool is_global(const Node *n) { return !strcmp(n->op_type, "QLinearGlobalAveragePool"); }

/* The axes as [N, C, spatial...]. */
static void pool_order(const Node *n, int rank, int *order)
{
    order[0] = 0;
    order[1] = channels_last(n) ? rank - 1 : 1;
    for (int i = 2; i < rank; i++) order[i] = channels_last(n) ? i - 1 : i;
}

static bool pool_window(Compilation *c, const Node *n, const Value *x, Window *w)
{
    Dim spatial[MAX_RANK];
    int order[MAX_RANK];
    pool_order(n, x->rank, order);
    for (int i = 2; i < x->rank; i++) spatial[i - 2] = x->dims[order[i]];
    return window_read(c, n, x->rank - 2, NULL, w) && window_slide(c, n, spatial, w);
}

static bool pool_shape(Compilation *c, Node *n)
{
    static const int single[] = {1, 2, 3, 4};
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    int order[MAX_RANK];
    Window w;
    if (!one_element_each(c, n, single, COUNT_OF(single))) return false;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 3) {
        node_error(c, n, "input '%s': rank 3 or more is needed, found %d", x->name, x->rank);
        return false;
    }
    if (!is_global(n) && !pool_window(c, n, x, &w)) return false;
    pool_order(n, x->rank, order);
    for (int i = 0; i < x->rank; i++)
        dims[order[i]] = i < 2 ? x->dims[order[i]] : is_global(n) ? dim_const(c, 1) : w.out[i - 2];
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void pool_floats(Lower *l, const Node *n, View x, View y)
{
    Compilation *c = lower_compilation(l);
    Window w;
    x = window_view(c, x);
    y = window_view(c, y);
    if (!pool_window(c, n, node_input(c, n, 0), &w)) return;
    Kernel *k = kernel_begin(l, n, "pool");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    kernel_int(k, "HAS_I", 0);
    kernel_int(k, "KIND", 1);
    kernel_int(k, "COUNT_PADS", attr_int(n, "count_include_pad") != 0);
    kernel_text(k, "FOLD_START", "0");
    window_define(l, k, &w);
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

static void pool_all(Lower *l, const Node *n, View x, View y)
{
    Compilation *c = lower_compilation(l);
    const Dim columns = rows_count(c, &x, 2, x.rank), rows = rows_count(c, &x, 0, 2);
    int threads = rows_threads(lower_upper(l, columns));
    if (threads > 256) threads = 256;
    Kernel *k = kernel_begin(l, n, "global_pool");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, 2);
    rows_define(c, k, "Y", &y, 2);
    kernel_int(k, "KIND", 1);
    kernel_text(k, "FOLD_START", "0");
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

static void pool_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Quantisation from = quantisation_of(l, n, 1, 2), to = quantisation_of(l, n, 3, 4);
    int order[MAX_RANK];
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    const View floats = lower_temporary(l, arena_text(&c->arena, "%s.floats", n->name), DT_F32, x.rank, x.dims);
    const View means = lower_temporary(l, arena_text(&c->arena, "%s.means", n->name), DT_F32, y.rank, y.dims);
    requantize(l, n, x, &from, floats, NULL, DT_F32, arena_text(&c->arena, "%s (dequantise)", n->name));
    pool_order(n, x.rank, order);
    const View in = rows_order(&floats, order, x.rank), out = rows_order(&means, order, y.rank);
    if (is_global(n)) pool_all(l, n, in, out);
    else pool_floats(l, n, in, out);
    requantize(l, n, means, NULL, y, &to, node_output(c, n, 0)->dtype, arena_text(&c->arena, "%s (quantise)", n->name));
}

#define BYTES "u8 i8"
#define WINDOW "auto_pad:string=NOTSET, dilations:ints?, group:int=1, kernel_shape:ints?, pads:ints?, strides:ints?"

static const OpRow rows[] = {
    {.domain = "", .name = "ConvInteger", .since = 10,
     .schema = "x:X, w:W, x_zero_point:X?, w_zero_point:W? -> y:i32 ; " WINDOW " | X=" BYTES ", W=" BYTES,
     .shape = conv_shape, .lower = conv_lower},
    {.domain = "", .name = "QLinearConv", .since = 10,
     .schema = "x:X, x_scale:f32, x_zero_point:X, w:W, w_scale:f32, w_zero_point:W, y_scale:f32, y_zero_point:Y, B:i32? -> y:Y ; " WINDOW
               " | X=" BYTES ", W=" BYTES ", Y=" BYTES,
     .shape = conv_shape, .lower = conv_lower},
    {.domain = "com.microsoft", .name = "QLinearAveragePool", .since = 1,
     .schema = "X:T, x_scale:f32, x_zero_point:T?, y_scale:f32, y_zero_point:T? -> Y:T ; auto_pad:string=NOTSET, ceil_mode:int=0, "
               "channels_last:int=0, count_include_pad:int=0, kernel_shape:ints, pads:ints?, strides:ints? | T=" BYTES,
     .shape = pool_shape, .lower = pool_lower},
    {.domain = "com.microsoft", .name = "QLinearGlobalAveragePool", .since = 1,
     .schema = "X:T, x_scale:f32, x_zero_point:T, y_scale:f32, y_zero_point:T -> Y:T ; channels_last:int=0 | T=" BYTES,
     .shape = pool_shape, .lower = pool_lower},
};

const OpFamily ops_qconv = {rows, COUNT_OF(rows), "compiler/ops/qconv.c"};
