/* pointwise.c - kernels for elementwise nodes and what fuse has put into them, and for values that exist only as facts:
 * folded contents and inputs that the device feeds. */
#include "lower.h"
#include "ops/move.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LOADS = 20, MAX_MADE = 32, MAX_RUNS = 4 /* in registers, for each vector of a thread */ };

/* What a kernel has in vectors of eight elements (kernel_row). */
typedef struct Vectors {
    int64_t elements;        /* of the row */
    int count, runs;         /* operands; their runs of 16 bytes */
    Text read, take;
} Vectors;

typedef struct Builder {
    Lower *l;
    Kernel *kernel;
    int rank;                /* of the output */
    const Dim *dims;
    Text body;
    int temporaries, loads;
    uint32_t made[MAX_MADE]; /* by temporary: the value in it */
    uint32_t loaded[MAX_LOADS]; /* values already read into p0, p1 ... */
    const char *prefix;      /* of the names of operands */
    Text *reads;             /* what reads them; NULL: it stands in the body */
    int given_count;
    const Given *given;      /* values that the kernel has already */
    Vectors *vectors;        /* takes what lies so; NULL: all is read element by element */
    Constants *constants;    /* takes those; NULL: none */
} Builder;

static const char *value_c(Builder *b, uint32_t value);

static Compilation *comp(Builder *b) { return b->l->c; }

/* Index of the value's axis k for output indices i0..: right-aligned, 0 where it is broadcast. */
static const char *axis_index(Builder *b, const Value *v, int k)
{
    if (dim_is(comp(b), lower_dim(b->l, v->dims[k]), 1)) return "0";
    return arena_text(&comp(b)->arena, "i%d", b->rank - v->rank + k);
}

/* ---- the kinds of operand */

static const char *contents_c(Builder *b, const Value *v)
{
    if (v->contents_count == 1) return lower_c(b->l, v->contents[0]);
    Text t = { 0 };
    int inner = v->contents_count;
    const char *sum = "0";
    for (int k = 0; k < v->rank; k++) {
        int64_t n = 1;
        dim_is_const(comp(b), lower_dim(b->l, v->dims[k]), &n);
        inner = n ? inner / (int)n : 0;
        sum = arena_text(&comp(b)->arena, "%s + %s*%d", sum, axis_index(b, v, k), inner);
    }
    for (int i = 0; i + 1 < v->contents_count; i++) text_add(&t, "(%s) == %d ? %s : ", sum, i, lower_c(b->l, v->contents[i]));
    text_add(&t, "%s", v->contents_count ? lower_c(b->l, v->contents[v->contents_count - 1]) : "0");
    const char *copy = arena_text(&comp(b)->arena, "(%s)", t.data);
    text_free(&t);
    return copy;
}

/* What the device feeds where each row has a length of its own. A row that rests gets positions inside any table. */
static const char *row_feed_c(Builder *b, const Value *v)
{
    Compilation *c = comp(b);
    const int batch = row_axis(c, v);
    const char *step = lower_c(b->l, c->position_step), *last = v->rank ? axis_index(b, v, v->rank - 1) : "0", *row = axis_index(b, v, batch);
    kernel_rows(b->kernel);
    const char *length = arena_text(&c->arena, "RL_LD(RL_OFF + %s)", row), *fed = arena_text(&c->arena, "RT_LD(RT_OFF + %s)", row);
    switch (v->feed) {
    case FEED_ONES: return arena_text(&c->arena, "(%s < %s + %s)", last, length, step);
    case FEED_POSITION: return arena_text(&c->arena, "(%s ? %s + %s : 0)", fed, length, batch == v->rank - 1 ? "0" : last);
    case FEED_LENGTH: return arena_text(&c->arena, "(%s + %s)", length, step);
    case FEED_WRITE_INDEX: return length;
    default: fault("lower", "input '%s' is not fed by the device", v->name);
    }
}

