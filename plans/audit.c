/* audit.c - plan-inspect --audit: the contract of every kernel launch, and how each clause of it was established: by the
 * format (a segment can hold nothing else), or by a check of this file that uses the launch list alone. A clause that rests
 * on neither is assumed, and fails. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum clause { CLAUSE_ARGUMENTS, CLAUSE_EXTENTS, CLAUSE_PLACES, CLAUSE_ORDER, CLAUSE_LIFE, CLAUSE_COUNT };

static const struct { const char *name, *how; } clauses[] = {
    {"fixed arguments", "each is a place in a region, a number fixed in the plan, an iteration number, or a condition of the graph"},
    {"extents on the device", "no argument can be a length; extents come from the table in device memory"},
    {"named places", "each access lies in one buffer that is alive, each pointer in the buffer of an access"},
    {"order", "each pair of launches in conflict is joined by a path of edges"},
    {"life", "what is read was written before: arena in the same step for the same buffer whatever branch ran, weights from the file or at load"}};

typedef struct audit {
    const plan_view *v;
    FILE *out;
    const plan_signature_record *s; /* the signature at hand */
    uint32_t index;                 /* its number */
    uint32_t *order;                /* buffers by region and offset */
    uint64_t *reach;                /* by place in `order`: largest end so far in the region */
    uint32_t *owner;                /* by 256 bytes of the arena: buffer + 1 that it was last written for, or 0 */
    uint64_t pieces;                /* its length */
    uint8_t *loaded;                /* by 256 bytes of region weights behind what the file holds: the load signature wrote them */
    uint64_t *paths;                /* by launch: bits of the launches that come before it */
    uint32_t failures[CLAUSE_COUNT], checked[CLAUSE_COUNT];
    uint8_t *failed;                /* by launch: clauses, as bits */
} audit;

static const plan_launch_record *launch_at(const audit *a, uint32_t i) { return &a->v->launches[a->s->launch + i]; }

static void begin_failure(audit *a, enum clause c, uint32_t launch) {
    a->failures[c]++;
    a->failed[launch] |= (uint8_t)(1u << c);
    fprintf(a->out, "FAIL %s launch %" PRIu32 " '%s': %s: expected ", plan_view_string(a->v, a->s->name), launch,
            plan_view_string(a->v, launch_at(a, launch)->label), clauses[c].name);
}

/* --- arguments --- */

static int is_extents(const plan_access_record *x) {
    return x->region == PLAN_REGION_STATE && x->offset == 0 && (x->mode & PLAN_ACCESS_READ);
}

static int reads_extents(const audit *a, const plan_launch_record *l) {
    int reads = 0, pointer = 0;
    for (uint32_t k = 0; k < l->access_count; k++) reads |= is_extents(&a->v->accesses[l->access + k]);
    for (uint32_t k = 0; k < l->arg_count; k++) {
        const plan_arg_record *g = &a->v->args[l->arg + k];
        pointer |= g->kind == PLAN_ARG_POINTER && g->region == PLAN_REGION_STATE && g->value == 0;
    }
    return reads && pointer;
}

/* A plain integer may be a length: nothing here shows that it is none. The number of an iteration is only good for a
 * comparison with an extent, so its launch must get the table. */
static void check_arguments(audit *a, uint32_t i) {
    const plan_launch_record *l = launch_at(a, i);
    for (uint32_t k = 0; k < l->arg_count; k++) {
        const plan_arg_record *g = &a->v->args[l->arg + k];
        a->checked[CLAUSE_ARGUMENTS]++;
        if (g->kind == PLAN_ARG_I64) {
            begin_failure(a, CLAUSE_EXTENTS, i);
            fprintf(a->out, "no length among the arguments, found that argument %" PRIu32 " is the number %" PRId64 ", which may be one (assumed)\n", k, (int64_t)g->value);
        } else if (g->kind == PLAN_ARG_ITERATION && (int64_t)g->value < 0) {
            begin_failure(a, CLAUSE_ARGUMENTS, i);
            fprintf(a->out, "an iteration of 0 or more, found %" PRId64 "\n", (int64_t)g->value);
        } else if (g->kind == PLAN_ARG_ITERATION && !reads_extents(a, l)) {
            begin_failure(a, CLAUSE_EXTENTS, i);
            fputs("the extents table beside an iteration number, found that the launch does not read it\n", a->out);
        }
    }
    a->checked[CLAUSE_EXTENTS]++;
}

