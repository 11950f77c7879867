/* gemv.c - one launch for all products of one row with constant matrices, in signatures where there is a single row: fuse has
 * found which products read the same row, which of them gates another, and the norm that makes the row. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/product.h"

#include <string.h>

enum { MAX_TOGETHER = 6, SIDE_ROWS = 128, MOST_ROWS = 32 };
enum { MAX_OPERANDS_TOGETHER = 36 }; /* of all members, which leaves a kernel's some for the row and for what is wanted next */

typedef struct Member {
    Node *node;
    uint32_t index;
    RowMatrix m;
    int gate;                   /* member that gates it; -1 none */
    bool side;                  /* a few rows of 16 bits beside matrices of 4: blocks compute them while they prepare the row */
} Member;

typedef struct Gemv {
    Lower *l;
    int count;
    Member members[MAX_TOGETHER];
    const RowMatrix *main;      /* of the first that is none of the side */
    bool paired[MAX_TOGETHER];  /* made together with the one that it gates */
    const Node *norm, *made;    /* of the whole row; the first of what makes it otherwise (gemv_row.c); NULL: none */
    NormRow row;
    DType type;
    int parts;                  /* of a tile: 2 when one of the members gates another */
    int tile_rows, rows;        /* of a tile: 16, or 32 with half the columns, or (16 bits) 8; of a part */
} Gemv;

static bool one_row(Lower *l, const Value *v)
{
    for (int i = 0; i + 1 < v->rank; i++)
        if (!dim_is(lower_compilation(l), lower_dim(l, v->dims[i]), 1)) return false;
    return v->rank > 0;
}

/* What can be said before the row's memory is known. */
static bool member_fits(Lower *l, const Node *n, RowMatrix *m)
{
    const Value *x = node_input(l->c, n, 0);
    if (x->dtype != DT_F16 && x->dtype != DT_BF16) return false;
    if (!one_row(l, x) || !one_row(l, node_output(l->c, n, 0))) return false;
    memset(m, 0, sizeof *m);
    const bool fits = strcmp(n->op->name, "MatMulNBits") == 0 ? nbits_row_matrix(l, n, x->dtype, m) : matmul_row_matrix(l, n, x->dtype, m);
    return fits && m->k % 8 == 0 && 2 * (m->k + 256) + m->k / 4 + 2560 <= GEMV_SHARED;
}

static bool whole_tiles(const Gemv *g, int rows)
{
    for (int i = 0; i < g->count; i++)
        if (!g->members[i].side && g->members[i].m.n % rows) return false;
    return true;
}

/* 4 bits: 32 rows of 128 elements are as many as 16 of 256. */
static bool high_tiles(const Gemv *g) { return g->main->bits == 4 && g->main->k % 256 == 128 && whole_tiles(g, 32); }

/* Elements of a slice. */
static int64_t span_of(const Gemv *g) { return g->main->bits == 4 && !high_tiles(g) ? 256 : 128; }

static bool same_kind(const RowMatrix *a, const RowMatrix *b)
{
    return a->bits == b->bits && a->stride == b->stride && a->group == b->group && a->zero_row == b->zero_row &&
           !a->zeros.buffer == !b->zeros.buffer;
}

static int member_of(const Gemv *g, uint32_t node)
{
    for (int i = 0; i < g->count; i++)
        if (g->members[i].index == node) return i;
    return -1;
}

/* The first member of the run from LEADER on that has 4 bits; false without one. */
static bool find_four(const Gemv *g, uint32_t leader, RowMatrix *m)
{
    const Node *nodes = g->l->c->graph.nodes;
    for (uint32_t i = leader; i <= g->l->c->graph.node_count; i++)
        if (nodes[i].together == nodes[leader].together && !(nodes[i].op->facts & OP_NORM_ROW) && !g->l->made_by[i] && member_fits(g->l, &nodes[i], m) &&
            m->bits == 4)
            return true;
    return false;
}

/* Of the same run. */
static bool gates_another(const Compilation *c, uint32_t node)
{
    for (uint32_t i = node + 1; i <= c->graph.node_count; i++)
        if (c->graph.nodes[i].gate == node && c->graph.nodes[i].together) return true;
    return false;
}

