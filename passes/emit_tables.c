/* emit_tables.c - the plan's descriptive sections: symbols, proofs, buffers, states, bindings, nodes, values. */
#include "emit.h"

#include <string.h>

static uint32_t string(Emitter *e, const char *s) { return plan_writer_string(e->w, s); }

uint32_t proof_record(uint32_t proof) { return proof ? proof - 1 : PLAN_NONE; }

/* ---- expressions in postfix */

static void put(Emitter *e, uint32_t op, int64_t value)
{
    plan_expr_record r = { .op = op, .value = value };
    plan_writer_add(e->w, PLAN_SECTION_EXPRS, &r);
}

static void put_dim(Emitter *e, Dim d, int depth);

static void put_atom(Emitter *e, const Atom *a, int depth)
{
    static const uint32_t ops[] = { PLAN_EXPR_SYMBOL, PLAN_EXPR_FLOORDIV, PLAN_EXPR_CEILDIV, PLAN_EXPR_MOD, PLAN_EXPR_MIN, PLAN_EXPR_MAX };
    if (a->op == DIM_SYMBOL) { put(e, PLAN_EXPR_SYMBOL, e->symbol_record[a->a]); return; }
    put_dim(e, a->a, depth + 1);
    put_dim(e, a->b, depth + 1);
    put(e, ops[a->op], 0);
}

static void put_dim(Emitter *e, Dim d, int depth)
{
    if (depth > MAX_DEPTH) fault("emit", "a dim is nested too deeply");
    const Poly p = *dim_poly(e->c, d);
    if (!p.count) put(e, PLAN_EXPR_CONST, 0);
    for (uint32_t i = 0; i < p.count; i++) {
        const Term t = p.terms[i];
        bool first = true;
        if (t.coef != 1 || !t.degree) { put(e, PLAN_EXPR_CONST, t.coef); first = false; }
        for (uint32_t k = 0; k < t.degree; k++) {
            const Atom a = dims_of(e->c)->atoms[t.atoms[k]];
            put_atom(e, &a, depth);
            if (!first) put(e, PLAN_EXPR_MUL, 0);
            first = false;
        }
        if (i) put(e, PLAN_EXPR_ADD, 0);
    }
}

void emit_expr(Emitter *e, Dim d, uint32_t *first, uint32_t *count)
{
    *first = plan_writer_count(e->w, PLAN_SECTION_EXPRS);
    put_dim(e, dim_resolve(e->c, d), 0);
    *count = plan_writer_count(e->w, PLAN_SECTION_EXPRS) - *first;
}

/* ---- symbols and proofs */

void emit_symbols(Emitter *e)
{
    Compilation *c = e->c;
    uint32_t next = 0;
    for (Sym s = 1; s <= c->symbol_count; s++)
        e->symbol_record[s] = c->symbols[s].declared || !c->symbols[s].equals ? next++ : PLAN_NONE;
    for (Sym s = 1; s <= c->symbol_count; s++) {
        const Symbol *y = &c->symbols[s];
        if (e->symbol_record[s] == PLAN_NONE) continue;
        plan_symbol_record r = { .name = string(e, y->name), .symbol_class = (uint32_t)y->class,
                                 .slot = y->slot < 0 ? PLAN_NONE : (uint32_t)y->slot, .proof = proof_record(y->proof) };
        if (y->equals) emit_expr(e, dim_symbol(c, s), &r.expr, &r.expr_count);
        plan_writer_add(e->w, PLAN_SECTION_SYMBOLS, &r);
    }
}

/* Whether a run's sizes alone decide it. */
static bool of_sizes(Compilation *c, Dim zero)
{
    for (Sym s = 1; zero && s <= c->symbol_count; s++)
        if (dim_mentions(c, zero, s) && (s == c->position || (c->symbols[s].class != SYM_RANGED && c->symbols[s].class != SYM_FIXED))) return false;
    return zero != 0;
}

/* An equation that could not be solved is a derived symbol, which the boxes pin to zero: a run of sizes for which it does not hold is
 * refused, since kernels rely on it. */
void emit_equations(Emitter *e)
{
    Compilation *c = e->c;
    e->equation_record = NEW_ARRAY(c, uint32_t, equations_waiting(c) + 1);
    for (int i = 0; i < equations_waiting(c); i++) {
        uint32_t node;
        const char *rule;
        const Dim zero = dim_resolve(c, equation_waiting(c, i, &node, &rule));
        e->equation_record[i] = PLAN_NONE;
        if (!of_sizes(c, zero)) continue;
        const char *at = node ? c->graph.nodes[node].name : "the inputs";
        plan_symbol_record r = { .name = string(e, arena_text(&c->arena, "difference of extents at '%s' (%s) #%d", at, rule, i + 1)),
                                 .symbol_class = PLAN_SYMBOL_DERIVED, .slot = PLAN_NONE, .proof = PLAN_NONE };
        emit_expr(e, zero, &r.expr, &r.expr_count);
        e->equation_record[i] = plan_writer_add(e->w, PLAN_SECTION_SYMBOLS, &r);
    }
}

