/* gqa_one_row.c - GroupQueryAttention of one new row a sequence, all in one launch (attention_one.cu), with the norms and rotations of heads that
 * stand before it. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/gqa.h"
#include "ops/product.h"

#include <string.h>

/* SLICE: keys that a warp has at once; twice as many where heads have up to WIDE elements. A block's slices take up to ROOM bytes, which leaves some for the blocks of the kernels before and behind;
 * with ROOM_ANYWHERE no block takes more than 48 KB. A merge reads up to PARTS_BYTES. */
enum { MAX_GROUP = 8, SLICE = 16, WIDE = 128, ROOM = 64 * 1024, ROOM_ANYWHERE = 24 * 1024, PARTS_BYTES = 256 * 1024, ROUNDS = 2, CLUSTER_HEADS = 2, CLUSTER_KEYS = 512 };

static bool is_half(const Value *v) { return v && (v->dtype == DT_F16 || v->dtype == DT_BF16); }

bool gqa_one_row_fits(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    Sizes z;
    int64_t head, batch;
    if (!gqa_sizes(c, n, &z) || !dim_is(c, lower_dim(l, z.rows), 1) || dim_is(c, lower_dim(l, z.fresh), 0)) return false;
    if (!dim_is_const(c, lower_dim(l, z.head), &head) || !dim_is_const(c, lower_dim(l, z.batch), &batch)) return false;
    if (!(head == 64 || head == 128 || head == 256) || z.heads / z.kv_heads > MAX_GROUP || batch * z.kv_heads > MAX_TICKETS) return false;
    const Value *keys = node_output(c, n, 1), *values = node_output(c, n, 2), *q_norm = node_input(c, n, GQ_Q_NORM), *k_norm = node_input(c, n, GQ_K_NORM);
    if ((q_norm && !q_norm->is_constant) || (k_norm && !k_norm->is_constant)) return false;
    return is_half(node_input(c, n, GQ_QUERY)) && is_half(keys) && is_half(values) && keys->dtype == values->dtype && !node_input(c, n, GQ_BIAS) &&
           attr_int(n, "causal") != 0 && keys->state && values->state && lower_upper(l, z.total) >= 64;
}

/* The node of FACTS that fuse gave to attention N, on the way to its INPUT: norm, rotation, reshapes between; NULL none. */
static const Node *head_node(const Graph *g, const Node *n, int input, unsigned facts)
{
    uint32_t p = n->inputs[input] ? g->values[n->inputs[input]].producer : 0;
    for (; p; p = g->values[g->nodes[p].inputs[0]].producer) {
        const Node *m = &g->nodes[p];
        const bool own = m->together == (uint32_t)(n - g->nodes) && (m->op->facts & (OP_NORM_ROW | OP_ROTARY));
        if (own && (m->op->facts & facts)) return m;
        if (!(own && (m->op->facts & OP_ROTARY)) && !(is_reshape(m) && m->inputs[0])) return NULL;
    }
    return NULL;
}

/* The norm that was put off for INPUT of attention N; NULL none. */
static const Node *head_norm(Lower *l, const Node *n, int input)
{
    const Node *norm = head_node(&l->c->graph, n, input, OP_NORM_ROW);
    return norm && l->made_by[norm - l->c->graph.nodes] < 0 ? norm : NULL;
}

/* Whether rotation R, of HEADS heads of HEAD, is one that the kernel can do: each sequence has its own row of cosines, or a position. */
static bool rotation_fits(Lower *l, const Node *r, int64_t heads, int64_t head)
{
    Compilation *c = l->c;
    const RotaryPorts ports = rotary_ports(r);
    const Value *x = node_input(c, r, 0), *cosine = node_input(c, r, ports.cosine), *positions = node_input(c, r, ports.positions);
    int64_t half;
    if (x->rank != 3 || attr_int(r, "num_heads") != heads || !dim_is(c, lower_dim(l, x->dims[2]), heads * head)) return false;
    if (!dim_is_const(c, lower_dim(l, cosine->dims[cosine->rank - 1]), &half) || 2 * half > head) return false;
    return positions ? positions->rank <= 2 : dim_is(c, lower_dim(l, cosine->dims[1]), 1);
}