static const char *feed_c(Builder *b, const Value *v)
{
    Compilation *c = comp(b);
    const char *position = lower_c(b->l, dim_symbol(c, c->position));
    Dim after = dim_add(c, dim_symbol(c, c->position), c->position_step);
    if (c->options.rows) return row_feed_c(b, v);
    switch (v->feed) {
    case FEED_ONES: /* a mask longer than the extent is zero beyond it */
        if (!v->rank || dim_equal(c, v->dims[v->rank - 1], after)) return "1";
        return arena_text(&c->arena, "(%s < %s)", axis_index(b, v, v->rank - 1), lower_c(b->l, after));
    case FEED_POSITION: return arena_text(&c->arena, "(%s + %s)", position, v->rank ? axis_index(b, v, v->rank - 1) : "0");
    case FEED_LENGTH: return lower_c(b->l, after);
    case FEED_WRITE_INDEX: return position;
    default: fault("lower", "input '%s' is not fed by the device", v->name);
    }
}

/* Index of axis K of A's view. */
static const char *apart_index(Builder *b, const Value *v, const Apart *a, int k)
{
    const char *text = arena_text(&comp(b)->arena, "(COUNTER)%s", axis_index(b, v, a->of[k]));
    int64_t inner = 1, n;
    for (int j = k + 1; j < a->view.rank && a->of[j] == a->of[k]; j++)
        if (dim_is_const(comp(b), a->view.dims[j], &n)) inner *= n;
    if (inner > 1) text = arena_text(&comp(b)->arena, "%s / %lld", text, (long long)inner);
    if (k > 0 && a->of[k - 1] == a->of[k]) text = arena_text(&comp(b)->arena, "%s %% (COUNTER)%s", text, lower_c(b->l, a->view.dims[k]));
    return text;
}

/* Whether V, whose memory is VIEW, has an element for each of the row, in aligned runs; *view becomes one axis where it is one run. */
static bool in_vectors(Builder *b, const Value *v, View *view)
{
    Dim all = dim_const(comp(b), 1);
    int64_t n = 0;
    for (int k = 0; k < v->rank; k++) all = dim_mul(comp(b), all, lower_dim(b->l, v->dims[k]));
    if (!dim_is(comp(b), all, b->vectors->elements)) return false;
    if (view_dense(b->l, view, 0, view->rank)) {
        view->rank = 1;
        view->dims[0] = all;
        view->stride[0] = 1;
    }
    for (int k = 0; k < view->rank; k++)
        if (!dim_is_const(comp(b), view->dims[k], &n)) return false;
    return view_vector(b->l, view) > 1 && n % 8 == 0;
}

/* Operand NAME as one more of the vectors; false: there is no room. */
static bool add_vector(Builder *b, const char *name, const View *view, Text *t, int load)
{
    Vectors *h = b->vectors;
    const int runs = view->store == DT_F32 ? 2 : 1;
    if (h->runs + runs > MAX_RUNS) return false;
    text_add(&h->read, "{ %s const idx at = %s; ", index_split(b->l, view->rank, view->dims, "i"), index_at(b->l, name, view->rank, "i"));
    for (int i = 0; i < runs; i++) {
        text_add(&h->read, "LD_RUN(%s + at + %d, HELD_RUN(%d)); ", name, 4 * i, h->runs + i);
        text_add(&h->take, "HELD_%s(%d, %d, %d) ", dtype_token(view->store), h->runs + i, h->count, 4 * i);
    }
    text_add(&h->read, "} ");
    text_add(t, "const float p%d = held[%d][j]; ", load, h->count++);
    h->runs += runs;
    return true;
}

const char *kernel_constant(Lower *l, Constants *constants, const char *name, const View *view, const char *at)
{
    const Region region = l->c->buffers[view->buffer].region;
    int64_t offset;
    if (!constants || constants->count == MAX_CONSTANTS || (region != REGION_WEIGHTS && region != REGION_LOAD)) return NULL;
    if ((view->store != DT_F16 && view->store != DT_BF16 && view->store != DT_F32) || !dim_is_const(l->c, view->offset, &offset)) return NULL;
    const int n = constants->count++;
    text_add(&constants->read, "LD_CONSTANT%d(%s + %s, CONSTANT(%d)); ", view->store == DT_F32 ? 4 : 2, name, at, n);
    if (view->store == DT_F32) return arena_text(&l->c->arena, "gp_float_of(CONSTANT(%d))", n);
    return arena_text(&l->c->arena, "GP_OF_%s(CONSTANT(%d))", dtype_token(view->store), n);
}

