/* fuse - what is needed at all, which elementwise nodes become part of their only consumer's kernel, and which products of a
 * row, with the norm before them, one kernel can make. Each fused node keeps its rounding: results are those of the unfused
 * graph, but for the order in which a norm and a product sum. */
#include "fuse.h"

#include <string.h>

enum { MAX_FUSED = 24 };

/* Nodes that open a loop, a branch or its alternative: nothing reads what some of them make. */
static bool opens(const Node *n)
{
    return n->loop && (n->op == op_find("gcc-plan", "LoopEnter", 1) || n->op == op_find("gcc-plan", "IfEnter", 1) ||
                       n->op == op_find("gcc-plan", "IfElse", 1));
}

static bool needs_launch(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->output_count; i++) {
        const Value *v = node_output(c, n, i);
        if (v && v->uses && !value_folded(v)) return true;
    }
    return false;
}

/* Backwards from the outputs. Contents that are known need no launch, so nobody needs their producer; `uses` ends as the
 * count of uses by nodes that are launched. */
static void mark_needed(Compilation *c)
{
    Graph *g = &c->graph;
    for (uint32_t i = 1; i <= g->value_count; i++) g->values[i].uses = 0;
    for (uint32_t i = 0; i < g->output_count; i++) g->values[g->outputs[i]].uses++;
    for (uint32_t i = g->node_count; i >= 1; i--) {
        Node *n = &g->nodes[i];
        n->dead = !needs_launch(c, n) && !(opens(n) && c->loops[n->loop].needed);
        if (n->loop && !n->dead) c->loops[n->loop].needed = true;
        for (int k = 0; k < n->input_count && !n->dead; k++)
            if (n->inputs[k] && !uniform_length(c, n, k)) g->values[n->inputs[k]].uses++;
    }
}

bool fuse_pointwise(const Node *n) { return (n->op->facts & OP_POINTWISE) && !n->op->lower; }

bool fuse_same_dims(Compilation *c, const Value *a, const Value *b)
{
    if (a->rank != b->rank) return false;
    for (int k = 0; k < a->rank; k++)
        if (!dim_equal(c, a->dims[k], b->dims[k])) return false;
    return true;
}

bool fuse_reads_state(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && v->state) return true;
    }
    return false;
}

/* A value that one elementwise node makes and elementwise nodes of the same shape read. */
static bool fusible(Compilation *c, const Node *consumer, const Value *v)
{
    if (!v->producer || v->is_output || v->state || value_folded(v)) return false;
    const Node *p = &c->graph.nodes[v->producer];
    return !p->dead && fuse_pointwise(p) && p->constant == consumer->constant && p->loop == consumer->loop && !fuse_reads_state(c, p) &&
           fuse_same_dims(c, v, node_output(c, consumer, 0));
}

static void fuse_node(Compilation *c, uint32_t index, int *leaves, int *members)
{
    Node *n = &c->graph.nodes[index];
    leaves[index] = n->input_count;
    members[index] = 1;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (!v || v->uses != 1 || !fusible(c, n, v)) continue;
        int total = leaves[index] - 1 + leaves[v->producer];
        if (total > MAX_LEAVES || members[index] + members[v->producer] > MAX_FUSED) continue;
        c->graph.nodes[v->producer].fused_into = index;
        leaves[index] = total;
        members[index] += members[v->producer];
    }
}

/* The group that all readers of the value belong to; 0 when there are several, or a reader that is not elementwise. */
static uint32_t only_group(Compilation *c, uint32_t value)
{
    uint32_t group = 0, seen = 0;
    for (uint32_t i = c->graph.values[value].producer + 1; i <= c->graph.node_count && seen < c->graph.values[value].uses; i++) {
        const Node *n = &c->graph.nodes[i];
        for (int k = 0; k < n->input_count && !n->dead; k++) {
            if (n->inputs[k] != value) continue;
            if (!fuse_pointwise(n) || (group && fuse_group(c, i) != group)) return 0;
            group = fuse_group(c, i);
            seen++;
        }
    }
    return seen == c->graph.values[value].uses ? group : 0;
}

/* A value that one group reads several times: computed once, in it. */
static void fuse_shared(Compilation *c, uint32_t index, int *leaves, int *members)
{
    Node *n = &c->graph.nodes[index];
    const Value *v = node_output(c, n, 0);
    if (n->fused_into || v->uses < 2) return;
    const uint32_t group = only_group(c, n->outputs[0]);
    if (!group || !fusible(c, &c->graph.nodes[group], v)) return;
    const int total = leaves[group] - (int)v->uses + leaves[index];
    if (total > MAX_LEAVES || members[group] + members[index] > MAX_FUSED) return;
    n->fused_into = group;
    leaves[group] = total;
    members[group] += members[index];
}

/* ---- epilogues: an elementwise group behind a product is computed where the product's kernel has its result */

uint32_t fuse_group(Compilation *c, uint32_t node)
{
    while (c->graph.nodes[node].fused_into) node = c->graph.nodes[node].fused_into;
    return node;
}

