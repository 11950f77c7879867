/* external.c - external data: mapped once a file, never read whole, never outside the model's folder.
 *
 * A location is opened component by component from the folder, each without following links, so no name and no link
 * (also one that is made meanwhile) leads out of it. */
#include "external.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *map_whole(int file, const uint8_t **bytes, uint64_t *size)
{
    struct stat s;
    const char *reason = NULL;
    *bytes = NULL;
    *size = 0;
    if (fstat(file, &s))
        reason = strerror(errno);
    else if (!S_ISREG(s.st_mode))
        reason = "it is no regular file";
    else if (s.st_size > 0) {
        void *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at == MAP_FAILED)
            reason = strerror(errno);
        else
            *bytes = at;
        *size = (uint64_t)s.st_size;
    }
    close(file);
    return reason;
}

/* NULL, or why the location may not be used at all. */
static const char *location_refused(const char *location)
{
    if (!*location)
        return "the location is empty";
    if (*location == '/')
        return "an absolute path is refused; external data lies in the model's folder";
    for (const char *p = location; *p; p += strcspn(p, "/"), p += *p == '/') {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return "'..' is refused; external data lies in the model's folder";
        if (n == 0)
            return "a path with an empty component is refused";
    }
    if (location[strlen(location) - 1] == '/')
        return "a path with an empty component is refused";
    return NULL;
}

/* A file descriptor, or -1 with errno. */
static int open_beneath(Compilation *c, const char *location)
{
    int folder = open(c->folder, O_RDONLY | O_DIRECTORY);
    char *rest = arena_copy(&c->arena, location);
    while (folder >= 0) {
        char *slash = strchr(rest, '/');
        if (slash)
            *slash = 0;
        int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (slash ? O_DIRECTORY : 0);
        int next = openat(folder, rest, flags);
        int error = errno;
        close(folder);
        errno = error;
        if (!slash)
            return next;
        folder = next;
        rest = slash + 1;
    }
    return -1;
}

/* Linux says ELOOP for a link as the last component and ENOTDIR for one before it. */
static bool through_link(Compilation *c, const char *location, int error)
{
    if (error == ELOOP)
        return true;
    if (error != ENOTDIR)
        return false;
    char *path = arena_text(&c->arena, "%s/%s", c->folder, location);
    for (char *p = path + strlen(c->folder) + 1; (p = strchr(p, '/')); *p++ = '/') {
        struct stat s;
        *p = 0;
        if (!lstat(path, &s) && S_ISLNK(s.st_mode))
            return true;
    }
    return false;
}

static void open_file(Compilation *c, ExternalFile *f, const char *place)
{
    const char *reason = location_refused(f->name);
    if (!reason) {
        int file = open_beneath(c, f->name);
        int error = errno;
        if (file >= 0)
            reason = map_whole(file, &f->bytes, &f->size);
        else if (through_link(c, f->name, error))
            reason = "a symbolic link is refused; external data lies in the model's folder";
        else if (error == ENOENT && c->options.weights_reference)
            f->missing = true;
        else
            reason = strerror(error);
    }
    f->failed = reason != NULL;
    if (reason)
        diag_error(c, place, "external data '%s': %s", f->name, reason);
}

static const ExternalFile *file_of(Compilation *c, ExternalFiles *files, const char *place, const char *name)
{
    uint32_t found = names_find(&files->names, name);
    if (found)
        return &files->files[found - 1];
    if (files->count == files->room) {
        uint32_t room = files->room ? files->room * 2 : 8;
        ExternalFile *fresh = NEW_ARRAY(c, ExternalFile, room);
        if (files->count)
            memcpy(fresh, files->files, files->count * sizeof *fresh);
        files->files = fresh;
        files->room = room;
    }
    ExternalFile *f = &files->files[files->count++];
    *f = (ExternalFile){.name = name};
    names_add(c, &files->names, name, files->count);
    open_file(c, f, place);
    return f;
}

static bool parse_number(Compilation *c, const char *place, const char *what, const char *text, uint64_t *out)
{
    uint64_t v = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && v <= (UINT64_MAX - 9) / 10; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == text || *p || v > INT64_MAX) {
        diag_error(c, place, "external data: the %s is no byte count; expected 0 to 2^63-1, found '%s'", what, text);
        return false;
    }
    *out = v;
    return true;
}

bool external_find(Compilation *c, ExternalFiles *files, const char *place, const ExternalPlace *where, uint64_t need,
                   Data *out)
{
    uint64_t offset = 0, length = need;
    if (!where->location) {
        diag_error(c, place, "external data without a location");
        return false;
    }
    if ((where->offset && !parse_number(c, place, "offset", where->offset, &offset)) ||
        (where->length && !parse_number(c, place, "length", where->length, &length)))
        return false;
    const ExternalFile *f = file_of(c, files, place, where->location);
    if (f->failed)
        return false;
    if (!f->missing && (offset > f->size || (where->length && length > f->size - offset))) {
        diag_error(c, place, "external data '%s': the bytes from offset %llu lie outside the file; expected at most %llu "
                   "bytes in all, found %llu", f->name, (unsigned long long)offset, (unsigned long long)f->size,
                   (unsigned long long)offset + (where->length ? length : 0));
        return false;
    }
    if (!where->length && !f->missing)
        length = f->size - offset;
    if (length != need) {
        diag_error(c, place, "external data '%s': expected %llu bytes for its dtype and dims, found %llu%s", f->name,
                   (unsigned long long)need, (unsigned long long)length, where->length ? "" : " to the end of the file");
        return false;
    }
    if (offset > INT64_MAX - length) {
        diag_error(c, place, "external data '%s': offset %llu is out of range", f->name, (unsigned long long)offset);
        return false;
    }
    *out = (Data){.bytes = f->bytes ? f->bytes + offset : NULL, .size = need, .file = f->name, .file_offset = offset};
    return true;
}
