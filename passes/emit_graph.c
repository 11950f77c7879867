/* emit_graph.c - the graph in the plan: every node with its attributes, every value with its dims and integer contents, for
 * `plan-inspect --check-proofs`. Once for a plan: nothing here depends on a signature. */
#include "emit.h"

#include <string.h>

enum { MAX_WRITTEN = 256 /* elements of a constant whose contents are written */ };

typedef struct Terms { uint32_t room; plan_graph_term_record *known; } Terms; /* by dim; expr_count 0: not written yet */
typedef struct GraphEmitter { Emitter *e; Terms terms; uint32_t *record; /* by value; PLAN_NONE: not written */ } GraphEmitter;

static uint32_t string(GraphEmitter *g, const char *s) { return plan_writer_string(g->e->w, s); }

/* ---- dims: equal ones share their expression */

static void put_term(GraphEmitter *g, Dim d)
{
    Dim resolved = dim_resolve(g->e->c, d);
    plan_graph_term_record fresh = { 0, 0 }, *term = resolved < g->terms.room ? &g->terms.known[resolved] : &fresh;
    if (!term->expr_count) emit_expr(g->e, resolved, &term->expr, &term->expr_count);
    plan_writer_add(g->e->w, PLAN_SECTION_GRAPH_TERMS, term);
}

/* A dim of an input as it was declared: with the symbol, also when that is derived. */
static void put_declared(GraphEmitter *g, Dim d)
{
    Emitter *e = g->e;
    const Poly p = *dim_poly(e->c, d);
    const Atom a = p.count == 1 && p.terms[0].degree == 1 && p.terms[0].coef == 1 ? dims_of(e->c)->atoms[p.terms[0].atoms[0]] : (Atom){ DIM_MIN, 0, 0 };
    if (a.op != DIM_SYMBOL || e->symbol_record[a.a] == PLAN_NONE) { put_term(g, d); return; }
    plan_graph_term_record term = { plan_writer_count(e->w, PLAN_SECTION_EXPRS), 1 };
    plan_expr_record r = { .op = PLAN_EXPR_SYMBOL, .value = e->symbol_record[a.a] };
    plan_writer_add(e->w, PLAN_SECTION_EXPRS, &r);
    plan_writer_add(e->w, PLAN_SECTION_GRAPH_TERMS, &term);
}

/* ---- values */

static bool known_dims(const Value *v)
{
    for (int k = 0; k < v->rank; k++)
        if (!v->dims[k]) return false;
    return v->rank >= 0;
}

static void put_contents(GraphEmitter *g, const Value *v, plan_graph_value_record *r)
{
    Compilation *c = g->e->c;
    Dim *dims;
    int count;
    int64_t elements;
    if (!dtype_is_integer(v->dtype) && v->dtype != DT_BOOL) return;
    if (v->data && (!dim_is_const(c, value_elements(c, v), &elements) || elements > MAX_WRITTEN)) return;
    if (!value_dims(c, v, &dims, &count)) return;
    r->known = PLAN_GRAPH_CONTENTS;
    for (int i = 0; i < count; i++) put_term(g, dims[i]);
    r->content_count = (uint32_t)count;
}

static void put_value(GraphEmitter *g, uint32_t index)
{
    Emitter *e = g->e;
    const Value *v = &e->c->graph.values[index];
    g->record[index] = PLAN_NONE;
    if (!v->producer && !v->is_input && !v->data) return;
    if (v->dtype == DT_NONE) return;
    plan_graph_value_record r = { .name = string(g, v->name), .dtype = (uint32_t)v->dtype,
                                  .kind = v->data ? PLAN_GRAPH_CONSTANT : v->producer ? PLAN_GRAPH_MADE : v->state ? PLAN_GRAPH_STATE : PLAN_GRAPH_INPUT,
                                  .dim = plan_writer_count(e->w, PLAN_SECTION_GRAPH_TERMS) };
    if (known_dims(v)) {
        r.known = PLAN_GRAPH_DIMS;
        r.dim_count = (uint32_t)v->rank;
        for (int k = 0; k < v->rank; k++) {
            if (r.kind == PLAN_GRAPH_INPUT) put_declared(g, v->dims[k]);
            else put_term(g, v->dims[k]);
        }
        r.content = plan_writer_count(e->w, PLAN_SECTION_GRAPH_TERMS);
        put_contents(g, v, &r);
    }
    g->record[index] = plan_writer_add(e->w, PLAN_SECTION_GRAPH_VALUES, &r);
}

/* ---- nodes */

