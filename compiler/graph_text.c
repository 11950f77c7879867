/* graph_text.c - prints the exact text form of a compilation's graph, one statement a line. graph_parse.c reads it back;
 * the grammar:
 *
 *   gcc-plan-graph 1
 *   model "PATH" hash=HEX ir=N
 *   capacity N
 *   symbol N NAME CLASS lo=N hi=N keep=N slot=N proof=N [declared]
 *   dim DIM                    made in this order, so that terms and operands keep theirs
 *   solve N = DIM [node=N] [rule="TEXT"]
 *   equation DIM node=N rule="TEXT"
 *   proof N "FACT" "RULE" node=N because=N
 *   roles batch=N sequence=N position=N step = DIM
 *   state N %IN %OUT "INPUT" "OUTPUT" axis=N update=N proof=N upper=[DIM, ...]
 *   signature NAME kind=N {N: LO..HI, ...}     symbols whose box is not their range
 *   subgraph N NAME values=N nodes=N           then its lines, then `end`
 *   graph NAME values=N nodes=N                then its lines, then `end`
 *   inputs %N ...     outputs %N ...
 *   VALUE                                      a value that no node makes
 *   VALUE, _, ... = [DOMAIN::]OP-OPSET(%N, _, ...) {NAME=ATTR, ...} NAME FLAGS
 *
 *   VALUE  %N NAME DTYPE[DIM, ...]<CONTENT, ...> FLAGS : DATA       [*]: no rank; ?: no dim; <...> only when known
 *   DATA   0xHEX, @FILE:OFFSET+SIZE#CHECKSUM, or both               FILE "": the model itself
 *   LIST   !seq(%N, ...) or !opt(%N): no tensor, but these values
 *   FLAGS  LIST !const !in !out !feed=NAME !each=[DIM] !state=N !proof=N; of nodes !raw !constant !dead !fused=N !inplace=N
 *
 * Lines that begin with # are comments. Uses are counted, defaults of attributes come from the rows. Names that are no
 * plain words stand in double quotes. */
#include "compiler.h"
#include "dim.h"
#include "graph.h"
#include "../runtime/checksum.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_BYTES 64 /* constants up to this size are printed, larger ones referred to */

const char *const symbol_class_names[] = {"fixed", "ranged", "growing", "data", "unknown", "derived"};

static void add_quoted(Text *t, const char *s)
{
    text_add(t, "\"");
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            text_add(t, "\\%c", ch);
        else if (ch < 32 || ch == 127)
            text_add(t, "\\x%02x", ch);
        else
            text_add_bytes(t, s, 1);
    }
    text_add(t, "\"");
}

bool text_is_word(const char *s)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
    return *s && !strchr("0123456789", *s) && strspn(s, word) == strlen(s) && strcmp(s, "_") != 0;
}

static void add_name(Text *t, const char *s)
{
    s = s ? s : "";
    if (text_is_word(s))
        text_add(t, "%s", s);
    else
        add_quoted(t, s);
}

/* A symbol that is called "?" is quoted, as the bare ? is the absent dim. */
static void add_dim(Compilation *c, Text *t, Dim d)
{
    const char *text = d ? dim_text(c, d) : "?";
    if (d && !strcmp(text, "?"))
        text = "\"?\"";
    text_add(t, "%s", text);
}

static void add_dims(Compilation *c, Text *t, const Dim *dims, int count)
{
    for (int i = 0; i < count; i++) {
        text_add(t, "%s", i ? ", " : "");
        add_dim(c, t, dims[i]);
    }
}

/* The shortest text that reads back to the same number, and looks like no integer. Numbers are 32-bit floats, as ONNX's
 * attributes are; one that is not carries a `d`. */
static void add_float(Text *t, double f)
{
    char text[64];
    bool single = !isfinite(f) || (fabs(f) <= (double)FLT_MAX && (double)(float)f == f);
    int precision = 5;
    do
        snprintf(text, sizeof text, "%.*g", ++precision, f);
    while (isfinite(f) && precision < 17 && (single ? (double)strtof(text, NULL) : strtod(text, NULL)) != f);
    text_add(t, "%s%s%s", text, isfinite(f) && !strpbrk(text, ".e") ? ".0" : "", single ? "" : "d");
}

/* ---- values */

