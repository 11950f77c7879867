/* resize.c - Resize and Upsample. Nearest is one copy with computed places. Linear and cubic are passes over one or two axes
 * each: interpolation is separable, and an antialiasing filter may be as long as the axis. */
#include "ops/move.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

enum { ROI_INPUT = 1, SIZES_INPUT = 3 }; /* since 11 */

/* What a node of any opset asks for; absent inputs are NULL. The lists speak of `axes`. */
typedef struct Ask {
    const char *mode, *coordinates, *nearest, *policy;
    const Value *roi, *scales, *sizes;
    int scales_input, count, axes[MAX_RANK];
    bool antialias, exclude;
} Ask;

/* One axis of the tensor. `scale` and `width` (the exact output extent, which a scale may leave fractional) are C texts,
 * valid when lowering. */
typedef struct Axis {
    bool moves;
    bool data;            /* its scale is read when running */
    int place;            /* in the lists; of axes that move */
    const char *scale, *width, *in, *out;
} Axis;

/* ---- reading */

static bool is_empty(Compilation *c, const Value *v) { return v && v->rank == 1 && dim_is(c, v->dims[0], 0); }

static const Value *filled(Compilation *c, const Node *n, int i)
{
    const Value *v = i < n->input_count ? node_input(c, n, i) : NULL;
    return is_empty(c, v) ? NULL : v;
}

static bool one_of(Compilation *c, const Node *n, const char *attribute, const char *text, const char *allowed)
{
    const char *found = *text ? strstr(allowed, text) : NULL;
    const size_t size = strlen(text);
    for (; found; found = strstr(found + 1, text))
        if ((found == allowed || found[-1] == ' ') && (!found[size] || found[size] == ' ')) return true;
    node_error(c, n, "%s '%s' is none of %s", attribute, text, allowed);
    return false;
}

static const char *text_or(const Node *n, const char *attribute, const char *otherwise)
{
    return op_has(n, attribute) ? attr_string(n, attribute) : otherwise;
}

static bool ask_axes(Compilation *c, const Node *n, int rank, Ask *ask)
{
    const Attr *axes = op_has(n, "axes") && attr_given(n, "axes") ? node_attr(n, "axes") : NULL;
    unsigned seen = 0;
    ask->count = axes ? axes->count : rank;
    if (ask->count > rank) {
        node_error(c, n, "%d axes for rank %d", ask->count, rank);
        return false;
    }
    for (int i = 0; i < ask->count; i++) {
        ask->axes[i] = axes ? axis_normal(c, n, axes->ints[i], rank) : i;
        if (ask->axes[i] < 0) return false;
        if (seen >> ask->axes[i] & 1) {
            node_error(c, n, "axis %d is given twice", ask->axes[i]);
            return false;
        }
        seen |= 1u << ask->axes[i];
    }
    return true;
}