/* A tensor of one integer is that integer; other tensors are left out. */
static void add_tensor(Compilation *c, Text *t, const Attr *a)
{
    int64_t *ints;
    int count;
    if (a->present && a->tensor && value_ints(c, &c->graph.values[a->tensor], &ints, &count) && count == 1)
        text_add(t, "%s%s=%lld", t->size ? " " : "", a->name, (long long)ints[0]);
}

static void add_attribute(Text *t, const Attr *a)
{
    const char *gap = t->size ? " " : "";
    if (a->kind == ATTR_INT && (a->present || a->i)) text_add(t, "%s%s=%lld", gap, a->name, (long long)a->i);
    if (a->kind == ATTR_FLOAT && (a->present || a->f != 0)) text_add(t, "%s%s=%.9g", gap, a->name, a->f);
    if (a->kind == ATTR_INTS && (a->present || a->count)) {
        text_add(t, "%s%s=", gap, a->name);
        for (int i = 0; i < a->count; i++) text_add(t, "%s%lld", i ? "," : "", (long long)a->ints[i]);
    }
    if (a->kind != ATTR_STRING || !a->s) return;
    text_add(t, "%s%s=", gap, a->name);
    for (const char *s = a->s; *s; s++)
        if (*s != ' ') text_add_bytes(t, s, 1);
}

static void add_axes(Text *t, const char *name, const int *axes, int count)
{
    text_add(t, " %s=", name);
    for (int i = 0; i < count; i++) text_add(t, "%s%d", i ? "," : "", axes[i]);
}

/* The axis along which each state grows, -1 for those that keep their shape; only when one does. */
static void add_growth(Text *t, const Loop *loop)
{
    bool any = false;
    for (int i = 0; i < loop->states; i++) any |= loop->growth[i] && loop->growth[i]->axis >= 0;
    for (int i = 0; any && i < loop->states; i++)
        text_add(t, "%s%d", i ? "," : " growing_axes=", loop->growth[i] ? loop->growth[i]->axis : -1);
}

static void put_attributes(GraphEmitter *g, const Node *n, plan_graph_node_record *r)
{
    Text t = { 0 };
    for (int i = 0; i < n->attr_count; i++) {
        if (n->attrs[i].kind == ATTR_TENSOR) add_tensor(g->e->c, &t, &n->attrs[i]);
        else add_attribute(&t, &n->attrs[i]);
    }
    if (n->loop && !strcmp(n->domain, "gcc-plan")) {
        const Loop *loop = &g->e->c->loops[n->loop];
        text_add(&t, "%sloop=%u states=%d", t.size ? " " : "", n->loop, loop->states);
        add_axes(&t, "input_axes", loop->input_axes, loop->scan_inputs);
        add_axes(&t, "output_axes", loop->output_axes, loop->scan_outputs);
        if (loop->kind == LOOP_WHILE) add_growth(&t, loop);
    }
    r->attributes = t.size ? string(g, t.data) : 0;
    text_free(&t);
}

static void put_links(GraphEmitter *g, const uint32_t *values, int count, uint32_t *first, uint32_t *out)
{
    *first = plan_writer_count(g->e->w, PLAN_SECTION_GRAPH_LINKS);
    *out = (uint32_t)count;
    for (int i = 0; i < count; i++) {
        plan_graph_link_record link = { values[i] ? g->record[values[i]] : PLAN_NONE };
        plan_writer_add(g->e->w, PLAN_SECTION_GRAPH_LINKS, &link);
    }
}

static void put_node(GraphEmitter *g, const Node *n)
{
    Compilation *c = g->e->c;
    const char *colons = *n->domain ? "::" : "";
    plan_graph_node_record r = { .name = string(g, n->name),
                                 .op = string(g, arena_text(&c->arena, "%s%s%s-%d", n->domain, colons, n->op_type, n->op->since)) };
    put_attributes(g, n, &r);
    put_links(g, n->inputs, n->input_count, &r.input, &r.input_count);
    put_links(g, n->outputs, n->output_count, &r.output, &r.output_count);
    plan_writer_add(g->e->w, PLAN_SECTION_GRAPH_NODES, &r);
}

void emit_graph(Emitter *e)
{
    Compilation *c = e->c;
    GraphEmitter g = { .e = e };
    g.terms.room = dims_of(c)->poly_count + 1;
    g.terms.known = NEW_ARRAY(c, plan_graph_term_record, g.terms.room);
    g.record = NEW_ARRAY(c, uint32_t, c->graph.value_count + 1);
    for (uint32_t i = 1; i <= c->graph.value_count; i++) put_value(&g, i);
    for (uint32_t i = 1; i <= c->graph.node_count; i++) put_node(&g, &c->graph.nodes[i]);
}
