/* sample.c - reading a tensor at places that are data: GridSample and the grid of AffineGrid, RoiAlign, MaxRoiPool. A thread an
 * output element. */
#include "ops/move.h"
#include "ops/window.h"

#include <string.h>

static bool has_rank(Compilation *c, const Node *n, const Value *v, int rank)
{
    if (v->rank < 0 || v->rank == rank) return true;
    node_error(c, n, "input '%s': expected rank %d, found %d", v->name, rank, v->rank);
    return false;
}

static bool equate(Compilation *c, const Node *n, const char *rule, Dim a, Dim b)
{
    return !a || !b || dim_equal(c, a, b) || dim_equate(c, n, rule, a, b);
}

/* Thread an element of Y, whose offset is TARGET; nothing where Y is empty. */
static void launch(Lower *l, Kernel *k, const View *y)
{
    kernel_text(k, "TARGET", index_at(l, "Y", y->rank, "i"));
    launch_elements(l, k, y, NULL);
}

static bool nothing(Lower *l, const View *v) { return lower_upper(l, dims_product(lower_compilation(l), v->rank, v->dims)) == 0; }

/* ---- GridSample */

/* Elements an axis that a mode takes; 0 after an error. Before 20 the names were those of two axes. */
static int grid_taps(Compilation *c, const Node *n)
{
    const char *mode = attr_string(n, "mode");
    if (!strcmp(mode, "nearest")) return 1;
    if (!strcmp(mode, n->op->since < 20 ? "bilinear" : "linear")) return 2;
    if (!strcmp(mode, n->op->since < 20 ? "bicubic" : "cubic")) return 4;
    node_error(c, n, "mode '%s' is none of nearest, %s", mode, n->op->since < 20 ? "bilinear, bicubic" : "linear, cubic");
    return 0;
}

static int grid_padding(Compilation *c, const Node *n)
{
    static const char *const names[] = { "zeros", "border", "reflection" };
    const char *mode = attr_string(n, "padding_mode");
    for (int i = 0; i < 3; i++)
        if (!strcmp(mode, names[i])) return i;
    node_error(c, n, "padding_mode '%s' is none of zeros, border, reflection", mode);
    return -1;
}

static bool grid_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *grid = node_input(c, n, 1);
    Dim dims[MAX_RANK];
    const int taps = grid_taps(c, n);
    if (!taps || grid_padding(c, n) < 0) return false;
    if (x->dtype == DT_BOOL && taps > 1) {
        node_error(c, n, "only mode nearest has a meaning for bool");
        return false;
    }
    if (x->rank < 0 || grid->rank < 0) return output_set(c, n, 0, x->dtype, x->rank < 0 ? grid->rank : x->rank, (Dim[MAX_RANK]){ 0 });
    if (x->rank < 3 || x->rank > 2 + WINDOW_AXES) {
        node_error(c, n, "input '%s' has rank %d; 1 to %d spatial axes are supported", x->name, x->rank, WINDOW_AXES);
        return false;
    }
    if (!has_rank(c, n, grid, x->rank)) return false;
    if (!equate(c, n, "GridSample has a grid for each batch", x->dims[0], grid->dims[0])) return false;
    if (!equate(c, n, "a grid names a place by each spatial axis", grid->dims[x->rank - 1], dim_const(c, x->rank - 2))) return false;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++) dims[i] = grid->dims[i - 1];
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void grid_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = window_view(c, lower_input(l, n, 0)), y = window_view(c, lower_output(l, n, 0));
    const int absent = WINDOW_AXES + 2 - node_input(c, n, 0)->rank, taps = grid_taps(c, n);
    if (nothing(l, &y)) return;
    Kernel *k = kernel_begin(l, n, "grid_sample");
    kernel_in(k, "X", x);
    kernel_in(k, "G", window_axes_added(c, lower_input(l, n, 1), 1, absent));
    kernel_out(k, "Y", y);
    kernel_int(k, "TAPS", taps);
    kernel_int(k, "PADDING", grid_padding(c, n));
    kernel_int(k, "ALIGN", attr_int(n, "align_corners") != 0);
    kernel_int(k, "ABSENT", absent);
    kernel_text(k, "ACC", taps == 1 ? "X_C" : x.store == DT_F64 || dtype_is_integer(x.store) ? "double" : "float");
    launch(l, k, &y);
}

