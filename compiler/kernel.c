/* kernel.c - kernel instances: a template's name and the macros that specialise it. Instances with the same text are one
 * kernel, so layers of one shape share it. */
#include "lower.h"
#include "format.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 48 };

typedef struct Operand { const char *name; View view; int mode; int64_t rows; } Operand; /* rows: read at most; -1 all */
struct Kernel {
    Lower *l;
    const char *template;
    Text macros;
    int operand_count;
    Operand operands[MAX_OPERANDS];
    const char *label;
    int64_t bytes_fixed, bytes_row, shared;
    bool bytes_given;
    const char *wait; /* a macro of the prelude */
    int condition; /* block whose condition it sets; -1 none */
};

Lower *kernel_lower(Kernel *k) { return k->l; }

static const char *type_token(DType t)
{
    switch (t) {
    case DT_F32: return "F32";
    case DT_F16: return "F16";
    case DT_BF16: return "BF16";
    case DT_F64: return "F64";
    case DT_U8: return "U8";
    case DT_I8: return "I8";
    case DT_U16: return "U16";
    case DT_I16: return "I16";
    case DT_U32: return "U32";
    case DT_I32: return "I32";
    case DT_U64: return "U64";
    case DT_I64: return "I64";
    case DT_BOOL: return "BOOL";
    case DT_U4: return "U4";
    case DT_I4: return "I4";
    case DT_U2: return "U2";
    case DT_I2: return "I2";
    case DT_F8E4M3FN: return "F8E4M3FN";
    case DT_F8E4M3FNUZ: return "F8E4M3FNUZ";
    case DT_F8E5M2: return "F8E5M2";
    case DT_F8E5M2FNUZ: return "F8E5M2FNUZ";
    case DT_F8E8M0: return "F8E8M0";
    case DT_F4E2M1: return "F4E2M1";
    case DT_F4_BYTE: return "F4_BYTE";
    case DT_I4_BYTE: return "I4_BYTE";
    case DT_I2_BYTE: return "I2_BYTE";
    default: fault("lower", "type %s has no storage", dtype_name(t));
    }
}

static const char *storage_c(DType t)
{
    switch (t) {
    case DT_F32: return "float";
    case DT_F64: return "double";
    case DT_F16: case DT_BF16: case DT_U16: return "unsigned short";
    case DT_I8: return "signed char";
    case DT_I16: return "short";
    case DT_U32: return "unsigned int";
    case DT_I32: return "int";
    case DT_U64: return "unsigned long long";
    case DT_I64: return "long long";
    default: return "unsigned char";
    }
}

const char *compute_c(DType t)
{
    switch (t) {
    case DT_F64: return "double";
    case DT_BOOL: return "int";
    default: return dtype_is_float(t) ? "float" : "long long";
    }
}

const char *dtype_token(DType t) { return type_token(t); }

Kernel *kernel_begin(Lower *l, const Node *n, const char *template)
{
    Kernel *k = NEW(l->c, Kernel);
    k->l = l;
    k->template = template;
    k->label = n ? n->name : template;
    k->condition = -1;
    return k;
}

static void macro(Kernel *k, const char *name, const char *suffix, const char *value)
{
    text_add(&k->macros, "#define %s%s %s\n", name, suffix, value);
}

/* The constant part of an offset goes into the argument; only packed types must keep it, for their odd elements. */
static bool offset_in_argument(Lower *l, const View *v, int64_t *offset)
{
    return dtype_bits(v->store) >= 8 && dim_is_const(l->c, v->offset, offset);
}

