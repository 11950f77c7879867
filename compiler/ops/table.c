/* table.c - the list of operator families, and what is done with any row: finding it, resolving a node against its
 * schema, checking dtypes, printing the support table. */
#include "ops/ops.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TABLE_ROWS 2048

extern const OpFamily ops_pointwise, ops_shape, ops_movement, ops_slice, ops_reduce, ops_norm, ops_matmul, ops_quant, ops_attention,
    ops_gqa, ops_mha, ops_embed, ops_recurrent, ops_select, ops_conv, ops_moe, ops_control,
    ops_rnn, ops_einsum, ops_signal, ops_loss, ops_scatter, ops_lines, ops_random, ops_extent, ops_nms, ops_unique,
    ops_pool, ops_conv_transpose, ops_resize, ops_sample, ops_rearrange, ops_normalise,
    ops_requantize, ops_qmatmul, ops_qlinear, ops_qconv, ops_inverse, ops_bitcast, ops_sequence, ops_flex_attention, ops_gated,
    ops_logic, ops_cast,
    ops_fill, ops_gather;

static const OpFamily *const families[] = {
    &ops_pointwise, &ops_shape, &ops_movement, &ops_slice, &ops_reduce, &ops_norm, &ops_matmul, &ops_quant, &ops_attention,
    &ops_gqa, &ops_mha, &ops_embed, &ops_recurrent, &ops_select, &ops_conv, &ops_moe,
    &ops_control,
    &ops_rnn, &ops_einsum, &ops_signal, &ops_loss, &ops_scatter, &ops_lines, &ops_random, &ops_extent, &ops_nms, &ops_unique,
    &ops_pool, &ops_conv_transpose, &ops_resize, &ops_sample, &ops_rearrange, &ops_normalise,
    &ops_requantize, &ops_qmatmul, &ops_qlinear, &ops_qconv, &ops_inverse, &ops_bitcast,
    &ops_sequence, &ops_flex_attention, &ops_gated, &ops_logic, &ops_cast,
    &ops_fill, &ops_gather,
};