/* --- places --- */

static const plan_view *sort_view;

static int by_place(const void *x, const void *y) {
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const plan_buffer_record *a = &sort_view->buffers[i], *b = &sort_view->buffers[k];
    if (a->region != b->region) return a->region < b->region ? -1 : 1;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return i < k ? -1 : i > k;
}

static void sort_buffers(audit *a) {
    for (uint32_t i = 0; i < a->v->buffer_count; i++) a->order[i] = i;
    sort_view = a->v;
    qsort(a->order, a->v->buffer_count, sizeof *a->order, by_place);
    for (uint32_t i = 0; i < a->v->buffer_count; i++) {
        const plan_buffer_record *b = &a->v->buffers[a->order[i]];
        a->reach[i] = b->offset + b->bytes;
        if (i && a->v->buffers[a->order[i - 1]].region == b->region && a->reach[i - 1] > a->reach[i]) a->reach[i] = a->reach[i - 1];
    }
}

/* Decode's token input, which the tail of every signature writes. */
static int takes_token(const audit *a, const plan_buffer_record *b) {
    const plan_model_record *m = a->v->model;
    if (!m->sampling || m->token_binding == PLAN_NONE) return 0;
    const plan_binding_record *t = &a->v->bindings[m->token_binding];
    return b->region == t->region && b->offset == t->offset && b->bytes >= t->bytes;
}

/* What the load signature made in region weights stays for all. */
static int alive(const audit *a, const plan_buffer_record *b, uint32_t launch) {
    if (b->region == PLAN_REGION_WEIGHTS) return 1;
    if (b->signature != PLAN_NONE && b->signature != a->index && !takes_token(a, b)) return 0;
    int timed = b->signature != PLAN_NONE && (b->region == PLAN_REGION_ARENA || (b->region == PLAN_REGION_LOAD && (b->first || b->last)));
    return !timed || (b->first <= launch && launch <= b->last);
}

/* The buffer that holds these bytes when LAUNCH runs, PLAN_NONE for none; *COUNT says how many do. */
static uint32_t buffer_of(const audit *a, uint32_t region, uint64_t offset, uint64_t bytes, uint32_t launch, uint32_t *count) {
    uint32_t low = 0, high = a->v->buffer_count, found = PLAN_NONE;
    *count = 0;
    while (low < high) { /* the first that begins behind */
        uint32_t middle = low + (high - low) / 2;
        const plan_buffer_record *b = &a->v->buffers[a->order[middle]];
        if (b->region < region || (b->region == region && b->offset <= offset)) low = middle + 1;
        else high = middle;
    }
    while (low-- > 0) {
        const plan_buffer_record *b = &a->v->buffers[a->order[low]];
        if (b->region != region || a->reach[low] < offset + bytes) break;
        if (b->offset + b->bytes < offset + bytes || !alive(a, b, launch)) continue;
        if (b->bytes == 0 && bytes == 0 && found != PLAN_NONE) continue; /* an empty one at the same place */
        ++*count;
        found = a->order[low];
    }
    return found;
}