/* The rotation of query and key before attention N that its kernel does in this signature; NULL: there is none, or they differ. */
static const Node *head_rotation(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Node *q = head_node(&c->graph, n, GQ_QUERY, OP_ROTARY), *k = head_node(&c->graph, n, GQ_KEY, OP_ROTARY);
    Sizes z;
    int64_t head;
    if (!q || !k || attr_int(n, "do_rotary") || !gqa_sizes(c, n, &z) || !dim_is_const(c, lower_dim(l, z.head), &head)) return NULL;
    const RotaryPorts a = rotary_ports(q), b = rotary_ports(k);
    if (strcmp(q->domain, k->domain) != 0 || attr_int(q, "interleaved") != attr_int(k, "interleaved")) return NULL;
    if (q->inputs[a.cosine] != k->inputs[b.cosine] || q->inputs[a.sine] != k->inputs[b.sine]) return NULL;
    if (node_input(c, q, a.positions) != node_input(c, k, b.positions)) return NULL;
    return gqa_one_row_fits(l, n) && rotation_fits(l, q, z.heads, head) && rotation_fits(l, k, z.kv_heads, head) ? q : NULL;
}

/* Leaves node N to the attention behind it, which sees N's own input. */
static bool put_off(Lower *l, const Node *n)
{
    const uint32_t index = (uint32_t)(n - l->c->graph.nodes);
    l->views[n->outputs[0]] = lower_input(l, n, 0);
    l->fates[index] = (NodeFate){REAL_FUSED, -1, NULL};
    l->made_by[index] = -1;
    return true;
}

/* Whether nothing but what is put off stands between norm N and the attention. */
static bool leads_to(Lower *l, const Node *n, const Node *reader)
{
    const Graph *g = &l->c->graph;
    for (int input = GQ_QUERY; input <= GQ_KEY; input++)
        if (head_node(g, reader, input, OP_NORM_ROW) == n) return !head_node(g, reader, input, OP_ROTARY) || head_rotation(l, reader);
    return false;
}

/* Whether reshape N puts heads into one axis again, [B, S, heads, head] to [B, S, heads * head], behind what was put off. */
static bool merges_heads(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Value *x = node_input(c, n, 0), *y = node_output(c, n, 0);
    if (!x->producer || l->made_by[x->producer] >= 0 || x->rank != 4 || y->rank != 3) return false;
    return dim_equal(c, x->dims[0], y->dims[0]) && dim_equal(c, x->dims[1], y->dims[1]) && l->views[n->inputs[0]].rank == 4;
}

bool gqa_defer(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Node *reader = n->together ? &c->graph.nodes[n->together] : NULL;
    NormRow r;
    Sizes z;
    if (!reader || !(reader->op->facts & OP_HEAD_NORM) || l->signature->kind == SIG_LOAD || l->guarded) return false;
    if (is_reshape(n)) return merges_heads(l, n) && put_off(l, n);
    if (n->op->facts & OP_ROTARY) return head_rotation(l, reader) && put_off(l, n);
    if (!leads_to(l, n, reader)) return false;
    if (!norm_row(c, n, &r) || r.skip >= 0 || !gqa_one_row_fits(l, reader) || !gqa_sizes(c, reader, &z)) return false;
    if (node_input(c, reader, GQ_Q_NORM) || node_input(c, reader, GQ_K_NORM) || !node_input(c, reader, GQ_KEY)) return false;
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, r.scale);
    const Dim head = lower_dim(l, z.head);
    if (x->dtype != node_output(c, n, 0)->dtype || scale->dtype != x->dtype || !scale->is_constant || scale->rank != 1) return false;
    if (lower_dim(l, scale->dims[0]) != head || lower_dim(l, x->dims[x->rank - 1]) != head) return false;
    return put_off(l, n);
}

/* Norms of the query and the key: the node's own inputs, or such that were put off. */
static void one_row_norms(Lower *l, Kernel *k, const Node *n)
{
    Compilation *c = l->c;
    for (int i = 0; i < 2; i++) {
        const Node *off = head_norm(l, n, i ? GQ_KEY : GQ_QUERY);
        const int own = i ? GQ_K_NORM : GQ_Q_NORM;
        NormRow r;
        kernel_int(k, i ? "NORM_K" : "NORM_Q", off || node_input(c, n, own));
        if (off && !norm_row(c, off, &r)) fault("gqa", "norm '%s' was put off, but is none of a row", off->name);
        if (off) kernel_in(k, i ? "KW" : "QW", lower_input(l, off, r.scale));
        else if (node_input(c, n, own)) kernel_in(k, i ? "KW" : "QW", lower_input(l, n, own));
        kernel_float(k, i ? "EPSILON_K" : "EPSILON_Q", off ? r.epsilon : attr_float(n, "qk_norm_epsilon"));
        if (off) l->fates[off - c->graph.nodes].launch = l->launch_count;
    }
}

/* Whether the kernel may read the length and the old rows before it waits for those before it: the length is a word that the end of
 * a step moves on, the rows are a state's, which this node alone writes. */
