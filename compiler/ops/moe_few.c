/* moe_few.c - a mixture of experts with few rows: two launches, the first product with its activation and the second with the weighted
 * sum; the first chooses the experts too where a warp can, and the second makes a shared expert's product too, which its epilogue adds. Matrices of 4 bits go
 * through tensor cores, as tiles of 16 rows. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/moe.h"
#include "ops/product.h"
#include "ops/quantize.h"

#include <string.h>

enum { SLICE = 128, MOST_SPANS = 2 }; /* see experts.h: elements of a slice; spans on their way */
enum { MOST_ROWS = 4, MOST_EXPERTS = 256, MOST_TOP = 16, TILE_ROWS = 16, MOST_WARPS = 16 };
enum { MOST_BESIDE = 20 }; /* warps of a block with a slot beside the experts */
enum { MULTIPROCESSOR_REGISTERS = 65536, LEAN = 64 }; /* an H200's; of a thread: what a warp with one span of one tile gets by with */

static bool few_rows(Lower *l, const View *x) { return lower_upper(l, x->dims[0]) <= MOST_ROWS; }

bool moe_routes(Lower *l, const Moe *z, const View *x) { return few_rows(l, x) && z->experts <= MOST_EXPERTS && z->top <= MOST_TOP; }

/* ---- matrices, an element at a time */

/* Elements of a row that a lane takes at once: within a block, and a divisor of the row. */
static int64_t chunk_of(Compilation *c, const Node *n, const Matrix *m)
{
    const int64_t least = m->bits ? 32 / m->bits : 1;
    int64_t chunk = m->bits ? 128 / m->bits : product_vector(node_input(c, n, m->weight)->dtype);
    if (chunk > 32) chunk = 32;
    while (chunk > least && (m->inputs % chunk || (m->block && chunk > m->block) || (m->bits && m->inputs / chunk < 32))) chunk /= 2;
    return chunk;
}

/* Text of the zero point of row n of expert e at element k. */
static const char *zero_text(Compilation *c, const Matrix *m, const char *p, bool zero)
{
    const long long bits = m->bits, mask = (1 << m->bits) - 1;
    if (!zero) return arena_text(&c->arena, "%lld.0f", 1LL << (bits - 1));
    const char *element = m->block ? arena_text(&c->arena, "(k / %lld)", (long long)m->block) : "(n)";
    const char *row = m->block ? arena_text(&c->arena, "((idx)(e) * %lld + (n)) * %lld", (long long)m->outputs,
                                            (long long)moe_byte_count(m->blocks, bits))
                               : arena_text(&c->arena, "(idx)(e) * %lld", (long long)moe_byte_count(m->outputs, bits));
    return arena_text(&c->arena, "(float)((Z%s[Z%s_OFF + %s + %s * %lld / 8] >> (int)(%s * %lld %% 8)) & %lld)", p, p, row, element,
                      bits, element, bits, mask);
}

/* Text that puts elements k .. k + CH - 1 of row n of expert e into w, and what they are scaled by into scale. */
static const char *take_text(Compilation *c, const Node *n, const Matrix *m, const char *p, int64_t chunk)
{
    const DType t = node_input(c, n, m->weight)->dtype;
    const char *line = arena_text(&c->arena, "((idx)(e) * %lld + (n))", (long long)m->outputs);
    if (m->bits) {
        const char *block = m->block ? arena_text(&c->arena, "k / %lld", (long long)m->block) : "0";
        const char *zero = zero_text(c, m, p, moe_given(c, n, m->zero));
        const char *scale = arena_text(&c->arena, "S%s_LD(S%s_OFF + %s * %lld + %s)", p, p, line, (long long)m->blocks, block);
        return arena_text(&c->arena, "gp_unpack(W%s + W%s_OFF + (%s * K + k) * %d / 8, %d, CH, %s, w); scale = %s;", p, p, line,
                          (int)m->bits, (int)m->bits, zero, scale);
    }
    if (chunk == product_vector(t))
        return arena_text(&c->arena, "LDVS_%s(W%s, W%s_OFF + %s * K + k, w); scale = 1.0f;", dtype_token(t), p, p, line);
    return arena_text(&c->arena, "for (int j = 0; j < CH; j++) w[j] = W%s_LD(W%s_OFF + %s * K + k + j); scale = 1.0f;", p, p, line);
}