static void check_access(audit *a, uint32_t i, const plan_access_record *x) {
    uint32_t count;
    a->checked[CLAUSE_PLACES]++;
    (void)buffer_of(a, x->region, x->offset, x->bytes, i, &count);
    if (count != 1 && !(count && x->bytes == 0)) {
        begin_failure(a, CLAUSE_PLACES, i);
        fprintf(a->out, "one buffer with %s+0x%" PRIx64 ", %" PRIu64 " bytes, alive there, found %s\n", plan_region_text(x->region), x->offset,
                x->bytes, count ? "several" : "none");
    }
    int constant = x->region == PLAN_REGION_METADATA || ((x->region == PLAN_REGION_WEIGHTS || x->region == PLAN_REGION_LOAD) && a->s->kind != PLAN_SIGNATURE_LOAD);
    if (constant && (x->mode & PLAN_ACCESS_WRITE)) {
        begin_failure(a, CLAUSE_PLACES, i);
        fprintf(a->out, "no write to region %s, found one\n", plan_region_text(x->region));
    }
}

/* A pointer leads into the buffer of one of the launch's accesses. */
static void check_pointer(audit *a, uint32_t i, uint32_t k) {
    const plan_launch_record *l = launch_at(a, i);
    const plan_arg_record *g = &a->v->args[l->arg + k];
    uint32_t count;
    for (uint32_t n = 0; n < l->access_count; n++) {
        const plan_access_record *x = &a->v->accesses[l->access + n];
        uint32_t b = buffer_of(a, x->region, x->offset, x->bytes, i, &count);
        if (x->region != g->region || b == PLAN_NONE) continue;
        const plan_buffer_record *r = &a->v->buffers[b];
        if (r->offset <= g->value && g->value <= r->offset + r->bytes) return;
    }
    begin_failure(a, CLAUSE_PLACES, i);
    fprintf(a->out, "an access for argument %" PRIu32 " at %s+0x%" PRIx64 ", found none\n", k, plan_region_text(g->region), g->value);
}

static void check_places(audit *a, uint32_t i) {
    const plan_launch_record *l = launch_at(a, i);
    for (uint32_t k = 0; k < l->access_count; k++) check_access(a, i, &a->v->accesses[l->access + k]);
    for (uint32_t k = 0; k < l->arg_count; k++)
        if (plan_arg_is_place(&a->v->args[l->arg + k])) check_pointer(a, i, k);
}

/* --- life: in pieces of PLAN_ALIGN bytes, for that is where buffers begin --- */

static void read_pieces(audit *a, uint32_t i, const plan_access_record *x, uint32_t buffer) {
    for (uint64_t p = x->offset / PLAN_ALIGN; p * PLAN_ALIGN < x->offset + x->bytes; p++) {
        if (a->owner[p] == buffer + 1) continue;
        begin_failure(a, CLAUSE_LIFE, i);
        fprintf(a->out, "arena+0x%" PRIx64 " written before for '%s', found ", p * PLAN_ALIGN, plan_view_string(a->v, a->v->buffers[buffer].name));
        if (a->owner[p]) fprintf(a->out, "it written for '%s'\n", plan_view_string(a->v, a->v->buffers[a->owner[p] - 1].name));
        else fputs("it not written\n", a->out);
        return;
    }
}

static uint64_t in_file(const audit *a) { return a->v->regions[PLAN_REGION_WEIGHTS].initialised / PLAN_ALIGN * PLAN_ALIGN; }

/* The pieces of region weights that an access touches behind what the file holds: FIRST to END. */
static void pieces_made(const audit *a, const plan_access_record *x, uint64_t *first, uint64_t *end) {
    uint64_t from = x->offset > in_file(a) ? x->offset - in_file(a) : 0, to = x->offset + x->bytes;
    *first = from / PLAN_ALIGN;
    *end = x->bytes && to > in_file(a) ? (to - in_file(a) + PLAN_ALIGN - 1) / PLAN_ALIGN : 0;
}

static void check_loaded(audit *a, uint32_t i, const plan_access_record *x) {
    uint64_t p, end;
    pieces_made(a, x, &p, &end);
    a->checked[CLAUSE_LIFE]++;
    while (p < end && a->loaded[p]) p++;
    if (p >= end) return;
    begin_failure(a, CLAUSE_LIFE, i);
    fprintf(a->out, "weights+0x%" PRIx64 " from the file or written at load, found it in neither\n", in_file(a) + p * PLAN_ALIGN);
}