static void add_data(Text *t, const Data *d)
{
    bool refers = d->file || d->file_offset;
    text_add(t, " :");
    if (d->bytes && (d->size <= INLINE_BYTES || !refers)) {
        const unsigned char *p = d->bytes;
        text_add(t, " 0x");
        for (uint64_t i = 0; i < d->size; i++)
            text_add(t, "%02x", p[i]);
    } else if (!refers && !d->size) {
        text_add(t, " 0x");
    }
    if (!refers)
        return;
    text_add(t, " @");
    add_quoted(t, d->file ? d->file : "");
    text_add(t, ":%llu+%llu", (unsigned long long)d->file_offset, (unsigned long long)d->size);
    if (d->bytes && d->size > INLINE_BYTES) {
        plan_checksum_state state;
        plan_checksum_begin(&state);
        plan_checksum_add(&state, d->bytes, d->size);
        text_add(t, "#%016llx", (unsigned long long)plan_checksum_end(&state));
    }
}

static void add_list_items(Text *t, const List *list)
{
    text_add(t, list->optional ? " !opt(" : " !seq(");
    for (int i = 0; i < list->count; i++)
        text_add(t, "%s%%%u", i ? ", " : "", list->items[i]);
    text_add(t, ")");
}

static void add_value_flags(Compilation *c, Text *t, const Value *v)
{
    if (v->list)
        add_list_items(t, v->list);
    text_add(t, "%s%s%s", v->is_constant ? " !const" : "", v->is_input ? " !in" : "", v->is_output ? " !out" : "");
    if (v->feed)
        text_add(t, " !feed=%s", feed_name(v->feed));
    if (v->each) {
        text_add(t, " !each=[");
        add_dims(c, t, &v->each, 1);
        text_add(t, "]");
    }
    if (v->state)
        text_add(t, " !state=%u", v->state);
    if (v->proof)
        text_add(t, " !proof=%u", v->proof);
}

static void add_value(Compilation *c, Text *t, const Graph *g, uint32_t index)
{
    const Value *v = &g->values[index];
    text_add(t, "%%%u ", index);
    add_name(t, v->name);
    text_add(t, " %s[", dtype_name(v->dtype));
    if (v->rank < 0)
        text_add(t, "*");
    add_dims(c, t, v->dims, v->rank);
    text_add(t, "]");
    if (v->contents_count >= 0) {
        text_add(t, "<");
        add_dims(c, t, v->contents, v->contents_count);
        text_add(t, ">");
    }
    add_value_flags(c, t, v);
    if (v->data)
        add_data(t, v->data);
}

static void add_values(Text *t, const uint32_t *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i])
            text_add(t, "%s%%%u", i ? ", " : "", list[i]);
        else
            text_add(t, "%s_", i ? ", " : "");
}

/* ---- nodes */

static void add_list(Text *t, const Attr *a)
{
    const char *kind = a->kind == ATTR_INTS ? "ints" : a->kind == ATTR_FLOATS ? "floats" : "strings";
    text_add(t, "%s[", a->count ? "" : kind);
    for (int i = 0; i < a->count; i++) {
        text_add(t, "%s", i ? ", " : "");
        if (a->kind == ATTR_INTS)
            text_add(t, "%lld", (long long)a->ints[i]);
        else if (a->kind == ATTR_FLOATS)
            add_float(t, a->floats[i]);
        else
            add_quoted(t, a->strings[i]);
    }
    text_add(t, "]");
}

static void add_attr(Text *t, const Attr *a)
{
    add_name(t, a->name);
    text_add(t, "=");
    switch (a->kind) {
    case ATTR_NONE: text_add(t, "none"); break;
    case ATTR_INT: text_add(t, "%lld", (long long)a->i); break;
    case ATTR_FLOAT: add_float(t, a->f); break;
    case ATTR_STRING: add_quoted(t, a->s ? a->s : ""); break;
    case ATTR_TENSOR: text_add(t, "%%%u", a->tensor); break;
    case ATTR_GRAPH: text_add(t, "graph %u", a->graph); break;
    case ATTR_TYPE: text_add(t, "type"); break;
    case ATTR_INTS: case ATTR_FLOATS: case ATTR_STRINGS: add_list(t, a); break;
    }
}

static void add_attrs(Text *t, const Node *n)
{
    const char *before = " {";
    for (int i = 0; i < n->attr_count; i++)
        if (n->attrs[i].present || !n->op) {
            text_add(t, "%s", before);
            add_attr(t, &n->attrs[i]);
            before = ", ";
        }
    text_add(t, "%s", *before == ',' ? "}" : "");
}