/* All that elementwise nodes up to `last` read whose group is `group`, but the results of `own` and `gate`, is there before
 * product `first` is launched. */
static bool leaves_before(Compilation *c, uint32_t group, uint32_t last, uint32_t first, uint32_t own, uint32_t gate)
{
    for (uint32_t i = first + 1; i <= last; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || !fuse_pointwise(n) || fuse_group(c, i) != group) continue;
        if (fuse_reads_state(c, n)) return false;
        for (int k = 0; k < n->input_count; k++) {
            const Value *v = node_input(c, n, k);
            uint32_t p = v ? v->producer : 0;
            if (p >= first && p != own && p != gate && !v->is_constant && !value_folded(v) && fuse_group(c, p) != group) return false;
        }
    }
    return true;
}

static bool one_matrix(Compilation *c, const Value *v)
{
    if (v->rank < 2 || !(v->dtype == DT_F32 || v->dtype == DT_F16 || v->dtype == DT_BF16)) return false;
    for (int k = 0; k + 2 < v->rank; k++)
        for (int j = 1; j < c->signature_count; j++)
            if (signature_upper(c, &c->signatures[j], v->dims[k]) != 1) return false;
    return true;
}

/* Where an operand is a vector, the result has no axis for the row or the column that the kernel counts. */
static bool of_matrices(Compilation *c, const Node *n)
{
    return node_input(c, n, 0)->rank > 1 && node_input(c, n, 1)->rank > 1;
}

static uint32_t only_consumer(Compilation *c, uint32_t value)
{
    for (uint32_t i = c->graph.values[value].producer + 1; i <= c->graph.node_count; i++)
        for (int k = 0; k < c->graph.nodes[i].input_count && !c->graph.nodes[i].dead; k++)
            if (c->graph.nodes[i].inputs[k] == value) return i;
    return 0;
}

/* LATE: those with OP_LATE, whatever else the group reads (it alone reads the result, so nothing that it reads waits for that), or the others. */
static void fuse_epilogue(Compilation *c, uint32_t index, const int *leaves, bool late)
{
    Node *n = &c->graph.nodes[index];
    if (n->dead || n->constant || !(n->op->facts & OP_EPILOGUE) || !(n->op->facts & OP_LATE) == late) return;
    const Value *v = node_output(c, n, 0);
    if (v->uses != 1 || v->is_output || v->state || !one_matrix(c, v) || !of_matrices(c, n)) return;
    uint32_t consumer = only_consumer(c, n->outputs[0]);
    if (!consumer || !fuse_pointwise(&c->graph.nodes[consumer])) return;
    uint32_t group = fuse_group(c, consumer);
    Node *last = &c->graph.nodes[group];
    if (!fuse_pointwise(last) || last->constant || last->loop != n->loop || leaves[group] > MAX_LEAVES) return;
    if (!fuse_same_dims(c, v, node_output(c, last, 0))) return;
    if (late ? fuse_reads_state(c, last) : !leaves_before(c, group, group, index, index, 0)) return;
    last->fused_into = index;
    n->epilogue = group;
}

/* ---- products of one row: where a signature has a single row, one kernel can make them all, after the norm that makes the
 * row, and gate one by another */

/* A product of its first input with constants. */
static bool constant_product(Compilation *c, const Node *n)
{
    if (n->dead || n->constant || n->loop || !(n->op->facts & OP_EPILOGUE) || (n->op->facts & OP_LATE) || !n->inputs[0]) return false;
    for (int i = 1; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && !v->is_constant) return false;
    }
    return true;
}

static bool in_epilogue(Compilation *c, uint32_t node, uint32_t product)
{
    const Node *n = &c->graph.nodes[node];
    return !n->dead && fuse_pointwise(n) && fuse_group(c, node) == product;
}

/* How often the epilogue of `product` reads the result of node `other`. */
static uint32_t epilogue_reads(Compilation *c, uint32_t product, uint32_t other)
{
    uint32_t count = 0;
    const uint32_t value = c->graph.nodes[other].outputs[0];
    for (uint32_t i = other + 1; i <= c->graph.nodes[product].epilogue; i++)
        for (int k = 0; in_epilogue(c, i, product) && k < c->graph.nodes[i].input_count; k++) count += c->graph.nodes[i].inputs[k] == value;
    return count;
}

/* Whether nothing but the epilogue of INDEX, which is as large, reads the result of OTHER. */
static bool epilogue_alone_reads(Compilation *c, uint32_t index, uint32_t other)
{
    const Value *v = node_output(c, &c->graph.nodes[other], 0), *y = node_output(c, &c->graph.nodes[index], 0);
    if (v->is_output || v->state || !fuse_same_dims(c, v, y) || v->dtype != y->dtype) return false;
    return v->uses && epilogue_reads(c, index, other) == v->uses;
}

/* The product of the same row, from `first` on, whose result nothing but the epilogue of INDEX reads; 0 none. */
static uint32_t find_gate(Compilation *c, uint32_t index, uint32_t first)
{
    const Node *n = &c->graph.nodes[index];
    for (uint32_t i = index - 1; i >= first && n->epilogue; i--) {
        const Node *other = &c->graph.nodes[i];
        if (other->together == first && !other->epilogue && !other->dead && epilogue_alone_reads(c, index, i)) return i;
    }
    return 0;
}