static void mark_loaded(audit *a, const plan_access_record *x) {
    uint64_t p, end;
    for (pieces_made(a, x, &p, &end); p < end; p++) a->loaded[p] = 1;
}

/* Everything that the load signatures write; other signatures write none of it. */
static int find_loaded(audit *a) {
    const plan_region_record *r = &a->v->regions[PLAN_REGION_WEIGHTS];
    a->loaded = calloc((size_t)((r->bytes - in_file(a)) / PLAN_ALIGN + 2), 1);
    if (!a->loaded) return 1;
    if (r->initialised % PLAN_ALIGN) a->loaded[0] = 1; /* begins in the file */
    for (uint32_t s = 0; s < a->v->signature_count; s++)
        for (uint32_t i = 0; a->v->signatures[s].kind == PLAN_SIGNATURE_LOAD && i < a->v->signatures[s].launch_count; i++) {
            const plan_launch_record *l = &a->v->launches[a->v->signatures[s].launch + i];
            for (uint32_t k = l->access; k < l->access + l->access_count; k++)
                if (a->v->accesses[k].region == PLAN_REGION_WEIGHTS && (a->v->accesses[k].mode & PLAN_ACCESS_WRITE)) mark_loaded(a, &a->v->accesses[k]);
        }
    return 0;
}

static void check_life(audit *a, uint32_t i) {
    const plan_launch_record *l = launch_at(a, i);
    for (uint32_t k = 0; k < l->access_count; k++) {
        const plan_access_record *x = &a->v->accesses[l->access + k];
        if (x->region == PLAN_REGION_WEIGHTS && (x->mode & PLAN_ACCESS_READ)) check_loaded(a, i, x);
    }
    for (int pass = 0; pass < 2; pass++) /* reads first */
        for (uint32_t k = 0; k < l->access_count; k++) {
            const plan_access_record *x = &a->v->accesses[l->access + k];
            uint32_t count, buffer;
            if (x->region != PLAN_REGION_ARENA || !(x->mode & (pass ? PLAN_ACCESS_WRITE : PLAN_ACCESS_READ))) continue;
            buffer = buffer_of(a, x->region, x->offset, x->bytes, i, &count);
            if (buffer == PLAN_NONE) continue; /* reported */
            a->checked[CLAUSE_LIFE] += !pass;
            if (!pass) read_pieces(a, i, x, buffer);
            for (uint64_t p = x->offset / PLAN_ALIGN; pass && p * PLAN_ALIGN < x->offset + x->bytes; p++) a->owner[p] = buffer + 1;
        }
}

/* What is there after one of two ways: what both leave. */
static void join_ways(audit *a, const uint32_t *other) {
    for (uint64_t p = 0; p < a->pieces; p++)
        if (a->owner[p] != other[p]) a->owner[p] = 0;
}

static uint32_t *copy_owner(const audit *a) {
    uint32_t *copy = malloc(a->pieces * sizeof *copy);
    if (copy) memcpy(copy, a->owner, a->pieces * sizeof *copy);
    return copy;
}

static const plan_block_record *block_at(const audit *a, uint32_t k) {
    return k < a->s->block + a->s->block_count ? &a->v->blocks[k] : NULL;
}

static int life_of_block(audit *a, uint32_t *k, uint32_t *next);

/* In order, as far as END; *K is the next block. 1 without memory. */
static int life_of_run(audit *a, uint32_t first, uint32_t end, uint32_t *k) {
    int failed = 0;
    for (uint32_t i = first; i < end && !failed;) {
        const plan_block_record *b = block_at(a, *k);
        if (b && b->launch == i) failed = life_of_block(a, k, &i);
        else check_life(a, i++);
    }
    return failed;
}