static const char *load_c(Builder *b, uint32_t index)
{
    for (int i = 0; i < b->loads; i++)
        if (b->loaded[i] == index) return arena_text(&comp(b)->arena, "p%d", i);
    if (b->loads == MAX_LOADS) fault("lower", "a pointwise kernel reads too many values");
    const Value *v = &comp(b)->graph.values[index];
    const Apart *apart = b->l->views[index].buffer ? NULL : b->l->apart[index];
    const View view = apart ? apart->view : lower_value(b->l, index);
    View runs = view;
    int n = b->loads++;
    b->loaded[n] = index;
    const char *name = arena_text(&comp(b)->arena, "%s%d", b->prefix, n), *result = arena_text(&comp(b)->arena, "p%d", n);
    Text *t = b->reads ? b->reads : &b->body;
    if (b->vectors && in_vectors(b, v, &runs) && add_vector(b, name, &runs, t, n)) {
        kernel_in(b->kernel, name, runs);
        return result;
    }
    kernel_in(b->kernel, name, view);
    const char *at = arena_text(&comp(b)->arena, "%s_OFF", name);
    for (int k = 0; k < view.rank; k++)
        if (view.stride[k] && !dim_is(comp(b), view.dims[k], 1))
            at = arena_text(&comp(b)->arena, "%s + (COUNTER)%s * %lld", at,
                            apart ? arena_text(&comp(b)->arena, "(%s)", apart_index(b, v, apart, k)) : axis_index(b, v, k), (long long)view.stride[k]);
    const char *constant = apart ? NULL : kernel_constant(b->l, b->constants, name, &view, at);
    text_add(t, "const %s_C p%d = %s; ", name, n, constant ? constant : arena_text(&comp(b)->arena, "%s_LD(%s)", name, at));
    return result;
}

/* Whether TEXT mentions the operand named by one letter. */
static bool mentions_operand(const char *text, char letter)
{
    for (const char *p = strchr(text, letter); p; p = strchr(p + 1, letter)) {
        bool before = p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '_' || p[-1] == '.');
        if (!before && !isalnum((unsigned char)p[1]) && p[1] != '_') return true;
    }
    return false;
}

/* One node's expression in a block of its own, where a, b, c ... name its operands. */
static const char *node_c(Builder *b, const Node *n)
{
    const char *operands[26] = { NULL };
    if (n->input_count > 26) fault("lower", "node '%s' has too many operands", n->name);
    const Value *out = node_output(comp(b), n, 0);
    const char *expr = n->op->expr_fn ? n->op->expr_fn(comp(b), n) : n->op->expr;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && mentions_operand(expr, (char)('a' + i))) operands[i] = value_c(b, n->inputs[i]);
    int id = b->temporaries++;
    if (id == MAX_MADE) fault("lower", "a pointwise kernel has too many nodes");
    b->made[id] = n->outputs[0];
    text_add(&b->body, "%s t%d; { ", compute_c(out->dtype), id);
    for (int i = 0; i < n->input_count; i++)
        if (operands[i])
            text_add(&b->body, "const %s %c = %s; ", compute_c(comp(b)->graph.values[n->inputs[i]].dtype), 'a' + i, operands[i]);
    text_add(&b->body, "t%d = RND_%s(%s); } ", id, dtype_token(storage_type(out->dtype)), expr);
    return arena_text(&comp(b)->arena, "t%d", id);
}

static bool fused_here(Builder *b, const Value *v)
{
    if (!v->producer || b->l->views[v - comp(b)->graph.values].buffer) return false;
    return comp(b)->graph.nodes[v->producer].fused_into != 0;
}

static const char *value_c(Builder *b, uint32_t index)
{
    const Value *v = &comp(b)->graph.values[index];
    for (int i = 0; i < b->given_count; i++)
        if (index == b->given[i].value) return b->given[i].name;
    if (value_folded(v) && v->contents_count <= 16) return contents_c(b, v);
    if (v->is_input && v->feed > FEED_TOKEN && v->feed != FEED_CALLER) return feed_c(b, v);
    for (int i = 0; i < b->temporaries; i++)
        if (b->made[i] == index) return arena_text(&comp(b)->arena, "t%d", i);
    if (fused_here(b, v)) {
        b->l->fates[v->producer] = (NodeFate){ REAL_FUSED, b->l->launch_count, NULL };
        return node_c(b, &comp(b)->graph.nodes[v->producer]);
    }
    return load_c(b, index);
}

