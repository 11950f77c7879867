/* rnn.c - LSTM, GRU and RNN: the inputs' part of the gates for all steps at once, then the recurrence, one block a sequence
 * and direction with the loop over time inside. */
#include "ops/move.h"
#include "ops/rows.h"

#include <string.h>

enum { CELL_PLAIN, CELL_GRU, CELL_LSTM };

static int cell_of(const Node *n) { return !strcmp(n->op_type, "LSTM") ? CELL_LSTM : !strcmp(n->op_type, "GRU") ? CELL_GRU : CELL_PLAIN; }
static int cell_gates(int cell) { return cell == CELL_LSTM ? 4 : cell == CELL_GRU ? 3 : 1; }
static bool batch_first(const Node *n) { return n->op->since >= 14 && attr_int(n, "layout") != 0; }

static int direction_count(Compilation *c, const Node *n)
{
    const char *direction = attr_string(n, "direction");
    if (!strcmp(direction, "bidirectional")) return 2;
    if (!strcmp(direction, "forward") || !strcmp(direction, "reverse")) return 1;
    node_error(c, n, "direction '%s': expected forward, reverse or bidirectional", direction);
    return 0;
}

/* ---- shapes */

static bool check_rank(Compilation *c, const Node *n, int i, int rank)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank < 0 || v->rank == rank) return true;
    node_error(c, n, "input '%s' has rank %d; expected %d", v->name, v->rank, rank);
    return false;
}

static bool equate(Compilation *c, const Node *n, const Value *v, int axis, Dim d)
{
    return !v || v->rank <= axis || !v->dims[axis] || !d || dim_equate(c, n, "rnn", v->dims[axis], d);
}

static bool rnn_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *w = node_input(c, n, 1), *r = node_input(c, n, 2);
    const int directions = direction_count(c, n), swap = batch_first(n);
    if (!directions || !check_rank(c, n, 0, 3) || !check_rank(c, n, 1, 3) || !check_rank(c, n, 2, 3) || !check_rank(c, n, 3, 2)
        || !check_rank(c, n, 4, 1) || !check_rank(c, n, 5, 3) || !check_rank(c, n, 6, 3) || !check_rank(c, n, 7, 2)) return false;
    if (x->rank < 0 || r->rank < 0) {
        for (int i = 0; i < n->output_count; i++)
            if (!output_set(c, n, i, x->dtype, -1, NULL)) return false;
        return true;
    }
    const Dim count = dim_const(c, directions), steps = x->dims[swap], batch = x->dims[!swap];
    const Dim hidden = attr_given(n, "hidden_size") ? dim_const(c, attr_int(n, "hidden_size")) : r->dims[2];
    if (!equate(c, n, r, 2, hidden) || !equate(c, n, w, 0, count) || !equate(c, n, r, 0, count) || !equate(c, n, w, 2, x->dims[2])) return false;
    if (!equate(c, n, w, 1, dim_scale(c, hidden, cell_gates(cell_of(n)))) || !equate(c, n, node_input(c, n, 4), 0, batch)) return false;
    const Dim plain[4] = {steps, count, batch, hidden}, first[4] = {batch, steps, count, hidden};
    const Dim last[3] = {count, batch, hidden}, last_first[3] = {batch, count, hidden};
    for (int i = 0; i < n->output_count; i++)
        if (!output_set(c, n, i, x->dtype, i ? 3 : 4, i ? (swap ? last_first : last) : (swap ? first : plain))) return false;
    return true;
}

/* ---- activations: text over v, in the type of the state */