/* The block that runs when B, an if, does not; between them at most its condition is set. */
static const plan_block_record *other_way(const audit *a, const plan_block_record *b, uint32_t k) {
    const plan_block_record *other = block_at(a, k);
    int follows = other && b->kind == PLAN_BLOCK_IF && other->kind == PLAN_BLOCK_ELSE && other->offset == b->offset && other->node == b->node;
    return follows && other->launch - (b->launch + b->launch_count) <= 1 ? other : NULL;
}

/* The body of a loop twice, for what it reads of the iteration before; how much of a buffer a loop wrote, its extents say. A branch
 * may not run: what is read behind it was written before it, or by the other branch too. */
static int life_of_block(audit *a, uint32_t *k, uint32_t *next) {
    const plan_block_record *b = block_at(a, *k), *other;
    uint32_t end = b->launch + b->launch_count, again = ++*k;
    uint32_t *before = copy_owner(a), *way = NULL;
    int failed = !before || life_of_run(a, b->launch, end, k);
    *next = end;
    if (!failed && b->kind == PLAN_BLOCK_WHILE) failed = life_of_run(a, b->launch, end, &again);
    else if (!failed && (other = other_way(a, b, *k)) != NULL) {
        way = copy_owner(a);
        memcpy(a->owner, before, a->pieces * sizeof *before);
        *next = other->launch + other->launch_count;
        for (uint32_t i = end; i < other->launch; i++) check_life(a, i);
        ++*k;
        failed = !way || life_of_run(a, other->launch, *next, k);
        if (!failed) join_ways(a, way);
    } else if (!failed) join_ways(a, before);
    free(before);
    free(way);
    return failed;
}

/* --- order --- */

typedef struct touch { uint32_t region, launch, mode; uint64_t from, to; } touch;

static int by_start(const void *x, const void *y) {
    const touch *a = x, *b = y;
    if (a->region != b->region) return a->region < b->region ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->launch < b->launch ? -1 : a->launch > b->launch;
}

static uint32_t segment_of(const audit *a, uint32_t launch) {
    uint32_t k = a->s->segment;
    while (k + 1 < a->s->segment + a->s->segment_count && launch >= a->v->segments[k + 1].launch) k++;
    return k;
}

static int joined(const audit *a, uint32_t from, uint32_t to) {
    size_t words = (a->s->launch_count + 63) / 64;
    return (a->paths[to * words + from / 64] >> (from % 64) & 1) || segment_of(a, from) != segment_of(a, to);
}