/* Before 11 every output place is x / scale; nearest takes what is below when the axis grows, else what is above. */
static bool ask_read(Compilation *c, const Node *n, int rank, Ask *ask)
{
    const bool upsample = !strcmp(n->op_type, "Upsample"), old = upsample || n->op->since < 11;
    memset(ask, 0, sizeof *ask);
    ask->mode = attr_string(n, "mode");
    ask->coordinates = old ? "asymmetric" : attr_string(n, "coordinate_transformation_mode");
    ask->nearest = old ? "away" : attr_string(n, "nearest_mode");
    ask->policy = text_or(n, "keep_aspect_ratio_policy", "stretch");
    ask->antialias = op_has(n, "antialias") && attr_int(n, "antialias");
    ask->exclude = op_has(n, "exclude_outside") && attr_int(n, "exclude_outside");
    ask->scales_input = old ? 1 : 2;
    if (!old) ask->roi = filled(c, n, ROI_INPUT);
    if (n->input_count > 1) ask->scales = filled(c, n, ask->scales_input);
    if (!old) ask->sizes = filled(c, n, SIZES_INPUT);
    if (!one_of(c, n, "mode", ask->mode, "nearest linear bilinear cubic")) return false;
    if (!old && !one_of(c, n, "coordinate_transformation_mode", ask->coordinates,
                        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize tf_half_pixel_for_nn"))
        return false;
    if (!old && !one_of(c, n, "nearest_mode", ask->nearest, "round_prefer_floor round_prefer_ceil floor ceil")) return false;
    if (!one_of(c, n, "keep_aspect_ratio_policy", ask->policy, "stretch not_larger not_smaller")) return false;
    if (ask->scales && ask->sizes) {
        node_error(c, n, "both scales and sizes are given");
        return false;
    }
    if (!ask->scales && !ask->sizes && !op_has(n, "scales")) {
        node_error(c, n, "neither scales nor sizes are given");
        return false;
    }
    if (ask->antialias && !strcmp(ask->mode, "nearest")) {
        node_error(c, n, "antialias has no meaning with mode nearest");
        return false;
    }
    if (!strcmp(ask->coordinates, "tf_crop_and_resize") && !ask->roi) {
        node_error(c, n, "tf_crop_and_resize needs a roi");
        return false;
    }
    return ask_axes(c, n, rank, ask);
}

/* Constant floats of a value, COUNT of them; false while not known (or after an error). */
static bool known_floats(Compilation *c, const Node *n, const Value *v, int count, double *out)
{
    int64_t size;
    if (!v->data || !v->data->bytes) return false;
    if (v->rank != 1 || !dim_is_const(c, v->dims[0], &size) || size != count) {
        node_error(c, n, "input '%s': expected %d elements", v->name, count);
        return false;
    }
    for (int i = 0; i < count; i++) out[i] = data_float(v, i);
    return true;
}

static bool known_scales(Compilation *c, const Node *n, const Ask *ask, double *out)
{
    if (ask->scales && !known_floats(c, n, ask->scales, ask->count, out)) return false;
    if (!ask->scales) {
        const Attr *a = node_attr(n, "scales");
        if (a->count != ask->count) {
            node_error(c, n, "attribute 'scales' has %d elements for rank %d", a->count, ask->count);
            return false;
        }
        for (int i = 0; i < a->count; i++) out[i] = (double)(float)a->floats[i];
    }
    for (int i = 0; i < ask->count; i++) {
        const bool small = !strcmp(n->op_type, "Upsample") && out[i] < 1;
        if (out[i] > 0 && out[i] < 1e9 && !small) continue;
        node_error(c, n, "scale %g of axis %d is out of range", out[i], ask->axes[i]);
        return false;
    }
    return true;
}

/* The one scale of all axes that keeps the aspect ratio; false while not known. */
static bool kept_aspect(Compilation *c, const Value *x, const Ask *ask, const Dim *sizes, double *scale)
{
    const bool larger = !strcmp(ask->policy, "not_smaller");
    for (int i = 0; i < ask->count; i++) {
        int64_t in, out;
        if (!dim_is_const(c, x->dims[ask->axes[i]], &in) || !dim_is_const(c, sizes[i], &out) || in < 1) return false;
        const double s = (double)out / (double)in;
        if (i == 0 || (larger ? s > *scale : s < *scale)) *scale = s;
    }
    return ask->count > 0;
}

static bool known_sizes(Compilation *c, const Node *n, const Ask *ask, Dim **sizes)
{
    int count;
    if (!value_dims(c, ask->sizes, sizes, &count)) return false;
    if (count == ask->count) return true;
    node_error(c, n, "input '%s': expected %d elements", ask->sizes->name, ask->count);
    return false;
}

/* ---- shape */

/* floor(in * scale) as the specification's own inference rounds it: in float. Symbols allow scales that are exact binary fractions. */
static Dim scaled(Compilation *c, Dim in, double scale)
{
    int64_t v;
    if (!in) return 0;
    if (dim_is_const(c, in, &v)) return dim_const(c, (int64_t)floorf((float)v * (float)scale));
    for (int64_t parts = 1; parts <= 256; parts *= 2) {
        const double whole = scale * (double)parts;
        if (whole != floor(whole)) continue;
        return dim_op(c, DIM_FLOORDIV, dim_scale(c, in, (int64_t)whole), dim_const(c, parts));
    }
    return 0;
}

/* Output dims into DIMS, which holds the input's; 0 where they are not known. False after an error. */
static bool resized(Compilation *c, const Node *n, const Value *x, const Ask *ask, Dim *dims)
{
    double scales[MAX_RANK], scale = 1;
    Dim *sizes;
    if (ask->sizes) {
        const bool known = known_sizes(c, n, ask, &sizes), stretch = !strcmp(ask->policy, "stretch");
        const bool kept = known && !stretch && kept_aspect(c, x, ask, sizes, &scale);
        for (int i = 0; i < ask->count; i++) {
            const int axis = ask->axes[i];
            int64_t in;
            dims[axis] = known && stretch ? sizes[i] : 0;
            if (kept && dim_is_const(c, x->dims[axis], &in)) dims[axis] = dim_const(c, (int64_t)floor(scale * (double)in + 0.5));
        }
        return !diag_failed(c);
    }
    const bool known = known_scales(c, n, ask, scales);
    for (int i = 0; i < ask->count; i++) dims[ask->axes[i]] = known ? scaled(c, x->dims[ask->axes[i]], scales[i]) : 0;
    return !diag_failed(c);
}

static bool resize_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    Ask ask;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!ask_read(c, n, x->rank, &ask)) return false;
    if (x->dtype == DT_BOOL && strcmp(ask.mode, "nearest") != 0) {
        node_error(c, n, "mode %s has no meaning for bool", ask.mode);
        return false;
    }
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    return resized(c, n, x, &ask, dims) && output_set(c, n, 0, x->dtype, x->rank, dims);
}

