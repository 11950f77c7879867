/* heads.c - what the attention families share: heads as an axis, caches that grow in place, and the attention launch. */
#include "ops/heads.h"
#include "ops/ops.h"
#include "ops/rows.h"

View heads_split(Compilation *c, const View *v, int64_t first, int64_t heads, int64_t d)
{
    View out = *v;
    out.rank = 4;
    out.dims[1] = dim_const(c, heads);
    out.dims[2] = v->dims[1];
    out.dims[3] = dim_const(c, d);
    out.stride[1] = d * v->stride[2];
    out.stride[2] = v->stride[1];
    out.stride[3] = v->stride[2];
    out.offset = dim_add(c, v->offset ? v->offset : dim_const(c, 0), dim_const(c, first * d * v->stride[2]));
    return out;
}

bool rows_differ(Compilation *c, Dim past) { return c->options.rows && dim_mentions(c, dim_resolve(c, past), c->position); }

Dim rows_beyond(Compilation *c, Dim past)
{
    if (!c->options.rows) return past;
    const Dim beyond = dim_resolve(c, dim_sub(c, dim_resolve(c, past), dim_symbol(c, c->position)));
    return beyond && !dim_mentions(c, beyond, c->position) ? beyond : 0;
}

const char *rows_vector(Compilation *c, const Node *n, int i)
{
    const Value *v = node_input(c, n, i);
    if (v && v->contents_count < 0 && v->rank >= 1 && dim_equal(c, v->dims[0], dim_symbol(c, c->batch))) return NULL;
    return arena_text(&c->arena, "its %s is one number for all rows", schema_of(n->op)->inputs[i].name);
}

View heads_view(Compilation *c, const View *v, int64_t heads, int64_t d)
{
    return v->rank == 4 ? *v : heads_split(c, v, 0, heads, d);
}

int64_t heads_constant(Compilation *c, const Node *n, Dim d, const char *what)
{
    int64_t v = -1;
    if (d && dim_is_const(c, dim_resolve(c, d), &v) && v > 0) return v;
    node_error(c, n, "%s is %s; it must be a known number", what, d ? dim_text(c, d) : "unknown");
    return -1;
}

bool heads_unranked(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && v->rank < 0) return true;
    }
    return false;
}

View batch_vector(Compilation *c, const View *v)
{
    View out = *v;
    out.rank = 1;
    if (v->rank == 0) {
        out.dims[0] = dim_const(c, 1);
        out.stride[0] = 0;
    } else if (v->rank == 2 && dim_is(c, v->dims[0], 1) && !dim_is(c, v->dims[1], 1)) {
        out.dims[0] = v->dims[1];
        out.stride[0] = v->stride[1];
    } else if (dim_is(c, v->dims[0], 1)) {
        out.stride[0] = 0;
    }
    return out;
}

View mask_view(Compilation *c, const View *mask, const View *q)
{
    const Dim dims[4] = {q->dims[0], q->dims[1], q->dims[2], mask->dims[mask->rank - 1]};
    return rows_expand(c, mask, 4, dims);
}

bool mask_fits(Compilation *c, const Node *n, const Value *mask, Dim batch, Dim heads, Dim rows, Dim total)
{
    const Dim full[4] = {batch, heads, rows, total};
    if (mask->rank < 1 || mask->rank > 4) {
        node_error(c, n, "mask '%s' has rank %d; expected 1 to 4", mask->name, mask->rank);
        return false;
    }
    for (int i = 1; i <= mask->rank; i++) {
        const Dim d = dim_resolve(c, mask->dims[mask->rank - i]);
        if (!d) continue;
        if (i == 1) { /* a shorter or longer constant mask is legal: what it lacks is masked */
            if (!dim_is_const(c, d, NULL) && !dim_equate(c, n, "a mask is as long as the keys", d, total)) return false;
        } else if (!dim_is(c, d, 1) && !dim_equate(c, n, "a mask broadcasts to the scores", d, full[4 - i])) {
            return false;
        }
    }
    return true;
}

static View scratch_or_output(Lower *l, const Node *n, int output, const Dim *dims, DType t)
{
    if (output < n->output_count && n->outputs[output]) return lower_output(l, n, output);
    return lower_temporary(l, "cache", t, 4, dims);
}