void emit_proofs(Emitter *e)
{
    for (uint32_t i = 1; i <= e->c->proof_count; i++) {
        const Proof *p = &e->c->proofs[i];
        plan_proof_record r = { string(e, p->fact), string(e, p->rule), p->node ? string(e, e->c->graph.nodes[p->node].name) : 0,
                                proof_record(p->because) };
        plan_writer_add(e->w, PLAN_SECTION_PROOFS, &r);
    }
}

void emit_buffers(Emitter *e)
{
    for (uint32_t b = 1; b <= e->c->buffer_count; b++) {
        const Buffer *buffer = &e->c->buffers[b];
        e->buffer_record[b] = PLAN_NONE;
        if (buffer->offset < 0) continue;
        bool timed = buffer->region == REGION_ARENA || (buffer->region == REGION_LOAD && !buffer->data);
        plan_buffer_record r = { .name = string(e, buffer->name), .region = (uint32_t)buffer->region,
                                 .signature = buffer->signature ? buffer->signature - 1 : PLAN_NONE,
                                 .first = timed ? (uint32_t)buffer->first : 0, .last = timed ? (uint32_t)buffer->last : 0,
                                 .offset = (uint64_t)buffer->offset, .bytes = (uint64_t)buffer->bytes };
        e->buffer_record[b] = plan_writer_add(e->w, PLAN_SECTION_BUFFERS, &r);
    }
}

/* ---- states and bindings */

static void emit_dim(Emitter *e, Dim d, int64_t upper, int64_t stride)
{
    plan_dim_record r = { .upper = upper, .stride = stride };
    emit_expr(e, d, &r.expr, &r.expr_count);
    plan_writer_add(e->w, PLAN_SECTION_DIMS, &r);
}

void emit_states(Emitter *e)
{
    Compilation *c = e->c;
    for (int i = 0; i < c->pair_count; i++) {
        const StatePair *p = &c->pairs[i];
        const Value *v = &c->graph.values[p->input];
        const Buffer *b = &c->buffers[state_buffer(c, i)];
        plan_state_record r = { .input = string(e, p->input_name), .output = string(e, p->output_name), .dtype = (uint32_t)v->dtype,
                                .growing_axis = p->growing_axis < 0 ? PLAN_NONE : (uint32_t)p->growing_axis, .update = (uint32_t)p->update,
                                .dim = plan_writer_count(e->w, PLAN_SECTION_DIMS), .dim_count = (uint32_t)v->rank,
                                .proof = proof_record(p->proof), .offset = (uint64_t)b->offset, .bytes = (uint64_t)b->bytes };
        int64_t strides[MAX_RANK], stride = 1, upper;
        for (int k = v->rank - 1; k >= 0; k--) {
            strides[k] = stride;
            dim_is_const(c, p->upper[k], &upper);
            stride *= upper;
        }
        for (int k = 0; k < v->rank; k++) {
            dim_is_const(c, p->upper[k], &upper);
            emit_dim(e, v->dims[k], upper, strides[k]);
        }
        plan_writer_add(e->w, PLAN_SECTION_STATES, &r);
    }
}

static void emit_binding(Emitter *e, const Signature *s, const Value *v, uint32_t kind)
{
    Compilation *c = e->c;
    uint32_t b = s->lower->io[v - c->graph.values];
    plan_binding_record r = { .name = string(e, v->name), .kind = kind, .dtype = (uint32_t)v->dtype, .feed = (uint32_t)v->feed,
                              .dim = plan_writer_count(e->w, PLAN_SECTION_DIMS), .dim_count = (uint32_t)v->rank, .region = PLAN_REGION_IO };
    if (b) {
        r.offset = (uint64_t)c->buffers[b].offset;
        r.bytes = (uint64_t)c->buffers[b].bytes;
    }
    int64_t strides[MAX_RANK], stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        strides[k] = stride;
        int64_t upper = signature_upper(c, s, v->dims[k]);
        stride *= upper > 0 ? upper : 1;
    }
    for (int k = 0; k < v->rank; k++) emit_dim(e, v->dims[k], signature_upper(c, s, v->dims[k]), strides[k]);
    plan_writer_add(e->w, PLAN_SECTION_BINDINGS, &r);
}