/* ---- lowering: where output places lie in the input */

static bool is_crop(const Ask *ask) { return !strcmp(ask->coordinates, "tf_crop_and_resize"); }

/* A region of interest that is known to be all of the axis. */
static bool whole_region(Compilation *c, const Node *n, const Ask *ask, int place)
{
    double roi[2 * MAX_RANK];
    if (!is_crop(ask)) return true;
    return known_floats(c, n, ask->roi, 2 * ask->count, roi) && roi[place] == 0 && roi[ask->count + place] == 1;
}

static const char *number(Compilation *c, double v) { return arena_text(&c->arena, "(%a)", v); }

/* The scale that keeps the aspect ratio, from sizes that are data. */
static const char *kept_text(Compilation *c, const Ask *ask, const Axis *axes)
{
    const char *text = NULL;
    for (int i = 0; i < ask->count; i++) {
        const char *one = arena_text(&c->arena, "(double)SZ_LD(SZ_OFF + %d * SZ_S0) / (double)(%s)", i, axes[ask->axes[i]].in);
        const char *pick = !strcmp(ask->policy, "not_smaller") ? "fmax" : "fmin";
        text = text ? arena_text(&c->arena, "%s(%s, %s)", pick, text, one) : one;
    }
    return arena_text(&c->arena, "(%s)", text ? text : "1.0");
}

/* Scale text of place I in the lists: a number, or read by the kernels when running (*data). NULL after an error. */
static const char *scale_text(Compilation *c, const Node *n, const Ask *ask, const Axis *axes, int i, bool *data)
{
    const Axis *a = &axes[ask->axes[i]];
    double scales[MAX_RANK], scale = 1;
    Dim *sizes;
    *data = false;
    if (!ask->sizes) {
        if (known_scales(c, n, ask, scales)) return number(c, scales[i]);
        *data = true;
        return diag_failed(c) ? NULL : arena_text(&c->arena, "(double)SC_LD(SC_OFF + %d * SC_S0)", i);
    }
    if (!strcmp(ask->policy, "stretch")) return arena_text(&c->arena, "((double)(%s) / (double)(%s))", a->out, a->in);
    if (known_sizes(c, n, ask, &sizes) && kept_aspect(c, node_input(c, n, 0), ask, sizes, &scale)) return number(c, scale);
    *data = true;
    return diag_failed(c) ? NULL : kept_text(c, ask, axes);
}

static bool axes_read(Lower *l, const Node *n, const Ask *ask, const View *x, const View *y, Axis *axes)
{
    Compilation *c = lower_compilation(l);
    const bool stretched = ask->sizes && !strcmp(ask->policy, "stretch");
    memset(axes, 0, sizeof(Axis) * MAX_RANK);
    for (int i = 0; i < x->rank; i++) {
        axes[i].in = lower_c(l, x->dims[i]);
        axes[i].out = lower_c(l, y->dims[i]);
    }
    for (int i = 0; i < ask->count; i++) {
        Axis *a = &axes[ask->axes[i]];
        const bool same = dim_equal(c, x->dims[ask->axes[i]], y->dims[ask->axes[i]]);
        a->place = i;
        a->scale = scale_text(c, n, ask, axes, i, &a->data);
        if (!a->scale) return false;
        a->width = stretched ? arena_text(&c->arena, "(double)(%s)", a->out) : arena_text(&c->arena, "(%s * (double)(%s))", a->scale, a->in);
        a->moves = !same || !whole_region(c, n, ask, i) || !(stretched || !strcmp(a->scale, number(c, 1)));
    }
    return true;
}