Cache cache_open(Lower *l, const Node *n, int input, int output, const Dim *dims, DType t)
{
    Compilation *c = lower_compilation(l);
    Cache cache;
    const bool named = output < n->output_count && n->outputs[output];
    const bool old = input >= 0 && node_input(c, n, input);
    if (old && named && lower_inplace(l, n, input, output, &cache.present)) {
        cache.capacity = lower_upper(l, cache.present.dims[2]);
        for (int i = 0; i < 4; i++) cache.present.dims[i] = lower_dim(l, dims[i]);
        lower_set_view(l, n, output, cache.present);
        return cache;
    }
    cache.present = scratch_or_output(l, n, output, dims, t);
    cache.capacity = lower_upper(l, dims[2]);
    if (old) {
        const View from = lower_input(l, n, input);
        View to = cache.present;
        for (int i = 0; i < 4; i++) to.dims[i] = from.dims[i];
        if (lower_upper(l, from.dims[2]) > 0) lower_copy(l, n, from, to, arena_text(&c->arena, "%s: old rows", n->name));
    }
    return cache;
}

void cache_append(Lower *l, const Node *n, const View *keys, const View *values, Dim past, View *k, View *v)
{
    Compilation *c = lower_compilation(l);
    const bool rowed = rows_differ(c, past);
    const int64_t head = lower_upper(l, k->dims[3]), vhead = lower_upper(l, v->dims[3]);
    const int64_t elements = lower_upper(l, rows_count(c, k, 0, 3)) * (head + vhead);
    Kernel *p = kernel_begin(l, n, "kv_append");
    kernel_in(p, "KN", *k);
    kernel_in(p, "VN", *v);
    kernel_inout(p, "KO", *keys);
    kernel_inout(p, "VO", *values);
    kernel_int(p, "HEAD", head);
    kernel_int(p, "VHEAD", vhead);
    if (rowed) kernel_rows(p);
    else kernel_int(p, "ROWED", 0);
    kernel_dim(p, "START", rowed ? rows_beyond(c, past) : lower_dim(l, past));
    kernel_label(p, arena_text(&c->arena, "%s: append", n->name));
    kernel_bytes(p, 2 * dtype_bytes(k->store, elements), 0); /* the new rows only */
    kernel_launch(p, grid_for(elements, 256), 1, 1, 256);
    *k = *keys;
    *v = *values;
}

/* Threads of an attention block: as many as its shared memory allows, fewer where many blocks fill the device anyway. */
static int attend_threads(Lower *l, const Attend *a, int64_t vhead, int splits)
{
    int threads = splits > 1 || lower_upper(l, a->q.dims[2]) > 4 ? 128 : 256;
    while (threads > 32 && threads / 8 * vhead > 11 * 1024) threads /= 2;
    return threads;
}

/* Queries, keys, and which of these a query may see. */
/* Declares past and total, the old keys and all, for a sequence `batch` with `fresh` new ones: by LengthKind. A wrong length is kept
 * inside the buffer. */
static const char *const length_texts[] = {
    [LENGTH_EXTENT] = "const idx total = K_D2, past = PAST;",
    [LENGTH_LESS_ONE] = "const idx past = MAX(MIN((idx)LEN_LD(LEN_OFF + batch * LEN_S0) + 1 - fresh, K_D2 - fresh), 0), total = past + fresh;",
    [LENGTH_TOTAL] = "const idx total = MAX(MIN((idx)LEN_LD(LEN_OFF + batch * LEN_S0), K_D2), 0), past = total - fresh;",
    [LENGTH_ROWS] = "const idx past = (idx)RL_LD(RL_OFF + batch) + PAST, total = MIN(past + FRESH, K_D2);",
};

void attend_lengths(Lower *l, const Node *n, int input, Attend *a)
{
    Compilation *c = lower_compilation(l);
    if (uniform_length(c, n, input)) {
        a->known = lower_dim(l, node_input(c, n, input)->each);
        return;
    }
    const View lengths = lower_input(l, n, input);
    a->length = batch_vector(c, &lengths);
}

void attend_length_operand(Kernel *k, const Attend *a)
{
    if (!a->known) {
        kernel_in(k, "LEN", a->length);
        return;
    }
    kernel_dim(k, "KNOWN_LENGTH", a->known);
    kernel_text(k, "LEN_LD(i)", "((void)(i), KNOWN_LENGTH)");
    kernel_int(k, "LEN_OFF", 0);
    kernel_int(k, "LEN_S0", 0);
}