static int by_target(const void *x, const void *y) {
    const plan_edge_record *a = x, *b = y;
    if (a->to != b->to) return a->to < b->to ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* Edges lead from lower to higher numbers, so in order of their targets each set is complete when it is used. */
static int find_paths(audit *a) {
    size_t words = (a->s->launch_count + 63) / 64;
    plan_edge_record *edges = malloc(((size_t)a->s->edge_count + 1) * sizeof *edges);
    a->paths = calloc(words * a->s->launch_count + 1, sizeof *a->paths);
    if (edges && a->paths) {
        if (a->s->edge_count) memcpy(edges, a->v->edges + a->s->edge, a->s->edge_count * sizeof *edges);
        qsort(edges, a->s->edge_count, sizeof *edges, by_target);
        for (uint32_t k = 0; k < a->s->edge_count; k++) {
            uint64_t *to = &a->paths[edges[k].to * words], *from = &a->paths[edges[k].from * words];
            for (size_t w = 0; w < words; w++) to[w] |= from[w];
            to[edges[k].from / 64] |= UINT64_C(1) << (edges[k].from % 64);
        }
    }
    free(edges);
    return !edges || !a->paths;
}

static void check_pair(audit *a, const touch *x, const touch *y) {
    uint32_t first = x->launch < y->launch ? x->launch : y->launch, second = x->launch < y->launch ? y->launch : x->launch;
    if (first == second || !((x->mode | y->mode) & PLAN_ACCESS_WRITE)) return;
    a->checked[CLAUSE_ORDER]++;
    if (joined(a, first, second)) return;
    begin_failure(a, CLAUSE_ORDER, second);
    fprintf(a->out, "a path of edges from launch %" PRIu32 " '%s', for both use %s+0x%" PRIx64 ", found none\n", first,
            plan_view_string(a->v, launch_at(a, first)->label), plan_region_text(x->region), y->from);
}

/* Whether launch I sets the condition of block K of the signature. */
static int sets(const audit *a, uint32_t i, uint32_t k) {
    const plan_launch_record *l = launch_at(a, i);
    for (uint32_t n = l->arg; n < l->arg + l->arg_count; n++)
        if (a->v->args[n].kind == PLAN_ARG_CONDITION && a->v->args[n].value == k) return 1;
    return 0;
}

static int path_into(const audit *a, uint32_t from, const plan_block_record *b) {
    size_t words = (a->s->launch_count + 63) / 64;
    for (uint32_t to = b->launch; to < b->launch + b->launch_count; to++)
        if (a->paths[to * words + from / 64] >> (from % 64) & 1) return 1;
    return 0;
}

/* The condition of a block's node is set before it, on a path of edges, and by a loop's body too. */
static void check_condition(audit *a, uint32_t k) {
    const plan_block_record *b = &a->v->blocks[a->s->block + k];
    int before = 0, inside = 0;
    if (b->seam != PLAN_NONE) return;
    a->checked[CLAUSE_ORDER]++;
    for (uint32_t i = 0; i < b->launch; i++) before |= sets(a, i, k) && path_into(a, i, b);
    for (uint32_t i = b->launch; i < b->launch + b->launch_count; i++) inside |= sets(a, i, k);
    if (before && inside == (b->kind == PLAN_BLOCK_WHILE)) return;
    begin_failure(a, CLAUSE_ORDER, b->launch);
    fprintf(a->out, "launches that set the condition of block %" PRIu32 " '%s' before it%s, found %s\n", k, plan_view_string(a->v, b->node),
            b->kind == PLAN_BLOCK_WHILE ? " and in it" : " and not in it", before || inside ? "another set of them" : "none that it waits for");
}

static int check_order(audit *a) {
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < a->s->launch_count; i++) count += launch_at(a, i)->access_count;
    touch *all = malloc(((size_t)count + 1) * sizeof *all);
    int failed = !all || find_paths(a);
    for (uint32_t i = 0; !failed && i < a->s->launch_count; i++)
        for (uint32_t k = 0; k < launch_at(a, i)->access_count; k++) {
            const plan_access_record *x = &a->v->accesses[launch_at(a, i)->access + k];
            if (x->bytes) all[at++] = (touch){x->region, i, x->mode, x->offset, x->offset + x->bytes};
        }
    if (!failed) qsort(all, at, sizeof *all, by_start);
    for (uint32_t i = 0; !failed && i < at; i++)
        for (uint32_t k = i + 1; k < at && all[k].region == all[i].region && all[k].from < all[i].to; k++) check_pair(a, &all[i], &all[k]);
    for (uint32_t k = 0; k < a->s->block_count && !failed; k++) check_condition(a, k);
    free(all);
    free(a->paths);
    a->paths = NULL;
    return failed;
}

/* --- what is printed --- */

static void show_launch(audit *a, uint32_t i) {
    const plan_launch_record *l = launch_at(a, i);
    const plan_kernel_record *kernel = &a->v->kernels[l->kernel];
    uint32_t pointers = 0, iterations = 0, conditions = 0, reads = 0, writes = 0;
    for (uint32_t k = 0; k < l->arg_count; k++) {
        conditions += a->v->args[l->arg + k].kind == PLAN_ARG_CONDITION;
        pointers += plan_arg_is_place(&a->v->args[l->arg + k]) != 0;
        iterations += a->v->args[l->arg + k].kind == PLAN_ARG_ITERATION;
    }
    for (uint32_t k = 0; k < l->access_count; k++) {
        reads += (a->v->accesses[l->access + k].mode & PLAN_ACCESS_READ) != 0;
        writes += (a->v->accesses[l->access + k].mode & PLAN_ACCESS_WRITE) != 0;
    }
    fprintf(a->out, "  %5" PRIu32 "  %-20s %2" PRIu32 " pointers, %s, reads %" PRIu32 ", writes %" PRIu32 "; extents: %s; %s  %s\n", i,
            plan_view_string(a->v, kernel->name), pointers, conditions ? "a condition" : iterations ? "an iteration" : pointers == l->arg_count ? "no number" : "a number",
            reads, writes, reads_extents(a, l) ? "the table" : "none", a->failed[i] ? "FAILS" : "holds", plan_view_string(a->v, l->label));
}