void emit_bindings(Emitter *e, const Signature *s, plan_signature_record *r)
{
    Graph *g = &e->c->graph;
    r->binding = plan_writer_count(e->w, PLAN_SECTION_BINDINGS);
    for (uint32_t i = 0; s->kind != SIG_LOAD && i < g->input_count; i++) {
        const Value *v = &g->values[g->inputs[i]];
        if (!v->state && !v->data) emit_binding(e, s, v, PLAN_BINDING_INPUT);
    }
    for (uint32_t i = 0; s->kind != SIG_LOAD && i < g->output_count; i++) {
        const Value *v = &g->values[g->outputs[i]];
        if (!v->state) emit_binding(e, s, v, PLAN_BINDING_OUTPUT);
    }
    r->binding_count = plan_writer_count(e->w, PLAN_SECTION_BINDINGS) - r->binding;
}

/* ---- nodes and values */

void emit_nodes(Emitter *e, const Signature *s, plan_signature_record *r)
{
    Compilation *c = e->c;
    r->node = plan_writer_count(e->w, PLAN_SECTION_NODES);
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        const Node *n = &c->graph.nodes[i];
        bool load = s->kind == SIG_LOAD;
        if (load && (!n->constant || n->dead)) continue;
        NodeFate f = s->lower->fates[i];
        if (!load && n->constant && !n->dead) f = (NodeFate){ REAL_LOAD, -1, "computed once, when the plan is loaded" };
        if (f.how == REAL_FUSED && n->fused_into && !f.detail)
            f.detail = arena_text(&c->arena, "part of '%s'", c->graph.nodes[n->fused_into].name);
        const char *prefix = *n->domain ? n->domain : "";
        plan_node_record record = { .name = string(e, n->name),
                                    .op = string(e, arena_text(&c->arena, "%s%s%s-%d", prefix, *prefix ? "::" : "", n->op_type, n->op->since)),
                                    .realised = (uint32_t)f.how, .launch = f.launch < 0 || f.how == REAL_VIEW ? PLAN_NONE : (uint32_t)f.launch,
                                    .detail = string(e, f.detail) };
        plan_writer_add(e->w, PLAN_SECTION_NODES, &record);
    }
    r->node_count = plan_writer_count(e->w, PLAN_SECTION_NODES) - r->node;
}

static bool grows(Compilation *c, const Value *v)
{
    if (!c->position) return false;
    for (int k = 0; k < v->rank; k++)
        if (dim_mentions(c, dim_resolve(c, v->dims[k]), c->position)) return true;
    for (int i = 0; i < v->contents_count; i++)
        if (dim_mentions(c, dim_resolve(c, v->contents[i]), c->position)) return true;
    return v->feed == FEED_POSITION || v->feed == FEED_LENGTH || v->feed == FEED_WRITE_INDEX;
}

static const char *dims_text(Compilation *c, Lower *l, const Value *v)
{
    Text t = { 0 };
    text_add(&t, "[");
    for (int k = 0; k < v->rank; k++) text_add(&t, "%s%s", k ? ", " : "", dim_text(c, lower_dim(l, v->dims[k])));
    text_add(&t, "]");
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

void emit_values(Emitter *e, const Signature *s, plan_signature_record *r)
{
    Compilation *c = e->c;
    r->value = plan_writer_count(e->w, PLAN_SECTION_VALUES);
    for (uint32_t i = 1; i <= c->graph.value_count && s->kind != SIG_LOAD; i++) {
        const Value *v = &c->graph.values[i];
        const View *view = &s->lower->views[i];
        if (v->rank < 0 || (!view->buffer && !v->is_input && !value_folded(v)) || (!v->producer && !v->is_input)) continue;
        int64_t offset;
        bool placed = view->buffer && e->buffer_record[view->buffer] != PLAN_NONE;
        plan_value_record record = { .name = string(e, v->name), .dtype = (uint32_t)v->dtype, .dims = string(e, dims_text(c, s->lower, v)),
                                     .symbol_class = grows(c, v) ? PLAN_SYMBOL_GROWING : PLAN_SYMBOL_FIXED,
                                     .buffer = placed ? e->buffer_record[view->buffer] : PLAN_NONE, .proof = proof_record(v->proof) };
        if (placed && dim_is_const(c, view->offset, &offset)) record.offset = (uint64_t)(offset * dtype_bits(view->store) / 8);
        plan_writer_add(e->w, PLAN_SECTION_VALUES, &record);
    }
    r->value_count = plan_writer_count(e->w, PLAN_SECTION_VALUES) - r->value;
}