/* The operands of a matrix, and how it is read: TAKE and BIAS of P. */
static void matrix_operands(Lower *l, Kernel *k, const Node *n, const Matrix *m, const char *p, int64_t chunk)
{
    Compilation *c = lower_compilation(l);
    kernel_in(k, arena_text(&c->arena, "W%s", p), dense_input(l, n, m->weight));
    if (m->bits) kernel_in(k, arena_text(&c->arena, "S%s", p), dense_input(l, n, m->scale));
    if (moe_given(c, n, m->zero)) kernel_in(k, arena_text(&c->arena, "Z%s", p), dense_input(l, n, m->zero));
    if (moe_given(c, n, m->bias)) kernel_in(k, arena_text(&c->arena, "B%s", p), dense_input(l, n, m->bias));
    kernel_text(k, arena_text(&c->arena, "TAKE%s(e, n)", p), take_text(c, n, m, p, chunk));
    const char *bias = arena_text(&c->arena, "((float)B%s_LD(B%s_OFF + (idx)(e) * %lld + (n)))", p, p, (long long)m->outputs);
    kernel_text(k, arena_text(&c->arena, "BIAS%s(e, n)", p), moe_given(c, n, m->bias) ? bias : "0.0f");
}

/* Bytes of one expert's numbers of BITS, and scales of a type. */
static int64_t expert_bytes(const Matrix *m, int64_t bits, DType scale)
{
    return moe_byte_count(m->outputs * m->inputs, bits) + (m->bits ? m->outputs * m->blocks * dtype_bits(scale) / 8 : 0);
}

/* Bytes of the experts that ROWS rows can choose. */
static int64_t chosen_bytes(Lower *l, const Node *n, const Moe *z, const Matrix *m, int64_t rows)
{
    Compilation *c = lower_compilation(l);
    const int64_t routes = rows * z->top < z->experts ? rows * z->top : z->experts;
    const int64_t bits = m->bits ? m->bits : dtype_bits(node_input(c, n, m->weight)->dtype);
    return routes * expert_bytes(m, bits, m->bits ? node_input(c, n, m->scale)->dtype : DT_NONE);
}

static void moe_common(Lower *l, Kernel *k, const Matrix *m, const View *a, const View *chosen, int64_t chunk)
{
    const int vector = product_vector(a->store);
    kernel_in(k, "A", *a);
    kernel_int(k, "K", m->inputs);
    kernel_int(k, "CH", chunk);
    kernel_int(k, "V", chunk % vector == 0 && product_aligned(l, a, vector) ? vector : 1);
    kernel_text(k, "TYPE", dtype_token(a->store));
    kernel_dim(k, "ROWS", chosen->dims[0]);
}

/* ---- on tensor cores: see experts.h */

/* Whether the matrix lies in runs of 16 bytes that have one scale. */
static bool matrix_tiled(Compilation *c, const Node *n, const Matrix *m)
{
    const int inputs[] = {m->weight, m->scale, m->zero};
    for (size_t i = 0; i < COUNT_OF(inputs); i++)
        if (moe_given(c, n, inputs[i]) && !node_input(c, n, inputs[i])->is_constant) return false;
    return m->bits == 4 && m->block >= 32 && m->inputs % 32 == 0;
}

/* Activations that are floats are left to floats. */
static bool row_tiled(Lower *l, const Node *n, const View *rows)
{
    const DType t = node_input(lower_compilation(l), n, 0)->dtype;
    return few_rows(l, rows) && (t == DT_F16 || t == DT_BF16);
}