/* ---- AffineGrid */

static bool affine_shape(Compilation *c, Node *n)
{
    const Value *theta = node_input(c, n, 0), *size = node_input(c, n, 1);
    Dim dims[MAX_RANK] = { 0 }, *given;
    int64_t count;
    int known;
    if (!has_rank(c, n, theta, 3) || !has_rank(c, n, size, 1)) return false;
    if (size->rank < 0 || !dim_is_const(c, size->dims[0], &count)) return output_set(c, n, 0, theta->dtype, -1, NULL);
    if (count != 4 && count != 5) {
        node_error(c, n, "input '%s': expected 4 or 5 elements, found %lld", size->name, (long long)count);
        return false;
    }
    if (theta->rank == 3) {
        if (!equate(c, n, "a transform has a row for each axis", theta->dims[1], dim_const(c, count - 2))) return false;
        if (!equate(c, n, "a transform has a column for each axis and one more", theta->dims[2], dim_const(c, count - 1))) return false;
        dims[0] = theta->dims[0];
    }
    if (value_dims(c, size, &given, &known)) {
        if (!equate(c, n, "AffineGrid has a transform for each batch", dims[0], given[0])) return false;
        dims[0] = given[0];
        for (int i = 2; i < known; i++) dims[i - 1] = given[i];
    }
    dims[count - 1] = dim_const(c, count - 2);
    return output_set(c, n, 0, theta->dtype, (int)count, dims);
}

static void affine_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View out = lower_output(l, n, 0);
    const int absent = WINDOW_AXES + 2 - out.rank;
    const View y = window_axes_added(c, out, 1, absent);
    if (nothing(l, &y)) return;
    Kernel *k = kernel_begin(l, n, "affine_grid");
    kernel_in(k, "THETA", lower_input(l, n, 0));
    kernel_out(k, "Y", y);
    kernel_int(k, "AXES", WINDOW_AXES - absent);
    kernel_int(k, "ALIGN", attr_int(n, "align_corners") != 0);
    launch(l, k, &y);
}

/* ---- regions */

/* Output [regions, C, height, width]. */
static bool region_shape(Compilation *c, Node *n, int64_t columns, int64_t height, int64_t width)
{
    const Value *x = node_input(c, n, 0), *rois = node_input(c, n, 1);
    Dim dims[4] = { 0 };
    if (!has_rank(c, n, x, 4) || !has_rank(c, n, rois, 2)) return false;
    if (height < 1 || width < 1) {
        node_error(c, n, "regions of %lld x %lld elements", (long long)height, (long long)width);
        return false;
    }
    if (rois->rank == 2 && !equate(c, n, "a region has its four sides", rois->dims[1], dim_const(c, columns))) return false;
    dims[0] = rois->rank == 2 ? rois->dims[0] : 0;
    dims[1] = x->rank == 4 ? x->dims[1] : 0;
    dims[2] = dim_const(c, height);
    dims[3] = dim_const(c, width);
    return output_set(c, n, 0, x->dtype, 4, dims);
}

static bool align_shape(Compilation *c, Node *n)
{
    const Value *rois = node_input(c, n, 1), *batch = node_input(c, n, 2);
    const char *mode = attr_string(n, "mode");
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) {
        node_error(c, n, "mode '%s' is none of avg, max", mode);
        return false;
    }
    if (op_has(n, "coordinate_transformation_mode")) {
        const char *where = attr_string(n, "coordinate_transformation_mode");
        if (strcmp(where, "half_pixel") != 0 && strcmp(where, "output_half_pixel") != 0) {
            node_error(c, n, "coordinate_transformation_mode '%s' is none of half_pixel, output_half_pixel", where);
            return false;
        }
    }
    if (!has_rank(c, n, batch, 1)) return false;
    if (batch->rank == 1 && rois->rank == 2 && !equate(c, n, "a region has its batch", batch->dims[0], rois->dims[0])) return false;
    return region_shape(c, n, 4, attr_int(n, "output_height"), attr_int(n, "output_width"));
}