/* Text of start (END false) or end of the region of interest along that place in the lists. */
static const char *region(Compilation *c, const Ask *ask, int place, bool end)
{
    return arena_text(&c->arena, "(double)R_LD(R_OFF + %d * R_S0)", end ? ask->count + place : place);
}

static const char *crop_place(Compilation *c, const Ask *ask, const Axis *a, int i)
{
    const char *start = region(c, ask, a->place, false), *end = region(c, ask, a->place, true);
    return arena_text(&c->arena,
                      "((%s) > 1 ? %s * ((double)(%s) - 1) + (double)i%d * (%s - %s) * ((double)(%s) - 1) / (%s - 1)"
                      " : 0.5 * (%s + %s) * ((double)(%s) - 1))",
                      a->width, start, a->in, i, end, start, a->in, a->width, start, end, a->in);
}

/* Where output index i of axis I lies in the input: a double. */
static const char *source_place(Compilation *c, const Ask *ask, const Axis *a, int i)
{
    const char *half = arena_text(&c->arena, "((double)i%d + 0.5) / %s - 0.5", i, a->scale);
    if (is_crop(ask)) return crop_place(c, ask, a, i);
    if (!strcmp(ask->coordinates, "asymmetric")) return arena_text(&c->arena, "(double)i%d / %s", i, a->scale);
    if (!strcmp(ask->coordinates, "tf_half_pixel_for_nn")) return arena_text(&c->arena, "((double)i%d + 0.5) / %s", i, a->scale);
    if (!strcmp(ask->coordinates, "pytorch_half_pixel")) return arena_text(&c->arena, "((%s) > 1 ? %s : 0.0)", a->out, half);
    if (!strcmp(ask->coordinates, "align_corners"))
        return arena_text(&c->arena, "(%s == 1 ? 0.0 : (double)i%d * ((double)(%s) - 1) / (%s - 1))", a->width, i, a->in, a->width);
    if (!strcmp(ask->coordinates, "half_pixel_symmetric"))
        return arena_text(&c->arena, "(double)(%s) / 2 * (1 - (double)(%s) / %s) + %s", a->in, a->out, a->width, half);
    return half;
}

/* The inputs that the texts above read, and the place of axis I as they give it: data may be anything, so it is bounded. */
static void place_operands(Lower *l, const Node *n, Kernel *k, const Ask *ask, const Axis *axes, int rank)
{
    bool data = false;
    for (int i = 0; i < rank; i++) data |= axes[i].data;
    if (is_crop(ask)) kernel_in(k, "R", lower_input(l, n, ROI_INPUT));
    if (data && ask->scales) kernel_in(k, "SC", lower_input(l, n, ask->scales_input));
    if (data && ask->sizes) kernel_in(k, "SZ", lower_input(l, n, SIZES_INPUT));
}

static const char *place_text(Compilation *c, const char *name, const Ask *ask, const Axis *a, int i)
{
    return arena_text(&c->arena, "const double %s = fmin(fmax(%s, -1e9), 1e9);", name, source_place(c, ask, a, i));
}

/* ---- nearest */

static const char *nearest_place(Compilation *c, const Ask *ask, const Axis *a, int i)
{
    if (!strcmp(ask->nearest, "floor")) return arena_text(&c->arena, "floor(p%d)", i);
    if (!strcmp(ask->nearest, "ceil")) return arena_text(&c->arena, "ceil(p%d)", i);
    if (!strcmp(ask->nearest, "round_prefer_ceil")) return arena_text(&c->arena, "floor(p%d + 0.5)", i);
    if (!strcmp(ask->nearest, "away")) return arena_text(&c->arena, "(%s < 1 ? ceil(p%d) : floor(p%d))", a->scale, i, i);
    return arena_text(&c->arena, "ceil(p%d - 0.5)", i);
}

