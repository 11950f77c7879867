/* einsum.c - Einsum in general: any number of operands, ellipsis, repeated labels. An operand becomes a view with one stride a
 * label (the sum over the axes that carry it), so a trace or a broadcast is only a stride. */
#include "ops/move.h"

#include <string.h>

enum { MAX_LABELS = 24, ELLIPSIS_AXES = MAX_RANK, MAX_TERMS = 16 };

/* Labels: letters, and '0'..'7' for the axes of the ellipsis, counted from its right end. */
typedef struct Term { int rank; char labels[MAX_RANK]; } Term;
typedef struct Equation {
    int term_count, out_rank;
    Term terms[MAX_TERMS];
    char out[MAX_RANK];
    int count;                  /* labels: those of the output first, in its order */
    char labels[MAX_LABELS];
    Dim dims[MAX_LABELS];
} Equation;

static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

/* One term up to a comma, an arrow or the end; the ellipsis stands for `wide` axes (-1: what is left of RANK). */
static bool read_term(Compilation *c, const Node *n, const char **at, int rank, int wide, char *labels, int *count)
{
    int letters = 0, seen = 0;
    for (const char *p = *at; *p && *p != ',' && strncmp(p, "->", 2) != 0; p++) letters += is_letter(*p);
    if (wide < 0) wide = rank - letters;
    *count = 0;
    for (; **at && **at != ',' && strncmp(*at, "->", 2) != 0; ++*at) {
        const char ch = **at;
        if (ch == ' ') continue;
        const bool dots = !strncmp(*at, "...", 3);
        if ((!dots && !is_letter(ch)) || (dots && seen++)) {
            node_error(c, n, "equation '%s': '%c' at %d is not expected", attr_string(n, "equation"), ch, (int)(*at - attr_string(n, "equation")));
            return false;
        }
        for (int i = dots ? wide - 1 : 0; i >= 0; i--) {
            if (*count == MAX_RANK) {
                node_error(c, n, "equation '%s': a term has more than %d axes", attr_string(n, "equation"), MAX_RANK);
                return false;
            }
            labels[(*count)++] = dots ? (char)('0' + i) : ch;
        }
        if (dots) *at += 2;
    }
    return true;
}

static int label_index(const Equation *e, char label)
{
    for (int i = 0; i < e->count; i++)
        if (e->labels[i] == label) return i;
    return -1;
}

static bool label_add(Compilation *c, const Node *n, Equation *e, char label)
{
    if (label_index(e, label) >= 0) return true;
    if (e->count == MAX_LABELS) {
        node_error(c, n, "more than %d labels", MAX_LABELS);
        return false;
    }
    e->labels[e->count++] = label;
    return true;
}

static int uses_of(const Equation *e, char label)
{
    int uses = 0;
    for (int t = 0; t < e->term_count; t++)
        for (int i = 0; i < e->terms[t].rank; i++) uses += e->terms[t].labels[i] == label;
    return uses;
}

/* Without an arrow: the ellipsis, then the labels that occur once, in alphabetical order. */
static void implicit_output(Equation *e, int wide)
{
    e->out_rank = 0;
    for (int i = wide - 1; i >= 0; i--) e->out[e->out_rank++] = (char)('0' + i);
    for (int ch = 'A'; ch <= 'z'; ch++)
        if (is_letter((char)ch) && uses_of(e, (char)ch) == 1 && e->out_rank < MAX_RANK) e->out[e->out_rank++] = (char)ch;
}

static bool read_terms(Compilation *c, const Node *n, Equation *e, const char **at, int *wide)
{
    *wide = 0;
    for (e->term_count = 0;; ++*at) {
        const int t = e->term_count++;
        if (t >= n->input_count || t >= MAX_TERMS) break;
        const Value *v = node_input(c, n, t);
        if (!read_term(c, n, at, v->rank, -1, e->terms[t].labels, &e->terms[t].rank)) return false;
        if (e->terms[t].rank != v->rank) {
            node_error(c, n, "equation '%s': term %d has %d labels, but input '%s' rank %d", attr_string(n, "equation"), t,
                       e->terms[t].rank, v->name, v->rank);
            return false;
        }
        for (int i = 0; i < v->rank; i++) {
            const int dot = e->terms[t].labels[i] - '0' + 1;
            if (!is_letter(e->terms[t].labels[i]) && dot > *wide) *wide = dot;
        }
        if (**at != ',') break;
    }
    if (e->term_count == n->input_count) return true;
    node_error(c, n, "equation '%s' does not have a term for each of %d inputs (at most %d)", attr_string(n, "equation"), n->input_count, MAX_TERMS);
    return false;
}

