/* weights.c - the initialised bytes of regions weights and load: from the plan, or (weights by reference) from the
 * model's own external files, which are opened inside one folder only, and checked. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t align_up(uint64_t bytes) { return (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN; }

static plan_status damaged(const plan *p, uint64_t found) {
    if (found == p->weights_checksum)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_FORMAT, "weights.checksum: expected 0x%016" PRIx64 ", found 0x%016" PRIx64 " (damaged)", p->weights_checksum,
                     found);
}

static plan_status upload_embedded(plan *p) {
    uint64_t weights = p->view.regions[PLAN_REGION_WEIGHTS].initialised, load = p->view.regions[PLAN_REGION_LOAD].initialised;
    plan_upload_piece all = {.from = p->view.weights, .bytes = p->view.weights_size,
                             .targets = {{0, weights, p->base[PLAN_REGION_WEIGHTS]},
                                         {align_up(weights), load, p->base[PLAN_REGION_LOAD]}}};
    plan_status status = plan_upload(p->driver, &all, 1);
    return status ? status : damaged(p, all.sum);
}

/* Opens NAME inside the folder open as FOLDER, one component at a time: no "..", no link, nothing absolute. */
static plan_status open_inside(int folder, const char *name, int *out) {
    int at = folder;
    const char *rest = name;
    *out = -1;
    if (name[0] == '/' || name[0] == 0)
        return plan_fail(PLAN_ERROR_FILE, "weights '%.200s': expected a path inside the folder", name);
    for (;;) {
        size_t length = strcspn(rest, "/");
        bool last = rest[length] == 0;
        char part[256];
        int next = -1;
        if (length > 0 && length < sizeof part && !(length == 2 && memcmp(rest, "..", 2) == 0)) {
            memcpy(part, rest, length);
            part[length] = 0;
            next = openat(at, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
        } else
            errno = EINVAL;
        int reason = errno;
        if (at != folder)
            close(at);
        if (next < 0)
            return plan_fail(PLAN_ERROR_FILE, "weights '%.200s': cannot be opened inside its folder: %s", name,
                             reason == ELOOP ? "links are refused" : reason == EINVAL ? "'..' and empty names are refused"
                                                                                      : strerror(reason));
        at = next;
        if (last)
            break;
        rest += length + 1;
    }
    *out = at;
    return PLAN_OK;
}

/* One file at a time stays mapped: the references to a file follow each other. */
typedef struct source {
    uint32_t name; /* string of the file; NONE: nothing is mapped */
    void *bytes;
    uint64_t size;
} source;

static void unmap_source(source *f) {
    if (f->name != PLAN_NONE)
        munmap(f->bytes, (size_t)f->size);
    f->name = PLAN_NONE;
}

static plan_status map_source(plan *p, int folder, uint32_t name, source *f) {
    int file;
    struct stat about;
    if (f->name == name)
        return PLAN_OK;
    unmap_source(f);
    plan_status status = open_inside(folder, PLAN_TEXT(p, name), &file);
    if (status)
        return status;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
        status = plan_fail(PLAN_ERROR_FILE, "weights '%.200s': expected a file with bytes", PLAN_TEXT(p, name));
    else {
        void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED)
            status = plan_fail(PLAN_ERROR_FILE, "weights '%.200s': cannot be mapped: %s", PLAN_TEXT(p, name), strerror(errno));
        else {
            f->bytes = bytes;
            f->size = (uint64_t)about.st_size;
            f->name = name;
        }
    }
    close(file);
    return status;
}

/* SIZE bytes at ALL are the file's. */
static plan_status find_piece(plan *p, const plan_weight_ref_record *r, const void *all, uint64_t size, plan_upload_piece *out) {
    if (r->bytes && (r->file_offset > size || r->bytes > size - r->file_offset))
        return plan_fail(PLAN_ERROR_FILE, "weights '%.200s': expected %" PRIu64 " bytes at %" PRIu64 ", found a file of %" PRIu64,
                         r->file ? PLAN_TEXT(p, r->file) : "(in the plan)", r->bytes, r->file_offset, size);
    *out = (plan_upload_piece){.bytes = r->bytes};
    if (r->bytes == 0)
        return PLAN_OK;
    out->from = (const unsigned char *)all + r->file_offset;
    out->targets[0] = (plan_upload_target){0, r->bytes, p->base[r->region] + r->region_offset}; /* validated: inside the region */
    return PLAN_OK;
}

/* COUNT references from FIRST on, all to one file of SIZE bytes at ALL. */
static plan_status upload_run(plan *p, uint32_t first, uint32_t count, const void *all, uint64_t size) {
    const plan_weight_ref_record *r = p->view.weight_refs + first;
    plan_upload_piece *pieces = plan_host_allocate(&p->allocator, count, sizeof *pieces);
    plan_status status = pieces ? PLAN_OK : plan_fail(PLAN_ERROR_MEMORY, "weights: no memory for %u references", count);
    for (uint32_t i = 0; i < count && !status; i++)
        status = find_piece(p, &r[i], all, size, &pieces[i]);
    if (!status)
        status = plan_upload(p->driver, pieces, count);
    for (uint32_t i = 0; i < count && !status; i++)
        if (r[i].bytes && pieces[i].sum != r[i].checksum)
            status = plan_fail(PLAN_ERROR_FILE, "weights '%.200s': %" PRIu64 " bytes at %" PRIu64 ": expected checksum 0x%016" PRIx64
                               ", found 0x%016" PRIx64, r[i].file ? PLAN_TEXT(p, r[i].file) : "(in the plan)", r[i].bytes,
                               r[i].file_offset, r[i].checksum, pieces[i].sum);
    plan_host_release(&p->allocator, pieces);
    return status;
}

/* The folder is opened when the first reference needs it: those with file "" lie in the plan. */
static plan_status open_folder(plan *p, int *folder) {
    if (*folder >= 0)
        return PLAN_OK;
    if (!p->folder)
        return plan_fail(PLAN_ERROR_FILE, "the weights are by reference; set weights_folder to the model's folder");
    *folder = open(p->folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (*folder < 0)
        return plan_fail(PLAN_ERROR_FILE, "weights' folder '%.300s': %s", p->folder, strerror(errno));
    return PLAN_OK;
}

static plan_status upload_references(plan *p) {
    plan_status status = damaged(p, plan_checksum(p->view.weights, p->view.weights_size));
    source file = {PLAN_NONE, NULL, 0};
    int folder = -1;
    uint32_t count;
    for (uint32_t i = 0; i < p->view.weight_ref_count && !status; i += count) {
        const plan_weight_ref_record *r = &p->view.weight_refs[i];
        for (count = 1; i + count < p->view.weight_ref_count && r[count].file == r->file;)
            count++;
        if (r->file == 0) {
            status = upload_run(p, i, count, p->view.weights, p->view.weights_size);
            continue;
        }
        status = open_folder(p, &folder);
        if (!status)
            status = map_source(p, folder, r->file, &file);
        if (!status)
            status = upload_run(p, i, count, file.bytes, file.size);
    }
    unmap_source(&file);
    if (folder >= 0)
        close(folder);
    return status;
}

plan_status plan_upload_weights(plan *p) { return p->view.weight_ref_count ? upload_references(p) : upload_embedded(p); }