/* Whether node I is part of the epilogue of product INDEX. */
static bool in_epilogue(const Graph *g, uint32_t i, uint32_t index)
{
    while (g->nodes[i].fused_into) i = g->nodes[i].fused_into;
    return i == index;
}

/* Operands of product INDEX, those of its epilogue among them, at most. */
static int operands_of(const Graph *g, uint32_t index, const RowMatrix *m)
{
    int count = 2 + (m->scales.buffer != 0) + (m->zeros.buffer != 0) + (m->bias.buffer != 0);
    for (uint32_t i = index + 1; i <= g->nodes[index].epilogue; i++) {
        if (g->nodes[i].dead || !in_epilogue(g, i, index)) continue;
        for (int k = 0; k < g->nodes[i].input_count; k++)
            count += g->nodes[i].inputs[k] && !in_epilogue(g, g->values[g->nodes[i].inputs[k]].producer, index);
    }
    return count;
}

/* Those of LEADER's run that have the matrices of KIND; with SIDES, few rows of 16 bits too. */
static void collect(Gemv *g, uint32_t leader, const RowMatrix *kind, bool sides)
{
    Compilation *c = g->l->c;
    const uint32_t first = c->graph.nodes[leader].together;
    int operands = 0;
    g->count = 0;
    g->main = NULL;
    memset(g->paired, 0, sizeof g->paired);
    for (uint32_t i = leader; i <= c->graph.node_count && g->count < MAX_TOGETHER; i++) {
        Node *n = &c->graph.nodes[i];
        RowMatrix m;
        if (n->together != first || (n->op->facts & OP_NORM_ROW) || g->l->made_by[i] || !member_fits(g->l, n, &m)) continue;
        const bool side = sides && m.bits == 16 && m.n <= SIDE_ROWS && !n->gate && !gates_another(c, i);
        if (!side && !same_kind(&m, kind)) continue;
        const int gate = n->gate ? member_of(g, n->gate) : -1;
        if (n->gate && gate < 0 && i != leader) continue; /* what gates it is not there yet */
        operands += operands_of(&c->graph, i, &m);
        if (g->count && operands > MAX_OPERANDS_TOGETHER) break;
        if (gate >= 0) g->paired[gate] = true;
        g->members[g->count] = (Member){n, i, m, gate, side};
        if (!side && !g->main) g->main = &g->members[g->count].m;
        g->count++;
    }
}

/* Whether each row of the side has a block of its own. */
static bool sides_fit(const Gemv *g)
{
    int64_t sides = 0, tiles = 0;
    for (int i = 0; i < g->count; i++)
        if (g->members[i].side) sides += g->members[i].m.n;
        else tiles += g->members[i].m.n / MOST_ROWS;
    return g->main && sides <= SIDE_ROWS && sides <= tiles;
}

static void find_members(Gemv *g, uint32_t leader)
{
    RowMatrix kind;
    if (find_four(g, leader, &kind)) {
        collect(g, leader, &kind, true);
        if (g->count && g->members[0].index == leader && sides_fit(g)) return;
    }
    if (member_fits(g->l, &g->l->c->graph.nodes[leader], &kind)) collect(g, leader, &kind, false);
    else g->count = 0;
}

/* ---- the norm before */

static bool norm_operand_fits(Lower *l, const Node *n, int input, DType t, int64_t columns)
{
    const Value *v = node_input(l->c, n, input);
    return v->dtype == t && one_row(l, v) && dim_is(l->c, lower_dim(l, v->dims[v->rank - 1]), columns);
}

static bool reads_row(const Node *n, const Node *norm)
{
    return n->together == norm->together && !(n->op->facts & OP_NORM_ROW) && n->inputs[0] == norm->outputs[0];
}

/* Whether somebody wants the norm's result besides the products of its run, which compute it by themselves. */
static bool row_is_read(Lower *l, const Node *norm)
{
    Compilation *c = l->c;
    uint32_t covered = 0;
    RowMatrix m;
    for (uint32_t i = norm->together; i <= c->graph.node_count; i++)
        covered += reads_row(&c->graph.nodes[i], norm) && member_fits(l, &c->graph.nodes[i], &m);
    return covered < node_output(c, norm, 0)->uses;
}