typedef struct Activation { const char *name, *text; double alpha, beta; } Activation; /* $: suffix; A, B: alpha and beta */
static const Activation activations[] = {
    {"Tanh", "tanh$(v)", 0, 0},
    {"Sigmoid", "(1 / (1 + exp$(-(v))))", 0, 0},
    {"Relu", "((v) < 0 ? 0 : (v))", 0, 0},
    {"Affine", "(A * (v) + B)", 1, 0},
    {"LeakyRelu", "((v) >= 0 ? (v) : A * (v))", 0.01, 0},
    {"ThresholdedRelu", "((v) > A ? (v) : 0)", 1, 0},
    {"ScaledTanh", "(A * tanh$(B * (v)))", 1, 1},
    {"HardSigmoid", "(A * (v) + B < 0 ? 0 : A * (v) + B > 1 ? 1 : A * (v) + B)", 0.2, 0.5},
    {"Elu", "((v) >= 0 ? (v) : A * (exp$(v) - 1))", 1, 0},
    {"Softsign", "((v) / (1 + fabs$(v)))", 0, 0},
    {"Softplus", "(fmax$((v), 0) + log1p$(exp$(-fabs$(v))))", 0, 0},
};

static bool same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a | 32) != (*b | 32)) return false;
    return !*a && !*b;
}