static bool one_row_early(Lower *l, const Node *n, const Attend *a)
{
    Compilation *c = l->c;
    if (!a->known || l->guarded || n->loop) return false;
    if (!dim_is_const(c, a->known, NULL) && !dim_is_const(c, dim_sub(c, a->known, lower_dim(l, dim_symbol(c, c->position))), NULL)) return false;
    return state_only_of(c, n, GQ_PAST_KEY, 1) && state_only_of(c, n, GQ_PAST_VALUE, 2);
}

/* The row of a table of angles for each sequence: [B, 1, HALF] as [B, HALF]. */
static View turn_table(Lower *l, const Node *n, int input)
{
    View v = lower_input(l, n, input);
    if (v.rank == 2) return v;
    v.rank = 2;
    v.dims[1] = v.dims[2];
    v.stride[1] = v.stride[2];
    return v;
}

/* How query and key are rotated: by N itself or by a rotation that was put off. EARLY: what depends on the length and on constants alone is
 * read before the kernel waits. */
static void one_row_turn(Lower *l, Kernel *k, const Node *n, bool early)
{
    Compilation *c = l->c;
    const Node *off = head_rotation(l, n), *turn = off ? off : n;
    const RotaryPorts ports = off ? rotary_ports(off) : (RotaryPorts){GQ_POSITIONS, GQ_COS, GQ_SIN};
    const bool turns = off || attr_int(n, "do_rotary");
    const Value *positions = turns ? node_input(c, turn, ports.positions) : NULL;
    int64_t half = 0;
    kernel_int(k, "TURN_EARLY", turns && early && !off && !positions && node_input(c, n, GQ_COS)->is_constant && node_input(c, n, GQ_SIN)->is_constant);
    if (turns) {
        const View cosine = turn_table(l, turn, ports.cosine);
        half = heads_constant(c, n, cosine.dims[1], "the width of cos_cache");
        kernel_in(k, "COS", cosine);
        kernel_in(k, "SIN", turn_table(l, turn, ports.sine));
    }
    if (positions) kernel_in(k, "POS", lower_input(l, turn, ports.positions));
    const bool each = positions && positions->rank == 2;
    kernel_text(k, "TURN_AT", each ? "(idx)POS_LD(POS_AT(batch, 0))" : positions ? "(idx)POS_LD(POS_OFF)" : off ? "(idx)batch" : "(idx)past");
    kernel_int(k, "HALF", half);
    kernel_int(k, "INTERLEAVED", turns && attr_int(turn, off ? "interleaved" : "rotary_interleaved") != 0);
    for (int input = GQ_QUERY; off && input <= GQ_KEY; input++) l->fates[head_node(&c->graph, n, input, OP_ROTARY) - c->graph.nodes].launch = l->launch_count;
}

/* WARPS have keys; CREW, in all, the new row and the sums. CLUSTER blocks meet directly, and have all keys while they get through them in ROUNDS. */
typedef struct OneRowCut { int64_t slice, warps, crew, share, splits, cluster, rounds, shared; } OneRowCut;

/* How many keys of a head a block has at once, SHARE, which it reads while the kernels before it run; for more of them it pays to have another
 * block, as long as all HEADS of them fit on the device at twice. Blocks of a cluster must all be put in place at once, which pays where few heads
 * leave room for it: as many as have CLUSTER_KEYS at once. (Measured: tests/bench/RESULTS.md.) */