static void operand(Kernel *k, const char *name, View v, int mode)
{
    Lower *l = k->l;
    int64_t constant;
    char suffix[16];
    if (k->operand_count == MAX_OPERANDS) fault("lower", "kernel %s has too many operands", k->template);
    k->operands[k->operand_count++] = (Operand){ name, v, mode, -1 };
    const char *token = type_token(v.store);
    macro(k, name, "_T", storage_c(v.store));
    macro(k, name, "_C", compute_c(v.store));
    text_add(&k->macros, "#define %s_LD(i) LD_%s(%s, i)\n#define %s_ST(i, v) ST_%s(%s, i, v)\n#define %s_RND(v) RND_%s(v)\n", name, token,
             name, name, token, name, name, token);
    text_add(&k->macros, "#define %s_DT %d\n#define %s_RANK %d\n", name, (int)v.store, name, v.rank);
    macro(k, name, "_OFF", offset_in_argument(l, &v, &constant) ? "0LL" : lower_c(l, v.offset));
    text_add(&k->macros, "#define %s_AT(", name);
    for (int i = 0; i < v.rank; i++) text_add(&k->macros, "%si%d", i ? ", " : "", i);
    text_add(&k->macros, ") (%s_OFF", name);
    for (int i = 0; i < v.rank; i++) text_add(&k->macros, " + (idx)(i%d) * %lldLL", i, (long long)v.stride[i]);
    text_add(&k->macros, ")\n");
    for (int i = 0; i < v.rank; i++) {
        snprintf(suffix, sizeof suffix, "_D%d", i);
        macro(k, name, suffix, lower_c(l, v.dims[i]));
        text_add(&k->macros, "#define %s_S%d %lldLL\n", name, i, (long long)v.stride[i]);
    }
}

void kernel_in(Kernel *k, const char *name, View v) { operand(k, name, v, 1); }

void kernel_in_rows(Kernel *k, const char *name, View v, int64_t rows)
{
    operand(k, name, v, 1);
    k->operands[k->operand_count - 1].rows = rows;
}

void kernel_out(Kernel *k, const char *name, View v) { operand(k, name, v, 2); }
void kernel_inout(Kernel *k, const char *name, View v) { operand(k, name, v, 3); }

void kernel_rows(Kernel *k)
{
    for (int i = 0; i < k->operand_count; i++)
        if (!strcmp(k->operands[i].name, "RL")) return;
    kernel_int(k, "ROWED", k->l->c->options.rows > 0);
    if (!k->l->c->options.rows) return;
    kernel_in(k, "RL", row_words(k->l, false));
    kernel_in(k, "RT", row_words(k->l, true));
}

void kernel_int(Kernel *k, const char *name, int64_t v)
{
    text_add(&k->macros, v < 0 ? "#define %s (%lldLL)\n" : v > INT32_MAX ? "#define %s %lldLL\n" : "#define %s %lld\n", name, (long long)v);
}

void kernel_float(Kernel *k, const char *name, double v)
{
    if (v != v) macro(k, name, "", "NAN_F");
    else if (v > 3.4e38 || v < -3.4e38) macro(k, name, "", v > 0 ? "INF_F" : "(-INF_F)");
    else text_add(&k->macros, "#define %s (%af)\n", name, (double)(float)v);
}

void kernel_dim(Kernel *k, const char *name, Dim d) { macro(k, name, "", lower_c(k->l, d)); }
void kernel_text(Kernel *k, const char *name, const char *text) { macro(k, name, "", text); }
void kernel_label(Kernel *k, const char *label) { k->label = label; }

void kernel_shared(Kernel *k, int64_t bytes) { k->shared = bytes; }

void kernel_early(Kernel *k) { k->wait = "GP_WAIT_EARLY"; }
void kernel_late(Kernel *k) { k->wait = "GP_WAIT_LATE"; }

void kernel_condition(Kernel *k, int block) { k->condition = block; }

void kernel_key(Kernel *k, DType t)
{
    kernel_text(k, "KEY", t == DT_U64 ? "gp_u64" : compute_c(t));
}

void kernel_bytes(Kernel *k, int64_t fixed, int64_t per_row)
{
    k->bytes_fixed = fixed;
    k->bytes_row = per_row;
    k->bytes_given = true;
}

int64_t grid_for(int64_t elements, int block)
{
    int64_t blocks = (elements + block - 1) / block;
    return blocks < 1 ? 1 : blocks > 528 ? 528 : blocks;
}

