/* product.c - tiles and batches of matrix products; see product.h. */
#include "ops/product.h"

bool product_flatten(Lower *l, const View *v, View *out)
{
    Compilation *c = lower_compilation(l);
    Dim dims[2] = {dim_const(c, 1), v->dims[v->rank - 1]};
    for (int i = 0; i + 1 < v->rank; i++) dims[0] = dim_mul(c, dims[0], v->dims[i]);
    return view_reshape(l, v, 2, dims, out);
}

/* Coordinate of batch z along axis I of Y, as text. */
static const char *coordinate(Lower *l, const View *y, int axis)
{
    Compilation *c = lower_compilation(l);
    int64_t inner = 1, outer = 1;
    for (int i = axis + 1; i < y->rank - 2; i++) inner *= lower_upper(l, y->dims[i]);
    for (int i = 0; i < axis; i++) outer *= lower_upper(l, y->dims[i]);
    const char *text = "z";
    if (inner > 1) text = arena_text(&c->arena, "(%s / %lld)", text, (long long)inner);
    if (outer > 1) text = arena_text(&c->arena, "(%s %% %lld)", text, (long long)lower_upper(l, y->dims[axis]));
    return text;
}

static const char *batch_offset(Lower *l, const View *y, const View *x)
{
    Compilation *c = lower_compilation(l);
    const char *text = NULL;
    for (int i = 0; i < y->rank - 2; i++) {
        if (x->stride[i] == 0 || lower_upper(l, y->dims[i]) <= 1) continue;
        const char *term = arena_text(&c->arena, "%s * %lldLL", coordinate(l, y, i), (long long)x->stride[i]);
        text = text ? arena_text(&c->arena, "%s + %s", text, term) : term;
    }
    return text ? arena_text(&c->arena, "(%s)", text) : "0";
}

int64_t product_batch(Lower *l, Kernel *k, const View *y, int count, const char *const *names, const View *const *views)
{
    Compilation *c = lower_compilation(l);
    int64_t batch = 1;
    const char *beyond = NULL;
    for (int i = 0; i < y->rank - 2; i++) {
        const int64_t upper = lower_upper(l, y->dims[i]);
        batch *= upper > 0 ? upper : 1;
        if (dim_is_const(c, y->dims[i], NULL)) continue;
        const char *term = arena_text(&c->arena, "%s >= %s", coordinate(l, y, i), lower_c(l, y->dims[i]));
        beyond = beyond ? arena_text(&c->arena, "%s || %s", beyond, term) : term;
    }
    kernel_text(k, "Z_BEYOND", beyond ? arena_text(&c->arena, "(%s)", beyond) : "0");
    for (int i = 0; i < count; i++) kernel_text(k, arena_text(&c->arena, "Z_%s", names[i]), batch_offset(l, y, views[i]));
    return batch;
}

bool product_aligned(Lower *l, const View *v, int64_t elements)
{
    Compilation *c = lower_compilation(l);
    int64_t offset;
    if (!dim_is_const(c, v->offset, &offset) || offset % elements != 0) return false;
    for (int i = 0; i + 1 < v->rank; i++)
        if (v->stride[i] % elements != 0 && !dim_is(c, v->dims[i], 1)) return false;
    return true;
}

int product_vector(DType t) { return 128 / dtype_bits(t); }

const char *product_type(DType t) { return t == DT_F32 ? "F32" : t == DT_F16 ? "F16" : "BF16"; }

int product_rows(int64_t rows) { return rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : 8; }

enum { BUSY_WARPS = 8 * MULTIPROCESSORS }; /* two for each scheduler */

Tiles product_tiles(int64_t rows, int64_t columns, int64_t wide, int64_t chunks, int64_t batch)
{
    Tiles t = {.rows = product_rows(rows), .split = 1};
    t.columns = columns >= wide ? 4 : columns >= 2 ? 2 : 1;
    const int64_t tiles = (columns + t.columns - 1) / t.columns * ((rows + t.rows - 1) / t.rows) * batch;
    while (t.split < 8 && tiles * t.split < BUSY_WARPS && chunks >= 64 * t.split) t.split *= 2;
    t.beside = t.split < 4 ? 4 / t.split : 1;
    return t;
}

void product_launch(Kernel *k, Tiles t, int64_t rows, int64_t columns, int64_t batch)
{
    const int64_t width = (int64_t)t.columns * t.beside;
    kernel_int(k, "MT", t.rows);
    kernel_int(k, "R", t.columns);
    kernel_int(k, "KS", t.split);
    kernel_int(k, "WN", t.beside);
    kernel_int(k, "UNROLL_K", t.rows > 1 ? 1 : t.columns < 4 ? 4 : 2);
    if (rows < 1) rows = 1;
    if (columns < 1) columns = 1;
    kernel_launch(k, (columns + width - 1) / width, (rows + t.rows - 1) / t.rows, batch, 32 * t.beside * t.split);
}

/* ---- many rows */

enum { FEW_ROWS = 16 };

bool product_many_rows(Lower *l, const View *a, DType t, int64_t rows)
{
    return rows > FEW_ROWS && (t == DT_F16 || t == DT_BF16) && a->store == t && a->stride[a->rank - 1] == 1 &&
           product_aligned(l, a, product_vector(t));
}

