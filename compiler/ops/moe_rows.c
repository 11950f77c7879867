/* moe_rows.c - a mixture of experts with many rows: the routes (row and slot) are sorted by expert, and each expert's rows go
 * through its two matrices together, on tensor cores. What lies between the products is rounded to the type of the activations. */
#include "ops/moe.h"
#include "ops/product.h"
#include "ops/quantize.h"

#include <string.h>

enum { CHUNK = 32, MOST_EXPERTS = 1024 }; /* a block's threads: moe_group has one for each */

/* Where the routes of each expert are. */
typedef struct Groups {
    View list, start, tile; /* as moe_group has them */
    RowTile shape;
    int64_t tiles;
    Dim routes;
} Groups;

/* Four bits, in whole blocks that a stage of 32 lies within. */
static bool matrix_fits(const Matrix *m) { return m->bits == 4 && m->block >= CHUNK && m->inputs % m->block == 0; }

static bool rows_fit(Lower *l, const Moe *z, const View *x)
{
    if (!product_many_rows(l, x, x->store, lower_upper(l, x->dims[0])) || z->experts > MOST_EXPERTS) return false;
    return matrix_fits(&z->up) && matrix_fits(&z->down) && (!z->third || matrix_fits(&z->gate3));
}

static View table(Lower *l, const char *name, int64_t length)
{
    const Dim dims[1] = {dim_const(lower_compilation(l), length)};
    return lower_temporary(l, name, DT_I32, 1, dims);
}

static Groups group(Lower *l, const Node *n, const Moe *z, const View *chosen)
{
    Compilation *c = lower_compilation(l);
    const int64_t routes = lower_upper(l, chosen->dims[0]) * z->top;
    Groups g = {.routes = dim_scale(c, chosen->dims[0], z->top)};
    g.shape = routes > 32 * z->experts ? (RowTile){64, 128, 4} : (RowTile){32, 64, 4};
    g.tiles = routes / g.shape.rows + z->experts;
    g.list = table(l, "routes by expert", routes);
    g.start = table(l, "first route of each expert", z->experts + 1);
    g.tile = table(l, "tiles of experts", 2 * g.tiles);
    Kernel *k = kernel_begin(l, n, "moe_group");
    kernel_in(k, "CHOSEN", *chosen);
    kernel_out(k, "LIST", g.list);
    kernel_out(k, "START", g.start);
    kernel_out(k, "TILE", g.tile);
    kernel_int(k, "EXPERTS", z->experts);
    kernel_int(k, "TOP", z->top);
    kernel_int(k, "BM", g.shape.rows);
    kernel_int(k, "TILES", g.tiles);
    kernel_dim(k, "ROWS", chosen->dims[0]);
    kernel_label(k, arena_text(&c->arena, "%s: routes by expert", n->name));
    kernel_launch(k, 1, 1, 1, (int)((z->experts + 31) / 32 * 32));
    return g;
}