/* Whether the kernels of the products that read norm N's result will begin with it; the first stores it for who else reads it. */
static bool norm_fits(Lower *l, const Node *n, NormRow *r)
{
    Compilation *c = l->c;
    const Node *first = &c->graph.nodes[n->together];
    Gemv g = {.l = l};
    if (!norm_row(c, n, r)) return false;
    find_members(&g, n->together);
    const Value *y = node_output(c, n, 0);
    if (!g.count || g.members[0].node != first || !reads_row(first, n)) return false;
    const DType t = y->dtype;
    const int64_t columns = g.main->k;
    if (!norm_operand_fits(l, n, 0, t, columns) || !norm_operand_fits(l, n, r->scale, t, columns)) return false;
    if (!node_input(c, n, r->scale)->is_constant) return false; /* the kernel reads it before it waits for the kernels before it */
    return r->skip < 0 || norm_operand_fits(l, n, r->skip, t, columns);
}

/* Its operands in vectors, which only their memory tells. */
static bool norm_in_vectors(Lower *l, const Node *n, const NormRow *r)
{
    const int inputs[] = {0, r->scale, r->skip};
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        if (inputs[i] < 0) continue;
        const View v = lower_input(l, n, inputs[i]);
        if (view_vector(l, &v) != 8) return false;
    }
    return true;
}

bool gemv_defer_norm(Lower *l, const Node *n)
{
    NormRow r;
    if (!(n->op->facts & OP_NORM_ROW) || !n->together || l->signature->kind == SIG_LOAD || l->guarded) return false;
    if (!(l->c->graph.nodes[n->together].op->facts & OP_EPILOGUE)) return false;
    if (!norm_fits(l, n, &r) || !norm_in_vectors(l, n, &r)) return false;
    l->fates[n - l->c->graph.nodes] = (NodeFate){REAL_FUSED, -1, NULL};
    l->made_by[n - l->c->graph.nodes] = -1;
    return true;
}

/* Output OUTPUT of the norm, which the first block stores, as operand NAME; RUNS says whether it lies in vectors. */
static void set_stored(Gemv *g, Kernel *k, const char *name, const char *runs, int output)
{
    const View out = lower_output(g->l, g->norm, output);
    kernel_out(k, name, out);
    kernel_int(k, runs, view_vector(g->l, &out) == 8);
}

static void set_row(Gemv *g, Kernel *k, const Node *leader)
{
    Lower *l = g->l;
    kernel_int(k, "NORM", g->norm ? 1 : g->made && (g->made->op->facts & OP_NORM_ROW) ? 2 : 0);
    kernel_int(k, "ELEMENTS", g->made != NULL);
    if (g->made) gemv_set_row(l, k, g->made);
    else if (!g->norm) kernel_in(k, "X", lower_input(l, leader, 0));
    if (!g->norm) return;
    const bool first = leader == &l->c->graph.nodes[g->norm->together], stores_row = first && row_is_read(l, g->norm);
    const Value *sum = first && g->row.sum >= 0 ? node_output(l->c, g->norm, g->row.sum) : NULL;
    kernel_in(k, "X", lower_input(l, g->norm, 0));
    kernel_in(k, "SCALE", lower_input(l, g->norm, g->row.scale));
    kernel_float(k, "EPSILON", g->row.epsilon);
    kernel_int(k, "HAS_SKIP", g->row.skip >= 0);
    if (g->row.skip >= 0) kernel_in(k, "SKIP", lower_input(l, g->norm, g->row.skip));
    kernel_int(k, "HAS_SUM", sum && sum->uses > 0);
    if (sum && sum->uses > 0) set_stored(g, k, "SUM", "SUM_RUNS", g->row.sum);
    kernel_int(k, "HAS_ROW", stores_row);
    if (stores_row) set_stored(g, k, "ROW", "ROW_RUNS", 0);
}

/* ---- units: where each tile's matrix lies, and what becomes of its sums */

static const char *name_of(Gemv *g, const char *operand, int member) { return arena_text(&g->l->c->arena, "%s%d", operand, member); }