static const char *plain_domain(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

static bool same_name(const OpRow *row, const char *domain, const char *name)
{
    return !strcmp(row->name, name) && !strcmp(plain_domain(row->domain), domain);
}

const OpRow *op_find(const char *domain, const char *name, int opset)
{
    const OpRow *best = NULL;
    domain = plain_domain(domain);
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (int i = 0; i < families[f]->count; i++) {
            const OpRow *row = &families[f]->rows[i];
            if (row->since <= opset && (!best || row->since > best->since) && same_name(row, domain, name))
                best = row;
        }
    return best;
}

/* The name of a family's file without its folder. */
static const char *family_file(const OpFamily *f)
{
    const char *slash = strrchr(f->file, '/');
    return slash ? slash + 1 : f->file;
}

const char *op_file(const OpRow *op)
{
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (int i = 0; i < families[f]->count; i++)
            if (op == &families[f]->rows[i])
                return family_file(families[f]);
    return "?";
}

/* ---- operators that no row describes */

#define GENERATES "it is a whole generation loop; export the decoder alone, plan-run generates with it"
#define TEXT "strings are not supported; do this before the model"

/* Operators that are not meant to have rows, and why; NULL: all of the domain. */
static const struct { const char *domain, *name, *reason; } refusals[] = {
    {"com.microsoft", "GreedySearch", GENERATES},
    {"com.microsoft", "BeamSearch", GENERATES},
    {"com.microsoft", "WhisperBeamSearch", GENERATES},
    {"com.microsoft", "Sampling", GENERATES},
    {"com.microsoft", "Tokenizer", TEXT},
    {"", "StringNormalizer", TEXT},
    {"", "StringConcat", TEXT},
    {"", "StringSplit", TEXT},
    {"", "RegexFullMatch", TEXT},
    {"", "ImageDecoder", "image files are not supported; decode them before the model"},
    {"ai.onnx.ml", NULL, "trees, encoders and the like of ai.onnx.ml are not supported"},
    {"ai.onnx.preview.training", NULL, "training is not supported"},
    {"ai.onnx.training", NULL, "training is not supported"},
};

static const char *why_missing(Compilation *c, const Node *n)
{
    const char *domain = plain_domain(n->domain);
    bool known_domain = false;
    int oldest = 0;
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        if (!strcmp(refusals[i].domain, domain) && (!refusals[i].name || !strcmp(refusals[i].name, n->op_type)))
            return refusals[i].reason;
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (int i = 0; i < families[f]->count; i++) {
            const OpRow *row = &families[f]->rows[i];
            known_domain |= !strcmp(plain_domain(row->domain), domain);
            if (same_name(row, domain, n->op_type) && (!oldest || row->since < oldest))
                oldest = row->since;
        }
    if (oldest)
        return arena_text(&c->arena, "supported from opset %d on, the model imports %d", oldest, n->opset);
    if (!known_domain)
        return arena_text(&c->arena, "unknown domain %s", domain);
    return "no such operator in the support table (gcc-plan --ops)";
}

static const char *missing_label(Compilation *c, const MissingOp *m)
{
    const char *domain = plain_domain(m->domain);
    return arena_text(&c->arena, "%s%s%s-%d", domain, *domain ? "::" : "", m->op_type, m->opset);
}

/* Copies of a subgraph's nodes have a scope; the subgraph itself is still there and is counted. */
static void collect_missing(Compilation *c, const Graph *g)
{
    for (uint32_t i = 1; i <= g->node_count; i++) {
        const Node *n = &g->nodes[i];
        if (!n->scope && !op_find(n->domain, n->op_type, n->opset))
            diag_missing_add(c, n, why_missing(c, n));
    }
}

void ops_report_missing(Compilation *c)
{
    MissingOp *list;
    diag_missing_clear(c);
    collect_missing(c, &c->graph);
    for (uint32_t i = 0; i < c->subgraph_count; i++)
        collect_missing(c, &c->subgraphs[i]);
    int count = diag_missing(c, &list), label = 0, nodes = 0, first = 0;
    if (!count)
        return;
    for (int i = 0; i < count; i++) {
        int l = (int)strlen(missing_label(c, &list[i])), f = (int)strlen(list[i].first);
        int k = snprintf(NULL, 0, "%d", list[i].count);
        label = l > label ? l : label;
        first = f > first ? f : first;
        nodes = k > nodes ? k : nodes;
    }
    diag_error(c, NULL, "%d operator%s not supported", count, count == 1 ? " is" : "s are");
    for (int i = 0; i < count; i++)
        diag_detail(c, "%-*s  %*d node%s first '%s'%*s : %s", label, missing_label(c, &list[i]), nodes, list[i].count,
                    list[i].count == 1 ? ", " : "s,", list[i].first, first - (int)strlen(list[i].first), "", list[i].reason);
    diag_missing_clear(c);
}

/* ---- resolving */

static const char *kind_name(AttrKind kind)
{
    static const char *const names[] = {"nothing", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph", "type"};
    return names[kind];
}

/* An empty list is written without elements and so without a kind of its own. */
static bool kind_fits(const Attr *found, AttrKind wanted)
{
    bool list = wanted == ATTR_INTS || wanted == ATTR_FLOATS || wanted == ATTR_STRINGS;
    bool empty = (found->kind == ATTR_INTS || found->kind == ATTR_FLOATS || found->kind == ATTR_STRINGS) && !found->count;
    return found->kind == wanted || (list && empty);
}

static bool order_attrs(Compilation *c, Node *n, const Schema *s)
{
    bool good = true;
    Attr *ordered = NEW_ARRAY(c, Attr, s->attr_count);
    for (int i = 0; i < s->attr_count; i++)
        ordered[i] = s->attrs[i].value;
    for (int k = 0; k < n->attr_count; k++) {
        const Attr *a = &n->attrs[k];
        int i = 0;
        while (i < s->attr_count && strcmp(ordered[i].name, a->name) != 0)
            i++;
        if (i == s->attr_count) {
            node_error(c, n, "unknown attribute '%s'", a->name);
            good = false;
        } else if (ordered[i].present) {
            node_error(c, n, "attribute '%s' is given twice", a->name);
            good = false;
        } else if (!kind_fits(a, s->attrs[i].value.kind)) {
            node_error(c, n, "attribute '%s': expected %s, found %s", a->name, kind_name(s->attrs[i].value.kind),
                       kind_name(a->kind));
            good = false;
        } else {
            ordered[i] = *a;
            ordered[i].kind = s->attrs[i].value.kind;
            ordered[i].present = true;
        }
    }
    for (int i = 0; i < s->attr_count; i++)
        if (s->attrs[i].required && !ordered[i].present) {
            node_error(c, n, "attribute '%s' is missing", ordered[i].name);
            good = false;
        }
    n->attrs = ordered;
    n->attr_count = s->attr_count;
    return good;
}

static bool check_count(Compilation *c, const Node *n, const char *what, const SchemaValue *list, int listed,
                        const uint32_t *given, int count)
{
    bool good = true;
    bool open = listed && list[listed - 1].variadic;
    if (count > listed && !open) {
        node_error(c, n, "expected at most %d %ss, found %d", listed, what, count);
        good = false;
    }
    for (int i = 0; i < listed; i++)
        if (!list[i].optional && (i >= count || !given[i])) {
            node_error(c, n, "%s %d '%s' is missing", what, i, list[i].name);
            good = false;
        }
    return good;
}

bool node_resolve(Compilation *c, Node *n)
{
    if (n->op)
        return true;
    const OpRow *op = op_find(n->domain, n->op_type, n->opset);
    if (!op) {
        diag_missing_add(c, n, why_missing(c, n));
        return false;
    }
    const Schema *s = schema_of(op);
    n->op = op;
    bool good = order_attrs(c, n, s);
    good &= check_count(c, n, "input", s->inputs, s->input_count, n->inputs, n->input_count);
    good &= check_count(c, n, "output", s->outputs, s->output_count, n->outputs, n->output_count);
    return node_check_types(c, n) && good;
}

/* ---- dtypes */

static const SchemaValue *schema_value(const SchemaValue *list, int count, int i)
{
    if (i >= count)
        return count && list[count - 1].variadic ? &list[count - 1] : NULL;
    return &list[i];
}

static const char *class_text(Compilation *c, uint32_t dtypes)
{
    const char *text = "";
    for (int t = 1; t < 32; t++)
        if (dtypes >> t & 1)
            text = arena_text(&c->arena, "%s%s%s", text, *text ? " or " : "", dtype_name((DType)t));
    return text;
}

typedef struct Binding { DType dtype[SCHEMA_CLASSES]; int input[SCHEMA_CLASSES]; } Binding; /* input: who bound it, -1 */

static bool check_input(Compilation *c, const Node *n, const Schema *s, int i, const SchemaValue *v, Binding *b)
{
    const Value *x = node_input(c, n, i);
    if (!x || x->dtype == DT_NONE || !v || (v->class < 0 && !v->fixed))
        return true;
    if (v->fixed) {
        if (x->dtype == v->fixed)
            return true;
        node_error(c, n, "input %d '%s' ('%s'): expected %s, found %s", i, v->name, x->name, dtype_name(v->fixed),
                   dtype_name(x->dtype));
        return false;
    }
    uint32_t allowed = s->classes[v->class].dtypes;
    if (!(allowed >> x->dtype & 1)) {
        node_error(c, n, "input %d '%s' ('%s'): expected %s, found %s", i, v->name, x->name, class_text(c, allowed),
                   dtype_name(x->dtype));
        return false;
    }
    if (!b->dtype[v->class]) {
        b->dtype[v->class] = x->dtype;
        b->input[v->class] = i;
    } else if (b->dtype[v->class] != x->dtype) {
        int other = b->input[v->class];
        node_error(c, n, "input %d '%s' ('%s'): expected %s like input %d '%s', found %s", i, v->name, x->name,
                   dtype_name(b->dtype[v->class]), other, schema_value(s->inputs, s->input_count, other)->name,
                   dtype_name(x->dtype));
        return false;
    }
    return true;
}

static bool bind(Compilation *c, const Node *n, const Schema *s, Binding *b)
{
    bool good = true;
    *b = (Binding){0};
    for (int i = 0; i < n->input_count; i++)
        good &= check_input(c, n, s, i, schema_value(s->inputs, s->input_count, i), b);
    for (int k = 0; k < s->class_count; k++) { /* a class of one member needs no input */
        uint32_t d = s->classes[k].dtypes;
        for (int t = 1; t < 32 && !b->dtype[k]; t++)
            if (d == 1u << t)
                b->dtype[k] = (DType)t;
    }
    return good;
}

static DType output_type(const Schema *s, const Binding *b, int i)
{
    const SchemaValue *v = schema_value(s->outputs, s->output_count, i);
    if (!v)
        return DT_NONE;
    return v->fixed ? v->fixed : v->class >= 0 ? b->dtype[v->class] : DT_NONE;
}

DType node_output_type(Compilation *c, const Node *n, int i)
{
    Binding b;
    if (!n->op)
        return DT_NONE;
    const Schema *s = schema_of(n->op);
    bind(c, n, s, &b);
    return output_type(s, &b, i);
}

bool node_check_types(Compilation *c, Node *n)
{
    Binding b;
    const Schema *s = schema_of(n->op);
    bool good = bind(c, n, s, &b);
    for (int i = 0; good && i < n->output_count; i++) {
        Value *x = node_output(c, n, i);
        const SchemaValue *v = schema_value(s->outputs, s->output_count, i);
        DType t = output_type(s, &b, i);
        if (!x || !v)
            continue;
        if (!x->dtype)
            x->dtype = t;
        else if (t ? x->dtype != t : v->class >= 0 && !(s->classes[v->class].dtypes >> x->dtype & 1)) {
            node_error(c, n, "output %d '%s' ('%s'): the operator gives %s, the model says %s", i, v->name, x->name,
                       t ? dtype_name(t) : class_text(c, s->classes[v->class].dtypes), dtype_name(x->dtype));
            good = false;
        }
    }
    return good;
}

/* ---- --ops */

static void print_set(FILE *out, const char *name, uint32_t dtypes)
{
    fprintf(out, "%s", name);
    const char *between = *name ? "=" : "";
    for (int t = 1; t < 32; t++)
        if (dtypes >> t & 1) {
            fprintf(out, "%s%s", between, dtype_name((DType)t));
            between = ",";
        }
}

/* Classes, or, when there are none, the dtypes of the inputs. */
static void print_dtypes(FILE *out, const Schema *s)
{
    uint32_t fixed = 0;
    for (int k = 0; k < s->class_count; k++) {
        fputs(k ? " " : "", out);
        print_set(out, s->classes[k].name, s->classes[k].dtypes);
    }
    for (int i = 0; i < s->input_count; i++)
        fixed |= s->inputs[i].fixed ? 1u << s->inputs[i].fixed : 0;
    if (!s->class_count)
        print_set(out, fixed ? "" : "any", fixed);
}

static const char *shown_domain(const OpRow *row)
{
    return *plain_domain(row->domain) ? row->domain : "ai.onnx";
}

static int by_name(const void *a, const void *b)
{
    const OpRow *x = *(const OpRow *const *)a, *y = *(const OpRow *const *)b;
    const int domain = strcmp(shown_domain(x), shown_domain(y)), name = strcmp(x->name, y->name);
    return domain ? domain : name ? name : x->since - y->since;
}

/* All rows that a model may name, by domain, name and opset. */
static const OpRow **sorted_rows(int *count)
{
    static const OpRow *list[MAX_TABLE_ROWS];
    *count = 0;
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (int i = 0; i < families[f]->count; i++) {
            if (!strcmp(shown_domain(&families[f]->rows[i]), "gcc-plan")) /* made by our own passes */
                continue;
            if (*count == MAX_TABLE_ROWS)
                fault("ops", "more than %d rows", MAX_TABLE_ROWS);
            list[(*count)++] = &families[f]->rows[i];
        }
    qsort(list, (size_t)*count, sizeof *list, by_name);
    return list;
}

/* "7-12": the row holds for these versions of its domain; "13-": for all from that on. */
static void print_row(FILE *out, const OpRow *row, const OpRow *next, int domain, int name)
{
    char opsets[32];
    if (next && same_name(next, plain_domain(row->domain), row->name))
        snprintf(opsets, sizeof opsets, "%d-%d", row->since, next->since - 1);
    else
        snprintf(opsets, sizeof opsets, "%d-", row->since);
    fprintf(out, "%-*s  %-*s  %-6s  ", domain, shown_domain(row), name, row->name, opsets);
    print_dtypes(out, schema_of(row));
    fprintf(out, "  compiler/ops/%s%s%s\n", op_file(row), row->note ? "  " : "", row->note ? row->note : "");
}

void ops_print(FILE *out)
{
    int domain = 7, name = 8, count;
    const OpRow **rows = sorted_rows(&count);
    for (int i = 0; i < count; i++) {
        domain = (int)strlen(shown_domain(rows[i])) > domain ? (int)strlen(shown_domain(rows[i])) : domain;
        name = (int)strlen(rows[i]->name) > name ? (int)strlen(rows[i]->name) : name;
    }
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        domain = (int)strlen(refusals[i].domain) > domain ? (int)strlen(refusals[i].domain) : domain;
    for (int i = 0; i < count; i++)
        print_row(out, rows[i], i + 1 < count ? rows[i + 1] : NULL, domain, name);
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        fprintf(out, "%-*s  %-*s  none    refused: %s\n", domain, *refusals[i].domain ? refusals[i].domain : "ai.onnx", name,
                refusals[i].name ? refusals[i].name : "(all)", refusals[i].reason);
}