static void nearest_lower(Lower *l, const Node *n, const Ask *ask, const Axis *axes, const View *x, const View *y)
{
    Compilation *c = lower_compilation(l);
    const char *source = "X_OFF", *more = "", *inside = "1";
    for (int i = 0; i < x->rank; i++) {
        const Axis *a = &axes[i];
        source = arena_text(&c->arena, "%s + %s%d * X_S%d", source, a->moves ? "s" : "i", i, i);
        if (!a->moves) continue;
        more = arena_text(&c->arena, "%s%s idx s%d = (idx)(%s); s%d = MIN(MAX(s%d, 0), (%s) - 1); ", more,
                          place_text(c, arena_text(&c->arena, "p%d", i), ask, a, i), i, nearest_place(c, ask, a, i), i, i, a->in);
        if (is_crop(ask)) inside = arena_text(&c->arena, "%s && p%d >= 0 && p%d <= (double)(%s) - 1", inside, i, i, a->in);
    }
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", *x);
    place_operands(l, n, k, ask, axes, x->rank);
    kernel_out(k, "Y", *y);
    const char *value = arena_text(&c->arena, "X_LD(%s)", source);
    if (is_crop(ask)) value = arena_text(&c->arena, "((%s) ? %s : (X_C)%a)", inside, value, attr_float(n, "extrapolation_value"));
    kernel_text(k, "VALUE", value);
    kernel_text(k, "TARGET", index_at(l, "Y", y->rank, "i"));
    launch_elements(l, k, y, more);
}

/* ---- linear and cubic */

/* An integer is stored rounded to nearest even and clamped to its type. */
static const char *stored(Compilation *c, DType t)
{
    const int bits = dtype_bits(t);
    if (!dtype_is_integer(t)) return "(v)";
    if (bits == 64) return "(idx)rint((double)(v))";
    const bool has_sign = t == DT_I8 || t == DT_I16 || t == DT_I32;
    const double low = has_sign ? -ldexp(1, bits - 1) : 0, high = ldexp(1, has_sign ? bits - 1 : bits) - 1;
    return arena_text(&c->arena, "(idx)fmin(fmax(rint((double)(v)), (%a)), %a)", low, high);
}

static bool wide_sums(DType t) { return t == DT_F64 || (dtype_is_integer(t) && dtype_bits(t) >= 32); }

/* One pass along axes A (-1: none) and B. */
static void stage_lower(Lower *l, const Node *n, const Ask *ask, const Axis *axes, int a, int b, const View *x, const View *y, bool wide)
{
    Compilation *c = lower_compilation(l);
    const char *base = "X_OFF", *more = place_text(c, "p_b", ask, &axes[b], b);
    Kernel *k = kernel_begin(l, n, "resize");
    kernel_in(k, "X", *x);
    place_operands(l, n, k, ask, axes, x->rank);
    kernel_out(k, "Y", *y);
    for (int i = 0; i < x->rank; i++)
        if (i != a && i != b) base = arena_text(&c->arena, "%s + i%d * X_S%d", base, i, i);
    for (int pass = 0; pass < 2; pass++) {
        const int axis = pass ? b : a;
        const char letter = pass ? 'B' : 'A';
        if (axis < 0) continue;
        /* The filter is as long as the axis shrinks; data could ask for one without end. */
        const char *stretch = ask->antialias ? arena_text(&c->arena, "fmin(fmax(%s, 0x1p-13), 1.0)", axes[axis].scale) : "1.0";
        kernel_text(k, arena_text(&c->arena, "STRETCH_%c", letter), stretch);
        kernel_text(k, arena_text(&c->arena, "IN_%c", letter), arena_text(&c->arena, "(idx)(%s)", axes[axis].in));
        kernel_text(k, arena_text(&c->arena, "STEP_%c", letter), arena_text(&c->arena, "X_S%d", axis));
    }
    if (a >= 0) more = arena_text(&c->arena, "%s %s", place_text(c, "p_a", ask, &axes[a], a), more);
    kernel_int(k, "AXES", a >= 0 ? 2 : 1);
    kernel_int(k, "CUBIC", !strcmp(ask->mode, "cubic"));
    kernel_float(k, "CUBIC_A", op_has(n, "cubic_coeff_a") ? attr_float(n, "cubic_coeff_a") : -0.75);
    kernel_int(k, "EXTRAPOLATE", is_crop(ask));
    kernel_float(k, "EXTRA", is_crop(ask) ? attr_float(n, "extrapolation_value") : 0);
    kernel_int(k, "EXCLUDE", ask->exclude);
    kernel_int(k, "NORMALISE", ask->exclude || ask->antialias);
    kernel_text(k, "ACC", wide ? "double" : "float");
    kernel_text(k, "STORED(v)", stored(c, y->store));
    kernel_text(k, "BASE", base);
    kernel_text(k, "TARGET", index_at(l, "Y", y->rank, "i"));
    launch_elements(l, k, y, more);
}