static void add_tile(Gemv *g, Text *t, int member, const char *row)
{
    const RowMatrix *m = &g->members[member].m;
    text_add(t, "w = (const unsigned char *)(B%d + B%d_OFF); n = %s; last = %lld; ", member, member, row, (long long)m->n - 1);
    if (m->bits == 4) text_add(t, "s = S%d + S%d_OFF; ", member, member);
    if (m->zeros.buffer) text_add(t, "z = Z%d + Z%d_OFF; ", member, member);
}

/* The sum V with the bias, in member I's own type as the variable NAME. */
static const char *own_result(Gemv *g, int i, const char *v, const char *name, Constants *constants)
{
    Compilation *c = g->l->c;
    const Member *own = &g->members[i];
    if (own->m.bias.buffer) {
        const char *at = arena_text(&c->arena, "C%d_OFF + n", i), *bias = kernel_constant(g->l, constants, name_of(g, "C", i), &own->m.bias, at);
        v = arena_text(&c->arena, "(%s + %s)", v, bias ? bias : arena_text(&c->arena, "C%d_LD(%s)", i, at));
    }
    return kernel_given(g->l, own->node->outputs[0], name, v);
}

/* Stores row n of member I, whose sum is V. CONSTANTS takes those that are read for it. */
static void add_store(Gemv *g, Kernel *k, Text *t, int i, const char *v, Constants *constants)
{
    Compilation *c = g->l->c;
    const Member *own = &g->members[i];
    const char *body = "", *result = "given";
    const Given given[2] = {{own->node->outputs[0], "given"}, {own->gate < 0 ? 0 : g->members[own->gate].node->outputs[0], "gate"}};
    if (own->node->epilogue)
        result = kernel_elementwise(k, own->node->epilogue, arena_text(&c->arena, "P%d_", i), given, own->gate < 0 ? 1 : 2, constants, &body);
    text_add(t, "if (n < %lld) { ", (long long)own->m.n);
    if (own->gate >= 0) text_add(t, "%s", own_result(g, own->gate, "v0", "gate", constants));
    text_add(t, "%s%sY%d_ST(Y%d_OFF + n, %s); } ", own_result(g, i, v, "given", constants), body, i, i, result);
}

static void set_operands(Gemv *g, Kernel *k, int i)
{
    const Member *own = &g->members[i];
    kernel_in(k, name_of(g, "B", i), own->m.matrix);
    if (own->m.scales.buffer) kernel_in(k, name_of(g, "S", i), own->m.scales);
    if (own->m.zeros.buffer) kernel_in(k, name_of(g, "Z", i), own->m.zeros);
    if (own->m.bias.buffer) kernel_in(k, name_of(g, "C", i), own->m.bias);
    if (!g->paired[i]) kernel_out(k, name_of(g, "Y", i), lower_output(g->l, own->node, 0));
}

/* What becomes of a unit's row r: TILE, STORE and READ (gemv.cu); CONSTANTS: of a part's row, the most. */
typedef struct Units { Text tile, store, read; int constants; } Units;

/* Row n of member I, which INDEX declares, to what is stored and read of each unit. */
static void add_row(Gemv *g, Kernel *k, int i, const char *index, const char *v, Units *units)
{
    Constants constants = {0};
    text_add(&units->store, "%s", index);
    add_store(g, k, &units->store, i, v, &constants);
    text_add(&units->read, "%sif (n < %lld) { %s} ", index, (long long)g->members[i].m.n, constants.count ? constants.read.data : "");
    if (constants.count > units->constants) units->constants = constants.count;
    text_free(&constants.read);
}