static void attend_operands(Lower *l, Kernel *k, const Attend *a)
{
    Compilation *c = lower_compilation(l);
    kernel_in(k, "Q", a->q);
    kernel_in(k, "K", a->k);
    if (a->lengths == LENGTH_LESS_ONE || a->lengths == LENGTH_TOTAL) attend_length_operand(k, a);
    if (a->lengths == LENGTH_ROWS) {
        kernel_rows(k);
        kernel_dim(k, "FRESH", a->fresh);
    }
    if (a->lengths == LENGTH_EXTENT || a->lengths == LENGTH_ROWS) kernel_dim(k, "PAST", a->past ? a->past : dim_const(c, 0));
    if (a->mask.buffer) kernel_in(k, "M", a->mask);
    kernel_text(k, "LENGTHS", length_texts[a->lengths]);
    kernel_int(k, "MASK", !a->mask.buffer ? 0 : a->mask.store == DT_BOOL ? 1 : 2);
    kernel_int(k, "CAUSAL", a->causal);
    kernel_int(k, "HAS_SOFTCAP", a->softcap > 0);
    kernel_float(k, "SOFTCAP", a->softcap);
    kernel_float(k, "SCALE", a->scale);
    kernel_int(k, "GROUP", lower_upper(l, a->q.dims[1]) / lower_upper(l, a->k.dims[1]));
}

void attend_sinks(Kernel *k, const Attend *a)
{
    if (a->sinks.buffer) kernel_in(k, "SINKS", a->sinks);
    kernel_int(k, "SINK", a->sinks.buffer ? 2 : a->smooth ? 1 : 0);
}

/* What a kernel that goes on to the values wants besides. */
static void attend_values(Kernel *k, const Attend *a, int64_t head, int64_t vhead)
{
    kernel_in(k, "V", a->v);
    kernel_int(k, "HEAD", head);
    kernel_int(k, "VHEAD", vhead);
    kernel_int(k, "WINDOW", a->window > 0 ? a->window : 0);
}

/* One row a head leaves most of a GPU idle: its keys are split over several blocks, twice as many as there are SMs. */
static int attend_splits(Lower *l, const Attend *a, int64_t heads)
{
    static const int64_t candidates[] = {1, 2, 4, 8, 16};
    const int64_t rows = lower_upper(l, a->k.dims[2]);
    int splits = 1;
    if (lower_upper(l, a->q.dims[2]) > 1 || rows < 256) return 1;
    while (splits < 16 && 2 * splits * heads * lower_upper(l, a->q.dims[0]) <= 264) splits *= 2;
    const char *key = arena_text(&lower_compilation(l)->arena, "attention_splits/heads=%lld,kv_heads=%lld,head=%lld,rows=%lld,%s", (long long)heads,
                                 (long long)lower_upper(l, a->k.dims[1]), (long long)lower_upper(l, a->q.dims[3]), (long long)rows,
                                 dtype_name(a->k.store));
    return (int)tuning_choice(l, key, candidates, (int)COUNT_OF(candidates), splits);
}

/* Elements that a lane loads at once: 16 bytes, where the head is a multiple of eight lanes' worth and all rows are aligned. */
static int attend_vector(Lower *l, const View *v, int64_t head)
{
    const int width = view_vector(l, v);
    return head % (8 * width) ? 1 : width;
}

static const char *vector_type(const View *v) { return v->store == DT_F32 ? "F32" : v->store == DT_F16 ? "F16" : "BF16"; }

static void attend_merge(Lower *l, const Node *n, const Attend *a, View stats, View part, int splits, int64_t vhead)
{
    Compilation *c = lower_compilation(l);
    Kernel *k = kernel_begin(l, n, "attention_merge");
    kernel_in(k, "STATS", stats);
    kernel_in(k, "PART", part);
    kernel_out(k, "Y", a->y);
    attend_sinks(k, a);
    kernel_int(k, "SPLITS", splits);
    kernel_int(k, "VHEAD", vhead);
    kernel_label(k, arena_text(&c->arena, "%s: merge", n->name));
    kernel_launch(k, lower_upper(l, a->y.dims[2]), lower_upper(l, a->y.dims[1]), lower_upper(l, a->y.dims[0]), vhead > 64 ? 128 : 64);
}

