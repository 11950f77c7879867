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

static plan_status upload_embedded(plan *p) {
    plan_driver *d = p->driver;
    uint64_t weights = p->view.regions[PLAN_REGION_WEIGHTS].initialised, load = p->view.regions[PLAN_REGION_LOAD].initialised;
    plan_status status = PLAN_OK;
    if (weights)
        status = d->to_device(d, NULL, p->base[PLAN_REGION_WEIGHTS], p->view.weights, weights);
    if (!status && load)
        status = d->to_device(d, NULL, p->base[PLAN_REGION_LOAD], p->view.weights + align_up(weights), load);
    return status;
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
static plan_status upload_reference(plan *p, const plan_weight_ref_record *r, const void *all, uint64_t size) {
    plan_driver *d = p->driver;
    const char *name = r->file ? PLAN_TEXT(p, r->file) : "(in the plan)";
    if (r->bytes == 0)
        return PLAN_OK;
    if (r->file_offset > size || r->bytes > size - r->file_offset)
        return plan_fail(PLAN_ERROR_FILE, "weights '%.200s': expected %" PRIu64 " bytes at %" PRIu64 ", found a file of %" PRIu64,
                         name, r->bytes, r->file_offset, size);
    const unsigned char *bytes = (const unsigned char *)all + r->file_offset;
    uint64_t sum = plan_checksum(bytes, r->bytes);
    if (sum != r->checksum)
        return plan_fail(PLAN_ERROR_FILE, "weights '%.200s': %" PRIu64 " bytes at %" PRIu64 ": expected checksum 0x%016" PRIx64
                         ", found 0x%016" PRIx64, name, r->bytes, r->file_offset, r->checksum, sum);
    return d->to_device(d, NULL, p->base[r->region] + r->region_offset, bytes, r->bytes); /* validated: inside the region */
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
    plan_status status = PLAN_OK;
    source file = {PLAN_NONE, NULL, 0};
    int folder = -1;
    for (uint32_t i = 0; i < p->view.weight_ref_count && !status; i++) {
        const plan_weight_ref_record *r = &p->view.weight_refs[i];
        if (r->file == 0) {
            status = upload_reference(p, r, p->view.weights, p->view.weights_size);
            continue;
        }
        status = open_folder(p, &folder);
        if (!status)
            status = map_source(p, folder, r->file, &file);
        if (!status)
            status = upload_reference(p, r, file.bytes, file.size);
    }
    unmap_source(&file);
    if (folder >= 0)
        close(folder);
    return status;
}

plan_status plan_upload_weights(plan *p) { return p->view.weight_ref_count ? upload_references(p) : upload_embedded(p); }