static void add_node(Compilation *c, Text *t, const Graph *g, uint32_t index)
{
    const Node *n = &g->nodes[index];
    for (int i = 0; i < n->output_count; i++) {
        text_add(t, "%s", i ? ", " : "");
        if (n->outputs[i])
            add_value(c, t, g, n->outputs[i]);
        else
            text_add(t, "_");
    }
    text_add(t, "%s= ", n->output_count ? " " : "");
    if (*n->domain) {
        add_name(t, n->domain);
        text_add(t, "::");
    }
    add_name(t, n->op_type);
    text_add(t, "-%d(", n->opset);
    add_values(t, n->inputs, n->input_count);
    text_add(t, ")");
    add_attrs(t, n);
    text_add(t, " ");
    add_name(t, n->name);
    text_add(t, "%s%s%s", n->op ? "" : " !raw", n->constant ? " !constant" : "", n->dead ? " !dead" : "");
    if (n->fused_into)
        text_add(t, " !fused=%u", n->fused_into);
    if (n->together)
        text_add(t, " !together=%u", n->together);
    if (n->gate)
        text_add(t, " !gate=%u", n->gate);
    if (n->inplace)
        text_add(t, " !inplace=%u", n->inplace);
    text_add(t, "\n");
}

static void add_graph(Compilation *c, Text *t, const Graph *g)
{
    text_add(t, " ");
    add_name(t, g->name);
    text_add(t, " values=%u nodes=%u\ninputs", g->value_count, g->node_count);
    for (uint32_t i = 0; i < g->input_count; i++)
        text_add(t, " %%%u", g->inputs[i]);
    text_add(t, "\noutputs");
    for (uint32_t i = 0; i < g->output_count; i++)
        text_add(t, " %%%u", g->outputs[i]);
    text_add(t, "\n");
    for (uint32_t v = 1; v <= g->value_count; v++)
        if (!g->values[v].producer) {
            add_value(c, t, g, v);
            text_add(t, "\n");
        }
    for (uint32_t n = 1; n <= g->node_count; n++)
        add_node(c, t, g, n);
    text_add(t, "end\n");
}

/* ---- the tables beside the graph */

static void add_symbols(Compilation *c, Text *t)
{
    for (uint32_t i = 1; i <= c->symbol_count; i++) {
        const Symbol *s = &c->symbols[i];
        text_add(t, "symbol %u ", i);
        add_name(t, s->name);
        text_add(t, " %s lo=%lld hi=%lld keep=%d slot=%d proof=%u%s\n", symbol_class_names[s->class], (long long)s->lo,
                 (long long)s->hi, s->keep, s->slot, s->proof, s->declared ? " declared" : "");
    }
}

static void add_atom(Compilation *c, Text *t, const Atom *a)
{
    static const char *const names[] = {"", "floordiv", "ceildiv", "mod", "min", "max"};
    text_add(t, "dim ");
    if (a->op == DIM_SYMBOL) {
        add_dim(c, t, dim_symbol(c, a->a));
    } else {
        text_add(t, "%s(", names[a->op]);
        add_dim(c, t, a->a);
        text_add(t, ", ");
        add_dim(c, t, a->b);
        text_add(t, ")");
    }
    text_add(t, "\n");
}

static uint32_t last_atom(Compilation *c, Dim d)
{
    const Poly *p = dim_poly(c, d);
    uint32_t last = 0;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < p->terms[i].degree; k++)
            last = p->terms[i].atoms[k] > last ? p->terms[i].atoms[k] : last;
    return last;
}

/* Atoms sort terms, and dims sort the operands of min and max; both by index. So atoms, and the dims that are operands
 * of atoms, are made anew in the order of the first time: an operand as soon as its atoms exist. */
static void add_atoms(Compilation *c, Text *t)
{
    if (!c->dims)
        return;
    uint32_t atoms = dims_of(c)->atom_count, polys = dims_of(c)->poly_count, atom = 1;
    bool *operand = NEW_ARRAY(c, bool, polys);
    for (uint32_t i = 1; i < atoms; i++) {
        const Atom *a = &dims_of(c)->atoms[i];
        if (a->op != DIM_SYMBOL && a->a < polys && a->b < polys)
            operand[a->a] = operand[a->b] = true;
    }
    for (Dim d = 1; d < polys; d++) {
        if (!operand[d])
            continue;
        for (uint32_t last = last_atom(c, d); atom <= last; atom++) {
            Atom a = dims_of(c)->atoms[atom];
            add_atom(c, t, &a);
        }
        text_add(t, "dim ");
        add_dim(c, t, d);
        text_add(t, "\n");
    }
    for (; atom < atoms; atom++) {
        Atom a = dims_of(c)->atoms[atom];
        add_atom(c, t, &a);
    }
}