/* The units of member I: from UNIT on, less which its own begin. */
static void add_units(Gemv *g, Kernel *k, int i, const char *unit, Units *units)
{
    Compilation *c = g->l->c;
    const Member *own = &g->members[i];
    Text *tile = &units->tile;
    if (own->gate >= 0) {
        const char *row = arena_text(&c->arena, "(int)(%s) * %d", unit, g->rows);
        text_add(tile, "if ((p) == 0) { ");
        add_tile(g, tile, own->gate, row);
        text_add(tile, "} else { ");
        add_tile(g, tile, i, row);
        text_add(tile, "} ");
        add_row(g, k, i, arena_text(&c->arena, "const idx n = %s + (r), m = 0; (void)m; const int half = 0; (void)half; ", row), "v1", units);
        return;
    }
    add_tile(g, tile, i, arena_text(&c->arena, "((int)(%s) * %d + (p)) * %d", unit, g->parts, g->rows));
    text_add(&units->store, "UNROLL for (int half = 0; half < %d; half++) { const float v = half ? v1 : v0; ", g->parts);
    text_add(&units->read, "UNROLL for (int half = 0; half < %d; half++) { ", g->parts);
    add_row(g, k, i, arena_text(&c->arena, "const idx n = ((idx)(%s) * %d + half) * %d + (r), m = 0; (void)m; ", unit, g->parts, g->rows), "v", units);
    text_add(&units->store, "} ");
    text_add(&units->read, "} ");
}

/* Sets TILE, STORE, READ and CONSTANTS; returns how many units there are. */
static int64_t set_units(Gemv *g, Kernel *k)
{
    Compilation *c = g->l->c;
    Units all = {0};
    int64_t units = 0;
    for (int i = 0; i < g->count; i++) {
        const Member *own = &g->members[i];
        set_operands(g, k, i);
        if (g->paired[i] || own->side) continue;
        const int64_t end = units + ceil_div(own->m.n, own->gate >= 0 ? g->rows : g->tile_rows);
        text_add(&all.tile, "if ((u) < %lld) { end = %lld; each = %d; ", (long long)end, (long long)end, own->gate >= 0 ? g->rows : g->tile_rows);
        text_add(&all.store, "if ((u) < %lld) { ", (long long)end);
        text_add(&all.read, "if ((u) < %lld) { ", (long long)end);
        add_units(g, k, i, arena_text(&c->arena, "(u) - %lld", (long long)units), &all);
        text_add(&all.tile, "} else ");
        text_add(&all.store, "} else ");
        text_add(&all.read, "} else ");
        units = end;
    }
    text_add(&all.tile, "{ w = 0; n = last = 0; }");
    text_add(&all.store, "{ }");
    text_add(&all.read, "{ }");
    kernel_text(k, "TILE(u, p)", all.tile.data);
    kernel_text(k, "STORE(u, r)", all.store.data);
    kernel_text(k, "READ(u, r)", all.read.data);
    kernel_int(k, "CONSTANTS", all.constants);
    text_free(&all.tile);
    text_free(&all.store);
    text_free(&all.read);
    return units;
}

/* Sets SIDE, its rows, where they come from and go to, and the constants that that takes. */
static void set_sides(Gemv *g, Kernel *k)
{
    Compilation *c = g->l->c;
    Units sides = {0};
    int64_t rows = 0;
    for (int i = 0; i < g->count; i++) {
        const Member *own = &g->members[i];
        if (!own->side) continue;
        text_add(&sides.tile, "if ((s) < %lld) w = (const unsigned char *)(B%d + B%d_OFF) + (idx)((s) - %lld) * %lld; else ", (long long)(rows + own->m.n), i, i,
                 (long long)rows, 2 * (long long)own->m.stride);
        text_add(&sides.store, "if ((s) < %lld) { ", (long long)(rows + own->m.n));
        text_add(&sides.read, "if ((s) < %lld) { ", (long long)(rows + own->m.n));
        add_row(g, k, i, arena_text(&c->arena, "const idx n = (s) - %lld, m = 0; (void)m; ", (long long)rows), "v", &sides);
        text_add(&sides.store, "} else ");
        text_add(&sides.read, "} else ");
        rows += own->m.n;
    }
    kernel_int(k, "SIDE", rows);
    kernel_int(k, "SIDE_CONSTANTS", sides.constants);
    kernel_text(k, "SIDE_FROM(s)", arena_text(&c->arena, "%sw = 0;", sides.tile.data ? sides.tile.data : ""));
    kernel_text(k, "SIDE_STORE(s, v)", arena_text(&c->arena, "%s{ }", sides.store.data ? sides.store.data : ""));
    kernel_text(k, "SIDE_READ(s)", arena_text(&c->arena, "%s{ }", sides.read.data ? sides.read.data : ""));
    text_free(&sides.tile);
    text_free(&sides.store);
    text_free(&sides.read);
}