static const char *activation_text(Compilation *c, const Activation *a, double alpha, double beta, bool wide)
{
    Text t = {0};
    for (const char *p = a->text; *p; p++) {
        if (*p == '$') text_add(&t, wide ? "" : "f");
        else if (*p == 'A' || *p == 'B') text_add(&t, wide ? "(%a)" : "(%af)", *p == 'A' ? alpha : beta);
        else text_add_bytes(&t, p, 1);
    }
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

/* Which activations take a number of the lists, in order; those without one take their default. */
static bool takes_alpha(const Activation *a) { return strchr(a->text, 'A') != NULL; }
static bool takes_beta(const Activation *a) { return strchr(a->text, 'B') != NULL; }

/* texts[direction * per + k]. */
static bool read_activations(Compilation *c, const Node *n, int cell, int directions, bool wide, const char **texts)
{
    static const char *const defaults[3][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const Attr *names = node_attr(n, "activations"), *alphas = node_attr(n, "activation_alpha"), *betas = node_attr(n, "activation_beta");
    const int per = cell + 1;
    int alpha = 0, beta = 0;
    if (names->count && names->count < per * directions) {
        node_error(c, n, "%d activations are given; expected %d", names->count, per * directions);
        return false;
    }
    for (int i = 0; i < per * directions; i++) {
        const char *name = names->count ? names->strings[i] : defaults[cell][i % per];
        const Activation *found = NULL;
        for (size_t k = 0; k < COUNT_OF(activations); k++)
            if (same_word(activations[k].name, name)) found = &activations[k];
        if (!found) {
            node_error(c, n, "activation '%s' is unknown", name);
            return false;
        }
        const double a = takes_alpha(found) && alpha < alphas->count ? alphas->floats[alpha++] : found->alpha;
        const double b = takes_beta(found) && beta < betas->count ? betas->floats[beta++] : found->beta;
        texts[i] = activation_text(c, found, a, b, wide);
    }
    return true;
}

static void define_activations(Compilation *c, Kernel *k, int cell, int directions, const char **texts)
{
    static const char *const names[] = {"ACT_F(v)", "ACT_G(v)", "ACT_H(v)"};
    const int per = cell + 1;
    for (int i = 0; i < per; i++) {
        const bool two = directions == 2 && strcmp(texts[i], texts[per + i]) != 0;
        kernel_text(k, names[i], two ? arena_text(&c->arena, "(d == 0 ? %s : %s)", texts[i], texts[per + i]) : texts[i]);
    }
}

/* ---- lowering */

typedef struct Rnn {
    int cell, directions;
    DType wide;                       /* of the state: f32, or f64 */
    View x, w, r, gates;              /* x [steps, batch, width], gates [steps, direction, batch, row] */
    Dim steps, batch, hidden, rows;
    bool reset_first;
} Rnn;

/* The view of a tensor in the canonical order of axes. */
static View ordered(View v, bool swap)
{
    static const int three[] = {1, 0, 2}, four[] = {1, 2, 0, 3};
    return swap ? rows_order(&v, v.rank == 3 ? three : four, v.rank) : v;
}

static View scratch(Lower *l, const Node *n, const char *what, DType t, int rank, const Dim *dims)
{
    return lower_temporary(l, arena_text(&lower_compilation(l)->arena, "%s %s", n->name, what), t, rank, dims);
}

static void launch_inputs(Lower *l, Node *n, Rnn *p)
{
    Compilation *c = lower_compilation(l);
    const Dim dims[4] = {p->steps, dim_const(c, p->directions), p->batch, p->rows};
    int64_t hidden = 0;
    p->gates = scratch(l, n, "gates", p->wide, 4, dims);
    if (lower_upper(l, dims_product(c, 4, p->gates.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "rnn_input");
    kernel_in(k, "X", p->x);
    kernel_in(k, "W", p->w);
    kernel_int(k, "HAS_B", node_input(c, n, 3) != NULL);
    if (node_input(c, n, 3)) kernel_in(k, "B", lower_input(l, n, 3));
    kernel_out(k, "G", p->gates);
    dim_is_const(c, p->hidden, &hidden);
    kernel_int(k, "OUTSIDE", hidden * (p->cell == CELL_GRU && !p->reset_first ? 2 : cell_gates(p->cell)));
    kernel_text(k, "TARGET", index_at(l, "G", 4, "i"));
    kernel_dim(k, "COUNT", dims_product(c, 4, p->gates.dims));
    kernel_text(k, "INDEX", index_split(l, 4, p->gates.dims, "i"));
    kernel_launch(k, grid_for(lower_upper(l, dims_product(c, 4, p->gates.dims)), 128), 1, 1, 128);
}

static void optional_in(Lower *l, Kernel *k, const Node *n, const char *name, int input, bool swap)
{
    Compilation *c = lower_compilation(l);
    const bool there = node_input(c, n, input) != NULL;
    kernel_int(k, arena_text(&c->arena, "HAS_%s", name), there);
    if (there) kernel_in(k, name, ordered(lower_input(l, n, input), swap));
}

static void optional_out(Lower *l, Kernel *k, const Node *n, const char *name, int output, bool swap)
{
    Compilation *c = lower_compilation(l);
    const Value *v = node_output(c, n, output);
    const bool there = v && v->uses > 0;
    kernel_int(k, arena_text(&c->arena, "HAS_%s", name), there);
    if (there) kernel_out(k, name, ordered(lower_output(l, n, output), swap));
}

static void bind_cell(Lower *l, Kernel *k, Node *n, const Rnn *p)
{
    Compilation *c = lower_compilation(l);
    const bool swap = batch_first(n);
    const Dim count = dim_const(c, p->directions), state[3] = {count, p->batch, p->hidden}, rows[3] = {count, p->batch, p->rows};
    kernel_in(k, "G", p->gates);
    kernel_in(k, "R", p->r);
    optional_in(l, k, n, "B", 3, false);
    if (node_input(c, n, 4)) kernel_in(k, "L", lower_input(l, n, 4));
    optional_in(l, k, n, "H0", 5, swap);
    optional_in(l, k, n, "C0", 6, swap);
    optional_in(l, k, n, "P", 7, false);
    kernel_out(k, "H", scratch(l, n, "state", p->wide, 3, state));
    kernel_out(k, "A", scratch(l, n, "recurrent", p->wide, 3, rows));
    if (p->cell != CELL_PLAIN) kernel_out(k, "C", scratch(l, n, "cell", p->wide, 3, state));
    optional_out(l, k, n, "Y", 0, swap);
    optional_out(l, k, n, "YH", 1, swap);
    optional_out(l, k, n, "YC", 2, swap);
    kernel_text(k, "LENGTH", node_input(c, n, 4) ? "MIN(MAX(L_LD(L_AT(b)), 0), STEPS)" : "(STEPS)");
}

static void launch_cell(Lower *l, Node *n, const Rnn *p, const char **texts)
{
    Compilation *c = lower_compilation(l);
    int64_t hidden = 1;
    dim_is_const(c, p->hidden, &hidden);
    const int threads = rows_threads(hidden * cell_gates(p->cell));
    Kernel *k = kernel_begin(l, n, "rnn");
    bind_cell(l, k, n, p);
    define_activations(c, k, p->cell, p->directions, texts);
    if (attr_given(n, "clip")) {
        const char *bound = arena_text(&c->arena, "((H_C)%a)", attr_float(n, "clip"));
        kernel_text(k, "CLIP(v)", arena_text(&c->arena, "MIN(MAX((v), -%s), %s)", bound, bound));
    } else {
        kernel_text(k, "CLIP(v)", "(v)");
    }
    const char *direction = attr_string(n, "direction");
    kernel_text(k, "BACKWARD", !strcmp(direction, "reverse") ? "1" : p->directions == 2 ? "(d == 1)" : "0");
    kernel_int(k, "CELL", p->cell);
    kernel_int(k, "HIDDEN", hidden);
    kernel_int(k, "RESET_FIRST", p->cell == CELL_GRU && p->reset_first);
    kernel_int(k, "FIRST_ROWS", hidden * (p->cell == CELL_GRU && p->reset_first ? 2 : cell_gates(p->cell)));
    kernel_int(k, "COUPLED", p->cell == CELL_LSTM && attr_int(n, "input_forget") != 0);
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "STEPS", p->steps);
    kernel_dim(k, "BATCH", p->batch);
    kernel_launch(k, p->directions, lower_upper(l, p->batch), 1, threads);
}

static void rnn_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Rnn p = {.cell = cell_of(n), .directions = direction_count(c, n)};
    const char *texts[6];
    p.wide = node_input(c, n, 0)->dtype == DT_F64 ? DT_F64 : DT_F32;
    p.x = ordered(lower_input(l, n, 0), batch_first(n));
    p.w = lower_input(l, n, 1);
    p.r = lower_input(l, n, 2);
    p.steps = p.x.dims[0];
    p.batch = p.x.dims[1];
    p.hidden = p.r.dims[2];
    p.rows = dim_scale(c, p.hidden, cell_gates(p.cell));
    p.reset_first = p.cell == CELL_GRU && !attr_int(n, "linear_before_reset");
    if (!dim_is_const(c, p.hidden, NULL)) {
        node_error(c, n, "the hidden size is not known when compiling");
        return;
    }
    if (!read_activations(c, n, p.cell, p.directions, p.wide == DT_F64, texts)) return;
    if (lower_upper(l, p.batch) == 0 || dim_is(c, p.hidden, 0)) return;
    launch_inputs(l, n, &p);
    launch_cell(l, n, &p, texts);
}

#define COMMON "activation_alpha:floats?, activation_beta:floats?, activations:strings?, clip:float?, direction:string=forward, hidden_size:int?"
#define PORTS(more_) "X:T, W:T, R:T, B:T?, sequence_lens:i32?, initial_h:T?" more_ " -> Y:T?, Y_h:T?"
#define CELL(name_, more_, outputs_, attrs_) \
    {.domain = "", .name = name_, .since = 7, .schema = PORTS(more_) outputs_ " ; " COMMON attrs_ " | T=" TYPES_FLOAT, \
     .shape = rnn_shape, .lower = rnn_lower}, \
    {.domain = "", .name = name_, .since = 14, .schema = PORTS(more_) outputs_ " ; " COMMON attrs_ ", layout:int=0 | T=" TYPES_FLOAT, \
     .shape = rnn_shape, .lower = rnn_lower}

static const OpRow rows[] = {
    CELL("RNN", "", "", ""),
    CELL("GRU", "", "", ", linear_before_reset:int=0"),
    CELL("LSTM", ", initial_c:T?, P:T?", ", Y_c:T?", ", input_forget:int=0"),
};

const OpFamily ops_rnn = {rows, COUNT_OF(rows), "rnn.c"};