static bool read_equation(Compilation *c, const Node *n, Equation *e)
{
    const char *at = attr_string(n, "equation");
    int wide;
    memset(e, 0, sizeof *e);
    if (!read_terms(c, n, e, &at, &wide)) return false;
    if (!strncmp(at, "->", 2)) {
        at += 2;
        if (!read_term(c, n, &at, 0, wide, e->out, &e->out_rank)) return false;
        if (*at) {
            node_error(c, n, "equation '%s': text after the output", attr_string(n, "equation"));
            return false;
        }
    } else {
        implicit_output(e, wide);
    }
    for (int i = 0; i < e->out_rank; i++) {
        if (label_index(e, e->out[i]) >= 0 || !uses_of(e, e->out[i])) {
            node_error(c, n, "equation '%s': output label '%c' is repeated, or no input has it", attr_string(n, "equation"), e->out[i]);
            return false;
        }
        if (!label_add(c, n, e, e->out[i])) return false;
    }
    for (int t = 0; t < e->term_count; t++)
        for (int i = 0; i < e->terms[t].rank; i++)
            if (!label_add(c, n, e, e->terms[t].labels[i])) return false;
    return true;
}

/* The extent of each label: axes of one element are broadcast. False after an error. */
static bool label_dims(Compilation *c, const Node *n, Equation *e)
{
    for (int t = 0; t < e->term_count; t++)
        for (int i = 0; i < e->terms[t].rank; i++) {
            const int k = label_index(e, e->terms[t].labels[i]);
            const Dim d = node_input(c, n, t)->dims[i];
            if (!e->dims[k]) e->dims[k] = d;
            else if (!broadcast_dim(c, n, e->dims[k], d, &e->dims[k])) return false;
        }
    return true;
}

static bool einsum_shape(Compilation *c, Node *n)
{
    Equation e;
    const DType t = node_input(c, n, 0)->dtype;
    for (int i = 0; i < n->input_count; i++)
        if (node_input(c, n, i)->rank < 0) return output_set(c, n, 0, t, -1, NULL);
    return read_equation(c, n, &e) && label_dims(c, n, &e) && output_set(c, n, 0, t, e.out_rank, e.dims);
}

/* Text of the element of term T at the labels i0, i1 ... */
static const char *term_text(Lower *l, const Equation *e, int t, const View *v)
{
    Compilation *c = lower_compilation(l);
    const char *text = arena_text(&c->arena, "X%d_OFF", t);
    for (int k = 0; k < e->count; k++) {
        int64_t stride = 0;
        for (int i = 0; i < e->terms[t].rank; i++)
            if (e->terms[t].labels[i] == e->labels[k] && !(dim_is(c, v->dims[i], 1) && !dim_is(c, lower_dim(l, e->dims[k]), 1)))
                stride += v->stride[i];
        if (stride) text = arena_text(&c->arena, "%s + i%d * %lldLL", text, k, (long long)stride);
    }
    return arena_text(&c->arena, "(Y_C)X%d_LD(%s)", t, text);
}

static void einsum_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Equation e;
    if (!read_equation(c, n, &e) || !label_dims(c, n, &e)) return;
    const View out = lower_output(l, n, 0);
    const char *product = NULL, *loops = "";
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "einsum");
    for (int t = 0; t < e.term_count; t++) {
        const View v = lower_input(l, n, t);
        const char *text = term_text(l, &e, t, &v);
        kernel_in(k, arena_text(&c->arena, "X%d", t), v);
        product = product ? arena_text(&c->arena, "%s * %s", product, text) : text;
    }
    for (int i = e.out_rank; i < e.count; i++)
        loops = arena_text(&c->arena, "%sfor (idx i%d = 0; i%d < %s; i%d++) ", loops, i, i, lower_c(l, e.dims[i]), i);
    const Dim count = dims_product(c, out.rank, out.dims);
    kernel_out(k, "Y", out);
    kernel_text(k, "PRODUCT", product);
    kernel_text(k, "LOOPS", loops);
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index_split(l, out.rank, out.dims, "i"));
    kernel_launch(k, grid_for(lower_upper(l, count), 128), 1, 1, 128);
}

static const OpRow rows[] = {
    {.domain = "", .name = "Einsum", .since = 12, .schema = "Inputs:T* -> Output:T ; equation:string | T=" TYPES_NUMBER,
     .shape = einsum_shape, .lower = einsum_lower},
};

const OpFamily ops_einsum = {rows, COUNT_OF(rows), "einsum.c"};