/* Rows of a tile. */
static int tile_rows(const Gemv *g)
{
    int64_t units = 0;
    if (g->main->bits == 4) return high_tiles(g) ? 32 : 16;
    if (g->parts == 2) return 16;
    for (int i = 0; i < g->count; i++) units += ceil_div(g->members[i].m.n, 8);
    return gemv_rows_16(g->l, g->main, g->type, units);
}

/* ---- what is wanted next */

static int64_t row_bytes(const RowMatrix *m) { return m->bits == 4 ? ceil_div(m->k, m->group) * m->group / 2 : 2 * m->stride; }

/* The products that are launched after those of G; false without any. */
static bool next_products(const Gemv *g, Gemv *next)
{
    const Compilation *c = g->l->c;
    for (uint32_t i = g->members[0].index + 1; i <= c->graph.node_count; i++) {
        const Node *n = &c->graph.nodes[i];
        if (!n->together || !(n->op->facts & OP_EPILOGUE) || g->l->made_by[i] || member_of(g, i) >= 0) continue;
        *next = (Gemv){.l = g->l};
        find_members(next, i);
        if (next->count && next->members[0].index == i) return true;
    }
    return false;
}

/* Each block, when it has asked for all it reads, brings its part of the first rows of the next products' matrices into the L2 cache: the memory is
 * idle while launches follow each other and while what stands between them, attention say, waits for results. Products of 4 bits leave it
 * less idle. (Measured: tests/bench/RESULTS.md.) */
static void set_ahead(const Gemv *g, Kernel *k, int64_t blocks)
{
    static const int64_t candidates[] = {0, 2, 4, 8}; /* megabytes */
    Compilation *c = lower_compilation(g->l);
    const RowMatrix *m = g->main;
    Gemv next;
    int64_t bytes = 0;
    int count = 0;
    if (next_products(g, &next)) {
        const RowMatrix *other = next.main;
        const char *key = arena_text(&c->arena, "gemv_ahead/n=%lld,k=%lld,bits=%d,next=%lldx%lldx%d", (long long)m->n, (long long)m->k, m->bits, (long long)other->n,
                                     (long long)other->k, other->bits);
        bytes = tuning_choice(g->l, key, candidates, (int)COUNT_OF(candidates), m->bits == 16 ? 4 : 0) << 20;
        for (int i = 0; i < next.count && count < 2 && bytes; i++) {
            if (next.members[i].side || (count == 1 && next.members[i].gate < 0)) continue; /* one, or a gate and what it gates */
            kernel_in_rows(k, arena_text(&c->arena, "AHEAD%d", count++), next.members[i].m.matrix, 0);
        }
        if (count) bytes /= count;
        if (bytes > other->n * row_bytes(other)) bytes = other->n * row_bytes(other);
    }
    kernel_int(k, "AHEAD", count ? bytes / blocks / 128 * 128 : 0);
    kernel_int(k, "AHEADS", count);
}