/* ---- the kernel around it */

/* Declares i{FROM}..i{TO-1} from NUMBER, which counts row-major over these axes. */
static void split_c(Builder *b, Text *t, const char *number, int from, int to)
{
    text_add(t, "COUNTER %s_rest = %s; (void)%s_rest; ", number, number, number);
    for (int k = to - 1; k >= from; k--) {
        if (dim_is(comp(b), b->dims[k], 1)) { text_add(t, "const COUNTER i%d = 0; (void)i%d; ", k, k); continue; }
        const char *d = lower_c(b->l, b->dims[k]);
        bool last = true;
        for (int j = from; j < k; j++) last &= dim_is(comp(b), b->dims[j], 1);
        if (last) text_add(t, "const COUNTER i%d = %s_rest; (void)i%d; ", k, number, k);
        else text_add(t, "const COUNTER i%d = %s_rest %% (COUNTER)%s; %s_rest /= (COUNTER)%s; (void)i%d; ", k, number, d, number, d, k);
    }
}

static const char *split_copy(Builder *b, const char *number, int from, int to)
{
    Text t = { 0 };
    split_c(b, &t, number, from, to);
    const char *copy = arena_copy(&comp(b)->arena, t.data);
    text_free(&t);
    return copy;
}

static const char *total_c(Builder *b)
{
    const char *total = "1";
    for (int k = 0; k < b->rank; k++)
        if (!dim_is(comp(b), b->dims[k], 1)) total = arena_text(&comp(b)->arena, "%s * %s", total, lower_c(b->l, b->dims[k]));
    return total;
}

static int64_t upper_elements(Builder *b)
{
    int64_t n = 1;
    for (int k = 0; k < b->rank; k++) {
        int64_t d = lower_upper(b->l, b->dims[k]);
        n *= d > 0 ? d : 0;
    }
    return n;
}

/* Emits OUT = expr, where expr comes from `index` itself (a node's output, or a folded or fed value). */
static void emit(Lower *l, const Node *n, uint32_t index, View out)
{
    Builder b = { .l = l, .rank = out.rank, .dims = out.dims, .prefix = "P" };
    if (upper_elements(&b) == 0) return;
    b.kernel = kernel_begin(l, n, "pointwise");
    const Value *v = &l->c->graph.values[index];
    const char *result = n ? node_c(&b, n) : value_folded(v) ? contents_c(&b, v) : feed_c(&b, v);
    kernel_out(b.kernel, "OUT", out);
    text_add(&b.body, "OUT_ST(OUT_OFF");
    for (int k = 0; k < out.rank; k++)
        if (!dim_is(l->c, out.dims[k], 1)) text_add(&b.body, " + (COUNTER)i%d * %lld", k, (long long)out.stride[k]);
    text_add(&b.body, ", %s);", result);
    kernel_text(b.kernel, "COUNTER", upper_elements(&b) < (INT64_C(1) << 30) ? "int" : "idx");
    kernel_text(b.kernel, "INDEXES", split_copy(&b, "n", 0, b.rank));
    kernel_text(b.kernel, "TOTAL", total_c(&b));
    kernel_text(b.kernel, "BODY", b.body.data);
    if (!n) kernel_label(b.kernel, v->name);
    for (int k = 0; k < out.rank; k++) {
        const char *name = arena_text(&l->c->arena, "D%d", k);
        kernel_text(b.kernel, name, lower_c(l, out.dims[k]));
    }
    kernel_launch(b.kernel, grid_for(upper_elements(&b), 128), 1, 1, 128);
    text_free(&b.body);
}

/* i0.. of the output from its row m and column n. */
static const char *matrix_indexes(Builder *b)
{
    Text t = { 0 };
    for (int k = 0; k < b->rank - 1; k++) text_add(&t, "const idx i%d = %s; (void)i%d; ", k, k == b->rank - 2 ? "m" : "0", k);
    text_add(&t, "const idx i%d = n; (void)i%d; ", b->rank - 1, b->rank - 1);
    const char *copy = arena_copy(&comp(b)->arena, t.data);
    text_free(&t);
    return copy;
}

/* Names that expressions of operators use for the dims of their output. */
static void declare_dims(Builder *b, Text *t)
{
    for (int i = 0; i < b->rank; i++) text_add(t, "const idx D%d = %s; (void)D%d; ", i, lower_c(b->l, b->dims[i]), i);
}