static bool up_tiled(Lower *l, const Node *n, const Moe *z, const View *x)
{
    Compilation *c = lower_compilation(l);
    return row_tiled(l, n, x) && view_vector(l, x) == 8 && matrix_tiled(c, n, &z->up) && (!z->third || matrix_tiled(c, n, &z->gate3)) &&
           moe_given(c, n, z->up.zero) == (z->third ? moe_given(c, n, z->gate3.zero) : moe_given(c, n, z->up.zero));
}

static bool down_tiled(Lower *l, const Node *n, const Moe *z, const View *inner)
{
    return row_tiled(l, n, inner) && z->top <= MOST_TOP && matrix_tiled(lower_compilation(l), n, &z->down);
}

/* ROWS_P(place, half, line) and OUTPUTS_P of a matrix. */
static void tile_rows(Kernel *k, const Node *n, const Matrix *m, const char *p)
{
    Compilation *c = lower_compilation(kernel_lower(k));
    const char *zeros = "0";
    if (moe_given(c, n, m->zero))
        zeros = arena_text(&c->arena, "(const unsigned char *)(Z%s + Z%s_OFF) + (idx)(line) * ZERO_ROW", p, p);
    kernel_text(k, arena_text(&c->arena, "ROWS_%s(place, half, line)", p),
                arena_text(&c->arena, "(from[place][half] = (const unsigned char *)(W%s + W%s_OFF) + (idx)(line) * (K / 2), "
                                      "scales_from[place][half] = (const SCALE_T *)(S%s + S%s_OFF + (idx)(line) * KG), points_from[place][half] = %s)",
                           p, p, p, p, zeros));
    kernel_int(k, arena_text(&c->arena, "OUTPUTS_%s", p), m->outputs);
}

/* How a product is cut: tiles and outputs of a block, threads; warps that share a row along k, of SLICES each, SPANS of two on their way. Blocks that a
 * multiprocessor has room for. Tiles 0: none. SPLIT as in experts.h. */
typedef struct Cut { int64_t tiles, each, threads, sharers, slices, spans, room; bool split; } Cut;

/* Of M, EACH outputs a tile, GROUPS times SHARERS warps, of which more than MOST_WARPS have no registers for a second span. Room by registers: those that
 * hold operands, and some 42 at least. */
static Cut cut_of(const Matrix *m, bool split, int64_t tiles, int64_t each, int64_t groups, int64_t sharers)
{
    const int64_t slices = ceil_div(ceil_div(m->inputs, SLICE), sharers), spans = ceil_div(slices, 2);
    const int64_t most = tiles > 1 || groups * sharers > MOST_WARPS ? 1 : MOST_SPANS;
    Cut cut = {.tiles = tiles, .each = tiles * each, .threads = 32 * groups * sharers, .sharers = sharers, .slices = slices, .split = split};
    cut.spans = spans < most ? spans : most;
    const int64_t registers = 42 + cut.tiles * cut.spans * (split ? 28 : 22);
    cut.room = MULTIPROCESSOR_REGISTERS / (registers * cut.threads);
    if (cut.room < 1) cut.room = 1;
    return cut;
}

/* As few tiles a block, of up to MOST, as leave a multiprocessor no more than MOST_WARPS; OTHERS: blocks for the same outputs. */
static Cut cut_tiles(Lower *l, const char *name, const Moe *z, const Matrix *m, bool split, int64_t most, int64_t outputs, int64_t each, int64_t groups,
                     int64_t sharers, int64_t others)
{
    static const int64_t candidates[] = {0, 1, 2, 3, 4};
    const char *key = arena_text(&lower_compilation(l)->arena, "%s/top=%lld,n=%lld,k=%lld", name, (long long)z->top, (long long)outputs, (long long)m->inputs);
    const int64_t choice = tuning_choice(l, key, candidates, (int)most + 1, 0), all = ceil_div(outputs, each);
    int64_t tiles = choice;
    for (int64_t t = 1; !tiles && t <= most; t++)
        if (ceil_div(all, t) * others * groups * sharers <= MULTIPROCESSORS * MOST_WARPS) tiles = t;
    if (!tiles) tiles = 2;
    if (tiles > all) tiles = all;
    if (tiles > 2 * groups * sharers) tiles = 2 * groups * sharers; /* a thread for each row */
    return cut_of(m, split, tiles, each, groups, sharers);
}