static int audit_signature(audit *a) {
    uint32_t block = a->s->block;
    a->pieces = a->v->regions[PLAN_REGION_ARENA].bytes / PLAN_ALIGN + 2;
    a->owner = calloc(a->pieces, sizeof *a->owner);
    a->failed = calloc((size_t)a->s->launch_count + 1, sizeof *a->failed);
    int failed = !a->owner || !a->failed;
    if (!failed) {
        fprintf(a->out, "%s: %" PRIu32 " launches, %" PRIu32 " edges, %" PRIu32 " segments, %" PRIu32 " blocks\n", plan_view_string(a->v, a->s->name),
                a->s->launch_count, a->s->edge_count, a->s->segment_count, a->s->block_count);
        failed = life_of_run(a, 0, a->s->launch_count, &block);
    }
    for (uint32_t i = 0; i < a->s->launch_count && !failed; i++) {
        check_arguments(a, i);
        check_places(a, i);
        show_launch(a, i);
    }
    if (!failed) failed = a->s->kind != PLAN_SIGNATURE_LOAD && check_order(a); /* load runs once, launch after launch, without a graph */
    free(a->owner);
    free(a->failed);
    return failed;
}

static void show_kernels(const plan_view *v, FILE *out) {
    fprintf(out, "kernels: %" PRIu32 "\n", v->kernel_count);
    for (uint32_t i = 0; i < v->kernel_count; i++)
        fprintf(out, "  %-20s from %s, %" PRIu32 " arguments, block %" PRIu32 "\n", plan_view_string(v, v->kernels[i].name),
                plan_view_string(v, v->kernels[i].source), v->kernels[i].arg_count, v->kernels[i].block);
}

static int show_clauses(const audit *a) {
    uint32_t failures = 0;
    fputs("no host synchronisation  by construction: a segment holds kernel launches and conditional nodes of them, nothing else\n"
          "no allocation            by construction: regions are allocated when a session opens; a launch has no other memory\n", a->out);
    for (int c = 0; c < CLAUSE_COUNT; c++) {
        fprintf(a->out, "%-24s %s: %s; %" PRIu32 " checked, %" PRIu32 " failed\n", clauses[c].name, c == CLAUSE_ARGUMENTS ? "by construction" : "by proof",
                clauses[c].how, a->checked[c], a->failures[c]);
        failures += a->failures[c];
    }
    fprintf(a->out, "%s\n", failures ? "the contract does not hold" : "the contract holds for every launch");
    return failures != 0;
}

int plan_report_audit(const plan_view *view, FILE *out) {
    audit a = {.v = view, .out = out};
    int failed = 1, status = 0;
    a.order = malloc(((size_t)view->buffer_count + 1) * sizeof *a.order);
    a.reach = malloc(((size_t)view->buffer_count + 1) * sizeof *a.reach);
    if (a.order && a.reach) {
        failed = find_loaded(&a);
        sort_buffers(&a);
        show_kernels(view, out);
    }
    for (uint32_t i = 0; i < view->signature_count && !failed; i++) {
        a.s = &view->signatures[i];
        a.index = i;
        failed = audit_signature(&a);
    }
    if (!failed) status = show_clauses(&a);
    free(a.order);
    free(a.reach);
    free(a.loaded);
    return failed ? 2 : status;
}