/* Y = each expert's matrix M times its rows of A, with the bias; A_LINE, Y_LINE: of row m of the group that begins at `first`. */
static void multiply(Lower *l, const Node *n, const Matrix *m, const Groups *g, const View *a, const View *y, const char *a_line,
                     const char *y_line)
{
    Compilation *c = lower_compilation(l);
    const bool zero = moe_given(c, n, m->zero), bias = moe_given(c, n, m->bias);
    const int64_t zero_row = moe_byte_count(m->blocks, m->bits);
    Kernel *k = kernel_begin(l, n, "matmul_rows");
    kernel_in(k, "A", *a);
    kernel_in(k, "B", dense_input(l, n, m->weight));
    kernel_in(k, "S", dense_input(l, n, m->scale));
    if (zero) kernel_in(k, "Z", dense_input(l, n, m->zero));
    if (bias) kernel_in(k, "C", dense_input(l, n, m->bias));
    kernel_in(k, "LIST", g->list);
    kernel_in(k, "START", g->start);
    kernel_in(k, "TILE", g->tile);
    kernel_out(k, "Y", *y);
    kernel_int(k, "GROUPED", 1);
    kernel_text(k, "GROUP_START", "START_LD(START_OFF + z)");
    kernel_text(k, "M", "(START_LD(START_OFF + z + 1) - GROUP_START)");
    kernel_int(k, "N", m->outputs);
    kernel_int(k, "K", m->inputs);
    kernel_int(k, "KB", m->blocks);
    kernel_int(k, "BS", m->block);
    kernel_int(k, "A_SM", a->stride[0]);
    kernel_int(k, "Y_SM", y->stride[0]);
    kernel_int(k, "Y_SN", 1);
    kernel_text(k, "A_LINE(m)", a_line);
    kernel_text(k, "Y_LINE(m)", y_line);
    kernel_int(k, "Z_A", 0);
    kernel_int(k, "Z_Y", 0);
    kernel_int(k, "Z_BEYOND", 0);
    kernel_text(k, "Z_B", arena_text(&c->arena, "(z * %lldLL)", (long long)(m->outputs * m->inputs / 2)));
    kernel_text(k, "Z_S", arena_text(&c->arena, "(z * %lldLL)", (long long)(m->outputs * m->blocks)));
    kernel_text(k, "Z_Z", arena_text(&c->arena, "(z * %lldLL)", (long long)(m->outputs * zero_row)));
    kernel_int(k, "FORM", 2);
    kernel_int(k, "ZP", zero);
    kernel_int(k, "ZP_ROW", zero_row);
    kernel_text(k, "STYPE", product_type(node_input(c, n, m->scale)->dtype));
    kernel_int(k, "PARTIAL", 0);
    kernel_text(k, "EPILOGUE_BODY", "");
    kernel_text(k, "EPILOGUE", bias ? arena_text(&c->arena, "(v + (float)C_LD(C_OFF + z * %lldLL + n))", (long long)m->outputs) : "v");
    product_rows_set(l, k, a->store, y, g->shape, CHUNK, true);
    kernel_label(k, arena_text(&c->arena, "%s: %s", n->name, m->name));
    kernel_launch(k, g->tiles, (m->outputs + g->shape.columns - 1) / g->shape.columns, 1, ROW_THREADS);
}

static View scratch(Lower *l, const char *name, DType t, Dim rows, int64_t columns)
{
    const Dim dims[2] = {rows, dim_const(lower_compilation(l), columns)};
    return lower_temporary(l, name, t, 2, dims);
}

static void activate(Lower *l, const Node *n, const Moe *z, const View *first, const View *third, const View *chosen, const View *inner)
{
    Kernel *k = kernel_begin(l, n, "moe_activate");
    kernel_in(k, "X", *first);
    if (z->third) kernel_in(k, "X3", *third);
    kernel_out(k, "Y", *inner);
    kernel_dim(k, "ROWS", chosen->dims[0]);
    kernel_int(k, "TOP", z->top);
    moe_activation(k, n, z);
    kernel_label(k, arena_text(&lower_compilation(l)->arena, "%s: activation", n->name));
    kernel_launch(k, grid_for(lower_upper(l, chosen->dims[0]) * z->top * z->inner, 256), 1, 1, 256);
}

static void combine(Lower *l, const Node *n, const Moe *z, const View *x, const View *share, const View *y)
{
    Kernel *k = kernel_begin(l, n, "moe_combine");
    kernel_in(k, "X", *x);
    kernel_in(k, "SHARE", *share);
    kernel_out(k, "Y", *y);
    kernel_dim(k, "ROWS", y->dims[0]);
    kernel_int(k, "TOP", z->top);
    kernel_epilogue(k, n, "v");
    kernel_label(k, arena_text(&lower_compilation(l)->arena, "%s: combination", n->name));
    kernel_launch(k, grid_for(lower_upper(l, y->dims[0]) * z->hidden, 256), 1, 1, 256);
}

bool moe_rows(Lower *l, const Node *n, const Moe *z, const View *x, const View *y, const View *chosen, const View *share)
{
    static const char *const sorted = "(GROUP_START + (m))", *const listed = "LIST_LD(LIST_OFF + GROUP_START + (m))";
    View third = {0};
    if (!rows_fit(l, z, x)) return false;
    const Groups g = group(l, n, z, chosen);
    const View first = scratch(l, "first products", DT_F32, g.routes, z->up.outputs);
    const View inner = scratch(l, "inner", x->store, g.routes, z->inner), last = scratch(l, "last products", DT_F32, g.routes, z->hidden);
    const char *row = arena_text(&lower_compilation(l)->arena, "(%s / %lld)", listed, (long long)z->top);
    if (z->third) third = scratch(l, "third products", DT_F32, g.routes, z->inner);
    multiply(l, n, &z->up, &g, x, &first, row, sorted);
    if (z->third) multiply(l, n, &z->gate3, &g, x, &third, row, sorted);
    activate(l, n, z, &first, &third, chosen, &inner);
    multiply(l, n, &z->down, &g, &inner, &last, sorted, listed);
    combine(l, n, z, &last, share, y);
    return true;
}