/* ---- traffic: bytes touched, as a constant and a part for each row of growing state */

static int64_t view_span(Lower *l, const View *v, bool upper)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        if (!v->stride[i]) continue;
        int64_t d = upper ? lower_upper(l, v->dims[i]) : lower_lower(l, v->dims[i]);
        n *= d > 0 ? d : 0;
    }
    return dtype_bytes(v->store, n);
}

static void count_traffic(Kernel *k)
{
    Lower *l = k->l;
    if (k->bytes_given) return;
    for (int i = 0; i < k->operand_count; i++) {
        const View *v = &k->operands[i].view;
        int times = k->operands[i].mode == 3 ? 2 : 1;
        int64_t low = view_span(l, v, false), high = view_span(l, v, true), length = v->rank ? lower_upper(l, v->dims[0]) : 1;
        if (k->operands[i].rows >= 0 && length > k->operands[i].rows) low = high = high / length * k->operands[i].rows;
        k->bytes_fixed += times * low;
        int64_t rows = l->c->capacity > 1 ? l->c->capacity - 1 : 1;
        k->bytes_row += times * ((high - low) / rows);
    }
}

/* ---- the byte range of a buffer that a view can touch, whatever the extents */

static Access view_access(Lower *l, const View *v, int mode)
{
    const Buffer *b = &l->c->buffers[v->buffer];
    int64_t lo = lower_lower(l, v->offset), hi = lower_upper(l, v->offset), bits = dtype_bits(v->store);
    for (int i = 0; i < v->rank; i++) {
        int64_t n = lower_upper(l, v->dims[i]);
        if (n > 1 && v->stride[i] > 0) hi += (n - 1) * v->stride[i];
        if (n > 1 && v->stride[i] < 0) lo += (n - 1) * v->stride[i];
    }
    if (lo < 0) lo = 0;
    int64_t from = lo * bits / 8, to = (hi + 1) * bits / 8 + ((hi + 1) * bits % 8 != 0);
    if (to > b->bytes) to = b->bytes;
    if (from > to) from = to;
    return (Access){ v->buffer, mode, from, to - from };
}

/* ---- making the instance */

/* Which words of the extents table the macros mention: identifiers e0, e1 ... */
static uint64_t slots_mentioned(const char *s)
{
    uint64_t mask = 0;
    for (const char *p = s; *p; p++) {
        if (*p != 'e' || !isdigit((unsigned char)p[1])) continue;
        if (p > s && (isalnum((unsigned char)p[-1]) || p[-1] == '_' || p[-1] == '.')) continue;
        char *end;
        unsigned long slot = strtoul(p + 1, &end, 10);
        if (!isalnum((unsigned char)*end) && *end != '_' && slot < 64) mask |= UINT64_C(1) << slot;
    }
    return mask;
}

static bool template_exchanges(const char *text)
{
    static const char *const words[] = { "SYNC(", "SYNC_WARP(", "WARP_SUM", "WARP_MAX", "WARP_MOST", "SHUFFLE_", "CLUSTER_WAIT" };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(text, words[i])) return true;
    return false;
}

/* The launch's stamps are one more parameter, the last; the body gets all of them as arguments (timers.h). */
static void timer_parameter(Kernel *k, bool extents, int words, Text *unpack)
{
    text_add(&k->macros, "%sgp_u64 *gp_timers\n#define KERNEL_ARGS ", words ? ", " : "");
    text_add(unpack, "%s(gp_u64 *)gp_args[%d]", words ? ", " : "", words);
    for (int i = 0; i < k->operand_count; i++) text_add(&k->macros, "%s, ", k->operands[i].name);
    text_add(&k->macros, "%s%s%sgp_timers\n#define KERNEL_TIMERS gp_args[%d]", k->l->guarded ? "gp_iteration, " : "",
             k->condition >= 0 ? "gp_condition, " : "", extents ? "E, " : "", words);
}

