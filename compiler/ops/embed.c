/* embed.c - com.microsoft EmbedLayerNormalization: the rows of two or three tables, added, then layer normalised. */
#include "ops/move.h"
#include "ops/norm.h"

enum { EM_IDS, EM_SEGMENTS, EM_WORDS, EM_PLACES, EM_KINDS, EM_GAMMA, EM_BETA, EM_MASK, EM_POSITIONS };

static bool ranked(Compilation *c, const Node *n, int i, int rank)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank < 0 || v->rank == rank) return true;
    node_error(c, n, "input '%s' has rank %d; expected %d", v->name, v->rank, rank);
    return false;
}

/* Ids that stand beside input_ids; positions may serve all sequences. */
static bool ids_fit(Compilation *c, const Node *n, int i, const Value *ids)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank != 2 || ids->rank != 2) return true;
    if (!(i == EM_POSITIONS && dim_is(c, v->dims[0], 1)) && !dim_equate(c, n, "ids have one shape", v->dims[0], ids->dims[0])) return false;
    return dim_equate(c, n, "ids have one shape", v->dims[1], ids->dims[1]);
}

static bool embed_shape(Compilation *c, Node *n)
{
    static const int tables[] = {EM_PLACES, EM_KINDS}, beside[] = {EM_SEGMENTS, EM_MASK, EM_POSITIONS}, vectors[] = {EM_GAMMA, EM_BETA};
    const Value *ids = node_input(c, n, EM_IDS), *words = node_input(c, n, EM_WORDS);
    const Dim width = words->rank == 2 ? words->dims[1] : 0;
    if (attr_int(n, "mask_index_type") != 0) node_error(c, n, "mask_index_type %lld is not supported; only 0 is", (long long)attr_int(n, "mask_index_type"));
    if (!node_input(c, n, EM_SEGMENTS) != !node_input(c, n, EM_KINDS)) node_error(c, n, "segment_ids and segment_embedding must be given together");
    if (diag_failed(c) || !ranked(c, n, EM_IDS, 2) || !ranked(c, n, EM_WORDS, 2)) return false;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const Value *v = node_input(c, n, tables[i]);
        if (!ranked(c, n, tables[i], 2)) return false;
        if (v && v->rank == 2 && !dim_equate(c, n, "all tables have one width", v->dims[1], width)) return false;
    }
    for (size_t i = 0; i < COUNT_OF(beside); i++)
        if (!ranked(c, n, beside[i], 2) || !ids_fit(c, n, beside[i], ids)) return false;
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        const Value *v = node_input(c, n, vectors[i]);
        if (!ranked(c, n, vectors[i], 1)) return false;
        if (v->rank == 1 && !dim_equate(c, n, "a norm's weights have the width of its rows", v->dims[0], width)) return false;
    }
    const Dim dims[3] = {ids->rank == 2 ? ids->dims[0] : 0, ids->rank == 2 ? ids->dims[1] : 0, width};
    if (!output_set(c, n, 0, words->dtype, 3, dims)) return false;
    if (node_output(c, n, 1) && !output_set(c, n, 1, DT_I32, 1, dims)) return false;
    return !node_output(c, n, 2) || output_set(c, n, 2, words->dtype, 3, dims);
}

/* Adds to TEXT the element of table T at row ROW, a C expression; rows outside of the table are its first or last. */
static const char *looked_up(Lower *l, Kernel *k, const Node *n, int input, const char *t, const char *row, const char *text)
{
    Compilation *c = lower_compilation(l);
    kernel_in(k, t, lower_input(l, n, input));
    const char *safe = arena_text(&c->arena, "MAX(MIN((idx)(%s), %s_D0 - 1), 0)", row, t);
    const char *term = arena_text(&c->arena, "%s_LD(%s_AT(%s, i2))", t, t, safe);
    return text ? arena_text(&c->arena, "%s + %s", text, term) : term;
}

static const char *id_text(Lower *l, Kernel *k, const Node *n, int input, const char *name)
{
    Compilation *c = lower_compilation(l);
    View v = lower_input(l, n, input);
    if (dim_is(c, v.dims[0], 1)) v.stride[0] = 0;
    kernel_in(k, name, v);
    return arena_text(&c->arena, "%s_LD(%s_AT(i0, i1))", name, name);
}

static View embedding_sum(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const View ids = lower_input(l, n, EM_IDS), words = lower_input(l, n, EM_WORDS);
    const Dim dims[3] = {ids.dims[0], ids.dims[1], words.dims[1]};
    const View sum = node_output(c, n, 2) ? lower_output(l, n, 2) : lower_temporary(l, "embedding", words.store, 3, dims);
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", sum);
    const char *text = looked_up(l, k, n, EM_WORDS, "WORDS", id_text(l, k, n, EM_IDS, "IDS"), NULL);
    const char *place = node_input(c, n, EM_POSITIONS) ? id_text(l, k, n, EM_POSITIONS, "POS") : "i1";
    text = looked_up(l, k, n, EM_PLACES, "PLACES", place, text);
    if (node_input(c, n, EM_KINDS)) text = looked_up(l, k, n, EM_KINDS, "KINDS", id_text(l, k, n, EM_SEGMENTS, "SEG"), text);
    kernel_text(k, "VALUE", text);
    kernel_text(k, "TARGET", index_at(l, "Y", 3, "i"));
    kernel_label(k, arena_text(&c->arena, "%s: sum", n->name));
    launch_elements(l, k, &sum, NULL);
    return sum;
}

/* How many marks of each sequence are 1; without a mask, 0. */
static void count_marks(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    if (!node_output(c, n, 1)) return;
    const View y = lower_output(l, n, 1);
    const bool masked = node_input(c, n, EM_MASK) != NULL;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", y);
    if (masked) kernel_in(k, "MASK", lower_input(l, n, EM_MASK));
    kernel_text(k, "VALUE", masked ? "marks" : "0");
    kernel_text(k, "TARGET", index_at(l, "Y", 1, "i"));
    kernel_label(k, arena_text(&c->arena, "%s: mask_index", n->name));
    launch_elements(l, k, &y, masked ? "int marks = 0; for (idx s = 0; s < MASK_D1; s++) marks += MASK_LD(MASK_AT(i0, s)) == 1;" : NULL);
}

static void embed_lower(Lower *l, Node *n)
{
    const View sum = embedding_sum(l, n);
    count_marks(l, n);
    norm_layer(l, n, &sum, EM_GAMMA, EM_BETA);
}

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "EmbedLayerNormalization", .since = 1,
     .schema = "input_ids:i32, segment_ids:i32?, word_embedding:T, position_embedding:T, segment_embedding:T?, gamma:T, beta:T, mask:i32?, "
               "position_ids:i32? -> output:T, mask_index:i32?, embedding_sum:T? ; epsilon:float=1e-12, mask_index_type:int=0 | T=f32 f16 bf16",
     .shape = embed_shape, .lower = embed_lower, .note = "not: mask_index_type other than 0"},
};

const OpFamily ops_embed = {rows, COUNT_OF(rows), "compiler/ops/embed.c"};
