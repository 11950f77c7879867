/* plan.c - loading a plan: the file is mapped and checked, a target chosen, code and weights brought to the device, the
 * load signature run. Everything is undone in reverse by unload, which also ends a load that failed half-way. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const region_names[PLAN_REGION_COUNT] = {"weights", "metadata", "load", "state", "arena", "io", "ring"};

void plan_log_text(const plan *p, int level, const char *format, ...) {
    if (!p->log)
        return;
    char text[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length >= 0)
        p->log(p->log_context, level, text);
}

plan_status plan_find_signature(const plan *p, const char *name, uint32_t *out) {
    if (!name)
        return plan_fail(PLAN_ERROR_ARGUMENT, "signature: expected a name, found NULL");
    for (uint32_t i = 0; i < p->view.signature_count; i++)
        if (strcmp(PLAN_TEXT(p, p->view.signatures[i].name), name) == 0) {
            *out = i;
            return PLAN_OK;
        }
    return plan_fail(PLAN_ERROR_NAME, "signature '%.100s': the plan has none of that name; its first is '%.100s'", name,
                     p->view.signature_count ? PLAN_TEXT(p, p->view.signatures[0].name) : "");
}

const plan_box_record *plan_find_box(const plan *p, const plan_signature_record *s, uint32_t slot) {
    for (uint32_t i = s->box; i < s->box + s->box_count; i++)
        if (p->view.symbols[p->view.boxes[i].symbol].slot == slot)
            return &p->view.boxes[i];
    return NULL;
}

plan_status plan_check_metadata(const plan *p, uint32_t signature) {
    const plan_signature_record *s = &p->view.signatures[signature];
    if (s->metadata_bytes == 0) /* it has none, so none can be wrong */
        return PLAN_OK;
    uint64_t found;
    memcpy(&found, p->view.metadata + s->metadata_offset, sizeof found);
    if (found == s->fingerprint)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_METADATA,
                     "signature '%s': the metadata was made for another signature: expected fingerprint 0x%016" PRIx64
                     ", found 0x%016" PRIx64, PLAN_TEXT(p, s->name), s->fingerprint, found);
}

void plan_describe_launch(const plan *p, uint32_t launch, const uint64_t *args, plan_driver_launch *out) {
    const plan_launch_record *l = &p->view.launches[launch];
    memset(out, 0, sizeof *out);
    out->function = p->functions[l->kernel];
    out->label = PLAN_TEXT(p, l->label);
    out->grid[0] = l->grid_x;
    out->grid[1] = l->grid_y;
    out->grid[2] = l->grid_z;
    out->block = p->view.kernels[l->kernel].block;
    out->shared = l->shared;
    out->arg_count = l->arg_count;
    out->args = args + l->arg;
    out->pointers = p->pointers + l->arg;
}

static plan_status load_function(plan *p, uint32_t kernel) {
    const plan_kernel_record *k = &p->view.kernels[kernel];
    if (p->functions[kernel])
        return PLAN_OK;
    const plan_kernel_shape shape = {PLAN_TEXT(p, k->name), k->arg_count, k->block, k->fibres != 0};
    plan_driver_module *m = k->module < p->view.module_count ? p->modules[k->module] : NULL;
    if (!m)
        return plan_fail(PLAN_ERROR_TARGET, "kernel '%s': module %u has no code for %s", shape.name, k->module,
                         p->driver->target);
    return p->driver->function_get(p->driver, m, &shape, &p->functions[kernel]);
}

plan_status plan_load_functions(plan *p, uint32_t signature) {
    plan_status status = PLAN_OK;
    const plan_view *v = &p->view;
    uint32_t first = 0, count = v->launch_count;
    if (signature != PLAN_NONE) {
        first = v->signatures[signature].launch;
        count = v->signatures[signature].launch_count;
    }
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = first; i < first + count && !status; i++)
        status = load_function(p, v->launches[i].kernel);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* How well a driver can run the plan: the sum over modules must not be missing one. Negative: not at all. */
static int best_module(plan *p, plan_driver *d, uint32_t number, uint32_t *out) {
    int best = -1;
    for (uint32_t i = 0; i < p->view.module_count; i++) {
        const plan_module_record *m = &p->view.modules[i];
        int rank = m->module == number ? d->rank_target(d, PLAN_TEXT(p, m->target)) : -1;
        if (rank >= 0 && (best < 0 || rank < best)) {
            best = rank;
            *out = i;
        }
    }
    return best;
}