static void add_rule(Text *t, uint32_t node, const char *rule)
{
    if (node)
        text_add(t, " node=%u", node);
    if (rule) {
        text_add(t, " rule=");
        add_quoted(t, rule);
    }
    text_add(t, "\n");
}

static void add_equations(Compilation *c, Text *t)
{
    for (uint32_t i = 1; i <= c->symbol_count; i++) {
        const Symbol *s = &c->symbols[i];
        if (!s->equals && !s->solved_by && !s->solved_rule)
            continue;
        text_add(t, "solve %u = ", i);
        add_dim(c, t, s->equals);
        add_rule(t, s->solved_by, s->solved_rule);
    }
    for (int i = 0; i < equations_waiting(c); i++) {
        uint32_t node;
        const char *rule;
        Dim zero = equation_waiting(c, i, &node, &rule);
        text_add(t, "equation ");
        add_dim(c, t, dim_resolve(c, zero) ? dim_resolve(c, zero) : zero);
        add_rule(t, node, rule);
    }
}

static void add_proofs(Compilation *c, Text *t)
{
    for (uint32_t i = 1; i <= c->proof_count; i++) {
        const Proof *p = &c->proofs[i];
        text_add(t, "proof %u ", i);
        add_quoted(t, p->fact ? p->fact : "");
        text_add(t, " ");
        add_quoted(t, p->rule ? p->rule : "");
        text_add(t, " node=%u because=%u\n", p->node, p->because);
    }
}

static void add_states(Compilation *c, Text *t)
{
    if (c->batch || c->sequence || c->position || c->position_step) {
        text_add(t, "roles batch=%u sequence=%u position=%u step = ", c->batch, c->sequence, c->position);
        add_dim(c, t, c->position_step);
        text_add(t, "\n");
    }
    for (int i = 0; i < c->pair_count; i++) {
        const StatePair *p = &c->pairs[i];
        int rank = c->graph.values[p->input].rank;
        text_add(t, "state %d %%%u %%%u ", i + 1, p->input, p->output);
        add_quoted(t, p->input_name ? p->input_name : "");
        text_add(t, " ");
        add_quoted(t, p->output_name ? p->output_name : "");
        text_add(t, " axis=%d update=%d proof=%u upper=[", p->growing_axis, p->update, p->proof);
        add_dims(c, t, p->upper, rank > 0 ? rank : 0);
        text_add(t, "]\n");
    }
}

static void add_signatures(Compilation *c, Text *t)
{
    for (int i = 0; i < c->signature_count; i++) {
        const Signature *s = &c->signatures[i];
        const char *before = "";
        text_add(t, "signature ");
        add_name(t, s->name);
        text_add(t, " kind=%d {", s->kind);
        for (uint32_t y = 1; y <= c->symbol_count; y++)
            if (s->lo[y] != c->symbols[y].lo || s->hi[y] != c->symbols[y].hi) {
                text_add(t, "%s%u: %lld..%lld", before, y, (long long)s->lo[y], (long long)s->hi[y]);
                before = ", ";
            }
        text_add(t, "}\n");
    }
}

void graph_print(Compilation *c, const Graph *g, FILE *out)
{
    Text t = {0};
    text_add(&t, "gcc-plan-graph 1\nmodel ");
    add_quoted(&t, c->options.model_path ? c->options.model_path : "");
    text_add(&t, " hash=%016llx ir=%d\n", (unsigned long long)c->model_hash, c->ir_version);
    if (c->capacity)
        text_add(&t, "capacity %lld\n", (long long)c->capacity);
    add_symbols(c, &t);
    add_atoms(c, &t);
    add_equations(c, &t);
    add_proofs(c, &t);
    add_states(c, &t);
    add_signatures(c, &t);
    for (uint32_t i = 0; i < c->subgraph_count; i++) {
        text_add(&t, "subgraph %u", i);
        add_graph(c, &t, &c->subgraphs[i]);
    }
    text_add(&t, "graph");
    add_graph(c, &t, g);
    fwrite(t.data, 1, t.size, out);
    text_free(&t);
}