/* What experts.h takes of a matrix. WHOLE as there. OTHER: DT_NONE, or the type of row and scales of the slot beside. */
static void set_tiled(Kernel *k, const Node *n, const Matrix *m, const Cut *cut, bool whole, DType other)
{
    Compilation *c = lower_compilation(kernel_lower(k));
    const DType scale = node_input(c, n, m->scale)->dtype;
    const bool mixed = other != DT_NONE && other != scale;
    kernel_text(k, "OTHER_ROW", other != DT_NONE ? "(!OF_EXPERT)" : "0");
    kernel_text(k, "OTHER_SCALES", mixed ? "(!OF_EXPERT)" : "0");
    kernel_text(k, "OTHER_TYPE", dtype_token(other != DT_NONE ? other : scale));
    kernel_text(k, "SCALE_UNIT", mixed ? arena_text(&c->arena, "(OF_EXPERT ? %d : 2)", dtype_bits(scale) / 8) : "1");
    kernel_int(k, "SPLIT", cut->split);
    kernel_int(k, "SCALED", cut->split || node_input(c, n, 0)->dtype != DT_F16);
    kernel_int(k, "GROUP", m->block);
    kernel_int(k, "KG", m->blocks);
    kernel_int(k, "ZEROS", moe_given(c, n, m->zero));
    kernel_int(k, "ZERO_ROW", moe_byte_count(m->blocks, m->bits));
    kernel_text(k, "STYPE", dtype_token(scale));
    kernel_text(k, "SCALE_T", mixed ? "unsigned char" : scale == DT_F32 ? "float" : "gp_u16");
    kernel_int(k, "SHARERS", cut->sharers);
    kernel_int(k, "NS", cut->slices);
    kernel_int(k, "DEPTH", cut->spans);
    kernel_int(k, "TILES", cut->tiles);
    kernel_int(k, "WHOLE", whole);
}

/* Blocks that a multiprocessor should have room for. */
static void set_resident(Kernel *k, const Cut *cut, int64_t blocks)
{
    const int64_t wanted = ceil_div(blocks, MULTIPROCESSORS);
    kernel_int(k, "RESIDENT", !cut->tiles || wanted < 1 ? 1 : wanted < cut->room ? wanted : cut->room);
}

/* Brings the chosen experts' parts of the second product's operands into the L2 cache while the first one waits for its own. */
static void look_ahead(Lower *l, Kernel *k, const Node *n, const Moe *z)
{
    static const int64_t candidates[] = {0, 1};
    Compilation *c = lower_compilation(l);
    const Matrix *m = &z->down;
    const char *key = arena_text(&c->arena, "moe_ahead/top=%lld,n=%lld,k=%lld", (long long)z->top, (long long)m->outputs, (long long)m->inputs);
    const bool wanted = tuning_choice(l, key, candidates, (int)COUNT_OF(candidates), 0) != 0, zeros = wanted && moe_given(c, n, m->zero);
    kernel_int(k, "AHEAD_W", wanted ? moe_byte_count(m->outputs * m->inputs, m->bits) : 0);
    kernel_int(k, "AHEAD_S", m->outputs * m->blocks * dtype_bits(node_input(c, n, m->scale)->dtype) / 8);
    kernel_int(k, "AHEAD_Z", zeros ? moe_zero_bytes(m) : 0);
    if (!wanted) return;
    kernel_in(k, "W2", dense_input(l, n, m->weight));
    kernel_in(k, "S2", dense_input(l, n, m->scale));
    if (zeros) kernel_in(k, "Z2", dense_input(l, n, m->zero));
}