/* TARGET unless the driver has code for every module that a kernel names. */
static plan_status check_code(plan *p, plan_driver *d) {
    uint32_t record;
    for (uint32_t i = 0; i < p->view.kernel_count; i++)
        if (best_module(p, d, p->view.kernels[i].module, &record) < 0) {
            char list[256] = "";
            size_t used = 0;
            for (uint32_t k = 0; k < p->view.module_count && used < sizeof list - 40; k++)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%.30s", k ? " " : "",
                                         PLAN_TEXT(p, p->view.modules[k].target));
            return plan_fail(PLAN_ERROR_TARGET, "the plan has no code for %s; it has: %s", d->target, list[0] ? list : "none");
        }
    return PLAN_OK;
}

static plan_status try_target(plan *p, const plan_driver_options *options, bool cuda) {
    plan_driver *d = NULL;
    plan_status status = cuda ? plan_driver_cuda_open(options, &d) : plan_driver_host_open(options, &d);
    if (status)
        return status;
    status = check_code(p, d);
    if (status)
        d->close(d);
    else
        p->driver = d;
    return status;
}

static plan_status open_driver(plan *p, const plan_options *options) {
    const plan_driver_options driver = {options->device, options->threads, options->fail_call, p->allocator};
    const char *target = options->target;
    if (target && strcmp(target, "host") == 0)
        return try_target(p, &driver, false);
    if (target && strcmp(target, "cuda") == 0)
        return try_target(p, &driver, true);
    if (target)
        return plan_fail(PLAN_ERROR_ARGUMENT, "target: expected \"host\" or \"cuda\", found \"%.40s\"", target);
    if (try_target(p, &driver, true) == PLAN_OK)
        return PLAN_OK;
    plan_log_text(p, 3, "host target: %s", plan_error_message());
    return try_target(p, &driver, false);
}

static plan_status load_modules(plan *p) {
    plan_driver *d = p->driver;
    for (uint32_t i = 0; i < p->view.kernel_count; i++) {
        uint32_t number = p->view.kernels[i].module, record = 0;
        if (number >= p->view.module_count || p->modules[number] || best_module(p, d, number, &record) < 0)
            continue;
        const plan_module_record *m = &p->view.modules[record];
        plan_status status = d->module_load(d, p->view.code + m->offset, m->bytes, PLAN_TEXT(p, m->target), &p->modules[number]);
        if (status)
            return status;
        plan_log_text(p, 3, "module %u: %s, %" PRIu64 " bytes", number, PLAN_TEXT(p, m->target), m->bytes);
    }
    return PLAN_OK;
}

static plan_status allocate_region(plan *p, uint32_t region) {
    uint64_t bytes = p->view.regions[region].bytes;
    return bytes ? p->driver->allocate(p->driver, bytes, region_names[region], &p->base[region]) : PLAN_OK;
}

static void release_region(plan *p, uint32_t region) {
    if (p->base[region])
        p->driver->release(p->driver, p->base[region]);
    p->base[region] = 0;
}

/* The load signature's launches, one by one: weights are transformed once, on the device. Scratch in the arena is lent
 * for its time. */
static plan_status run_load_launches(plan *p, const plan_signature_record *s, uint64_t *args) {
    plan_driver *d = p->driver;
    plan_status status = PLAN_OK;
    plan_driver_stream *stream = NULL;
    for (uint32_t i = s->launch; i < s->launch + s->launch_count; i++)
        for (uint32_t k = p->view.launches[i].arg; k < p->view.launches[i].arg + p->view.launches[i].arg_count; k++) {
            const plan_arg_record *a = &p->view.args[k];
            args[k] = a->value;
            if (!plan_arg_is_place(a))
                continue;
            if (a->region == PLAN_REGION_ARENA && !p->base[PLAN_REGION_ARENA])
                status = allocate_region(p, PLAN_REGION_ARENA);
            if (!status && a->region > PLAN_REGION_LOAD && a->region != PLAN_REGION_ARENA)
                status = plan_fail(PLAN_ERROR_FORMAT, "launch '%s': a launch of the load signature uses region %s",
                                   PLAN_TEXT(p, p->view.launches[i].label), region_names[a->region]);
            if (status)
                return status;
            args[k] += p->base[a->region];
        }
    status = d->stream_open(d, NULL, &stream);
    for (uint32_t i = s->launch; i < s->launch + s->launch_count && !status; i++) {
        plan_driver_launch l;
        plan_describe_launch(p, i, args, &l);
        status = d->launch(d, stream, &l);
    }
    if (!status)
        status = d->synchronise(d, stream);
    if (!status)
        status = d->check(d);
    if (stream)
        d->stream_close(d, stream);
    return status;
}