static void parameters(Kernel *k, uint64_t slots)
{
    Text unpack = { 0 };
    text_add(&k->macros, "#define KERNEL_PARAMS ");
    for (int i = 0; i < k->operand_count; i++) {
        const Operand *o = &k->operands[i];
        const char *type = storage_c(o->view.store);
        text_add(&k->macros, "%s%s%s *%s", i ? ", " : "", o->mode == 1 ? "const " : "", type, o->name);
        text_add(&unpack, "%s(%s%s *)gp_args[%d]", i ? ", " : "", o->mode == 1 ? "const " : "", type, i);
    }
    int words = k->operand_count; /* of the arguments so far */
    if (k->l->guarded) {
        text_add(&k->macros, "%sconst idx gp_iteration", words ? ", " : "");
        text_add(&unpack, "%s(idx)gp_args[%d]", words ? ", " : "", words);
        words++;
    }
    if (k->condition >= 0) {
        text_add(&k->macros, "%sconst gp_u64 gp_condition", words ? ", " : "");
        text_add(&unpack, "%s(gp_u64)gp_args[%d]", words ? ", " : "", words);
        words++;
    }
    if (slots) {
        text_add(&k->macros, "%sconst long long *E", words ? ", " : "");
        text_add(&unpack, "%s(const long long *)gp_args[%d]", words ? ", " : "", words);
        words++;
    }
    if (k->l->c->options.timers) timer_parameter(k, slots != 0, words, &unpack);
    else if (!words) text_add(&k->macros, "void");
    text_add(&k->macros, "\n#define KERNEL_UNPACK %s\n", unpack.data ? unpack.data : "");
    text_free(&unpack);
    text_add(&k->macros, "#define LOAD_WORDS ");
    for (int s = 0; s < 64; s++)
        if (slots >> s & 1) text_add(&k->macros, "const idx e%d = E[%d]; ", s, s);
    text_add(&k->macros, "\n#define EXTENTS %s LOAD_WORDS ", k->wait ? k->wait : "GP_WAIT");
    if (k->l->guarded) text_add(&k->macros, "if (gp_iteration >= GP_TRIP) return;");
    text_add(&k->macros, "\n");
}

static uint32_t intern_kernel(Kernel *k, int block)
{
    Compilation *c = k->l->c;
    for (uint32_t i = 1; i <= c->kernel_count; i++)
        if (c->kernels[i].block == block && !strcmp(c->kernels[i].template, k->template) && !strcmp(strchr(c->kernels[i].text, '\n') + 1, k->macros.data)) return i;
    if (c->kernel_count + 2 > c->kernel_room) {
        uint32_t room = c->kernel_room ? c->kernel_room * 2 : 64;
        KernelText *bigger = NEW_ARRAY(c, KernelText, room);
        if (c->kernel_count) memcpy(bigger, c->kernels, sizeof(KernelText) * (c->kernel_count + 1));
        c->kernels = bigger;
        c->kernel_room = room;
    }
    const char *body = kernel_template(k->template);
    if (!body) fault("lower", "no kernel template is named %s", k->template);
    KernelText *t = &c->kernels[++c->kernel_count];
    const char *name = arena_text(&c->arena, "%s_%u", k->template, c->kernel_count);
    const char *text = arena_text(&c->arena, "#define KERNEL_NAME %s\n%s", name, k->macros.data); /* the key begins on line 2 */
    *t = (KernelText){ name, k->template, text, k->operand_count, block, template_exchanges(body) };
    return c->kernel_count;
}