/* The same at the indices i0.. that INDEXES declares, or that are declared already. READS: NULL, or what is declared and read apart. VECTORS,
 * CONSTANTS: as of Builder. */
static const char *elements_c(Kernel *k, uint32_t node, const char *(*indexes)(Builder *), const char *prefix, const Given *given, int count,
                              const char **reads, Vectors *vectors, Constants *constants, const char **body)
{
    Text apart = { 0 };
    Lower *l = kernel_lower(k);
    const Node *n = &l->c->graph.nodes[node];
    const Value *out = node_output(l->c, n, 0);
    Dim dims[MAX_RANK];
    for (int i = 0; i < out->rank; i++) dims[i] = lower_dim(l, out->dims[i]);
    Builder b = { .l = l, .kernel = k, .rank = out->rank, .dims = dims, .prefix = prefix, .given = given, .given_count = count, .vectors = vectors,
                  .constants = constants };
    if (reads) b.reads = &apart;
    Text *first = reads ? &apart : &b.body;
    if (indexes) text_add(first, "%s", indexes(&b));
    if (constants) text_add(&constants->read, "%s", indexes(&b));
    declare_dims(&b, first);
    const char *result = node_c(&b, n);
    l->fates[node] = (NodeFate){ REAL_FUSED, l->launch_count, NULL };
    if (reads) *reads = arena_copy(&l->c->arena, apart.data);
    *body = arena_copy(&l->c->arena, b.body.data);
    text_free(&apart);
    text_free(&b.body);
    return result;
}

const char *kernel_elementwise(Kernel *k, uint32_t node, const char *prefix, const Given *given, int count, Constants *constants, const char **body)
{
    return elements_c(k, node, matrix_indexes, prefix, given, count, NULL, NULL, constants, body);
}

const char *kernel_given(Lower *l, uint32_t value, const char *name, const char *result)
{
    const Value *v = &l->c->graph.values[value];
    return arena_text(&l->c->arena, "const %s %s = RND_%s(%s); ", compute_c(v->dtype), name, dtype_token(storage_type(v->dtype)), result);
}

/* OTHER, OTHER_RESULT: as of kernel_epilogue_apart. READS: as of elements_c. */
static void epilogue_c(Kernel *k, const Node *n, const char *result, uint32_t other, const char *other_result, const char **reads)
{
    Lower *l = kernel_lower(k);
    const char *body = "";
    if (n->epilogue) {
        const Given given[2] = { { n->outputs[0], "given" }, { other, "other" } };
        const char *first = kernel_given(l, given[0].value, given[0].name, result), *second = other ? kernel_given(l, other, given[1].name, other_result) : "";
        result = elements_c(k, n->epilogue, matrix_indexes, "P", given, other ? 2 : 1, reads, NULL, NULL, &body);
        body = arena_text(&l->c->arena, "%s%s%s", first, second, body);
        kernel_text(k, "COUNTER", "idx");
    }
    kernel_text(k, "EPILOGUE_BODY", body);
    kernel_text(k, "EPILOGUE", result);
}

void kernel_epilogue(Kernel *k, const Node *n, const char *result) { epilogue_c(k, n, result, 0, NULL, NULL); }

void kernel_epilogue_apart(Kernel *k, const Node *n, const char *result, uint32_t other, const char *other_result)
{
    const char *reads = "";
    epilogue_c(k, n, result, other, other_result, &reads);
    kernel_text(k, "EPILOGUE_READS", reads);
}

/* ---- kernels of rows, which compute elementwise nodes of the row besides */

enum { MAX_ROW_MEMBERS = 28 }; /* fuse_rows.c takes fewer operands than this */

typedef struct RowText {
    Kernel *k;
    uint32_t node;           /* whose kernel it is */
    const char *prefix;      /* of operands */
    bool held;               /* nothing is stored: see kernel_held */
    Given given[MAX_ROW_MEMBERS];
    int given_count, members;
    Text once, each;         /* statements: for a row, for an element */
} RowText;

/* Whether VALUE has an element for each column of node N's rows; else it has one a row. */
static bool for_each_column(Compilation *c, const Node *n, const Value *v)
{
    const Value *x = node_input(c, n, 0);
    return dim_equal(c, v->dims[v->rank - 1], x->dims[x->rank - 1]);
}