static OneRowCut one_row_cut(Lower *l, int64_t head, int64_t group, int64_t heads, int64_t keys)
{
    static const int64_t rooms[] = {64, 32, 16}, mosts[] = {64, 32, 16, 8}, clusters[] = {1, 4, 8, 16}, rounds[] = {1, 2, 4}, slices[] = {SLICE, 2 * SLICE};
    Compilation *c = l->c;
    const char *shape = arena_text(&c->arena, "heads=%lldx%lld,d=%lld", (long long)heads, (long long)group, (long long)head);
    const int64_t limit = codegen_shared_limit(c, c->options.targets);
    const bool roomy = limit >= ROOM + 16 * 1024;
    int64_t room = ROOM_ANYWHERE;
    if (roomy) room = 1024 * tuning_choice(l, arena_text(&c->arena, "attention_room/%s", shape), rooms, (int)COUNT_OF(rooms), ROOM / 1024);
    int64_t slice = tuning_choice(l, arena_text(&c->arena, "attention_slice/%s", shape), slices, (int)COUNT_OF(slices), roomy && head <= WIDE ? 2 * SLICE : SLICE);
    if (4 * slice * head > room) slice = SLICE;
    const int64_t slot = 4 * slice * head; /* bytes */
    OneRowCut cut = {.slice = slice, .warps = room / slot < 16 ? room / slot : 16, .splits = 1, .cluster = 1};
    cut.crew = group + 2 > 8 ? ceil_div(group + 2, 4) * 4 : 8; /* a warp for each head of the new row, as many for each scheduler */
    if (cut.crew < cut.warps) cut.crew = cut.warps;
    cut.share = cut.warps * cut.slice;
    cut.shared = cut.warps * slot;
    const int64_t most = tuning_choice(l, arena_text(&c->arena, "attention_most/%s", shape), mosts, (int)COUNT_OF(mosts), 64);
    while (cut.splits < most && 2 * cut.splits * heads <= 264 && cut.splits * cut.share < keys && 2 * cut.splits * group * head * 4 <= PARTS_BYTES) cut.splits *= 2;
    if (codegen_has_clusters(c, c->options.targets)) {
        const int64_t standard = heads > CLUSTER_HEADS ? 1 : 4 * cut.share < CLUSTER_KEYS ? 8 : 4;
        cut.cluster = tuning_choice(l, arena_text(&c->arena, "attention_cluster/%s", shape), clusters, (int)COUNT_OF(clusters), standard);
        if (cut.cluster > cut.splits) cut.cluster = cut.splits;
    }
    cut.rounds = tuning_choice(l, arena_text(&c->arena, "attention_rounds/%s", shape), rounds, (int)COUNT_OF(rounds), ROUNDS);
    return cut;
}

void gqa_one_row(Lower *l, const Node *n, const Sizes *z, const Parts *p, const Cache *keys, const Cache *values, const Attend *a)
{
    Compilation *c = l->c;
    const int64_t group = z->heads / z->kv_heads, batch = lower_upper(l, p->q.dims[0]);
    const int64_t capacity = keys->capacity < values->capacity ? keys->capacity : values->capacity;
    const OneRowCut cut = one_row_cut(l, p->head, group, z->kv_heads * batch, a->window > 0 && a->window < capacity ? a->window : capacity);
    const Dim shape[5] = {p->q.dims[0], dim_const(c, z->kv_heads), dim_const(c, cut.splits), dim_const(c, group), dim_const(c, p->head + 4)};
    Kernel *k = kernel_begin(l, n, "attention_one");
    kernel_in(k, "Q", p->q);
    kernel_in(k, "KN", p->k);
    kernel_in(k, "VN", p->v);
    kernel_inout(k, "K", keys->present);
    kernel_inout(k, "V", values->present);
    attend_length_operand(k, a);
    kernel_out(k, "Y", a->y);
    kernel_int(k, "Y_RUNS", a->y.store == p->q.store && view_vector(l, &a->y) == 8);
    kernel_out(k, "PART", lower_temporary(l, arena_text(&c->arena, "%s: parts", n->name), DT_F32, 5, shape));
    kernel_inout(k, "TICKETS", tickets_view(l, 2, shape));
    attend_sinks(k, a);
    const bool early = one_row_early(l, n, a);
    one_row_norms(l, k, n);
    one_row_turn(l, k, n, early);
    kernel_rows(k);
    kernel_text(k, "TYPE", keys->present.store == DT_F16 ? "F16" : "BF16");
    kernel_text(k, "ROW_TYPE", p->q.store == DT_F16 ? "F16" : "BF16");
    kernel_int(k, "D", p->head);
    kernel_int(k, "GROUP", group);
    kernel_int(k, "ALIKE", keys->present.store == p->q.store);
    kernel_int(k, "SLICE", cut.slice);
    kernel_int(k, "WARPS", cut.warps);
    kernel_int(k, "SPLITS", cut.splits);
    kernel_int(k, "SHARE", cut.share);
    kernel_int(k, "CLUSTER", cut.cluster);
    kernel_int(k, "ROUNDS", cut.rounds);
    kernel_int(k, "EARLY", early);
    kernel_int(k, "CAPACITY", capacity);
    kernel_int(k, "WINDOW", a->window > 0 ? a->window : 0);
    kernel_int(k, "HAS_SOFTCAP", a->softcap > 0);
    kernel_float(k, "SOFTCAP", a->softcap);
    kernel_float(k, "SCALE", a->scale);
    kernel_shared(k, cut.shared);
    const int64_t row = 2 * batch * z->kv_heads * dtype_bytes(keys->present.store, p->head);
    kernel_bytes(k, 2 * row + 2 * batch * z->heads * dtype_bytes(p->q.store, p->head), row);
    kernel_launch(k, cut.splits, z->kv_heads, batch, (int)(32 * cut.crew));
}