/* ---- launches */

enum { WARPS = 4 }; /* outputs of a block, a warp each */

static Cut cut_up(Lower *l, const Moe *z, bool tiled, int64_t rows)
{
    const int64_t spans = ceil_div(z->up.inputs, 2 * SLICE), warps = ceil_div(spans, ceil_div(spans, MOST_WARPS));
    const int64_t each = z->third || z->fusion ? TILE_ROWS / 2 : TILE_ROWS;
    if (!tiled) return (Cut){.each = WARPS, .threads = 32 * WARPS};
    return cut_tiles(l, "moe_up_tiles", z, &z->up, false, 4, z->inner, each, 1, warps, z->top * rows);
}

/* NAME's choice for the second launch: 0 or VALUE. */
static int64_t down_choice(Lower *l, const Moe *z, const char *name, int64_t value, int64_t standard)
{
    const int64_t candidates[] = {0, value};
    const char *key = arena_text(&lower_compilation(l)->arena, "moe_down_%s/top=%lld,n=%lld,k=%lld", name, (long long)z->top, (long long)z->hidden,
                                 (long long)z->inner);
    return tuning_choice(l, key, candidates, (int)COUNT_OF(candidates), standard);
}

/* Whether the second launch chooses for itself, so that its weights are on their way while the first one runs. */
static bool down_chooses(Lower *l, const Node *n, const Moe *z, const View *inner)
{
    return !l->guarded && moe_routes(l, z, inner) && down_tiled(l, n, z, inner) && dim_is_const(lower_compilation(l), inner->dims[0], NULL) &&
           down_choice(l, z, "chooses", 1, 1);
}

void moe_up(Lower *l, const Node *n, const Moe *z, const View *x, const View *router, const View *chosen, const View *share, const View *inner)
{
    Compilation *c = lower_compilation(l);
    const int64_t upper = lower_upper(l, chosen->dims[0]), rows = upper < 1 ? 1 : upper;
    const bool routes = moe_routes(l, z, x), tiled = up_tiled(l, n, z, x);
    int64_t chunk = chunk_of(c, n, &z->up);
    if (z->third && chunk_of(c, n, &z->gate3) < chunk) chunk = chunk_of(c, n, &z->gate3);
    const Cut cut = cut_up(l, z, tiled, rows);
    const int64_t blocks = ceil_div(z->inner, cut.each);
    Kernel *k = kernel_begin(l, n, "moe_up");
    kernel_int(k, "ROUTED", routes);
    if (routes) moe_routing(l, k, n, z, router, chosen, share);
    else {
        kernel_in(k, "CHOSEN", *chosen);
        kernel_int(k, "TOP", z->top);
    }
    moe_common(l, k, &z->up, x, chosen, chunk);
    matrix_operands(l, k, n, &z->up, "1", chunk);
    if (z->third) matrix_operands(l, k, n, &z->gate3, "3", chunk);
    kernel_out(k, "Y", *inner);
    moe_activation(k, n, z);
    if (down_chooses(l, n, z, inner)) kernel_late(k); /* so that it finds the logits there */
    kernel_int(k, "TILED", tiled);
    kernel_int(k, "EACH", cut.each);
    kernel_int(k, "BLOCKS", blocks);
    if (tiled) {
        set_tiled(k, n, &z->up, &cut, z->inner % cut.each == 0, DT_NONE);
        tile_rows(k, n, &z->up, "1");
        if (z->third) tile_rows(k, n, &z->gate3, "3");
        look_ahead(l, k, n, z);
    }
    set_resident(k, &cut, blocks * z->top * rows);
    kernel_label(k, arena_text(&c->arena, routes ? "%s: routing, fc1" : "%s: fc1", n->name));
    kernel_bytes(k, chosen_bytes(l, n, z, &z->up, upper) + (z->third ? chosen_bytes(l, n, z, &z->gate3, upper) : 0), 0);
    kernel_launch(k, blocks, z->top, rows, (int)cut.threads);
}