static void smooth_lower(Lower *l, const Node *n, const Ask *ask, const Axis *axes, View x, const View *y)
{
    Compilation *c = lower_compilation(l);
    const bool wide = wide_sums(x.store);
    int left[MAX_RANK], count = 0;
    for (int i = 0; i < x.rank; i++)
        if (axes[i].moves) left[count++] = i;
    for (int at = 0; at < count;) {
        const int step = ask->antialias || at + 1 == count ? 1 : 2;
        const int a = step == 2 ? left[at] : -1, b = left[at + step - 1];
        View to = *y;
        at += step;
        if (at < count) {
            Dim dims[MAX_RANK];
            for (int i = 0; i < x.rank; i++) dims[i] = i == a || i == b ? y->dims[i] : x.dims[i];
            to = lower_temporary(l, arena_text(&c->arena, "%s.pass%d", n->name, at), wide ? DT_F64 : DT_F32, x.rank, dims);
        }
        stage_lower(l, n, ask, axes, a, b, &x, &to, wide);
        x = to;
    }
}

static void resize_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0);
    Axis axes[MAX_RANK];
    Ask ask;
    bool moves = false;
    if (!ask_read(c, n, x.rank, &ask)) return;
    const View y = lower_output(l, n, 0);
    if (!axes_read(l, n, &ask, &x, &y, axes)) return;
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    for (int i = 0; i < x.rank; i++) moves |= axes[i].moves;
    if (!moves) lower_copy(l, n, x, y, n->name);
    else if (!strcmp(ask.mode, "nearest")) nearest_lower(l, n, &ask, axes, &x, &y);
    else smooth_lower(l, n, &ask, axes, x, &y);
}

#define OLD_TYPES TYPES_INT " f32 f16 f64 bool"
#define TYPES TYPES_INT " f32 f16 bf16 f64 bool"
#define SAMPLING \
    "coordinate_transformation_mode:string=half_pixel, cubic_coeff_a:float=-0.75, exclude_outside:int=0, " \
    "extrapolation_value:float=0, mode:string=nearest, nearest_mode:string=round_prefer_floor"
#define RESIZE(name_, since_, schema_) \
    { .name = name_, .since = since_, .schema = schema_, .shape = resize_shape, .lower = resize_lower }

static const OpRow rows[] = {
    RESIZE("Upsample", 7, "X:T -> Y:T ; mode:string=nearest, scales:floats | T=" OLD_TYPES),
    RESIZE("Upsample", 9, "X:T, scales:f32 -> Y:T ; mode:string=nearest | T=" OLD_TYPES),
    RESIZE("Resize", 10, "X:T, scales:f32 -> Y:T ; mode:string=nearest | T=" OLD_TYPES),
    RESIZE("Resize", 11, "X:T, roi:R, scales:f32, sizes:i64? -> Y:T ; " SAMPLING " | T=" OLD_TYPES ", R=f32 f16 f64"),
    RESIZE("Resize", 13, "X:T, roi:R?, scales:f32?, sizes:i64? -> Y:T ; " SAMPLING " | T=" TYPES ", R=f32 f16 f64"),
    RESIZE("Resize", 18,
           "X:T, roi:R?, scales:f32?, sizes:i64? -> Y:T ; antialias:int=0, axes:ints?, keep_aspect_ratio_policy:string=stretch, " SAMPLING
           " | T=" TYPES ", R=f32 f16 f64"),
};

const OpFamily ops_resize = { rows, (int)COUNT_OF(rows), "resize.c" };