/* The largest tile of which there are enough for all multiprocessors; STAGES as many as 48 KB hold, up to 4. */
RowTile product_row_tile(int64_t rows, int64_t columns, int64_t batch, bool packed)
{
    static const RowTile tiles[] = {{128, 128, 3}, {64, 128, 4}, {64, 64, 4}};
    RowTile tile = {32, 64, 4};
    for (size_t i = 0; i < COUNT_OF(tiles) && rows > 32; i++) {
        const int64_t blocks = (rows + tiles[i].rows - 1) / tiles[i].rows * ((columns + tiles[i].columns - 1) / tiles[i].columns) * batch;
        tile = tiles[i];
        if (blocks >= MULTIPROCESSORS * 3 / 2) break;
    }
    if (packed) tile.stages = 4;
    return tile;
}

static void rows_as_they_lie(Kernel *k)
{
    kernel_int(k, "GROUPED", 0);
    kernel_text(k, "A_LINE(m)", "(m)");
    kernel_text(k, "Y_LINE(m)", "(m)");
}

static int64_t waves(Lower *l, const View *y, int64_t batch, int64_t high)
{
    const int64_t rows = lower_upper(l, y->dims[y->rank - 2]), columns = lower_upper(l, y->dims[y->rank - 1]);
    return ceil_div(ceil_div(rows, high) * ceil_div(columns, WIDE_COLUMNS) * batch, MULTIPROCESSORS);
}

/* Rows of a block whose products are wgmma's, WIDE_ROWS or twice as many; TWICE: the time of the latter in percent of the former's. (Measured: RESULTS.md.) */
static int wide_rows(Lower *l, const View *y, int64_t batch, int64_t twice)
{
    return 100 * waves(l, y, batch, WIDE_ROWS) <= twice * waves(l, y, batch, 2 * WIDE_ROWS) ? WIDE_ROWS : 2 * WIDE_ROWS;
}

static bool pairs_of(Lower *l, const View *y)
{
    return (y->store == DT_F16 || y->store == DT_BF16) && y->stride[y->rank - 1] == 1 && product_aligned(l, y, 2);
}

bool product_wide(Lower *l, const View *y)
{
    Compilation *c = lower_compilation(l);
    const Dim columns = y->dims[y->rank - 1];
    return lower_upper(l, y->dims[y->rank - 2]) >= WIDE_ROWS && dim_is_const(c, columns, NULL) && lower_upper(l, columns) >= WIDE_COLUMNS && codegen_has_wgmma(c, c->options.targets);
}

/* STAGES of so many bytes besides the rows' part. */
static void wide_launch(Lower *l, Kernel *k, DType t, const View *y, int high, int stages, int64_t beside, int64_t batch)
{
    const int64_t rows = lower_upper(l, y->dims[y->rank - 2]), columns = lower_upper(l, y->dims[y->rank - 1]);
    const int64_t bytes = 1024 + stages * (high * 128 + beside);
    kernel_int(k, "BM", high);
    kernel_int(k, "BN", WIDE_COLUMNS);
    kernel_int(k, "STAGES", stages);
    kernel_int(k, "SHARED_BYTES", bytes);
    kernel_text(k, "TYPE", product_type(t));
    kernel_text(k, "YTYPE", product_type(y->store));
    kernel_int(k, "PAIRS", pairs_of(l, y));
    kernel_shared(k, bytes);
    kernel_launch(k, ceil_div(rows, high), ceil_div(columns, WIDE_COLUMNS), batch, 2 * WIDE_COLUMNS);
}

void product_wide_packed(Lower *l, Kernel *k, DType t, const View *y, int64_t batch)
{
    wide_launch(l, k, t, y, wide_rows(l, y, batch, 140), 5, WIDE_COLUMNS * 48, batch);
}

void product_wide_rows(Lower *l, Kernel *k, DType t, const View *y, int chunk, int64_t batch)
{
    const int high = wide_rows(l, y, batch, 175);
    const int stages = high == WIDE_ROWS ? 6 : 4; /* 192 KB; half of it, for two blocks on a multiprocessor, hides too little */
    kernel_int(k, "WIDE", 1);
    kernel_int(k, "CH", chunk);
    kernel_int(k, "R", 4);
    rows_as_they_lie(k);
    wide_launch(l, k, t, y, high, stages, WIDE_COLUMNS * 128, batch);
}

void product_rows_set(Lower *l, Kernel *k, DType t, const View *y, RowTile tile, int chunk, bool packed)
{
    const int each = tile.rows * tile.columns / 8 / ROW_THREADS, most = packed ? 2 : 4;
    kernel_int(k, "WIDE", 0);
    kernel_int(k, "BM", tile.rows);
    kernel_int(k, "BN", tile.columns);
    kernel_int(k, "STAGES", tile.stages);
    kernel_int(k, "CH", chunk);
    kernel_int(k, "R", each < most ? each : most);
    kernel_text(k, "TYPE", product_type(t));
    kernel_text(k, "YTYPE", product_type(y->store));
    kernel_int(k, "PAIRS", pairs_of(l, y));
}

void product_rows_launch(Lower *l, Kernel *k, DType t, const View *y, int chunk, bool packed, int64_t batch)
{
    const int64_t rows = lower_upper(l, y->dims[y->rank - 2]), columns = lower_upper(l, y->dims[y->rank - 1]);
    const RowTile tile = product_row_tile(rows, columns, batch, packed);
    product_rows_set(l, k, t, y, tile, chunk, packed);
    rows_as_they_lie(k);
    kernel_launch(k, (rows + tile.rows - 1) / tile.rows, columns < 1 ? 1 : (columns + tile.columns - 1) / tile.columns, batch, ROW_THREADS);
}