static void launch(Gemv *g, Kernel *k, int64_t units)
{
    Compilation *c = g->l->c;
    const RowMatrix *m = g->main;
    const bool four = m->bits == 4;
    const int64_t span = span_of(g);
    const RowTiles tiles = {.l = g->l, .main = m, .type = g->type, .parts = g->parts, .rows = g->tile_rows, .span = span, .units = units};
    const RowCut cut = gemv_cut(&tiles);
    int mains = 0;
    for (int i = 0; i < g->count; i++) mains += !g->members[i].side;
    *(four ? &c->products_of_4_bits : &c->products_of_16_bits) += units * g->tile_rows * m->k * m->bits / 8;
    kernel_int(k, "K", m->k);
    kernel_int(k, "BITS", m->bits);
    kernel_int(k, "SLICE", span);
    kernel_int(k, "CHUNKS", span * m->bits / 128);
    kernel_int(k, "TILE_ROWS", g->tile_rows);
    kernel_int(k, "WHOLE", whole_tiles(g, g->tile_rows));
    kernel_int(k, "LINEAR", whole_tiles(g, g->tile_rows) && mains == g->parts);
    kernel_int(k, "COPIED", cut.scale_bytes > 0);
    kernel_int(k, "SCALE_BYTES", cut.scale_bytes);
    kernel_int(k, "SCALED", four && g->type == DT_BF16);
    kernel_int(k, "KB", ceil_div(m->k, 32));
    kernel_int(k, "GROUP", four ? m->group : 32);
    kernel_int(k, "KG", four ? ceil_div(m->k, m->group) : 1);
    kernel_int(k, "ROW_BYTES", row_bytes(m));
    kernel_int(k, "ZEROS", m->zeros.buffer != 0);
    kernel_int(k, "ZERO_ROW", m->zero_row);
    kernel_text(k, "TYPE", g->type == DT_F16 ? "F16" : "BF16");
    kernel_text(k, "TILE_DECLARE", four ? "const GP_PASTE(T_, TYPE) *s = 0; const unsigned char *z = 0; (void)s; (void)z;" : "");
    kernel_text(k, "COUNTER", "idx");
    kernel_int(k, "GRID", cut.grid);
    kernel_int(k, "UNITS", units);
    kernel_int(k, "UNITS_EACH", ceil_div(units, cut.grid));
    kernel_int(k, "PARTS", g->parts);
    kernel_int(k, "KS", cut.warps);
    kernel_int(k, "NS", cut.slices);
    kernel_int(k, "DEPTH", cut.depth);
    kernel_int(k, "REGISTERS", cut.registers);
    kernel_shared(k, cut.depth * cut.warps * cut.slot);
    kernel_int(k, "KEPT", cut.kept);
    set_ahead(g, k, cut.grid);
    kernel_early(k); /* those have weights to ask for */
    kernel_int(k, "RESIDENT", ceil_div(cut.grid, MULTIPROCESSORS));
    kernel_launch(k, cut.grid, 1, 1, (int)(32 * cut.warps));
}

int gemv_takes(Lower *l, const Node *n, int64_t *k, int64_t *span)
{
    Gemv g = {.l = l};
    if (!n->together || n->loop) return 0;
    find_members(&g, (uint32_t)(n - l->c->graph.nodes));
    if (!g.count || g.members[0].node != n) return 0;
    *k = g.main->k;
    *span = span_of(&g);
    return g.count;
}

bool gemv_lower(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const uint32_t leader = (uint32_t)(n - c->graph.nodes);
    Gemv g = {.l = l};
    if (!n->together || !(n->op->facts & OP_EPILOGUE) || l->signature->kind == SIG_LOAD || l->guarded) return false;
    find_members(&g, leader);
    if (!g.count || g.members[0].index != leader) return false;
    const uint32_t producer = node_input(c, n, 0)->producer;
    const Node *norm = producer ? &c->graph.nodes[producer] : NULL;
    if (norm && (norm->op->facts & OP_NORM_ROW) && norm->together == n->together && l->made_by[producer] < 0) {
        g.norm = norm;
        if (!norm_row(c, norm, &g.row)) fault("gemv", "norm '%s' was put off, but is none of one row", norm->name);
    } else {
        g.made = gemv_row(l, n);
        const View x = g.made ? (View){0} : lower_input(l, n, 0);
        if (!g.made && view_vector(l, &x) != 8) return false;
    }
    g.type = node_input(c, n, 0)->dtype;
    Kernel *k = kernel_begin(l, n, "gemv");
    g.parts = 1;
    for (int i = 0; i < g.count; i++)
        if (g.paired[i]) g.parts = 2;
    g.tile_rows = tile_rows(&g);
    g.rows = g.tile_rows / g.parts;
    set_row(&g, k, n);
    const int64_t units = set_units(&g, k);
    set_sides(&g, k);
    const int at = l->launch_count;
    launch(&g, k, units);
    for (int i = 1; i < g.count; i++) l->made_by[g.members[i].index] = at + 1;
    if (g.norm && leader == g.norm->together) l->fates[producer].launch = at;
    return true;
}