static plan_status run_load_signature(plan *p, uint32_t number) {
    const plan_signature_record *s = &p->view.signatures[number];
    plan_status status = plan_check_metadata(p, number);
    if (!status)
        status = plan_load_functions(p, number);
    if (status)
        return status;
    uint64_t *args = plan_host_allocate(&p->allocator, p->view.arg_count, sizeof *args);
    if (!args)
        return plan_fail(PLAN_ERROR_MEMORY, "load: no memory for %u arguments", p->view.arg_count);
    status = run_load_launches(p, s, args);
    plan_host_release(&p->allocator, args);
    release_region(p, PLAN_REGION_ARENA);
    return status ? plan_fail_prefix(status, "load signature") : PLAN_OK;
}

static plan_status load_data(plan *p) {
    plan_status status = PLAN_OK;
    plan_driver *d = p->driver;
    for (uint32_t region = PLAN_REGION_WEIGHTS; region <= PLAN_REGION_LOAD && !status; region++)
        status = allocate_region(p, region);
    if (!status)
        status = plan_upload_weights(p);
    if (!status && p->view.metadata_size)
        status = d->to_device(d, NULL, p->base[PLAN_REGION_METADATA], p->view.metadata, p->view.metadata_size);
    for (uint32_t i = 0; i < p->view.signature_count && !status; i++)
        if (p->view.signatures[i].kind == PLAN_SIGNATURE_LOAD && p->view.signatures[i].launch_count)
            status = run_load_signature(p, i);
    release_region(p, PLAN_REGION_LOAD);
    return status;
}

/* Finds what later calls would otherwise search for. */
static void find_roles(plan *p) {
    const plan_view *v = &p->view;
    p->decode = p->token_binding = PLAN_NONE;
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *s = &v->signatures[i];
        const plan_box_record *box = plan_find_box(p, s, PLAN_SLOT_TOKENS);
        if (s->kind == PLAN_SIGNATURE_DECODE && p->decode == PLAN_NONE)
            p->decode = i;
        int64_t limit = box ? box->hi : 1;
        if (s->kind == PLAN_SIGNATURE_PREFILL && limit > p->prefill_limit)
            p->prefill_limit = limit;
    }
    p->token_binding = v->model->token_binding;
    if (p->token_binding != PLAN_NONE || p->decode == PLAN_NONE)
        return;
    const plan_signature_record *s = &v->signatures[p->decode];
    for (uint32_t i = s->binding; i < s->binding + s->binding_count; i++)
        if (v->bindings[i].kind == PLAN_BINDING_INPUT && v->bindings[i].feed == PLAN_FEED_TOKEN)
            p->token_binding = i;
}

static void unload(plan *p) {
    plan_driver *d = p->driver;
    if (d) {
        for (uint32_t i = 0; p->functions && i < p->view.kernel_count; i++)
            if (p->functions[i])
                d->function_release(d, p->functions[i]);
        for (uint32_t i = 0; p->modules && i < p->view.module_count; i++)
            if (p->modules[i])
                d->module_unload(d, p->modules[i]);
        for (uint32_t region = 0; region < PLAN_REGION_COUNT; region++)
            release_region(p, region);
        d->close(d);
    }
    pthread_mutex_destroy(&p->lock);
    if (p->mapping)
        munmap(p->mapping, p->mapping_bytes);
    plan_allocator a = p->allocator;
    plan_host_release(&a, p->functions);
    plan_host_release(&a, p->modules);
    plan_host_release(&a, p->pointers);
    plan_host_release(&a, p->folder);
    plan_host_release(&a, p);
}

/* An options structure of another version of the library: what it has of ours, the rest by default. */
static plan_status read_options(const plan_options *given, plan_options *out) {
    const plan_options standard = PLAN_OPTIONS_INIT;
    *out = standard;
    if (given) {
        if (given->size < sizeof given->size || given->size > 65536)
            return plan_fail(PLAN_ERROR_ARGUMENT, "options: size is %zu; start from PLAN_OPTIONS_INIT", given->size);
        memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
        out->size = sizeof *out;
    }
    if (!out->allocator.allocate != !out->allocator.release)
        return plan_fail(PLAN_ERROR_ARGUMENT, "options: allocator: both functions or neither must be set");
    return PLAN_OK;
}