static bool computed_by(Compilation *c, uint32_t node, uint32_t kernel)
{
    while (node && node != kernel) node = c->graph.nodes[node].fused_into;
    return node == kernel;
}

/* Whether anybody but the kernel itself reads the result of NODE, which it computes. */
static bool read_elsewhere(Compilation *c, const Node *n, uint32_t value)
{
    const uint32_t kernel = (uint32_t)(n - c->graph.nodes);
    uint32_t here = 0;
    for (uint32_t i = kernel + 1; i <= n->epilogue; i++) {
        const Node *m = &c->graph.nodes[i];
        for (int j = 0; j < m->input_count && !m->dead; j++) here += m->inputs[j] == value && computed_by(c, i, kernel);
    }
    return here < c->graph.values[value].uses;
}

bool kernel_beside_stored(Lower *l, const Node *n) { return !n->epilogue || read_elsewhere(l->c, n, n->outputs[0]); }

static void row_store(RowText *r, Text *t, const Node *n, bool each, const char *name)
{
    Lower *l = kernel_lower(r->k);
    const View out = lower_output(l, n, 0);
    const char *operand = arena_text(&l->c->arena, "OUT%d", r->members);
    kernel_out(r->k, operand, out);
    text_add(t, "%s%s_ST(%s_AT(", each ? "" : "if (TID == 0) ", operand, operand);
    for (int i = 0; i < out.rank; i++) text_add(t, "%si%d", i ? ", " : "", i);
    text_add(t, "), %s); ", name);
}

static void row_member(RowText *r, uint32_t member)
{
    Lower *l = kernel_lower(r->k);
    Compilation *c = l->c;
    const Node *n = &c->graph.nodes[member];
    const bool each = for_each_column(c, &c->graph.nodes[r->node], node_output(c, n, 0));
    Text *t = each ? &r->each : &r->once;
    const char *name = arena_text(&c->arena, "m%d", r->members), *body;
    const char *result = elements_c(r->k, member, NULL, arena_text(&c->arena, "%sM%d_", r->prefix, r->members), r->given, r->given_count, NULL, NULL, NULL, &body);
    text_add(t, "%s %s; { %s%s = %s; } (void)%s; ", compute_c(node_output(c, n, 0)->dtype), name, body, name, result, name);
    if (!r->held && read_elsewhere(c, &c->graph.nodes[r->node], n->outputs[0])) row_store(r, t, n, each, name);
    r->given[r->given_count++] = (Given){ n->outputs[0], name };
    r->members++;
}

/* *ONCE declares i0.. of a row, those of its columns 0; *EACH those of column `col`. */
static void row_indexes(Kernel *k, const Node *n, int axis, const char **once, const char **each)
{
    Lower *l = kernel_lower(k);
    const Value *x = node_input(l->c, n, 0);
    Dim dims[MAX_RANK];
    Text t = { 0 };
    for (int i = 0; i < x->rank; i++) dims[i] = lower_dim(l, x->dims[i]);
    Builder b = { .l = l, .kernel = k, .rank = x->rank, .dims = dims };
    split_c(&b, &t, "row", 0, axis);
    for (int i = axis; i < x->rank; i++) text_add(&t, "const COUNTER i%d = 0; (void)i%d; ", i, i);
    kernel_text(k, "COUNTER", "idx");
    *once = arena_copy(&l->c->arena, t.data);
    *each = split_copy(&b, "col", axis, x->rank);
    text_free(&t);
}

static void define_indexes(Kernel *k, const Node *n, int axis)
{
    const char *once, *each;
    row_indexes(k, n, axis, &once, &each);
    kernel_text(k, "ROW_INDEX", once);
    kernel_text(k, "COLUMN_INDEX", each);
}

static const char *taken_text(RowText *r, Text *t)
{
    const char *copy = t->data ? arena_copy(&kernel_lower(r->k)->c->arena, t->data) : "";
    text_free(t);
    return copy;
}

