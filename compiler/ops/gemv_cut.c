/* gemv_cut.c - how the work of gemv's kernels is cut: blocks, warps, what is on its way, and the tuning points of that. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/product.h"

enum { SUMS_BYTES = 16 * 1024 };
/* A multiprocessor's shared memory (what the runtime asks the driver for, see SHARED_CARVEOUT), and how
 * much of that on its way is enough. (Figures of an H200.) */
enum { RING_SHARED = 132 * 1024, RING_FLYING = 96 * 1024 };

int gemv_rows_16(Lower *l, const RowMatrix *m, DType type, int64_t units)
{
    static const int64_t candidates[] = {0, 8, 16};
    const char *key = arena_text(&lower_compilation(l)->arena, "gemv_rows/units=%lldx8,k=%lld,%s", (long long)units, (long long)m->k, dtype_name(type));
    const int64_t choice = tuning_choice(l, key, candidates, (int)COUNT_OF(candidates), 0);
    return choice ? (int)choice : units <= MULTIPROCESSORS * 7 / 8 ? 8 : 16;
}

static RowCut cut_of(int64_t blocks, int64_t warps, int64_t slices)
{
    const int64_t each = ceil_div(slices, warps);
    return (RowCut){.grid = blocks, .warps = ceil_div(slices, each), .slices = each};
}

/* Time of the busiest multiprocessor, in slices: blocks on one share it. */
static int64_t cost_of(const RowCut *c, int64_t units)
{
    return ceil_div(units, c->grid) * ceil_div(c->grid, MULTIPROCESSORS) * c->warps * c->slices;
}

/* Blocks that stay, BLOCKS on a multiprocessor, of up to WARPS warps. */
static RowCut cut_resident(int64_t blocks, int64_t warps, int64_t units, int64_t slices)
{
    RowCut cut = cut_of(MULTIPROCESSORS * blocks, warps, slices);
    if (cut.grid > units) cut.grid = units;
    return cut;
}

/* Few units: a block each, all in place at once. Many: blocks that stay, as many as keep a multiprocessor busy without an idle last round.
 * (Found by measuring on an H200: see tests/bench/RESULTS.md.) */
static RowCut cut_work(const RowTiles *t, int64_t slices)
{
    if (t->units <= MULTIPROCESSORS) return cut_of(t->units, 20, slices);
    if (t->units <= 2 * MULTIPROCESSORS && t->main->bits == 16) return cut_resident(1, 20, t->units, slices);
    if (t->units <= 3 * MULTIPROCESSORS && slices <= 10) return cut_of(t->units, 10, slices);
    if (t->main->bits == 16) return cut_resident(slices <= 8 ? 4 : 2, slices <= 8 ? 8 : 10, t->units, slices);
    const RowCut two = cut_resident(2, 10, t->units, slices), one = cut_resident(1, 20, t->units, slices);
    return slices > 10 && cost_of(&one, t->units) <= cost_of(&two, t->units) ? one : two;
}

/* The table's choice (0), or 100 times the blocks that stay on a multiprocessor plus their warps. */
static RowCut choose_cut(const RowTiles *t, int64_t slices)
{
    static const int64_t candidates[] = {0, 120, 210, 310, 408, 607};
    const RowMatrix *m = t->main;
    const char *key = arena_text(&lower_compilation(t->l)->arena, "gemv_blocks/units=%lldx%dx%d,k=%lld,bits=%d,block=%lld,zeros=%d,%s", (long long)t->units,
                                 t->parts, t->rows, (long long)m->k, m->bits, (long long)(m->bits == 4 ? m->group : 0), m->zeros.buffer != 0,
                                 dtype_name(t->type));
    const int64_t choice = tuning_choice(t->l, key, candidates, (int)COUNT_OF(candidates), 0);
    return choice ? cut_resident(choice / 100, choice % 100, t->units, slices) : cut_work(t, slices);
}

/* The most registers of a thread, so that other kernels' blocks find room beside it; 0: as many as it wants. Where less is better only measuring tells:
 * kernels too far ahead draw bandwidth from those that others wait for. */
static int64_t registers(const RowTiles *t)
{
    static const int64_t candidates[] = {0, 64, 48};
    const RowMatrix *m = t->main;
    const char *key = arena_text(&lower_compilation(t->l)->arena, "gemv_registers/units=%lldx%dx%d,k=%lld,bits=%d", (long long)t->units, t->parts, t->rows,
                                 (long long)m->k, m->bits);
    return tuning_choice(t->l, key, candidates, (int)COUNT_OF(candidates), 0);
}

/* Bytes of scales that a lane copies of a slice. */
static int scale_bytes(const RowTiles *t) { return 2 * t->rows * t->span / t->main->group >= 256 ? 8 : 4; }

/* Whether scales of a slice come in such pieces, and a row's zeros in one word. */
static bool scales_copied(const RowTiles *t)
{
    const RowMatrix *m = t->main;
    if (m->bits != 4 || m->group > t->span / 2) return false;
    return ceil_div(m->k, m->group) % (scale_bytes(t) / 2) == 0 && (!m->zeros.buffer || m->zero_row % 4 == 0);
}

/* Bytes of a place in the ring. */
static int64_t slot_bytes(const RowTiles *t)
{
    const int64_t tile = t->rows * t->span * t->main->bits / 8;
    if (!scales_copied(t)) return tile;
    return tile + 2 * t->rows * t->span / t->main->group + (t->main->zeros.buffer ? 4 * t->rows : 0);
}

/* How shared memory is used: the sums of units, then as many slices on their way as there is room for and use, a divisor of a warp's
 * slices of a tile or a multiple. */
static void place_ring(const RowTiles *t, RowCut *cut)
{
    const int64_t each = ceil_div(t->units, cut->grid), blocks = ceil_div(cut->grid, MULTIPROCESSORS), slice = cut->warps * cut->slot;
    const int64_t sums = cut->warps * t->rows * 4, limit = codegen_shared_limit(lower_compilation(t->l), lower_compilation(t->l)->options.targets);
    const int64_t row = 2 * ceil_div(t->main->k, t->span) * t->span; /* bytes of it, which has its place there where there are no tensor cores */
    int64_t room = RING_SHARED / blocks - 1024;
    if (room > limit) room = limit;
    room -= 1024;
    cut->kept = SUMS_BYTES / sums < each ? SUMS_BYTES / sums : each;
    while (cut->kept > 1 && (cut->kept * sums > room / 8 || cut->kept * sums > GEMV_SHARED - row)) cut->kept /= 2;
    if (cut->kept < 1) cut->kept = 1;
    room -= cut->kept * sums;
    int64_t depth = room / slice;
    if (each > 1 && depth * slice * blocks > RING_FLYING) depth = RING_FLYING / (slice * blocks);
    if (depth > each * cut->slices) depth = each * cut->slices;
    if (depth < 1) depth = 1;
    if (depth > cut->kept * cut->slices) depth = cut->kept * cut->slices;
    if (depth > cut->slices) depth = t->main->bits != 4 || scales_copied(t) ? depth / cut->slices * cut->slices : cut->slices;
    while (depth < cut->slices && cut->slices % depth) depth--;
    cut->depth = depth;
}

RowCut gemv_cut(const RowTiles *t)
{
    RowCut cut = choose_cut(t, ceil_div(t->main->k, t->span));
    cut.slot = slot_bytes(t);
    cut.scale_bytes = scales_copied(t) ? scale_bytes(t) : 0;
    cut.registers = registers(t);
    place_ring(t, &cut);
    return cut;
}