static plan *new_plan(const plan_options *options) {
    plan *p = plan_host_allocate(&options->allocator, 1, sizeof *p);
    if (!p) {
        plan_fail(PLAN_ERROR_MEMORY, "no memory for a plan");
        return NULL;
    }
    p->allocator = options->allocator;
    p->log = options->log;
    p->log_context = options->log_context;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

/* FOLDER: LENGTH characters of the text, or NULL. */
static plan_status set_folder(plan *p, const char *folder, size_t length) {
    if (!folder)
        return PLAN_OK;
    p->folder = plan_host_allocate(&p->allocator, length + 1, 1);
    if (!p->folder)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for the weights' folder");
    memcpy(p->folder, folder, length);
    return PLAN_OK;
}

static plan_status load_view(plan *p, const void *bytes, uint64_t size, const plan_options *options) {
    char text[1024];
    plan_status status = plan_view_open_unread(bytes, size, &p->view, &p->weights_checksum, text, sizeof text);
    if (status)
        return plan_fail(status, "%s", text);
    const plan_view *v = &p->view;
    p->modules = plan_host_allocate(&p->allocator, v->module_count, sizeof(plan_driver_module *));
    p->functions = plan_host_allocate(&p->allocator, v->kernel_count, sizeof(plan_driver_function *));
    p->pointers = plan_host_allocate(&p->allocator, v->arg_count, 1);
    if (!p->modules || !p->functions || !p->pointers)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for %u kernels and %u arguments", v->kernel_count, v->arg_count);
    for (uint32_t i = 0; i < v->arg_count; i++) {
        p->timers |= v->args[i].kind == PLAN_ARG_TIMERS;
        p->pointers[i] = plan_arg_is_place(&v->args[i])          ? PLAN_WORD_ADDRESS
                         : v->args[i].kind == PLAN_ARG_CONDITION ? PLAN_WORD_CONDITION
                                                                 : PLAN_WORD_LITERAL;
    }
    find_roles(p);
    status = open_driver(p, options);
    if (!status)
        status = load_modules(p);
    if (!status)
        status = load_data(p);
    if (!status)
        plan_log_text(p, 2, "loaded '%s' for %s", PLAN_TEXT(p, v->model->name), p->driver->target);
    return status;
}

plan_status plan_load_memory(const void *bytes, size_t size, const plan_options *given, plan **out) {
    plan_options options;
    plan_error_clear();
    if (!out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the plan, found NULL");
    *out = NULL;
    if (!bytes)
        return plan_fail(PLAN_ERROR_ARGUMENT, "bytes: expected a plan, found NULL");
    plan_status status = read_options(given, &options);
    if (status)
        return status;
    plan *p = new_plan(&options);
    if (!p)
        return PLAN_ERROR_MEMORY;
    const char *folder = options.weights_folder;
    status = set_folder(p, folder, folder ? strlen(folder) : 0);
    if (!status)
        status = load_view(p, bytes, size, &options);
    if (status)
        unload(p);
    else {
        *out = p;
        plan_error_clear();
    }
    return status;
}

static plan_status map_file(plan *p, const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return plan_fail(PLAN_ERROR_FILE, "cannot be opened: %s", strerror(errno));
    plan_status status = PLAN_OK;
    if (fstat(file, &about) != 0)
        status = plan_fail(PLAN_ERROR_FILE, "cannot be read: %s", strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = plan_fail(PLAN_ERROR_FILE, "expected a file, found a folder or device");
    else if (about.st_size == 0)
        status = plan_fail(PLAN_ERROR_FORMAT, "expected a plan, found an empty file");
    else {
        void *mapping = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping == MAP_FAILED)
            status = plan_fail(PLAN_ERROR_FILE, "cannot be mapped: %s", strerror(errno));
        else {
            p->mapping = mapping;
            p->mapping_bytes = (size_t)about.st_size;
        }
    }
    close(file);
    return status;
}

plan_status plan_load(const char *path, const plan_options *given, plan **out) {
    plan_options options;
    plan_error_clear();
    if (!out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the plan, found NULL");
    *out = NULL;
    if (!path)
        return plan_fail(PLAN_ERROR_ARGUMENT, "path: expected a file's name, found NULL");
    plan_status status = read_options(given, &options);
    if (status)
        return status;
    plan *p = new_plan(&options);
    if (!p)
        return PLAN_ERROR_MEMORY;
    const char *slash = strrchr(path, '/'), *folder = options.weights_folder;
    if (folder)
        status = set_folder(p, folder, strlen(folder));
    else
        status = set_folder(p, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    if (!status)
        status = map_file(p, path);
    if (!status)
        status = load_view(p, p->mapping, p->mapping_bytes, &options);
    if (status) {
        unload(p);
        return plan_fail_prefix(status, "%.400s", path);
    }
    *out = p;
    plan_error_clear();
    return PLAN_OK;
}

plan_status plan_free(plan *p) {
    plan_error_clear();
    if (!p)
        return PLAN_OK;
    int sessions = atomic_load(&p->sessions);
    if (sessions)
        return plan_fail(PLAN_ERROR_STATE, "plan_free: %d sessions are open; close them first", sessions);
    unload(p);
    return PLAN_OK;
}