/* The result of the kernel's node N, and its members. */
static void row_members(RowText *r, const Node *n, const char *result)
{
    Lower *l = kernel_lower(r->k);
    Compilation *c = l->c;
    Text *first = for_each_column(c, n, node_output(c, n, 0)) ? &r->each : &r->once;
    text_add(first, "%s(void)given; ", kernel_given(l, n->outputs[0], "given", result));
    r->given[r->given_count++] = (Given){ n->outputs[0], "given" };
    for (uint32_t i = r->node + 1; i <= n->epilogue; i++)
        if (c->graph.nodes[i].fused_into == r->node) row_member(r, i);
}

void kernel_beside(Kernel *k, const Node *n, int axis, const char *result)
{
    Lower *l = kernel_lower(k);
    Compilation *c = l->c;
    RowText r = { .k = k, .node = (uint32_t)(n - c->graph.nodes), .prefix = "" };
    kernel_int(k, "HAS_BESIDE", n->epilogue != 0);
    if (!n->epilogue) return;
    row_members(&r, n, result);
    define_indexes(k, n, axis);
    kernel_text(k, "ROW_ONCE", taken_text(&r, &r.once));
    kernel_text(k, "ROW_EACH", taken_text(&r, &r.each));
}

bool kernel_takes(Kernel *k, const Node *n)
{
    Lower *l = kernel_lower(k);
    const uint32_t producer = l->c->graph.values[n->inputs[0]].producer;
    const bool takes = producer && l->c->graph.nodes[producer].fused_into == (uint32_t)(n - l->c->graph.nodes);
    const char *body = "";
    kernel_int(k, "TAKES", takes);
    if (!takes) return false;
    if (!n->epilogue) define_indexes(k, n, l->c->graph.values[n->inputs[0]].rank - 1);
    const char *result = elements_c(k, producer, NULL, "T", NULL, 0, NULL, NULL, NULL, &body);
    kernel_text(k, "TAKE_BODY", body);
    kernel_text(k, "TAKE", result);
    return true;
}

/* LpNormalization by the root of the sum of squares, as standardise.cu makes it. */
static void lp_texts(RowText *r, const Node *n)
{
    Lower *l = kernel_lower(r->k);
    text_add(&r->once, "const float factor = total == 0 ? 0 : 1 / SQRTF(total); ");
    text_add(&r->each, "%s", kernel_given(l, n->outputs[0], "given", "element * factor"));
    r->given[r->given_count++] = (Given){ n->outputs[0], "given" };
}

/* What the scales behind a norm make of its result, the variable NAME. */
static const char *scale_texts(RowText *r, const FilterNorm *norm, const char *name)
{
    Lower *l = kernel_lower(r->k);
    Compilation *c = l->c;
    for (int i = 0; i < norm->scales; i++) {
        const Node *n = &c->graph.nodes[norm->scale[i]];
        const bool first = !node_input(c, n, 0)->is_constant;
        const Given given = { n->inputs[first ? 0 : 1], name };
        const char *body, *scaled = arena_text(&c->arena, "s%d", i);
        const char *result = elements_c(r->k, norm->scale[i], NULL, arena_text(&c->arena, "%sS%d_", r->prefix, i), &given, 1, NULL, NULL, NULL, &body);
        text_add(&r->each, "%s %s; { %s%s = %s; } ", compute_c(node_output(c, n, 0)->dtype), scaled, body, scaled, result);
        name = scaled;
    }
    return name;
}

HeldRow kernel_held(Kernel *k, const FilterNorm *norm, const char *prefix)
{
    Compilation *c = kernel_lower(k)->c;
    const Node *n = &c->graph.nodes[norm->node];
    RowText r = { .k = k, .node = norm->node, .prefix = prefix, .held = true };
    HeldRow row = { .take_body = "", .take = "element" };
    r.given[r.given_count++] = (Given){ norm->source, "element" };
    if (n->inputs[0] != norm->source)
        row.take = elements_c(k, c->graph.values[n->inputs[0]].producer, NULL, arena_text(&c->arena, "%sT", prefix), r.given, 1, NULL, NULL, NULL, &row.take_body);
    row_indexes(k, n, c->graph.values[n->inputs[0]].rank - 1, &row.row_index, &row.column_index);
    if (n->epilogue) row_members(&r, n, "total");
    else lp_texts(&r, n);
    for (int i = 0; i < r.given_count; i++)
        if (r.given[i].value == norm->result) row.result = r.given[i].name;
    if (!row.result) fault("lower", "norm '%s' has another result", n->name);
    row.result = scale_texts(&r, norm, row.result);
    row.once = taken_text(&r, &r.once);
    row.each = taken_text(&r, &r.each);
    return row;
}