/* Many query rows: on tensor cores. False: not for these operands. */
static bool attend_rows(Lower *l, const Node *n, const Attend *a, int64_t head, int64_t vhead)
{
    enum { FEW_ROWS = 16, WIDE_KEYS = 128 };
    Compilation *c = lower_compilation(l);
    const View *const views[] = {&a->q, &a->k, &a->v, &a->y};
    const int64_t rows = lower_upper(l, a->q.dims[2]);
    if (rows <= FEW_ROWS || !(head == 64 || head == 128 || head == 256) || !(vhead == 64 || vhead == 128 || vhead == 256)) return false;
    for (size_t i = 0; i < COUNT_OF(views); i++)
        if (views[i]->store != a->q.store || view_vector(l, views[i]) != 8) return false;
    /* Blocks as attention_rows has them: of 64 rows and 128 threads, or twice that. */
    const bool wide = rows >= WIDE_ROWS && head <= 128 && vhead <= 128 && codegen_has_wgmma(c, c->options.targets);
    const int64_t together = wide ? WIDE_ROWS : 64, shared = 1024 + 2 * (together * head + 2 * WIDE_KEYS * (head + vhead));
    Kernel *k = kernel_begin(l, n, "attention_rows");
    kernel_int(k, "WIDE", wide);
    if (wide) {
        kernel_int(k, "SHARED_BYTES", shared);
        kernel_shared(k, shared);
    }
    attend_operands(l, k, a);
    attend_values(k, a, head, vhead);
    attend_sinks(k, a);
    kernel_out(k, "Y", a->y);
    kernel_text(k, "TYPE", vector_type(&a->q));
    kernel_int(k, "KEYS", wide ? WIDE_KEYS : head > 128 || vhead > 128 ? 32 : 64);
    kernel_launch(k, lower_upper(l, a->q.dims[1]), lower_upper(l, a->q.dims[0]), ceil_div(rows, together), (int)(2 * together));
    return true;
}

void attend(Lower *l, const Node *n, const Attend *a)
{
    Compilation *c = lower_compilation(l);
    const int64_t heads = lower_upper(l, a->q.dims[1]);
    const int64_t head = heads_constant(c, n, a->q.dims[3], "the head size");
    const int64_t vhead = heads_constant(c, n, a->v.dims[3], "the value's head size");
    if (attend_rows(l, n, a, head, vhead)) return;
    const int splits = attend_splits(l, a, heads), threads = attend_threads(l, a, vhead, splits);
    const int kv = attend_vector(l, &a->k, head), vv = attend_vector(l, &a->v, vhead);
    const Dim shape[5] = {a->q.dims[0], a->q.dims[1], a->q.dims[2], dim_const(c, splits), dim_const(c, vhead)};
    const Dim pair[5] = {shape[0], shape[1], shape[2], shape[3], dim_const(c, 2)};
    View stats, part;
    if (splits > 1) {
        stats = lower_temporary(l, arena_text(&c->arena, "%s: maxima and sums", n->name), DT_F32, 5, pair);
        part = lower_temporary(l, arena_text(&c->arena, "%s: parts", n->name), DT_F32, 5, shape);
    }
    Kernel *k = kernel_begin(l, n, "attention");
    attend_operands(l, k, a);
    attend_values(k, a, head, vhead);
    attend_sinks(k, a);
    if (splits > 1) {
        kernel_out(k, "STATS", stats);
        kernel_out(k, "PART", part);
    } else kernel_out(k, "Y", a->y);
    kernel_int(k, "SPLITS", splits);
    kernel_int(k, "KV", kv);
    kernel_int(k, "VV", vv);
    if (kv > 1) kernel_text(k, "KTYPE", vector_type(&a->k));
    if (vv > 1) kernel_text(k, "VTYPE", vector_type(&a->v));
    kernel_int(k, "THREADS", threads);
    kernel_launch(k, lower_upper(l, a->q.dims[2]) * splits, heads, lower_upper(l, a->q.dims[0]), threads);
    if (splits > 1) attend_merge(l, n, a, stats, part, splits, vhead);
}

void attend_scores(Lower *l, const Node *n, const Attend *a, View to, int stage)
{
    const int threads = lower_upper(l, a->k.dims[2]) > 64 ? 128 : 32;
    Kernel *k = kernel_begin(l, n, "attention_scores");
    attend_operands(l, k, a);
    kernel_out(k, "Y", to);
    kernel_int(k, "STAGE", stage);
    kernel_int(k, "HEAD", heads_constant(lower_compilation(l), n, a->q.dims[3], "the head size"));
    kernel_int(k, "THREADS", threads);
    kernel_label(k, arena_text(&lower_compilation(l)->arena, "%s: scores", n->name));
    kernel_launch(k, lower_upper(l, a->q.dims[2]), lower_upper(l, a->q.dims[1]), lower_upper(l, a->q.dims[0]), threads);
}