static void align_lower(Lower *l, Node *n)
{
    const View y = lower_output(l, n, 0);
    const bool half = op_has(n, "coordinate_transformation_mode") && !strcmp(attr_string(n, "coordinate_transformation_mode"), "half_pixel");
    const int64_t samples = attr_int(n, "sampling_ratio");
    if (nothing(l, &y)) return;
    Kernel *k = kernel_begin(l, n, "roi_align");
    kernel_in(k, "X", lower_input(l, n, 0));
    kernel_in(k, "R", lower_input(l, n, 1));
    kernel_in(k, "B", lower_input(l, n, 2));
    kernel_out(k, "Y", y);
    kernel_int(k, "HALF_PIXEL", half);
    kernel_float(k, "SHIFT", half ? 0.5 : 0);
    kernel_float(k, "SPATIAL_SCALE", attr_float(n, "spatial_scale"));
    kernel_int(k, "SAMPLES", samples > 0 ? samples : 0);
    kernel_int(k, "WANT_MAX", !strcmp(attr_string(n, "mode"), "max"));
    launch(l, k, &y);
}

static bool roi_pool_shape(Compilation *c, Node *n)
{
    if (node_attr(n, "pooled_shape")->count == 2)
        return region_shape(c, n, 5, list_value(n, "pooled_shape", 0, 0), list_value(n, "pooled_shape", 1, 0));
    node_error(c, n, "pooled_shape must have two elements");
    return false;
}

static void roi_pool_lower(Lower *l, Node *n)
{
    const View y = lower_output(l, n, 0);
    if (nothing(l, &y)) return;
    Kernel *k = kernel_begin(l, n, "max_roi_pool");
    kernel_in(k, "X", lower_input(l, n, 0));
    kernel_in(k, "R", lower_input(l, n, 1));
    kernel_out(k, "Y", y);
    kernel_float(k, "SPATIAL_SCALE", attr_float(n, "spatial_scale"));
    launch(l, k, &y);
}

#define OLD_TYPES TYPES_INT " f32 f16 f64 bool"
#define GRID(since_, mode_, types_) \
    { .name = "GridSample", .since = since_, \
      .schema = "X:T, grid:G -> Y:T ; align_corners:int=0, mode:string=" mode_ ", padding_mode:string=zeros | " types_, \
      .shape = grid_shape, .lower = grid_lower }
#define ROI_ALIGN(since_, more_, types_) \
    { .name = "RoiAlign", .since = since_, \
      .schema = "X:T, rois:T, batch_indices:i64 -> Y:T ; " more_ "mode:string=avg, output_height:int=1, output_width:int=1, " \
                "sampling_ratio:int=0, spatial_scale:float=1 | T=" types_, \
      .shape = align_shape, .lower = align_lower }
#define ROI_POOL(since_, types_) \
    { .name = "MaxRoiPool", .since = since_, .schema = "X:T, rois:T -> Y:T ; pooled_shape:ints, spatial_scale:float=1 | T=" types_, \
      .shape = roi_pool_shape, .lower = roi_pool_lower }

static const OpRow rows[] = {
    GRID(16, "bilinear", "T=" OLD_TYPES ", G=f32 f16 f64"),
    GRID(20, "linear", "T=" OLD_TYPES ", G=f32 f16 f64"),
    GRID(22, "linear", "T=" OLD_TYPES " bf16, G=f32 f16 bf16 f64"),
    { .name = "AffineGrid", .since = 20, .schema = "theta:T, size:i64 -> grid:T ; align_corners:int=0 | T=" TYPES_FLOAT,
      .shape = affine_shape, .lower = affine_lower },
    ROI_ALIGN(10, "", "f32 f16 f64"),
    ROI_ALIGN(16, "coordinate_transformation_mode:string=half_pixel, ", "f32 f16 f64"),
    ROI_ALIGN(22, "coordinate_transformation_mode:string=half_pixel, ", "f32 f16 bf16 f64"),
    ROI_POOL(1, "f32 f16 f64"),
    ROI_POOL(22, "f32 f16 bf16 f64"),
};

const OpFamily ops_sample = { rows, (int)COUNT_OF(rows), "sample.c" };