/* i0.. of element n of a row. */
static const char *row_order(Builder *b) { return index_split(b->l, b->rank, b->dims, "i"); }

RowElements kernel_row(Kernel *k, uint32_t node, const Given *given, const char *prefix)
{
    Lower *l = kernel_lower(k);
    Vectors vectors = { .elements = 1 };
    RowElements row = { 0 };
    const Value *out = node_output(l->c, &l->c->graph.nodes[node], 0);
    for (int i = 0; i < out->rank; i++) vectors.elements *= lower_upper(l, lower_dim(l, out->dims[i]));
    row.result = elements_c(k, node, row_order, prefix, given, given ? 1 : 0, NULL, &vectors, NULL, &row.body);
    row.runs = vectors.runs;
    row.count = vectors.count;
    row.read = vectors.read.data ? arena_copy(&l->c->arena, vectors.read.data) : "";
    row.take = vectors.take.data ? arena_copy(&l->c->arena, vectors.take.data) : "";
    text_free(&vectors.read);
    text_free(&vectors.take);
    return row;
}

void lower_pointwise(Lower *l, Node *n)
{
    if (n->fused_into) return; /* its consumer computes it, or lower_value asks for it */
    emit(l, n, n->outputs[0], lower_output(l, n, 0));
}

/* ---- values that no node made memory for */

/* Contents that are all literal are a table of the plan's metadata; when loading, a weight: what is made there by a mere view of it
 * serves every step. */
static bool metadata_table(Lower *l, uint32_t index)
{
    Compilation *c = l->c;
    const Value *v = &c->graph.values[index];
    int64_t element;
    for (int i = 0; i < v->contents_count; i++)
        if (!dim_is_const(c, lower_dim(l, v->contents[i]), NULL)) return false;
    DType t = storage_type(v->dtype);
    int64_t bytes = dtype_bits(t) / 8;
    unsigned char *table = NEW_ARRAY(c, unsigned char, bytes * v->contents_count + 1);
    for (int i = 0; i < v->contents_count; i++) {
        dim_is_const(c, lower_dim(l, v->contents[i]), &element);
        for (int64_t k = 0; k < bytes; k++) table[i * bytes + k] = (unsigned char)((uint64_t)element >> (8 * k));
    }
    const bool loading = l->signature->kind == SIG_LOAD;
    uint32_t b = buffer_new(c, v->name, loading ? REGION_WEIGHTS : REGION_METADATA, bytes * v->contents_count, loading ? 0 : l->index);
    Data *data = NEW(c, Data);
    *data = (Data){ .bytes = table, .size = (uint64_t)(bytes * v->contents_count) };
    c->buffers[b].data = data;
    l->views[index] = view_dense_new(l, b, t, v->rank, v->dims);
    return true;
}

void lower_materialise(Lower *l, uint32_t index)
{
    Compilation *c = l->c;
    const Value *v = &c->graph.values[index];
    uint32_t node = l->node;
    bool guarded = l->guarded;
    if (value_folded(v) && metadata_table(l, index)) return;
    if (!v->producer || !c->graph.nodes[v->producer].loop) l->guarded = false; /* made once, whatever the iteration */
    if (value_folded(v) || (v->is_input && v->feed != FEED_CALLER && v->feed != FEED_TOKEN)) {
        View out = lower_temporary(l, v->name, v->dtype, v->rank, v->dims);
        l->node = 0;
        emit(l, NULL, index, out);
        l->views[index] = out;
    } else if (l->apart[index]) {
        l->node = v->producer;
        l->views[index] = lower_temporary(l, v->name, v->dtype, v->rank, v->dims);
        lower_copy(l, &c->graph.nodes[v->producer], l->apart[index]->view, l->views[index], NULL);
    } else if (v->producer && c->graph.nodes[v->producer].fused_into) {
        const Node *n = &c->graph.nodes[v->producer];
        l->node = v->producer;
        View out = lower_temporary(l, v->name, v->dtype, v->rank, v->dims);
        emit(l, n, index, out);
        l->views[index] = out;
    } else fault("lower", "value '%s' was never made", v->name);
    l->node = node;
    l->guarded = guarded;
}