/* ---- a product beside the experts, in one slot more of the second launch */

/* PRODUCT of ROW [rows, inner] by a matrix like one expert's fc2. */
typedef struct Beside { const Node *product; RowMatrix m; View row; } Beside;

/* Whether the launch of product N makes other products of its row too, or the row itself: then it is needed in any case. */
static bool made_with_others(Lower *l, const Node *n)
{
    const uint32_t producer = node_input(lower_compilation(l), n, 0)->producer;
    int64_t k, span;
    return gemv_row(l, n) || (producer && l->made_by[producer] < 0) || gemv_takes(l, n, &k, &span) > 1;
}

/* Whether the second launch of experts N has a slot for the product that only its epilogue reads. Its row is read later then, so not where the step may write:
 * in a state. */
static bool beside_fits(Lower *l, const Node *n, const Moe *z, Beside *b)
{
    Compilation *c = lower_compilation(l);
    const Matrix *down = &z->down;
    *b = (Beside){.product = &c->graph.nodes[n->gate]};
    const DType t = node_input(c, b->product, 0)->dtype;
    if (strcmp(b->product->op->name, "MatMulNBits") != 0 || t != node_input(c, n, 0)->dtype || !nbits_row_matrix(l, b->product, t, &b->m)) return false;
    if (b->m.k != down->inputs || b->m.n != down->outputs || b->m.group != down->block || b->m.k % b->m.group != 0 || b->m.bias.buffer) return false;
    if ((b->m.zeros.buffer != 0) != moe_given(c, n, down->zero)) return false;
    const View row = lower_input(l, b->product, 0);
    if (c->buffers[row.buffer].region == REGION_STATE || row.store != t || !product_flatten(l, &row, &b->row)) return false;
    return view_vector(l, &b->row) == 8 && down_tiled(l, n, z, &b->row);
}

/* The experts whose epilogue alone reads the result of N; NULL: there are none, or N is no product of constants. */
static const Node *late_reader(const Compilation *c, const Node *n)
{
    const Node *nodes = c->graph.nodes;
    for (uint32_t i = 1; i <= c->graph.node_count && n->together; i++)
        if (nodes[i].gate == (uint32_t)(n - nodes) && (nodes[i].op->facts & OP_LATE)) return &nodes[i];
    return NULL;
}

bool moe_defer(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const uint32_t index = (uint32_t)(n - c->graph.nodes);
    const Node *experts = late_reader(c, n);
    Moe z;
    Beside beside;
    if (!experts || l->signature->kind == SIG_LOAD || made_with_others(l, n) || !moe_read(c, experts, &z) || !beside_fits(l, experts, &z, &beside)) return false;
    if (!down_choice(l, &z, "beside", 1, 1)) return false;
    l->fates[index] = (NodeFate){REAL_FUSED, -1, NULL};
    l->made_by[index] = -1;
    return true;
}

static void set_beside(Lower *l, Kernel *k, const Node *n, const Moe *z, const Beside *b, int64_t chunk)
{
    kernel_in(k, "X", b->row);
    kernel_in(k, "WX", b->m.matrix);
    kernel_in(k, "SX", b->m.scales);
    if (b->m.zeros.buffer) kernel_in(k, "ZX", b->m.zeros);
    kernel_text(k, "TAKEX(e, n)", take_text(lower_compilation(l), n, &z->down, "X", chunk));
    tile_rows(k, n, &z->down, "X");
}