/* RUNS: by value, the first of the newest run of products that read it; 0 none. */
static void join_products(Compilation *c, uint32_t *runs)
{
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        Node *n = &c->graph.nodes[i];
        if (!constant_product(c, n)) continue;
        uint32_t *first = &runs[n->inputs[0]];
        n->gate = *first ? find_gate(c, i, *first) : 0;
        if (!*first || (n->epilogue && !leaves_before(c, i, n->epilogue, *first, i, n->gate))) *first = i;
        n->together = *first;
        if (n->together == i) n->gate = 0;
    }
}

/* Whether one of the norm's results is needed before the products of run `first` are made that may begin with it, or by their
 * epilogues: no block of a launch may read what another one stores. */
static bool needed_before(Compilation *c, uint32_t norm, uint32_t first)
{
    for (uint32_t i = norm + 1; i <= c->graph.node_count; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || (i >= first && !(fuse_pointwise(n) && c->graph.nodes[fuse_group(c, i)].together == first))) continue;
        for (int k = 0; k < n->input_count; k++) {
            const Value *v = node_input(c, n, k);
            if (v && v->producer == norm) return true;
        }
    }
    return false;
}

static void join_norm(Compilation *c, uint32_t index, const uint32_t *runs)
{
    Node *n = &c->graph.nodes[index];
    const uint32_t first = runs[n->outputs[0]];
    if (n->dead || n->constant || n->loop || !(n->op->facts & OP_NORM_ROW) || !first || fuse_reads_state(c, n)) return;
    const Value *v = node_output(c, n, 0);
    if (v->is_output || v->state || needed_before(c, index, first)) return;
    n->together = first;
}

/* The product that only the epilogue of node INDEX reads, which is launched there: a shared expert's, which a kernel of experts can make beside theirs. */
static void join_late(Compilation *c, uint32_t index)
{
    Node *n = &c->graph.nodes[index];
    if (n->dead || n->constant || n->loop || !(n->op->facts & OP_LATE)) return;
    for (uint32_t i = n->epilogue; i > 0 && !n->gate; i--)
        if (constant_product(c, &c->graph.nodes[i]) && !c->graph.nodes[i].epilogue && epilogue_alone_reads(c, index, i)) n->gate = i;
}

enum { MAX_BETWEEN = 8 };

/* The attention that alone reads the result of a norm or a rotation, perhaps reshaped, a norm's perhaps rotated, as its query or key. */
static void join_head(Compilation *c, uint32_t index)
{
    Node *n = &c->graph.nodes[index], *between[MAX_BETWEEN];
    int count = 0;
    if (n->dead || n->constant || n->loop || n->together || !(n->op->facts & (OP_NORM_ROW | OP_ROTARY)) || fuse_reads_state(c, n)) return;
    for (uint32_t value = n->outputs[0];;) {
        const Value *v = &c->graph.values[value];
        if (v->uses != 1 || v->is_output || v->state) return;
        const uint32_t reader = only_consumer(c, value);
        Node *r = &c->graph.nodes[reader];
        if (reader && (r->op->facts & OP_HEAD_NORM) && (r->inputs[0] == value || r->inputs[1] == value)) {
            n->together = reader;
            for (int i = 0; i < count; i++) between[i]->together = reader;
            return;
        }
        const bool reshapes = reader && !strcmp(r->op->name, "Reshape"), turns = reader && (r->op->facts & OP_ROTARY) && (n->op->facts & OP_NORM_ROW);
        if (!(reshapes || turns) || r->inputs[0] != value || (reshapes && count == MAX_BETWEEN)) return;
        if (reshapes) between[count++] = r;
        value = r->outputs[0];
    }
}

static void fuse_rows(Compilation *c)
{
    uint32_t *runs = NEW_ARRAY(c, uint32_t, c->graph.value_count + 1);
    join_products(c, runs);
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        join_norm(c, i, runs);
        join_late(c, i);
        join_head(c, i);
    }
}

bool pass_fuse(Compilation *c)
{
    int *leaves = NEW_ARRAY(c, int, c->graph.node_count + 1), *members = NEW_ARRAY(c, int, c->graph.node_count + 1);
    find_uniform(c);
    mark_needed(c);
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (!c->graph.nodes[i].dead && fuse_pointwise(&c->graph.nodes[i])) fuse_node(c, i, leaves, members);
    for (uint32_t i = c->graph.node_count; i >= 1; i--)
        if (!c->graph.nodes[i].dead && fuse_pointwise(&c->graph.nodes[i])) fuse_shared(c, i, leaves, members);
    for (int early = 0; early < 2; early++) /* the last product of a group takes it, but first one whose own launches take long */
        for (uint32_t i = c->graph.node_count; i >= 1; i--) fuse_epilogue(c, i, leaves, !early);
    fuse_row_kernels(c, leaves);
    fuse_rows(c);
    fuse_filters(c);
    return true;
}