/* Steps share one buffer, since only the last one's stamps are read; it lies where a step's memory stays as it is behind it. */
static void fill_timers(Lower *l, Launch *launch)
{
    Compilation *c = l->c;
    const bool load = l->signature->kind == SIG_LOAD;
    const int64_t from = l->stamps * PLAN_STAMP_BYTES, bytes = launch->grid[0] * launch->grid[1] * launch->grid[2] * PLAN_STAMP_BYTES;
    if (!c->timers[load]) c->timers[load] = buffer_new(c, "timers", load ? REGION_LOAD : REGION_STATE, 0, load ? l->index : 0);
    Buffer *b = &c->buffers[c->timers[load]];
    if (b->bytes < from + bytes) b->bytes = from + bytes;
    launch->args[launch->arg_count++] = (LaunchArg){ .timers = true, .buffer = c->timers[load], .offset = from };
    launch->accesses[launch->access_count++] = (Access){ c->timers[load], 2, from, bytes };
    l->stamps += bytes / PLAN_STAMP_BYTES;
}

static void fill_launch(Kernel *k, Launch *launch, bool extents)
{
    Lower *l = k->l;
    launch->arg_count = k->operand_count + l->guarded + (k->condition >= 0) + extents;
    launch->args = NEW_ARRAY(l->c, LaunchArg, launch->arg_count + 2);
    launch->accesses = NEW_ARRAY(l->c, Access, launch->arg_count + 2);
    launch->access_count = k->operand_count + extents;
    for (int i = 0; i < k->operand_count; i++) {
        const Operand *o = &k->operands[i];
        int64_t offset = 0;
        if (offset_in_argument(l, &o->view, &offset)) offset = offset * dtype_bits(o->view.store) / 8;
        else offset = 0;
        launch->args[i] = (LaunchArg){ .buffer = o->view.buffer, .offset = offset };
        launch->accesses[i] = view_access(l, &o->view, o->mode);
    }
    if (l->guarded) launch->args[k->operand_count] = (LaunchArg){ .literal = true, .value = l->guard_iteration };
    if (k->condition >= 0) launch->args[k->operand_count + l->guarded] = (LaunchArg){ .condition = true, .value = k->condition };
    if (!extents) return;
    uint32_t b = extents_buffer(l->c);
    launch->args[launch->arg_count - 1] = (LaunchArg){ .buffer = b };
    launch->accesses[k->operand_count] = (Access){ b, 1, 0, 8 * (int64_t)slot_count(l->c) };
}

/* Whether no element of any result exists: then there is nothing to launch. */
static bool makes_nothing(Kernel *k)
{
    bool writes = false;
    for (int i = 0; i < k->operand_count; i++) {
        if (k->operands[i].mode == 1) continue;
        writes = true;
        if (view_span(k->l, &k->operands[i].view, true) != 0) return false;
    }
    return writes;
}

void kernel_launch(Kernel *k, int64_t grid_x, int64_t grid_y, int64_t grid_z, int block)
{
    if (makes_nothing(k)) {
        text_free(&k->macros);
        return;
    }
    if (grid_x < 1 || grid_y < 1 || grid_z < 1 || block < 32 || block > 1024 || block % 32)
        fault("lower", "kernel %s: grid %lld x %lld x %lld, block %d", k->template, (long long)grid_x, (long long)grid_y, (long long)grid_z, block);
    if (k->l->guarded) kernel_dim(k, "GP_TRIP", k->l->guard_trip);
    uint64_t slots = k->macros.data ? slots_mentioned(k->macros.data) : 0;
    parameters(k, slots);
    text_add(&k->macros, "#define KERNEL_BLOCK %d\n", block);
    count_traffic(k);
    uint32_t kernel = intern_kernel(k, block);
    k->l->c->kernels[kernel].arg_count = k->operand_count + k->l->guarded + (k->condition >= 0) + (slots != 0) + k->l->c->options.timers;
    Launch *launch = launch_new(k->l);
    launch->kernel = kernel;
    launch->grid[0] = grid_x;
    launch->grid[1] = grid_y;
    launch->grid[2] = grid_z;
    launch->shared = k->shared;
    launch->label = k->label;
    launch->bytes_fixed = k->bytes_fixed;
    launch->bytes_row = k->bytes_row;
    fill_launch(k, launch, slots != 0);
    if (k->l->c->options.timers) fill_timers(k->l, launch);
    text_free(&k->macros);
}