/* The slot beside is not counted where it is decided how many warps a multiprocessor should have: they are those that wait for a choice. */
static Cut cut_down(Lower *l, const Moe *z, bool tiled, bool beside, int64_t rows)
{
    if (!tiled) return (Cut){.each = 4, .threads = 32 * (z->top < 8 ? z->top : 8), .sharers = 1};
    const int64_t slots = z->top + beside, slices = ceil_div(z->down.inputs, SLICE), most = MOST_WARPS / z->top;
    const int64_t parts = ceil_div(slices, ceil_div(slices, most * slots <= MOST_BESIDE ? most : MOST_BESIDE / slots));
    const Cut cut = cut_tiles(l, "moe_down_tiles", z, &z->down, true, 2, z->hidden, TILE_ROWS, z->top, parts, rows);
    return cut_of(&z->down, true, cut.tiles, TILE_ROWS, slots, parts);
}

/* The most registers of a thread; 0: as many as it wants. A block that has more warps for the slot, and whose warps get by with so few, takes no more of a
 * multiprocessor than one without the slot: what is launched behind finds room beside it for blocks that ask for weights. */
static int64_t down_registers(Lower *l, const Moe *z, const Cut *cut)
{
    return cut->threads > 32 * MOST_WARPS && cut->tiles == 1 && cut->slices <= 2 ? down_choice(l, z, "registers", LEAN, LEAN) : 0;
}

void moe_down(Lower *l, const Node *n, const Moe *z, const View *inner, const View *router, const View *chosen, const View *share, const View *y)
{
    Compilation *c = lower_compilation(l);
    const int64_t upper = lower_upper(l, chosen->dims[0]), rows = upper < 1 ? 1 : upper, chunk = chunk_of(c, n, &z->down);
    const bool tiled = down_tiled(l, n, z, inner), beside = n->gate && l->made_by[n->gate] < 0;
    Beside b = {0};
    if (beside && !beside_fits(l, n, z, &b)) fault("moe", "product '%s' was put off, but has no slot", b.product->name);
    const Cut cut = cut_down(l, z, tiled, beside, rows);
    const int64_t blocks = ceil_div(z->hidden, cut.each);
    Kernel *k = kernel_begin(l, n, "moe_down");
    kernel_in(k, "CHOSEN", *chosen);
    kernel_int(k, "TOP", z->top);
    moe_common(l, k, &z->down, inner, chosen, chunk);
    matrix_operands(l, k, n, &z->down, "2", chunk);
    kernel_in(k, "SHARE", *share);
    kernel_out(k, "Y", *y);
    kernel_epilogue_apart(k, n, "v", beside ? b.product->outputs[0] : 0, "beside");
    kernel_int(k, "BESIDE", beside);
    if (beside) set_beside(l, k, n, z, &b, chunk);
    const bool chooses = down_chooses(l, n, z, inner);
    kernel_int(k, "CHOOSES", chooses);
    if (chooses) moe_logits(l, k, z, router);
    kernel_int(k, "TILED", tiled);
    kernel_int(k, "R", cut.each);
    kernel_int(k, "PARTS", cut.sharers);
    kernel_int(k, "REGISTERS", down_registers(l, z, &cut));
    kernel_int(k, "BIASED_2", moe_given(c, n, z->down.bias));
    if (tiled) {
        set_tiled(k, n, &z->down, &cut, z->hidden % cut.each == 0, beside ? b.row.store : DT_NONE);
        tile_rows(k, n, &z->down, "2");
    }
    set_resident(k, &cut, blocks * rows);
    kernel_label(k, arena_text(&c->arena, "%s: fc2", n->name));
    kernel_bytes(k, chosen_bytes(l, n, z, &z->down, upper) + (beside ? expert_bytes(&z->down, z->down.bits, b.row.store) : 0), 0);
    if (beside) l->fates[n->gate].launch = l->launch_count;
    kernel_launch(k, blocks, rows, 1, (int)cut.threads);
}
