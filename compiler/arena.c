/* arena.c - memory that lives as long as the compilation, and growing texts.
 *
 * Blocks double up to 4 MiB; a larger request has a block of its own. Memory is zeroed and 16-byte aligned. */
#include "compiler.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 16u
#define FIRST_BLOCK ((size_t)64 * 1024)
#define LARGEST_BLOCK ((size_t)4 * 1024 * 1024)

struct ArenaBlock {
    struct ArenaBlock *next;
    size_t size, used; /* bytes of data */
    _Alignas(16) unsigned char data[];
};

static struct ArenaBlock *block_new(size_t size)
{
    struct ArenaBlock *b = size < SIZE_MAX / 2 ? calloc(1, sizeof *b + size) : NULL;
    if (!b)
        fault("arena", "no memory left for %zu bytes", size);
    b->size = size;
    return b;
}

void *arena_alloc(Arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        fault("arena", "%zu bytes wanted at once", bytes);
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes == 0)
        bytes = ALIGN;
    a->used += bytes;
    struct ArenaBlock *b = a->head;
    if (!b || b->size - b->used < bytes) {
        size_t size = b && b->size < LARGEST_BLOCK ? b->size * 2 : b ? LARGEST_BLOCK : FIRST_BLOCK;
        if (b && bytes >= size / 2) { /* a block of its own, behind the one that still has room */
            struct ArenaBlock *own = block_new(bytes);
            own->next = b->next;
            b->next = own;
            own->used = bytes;
            return own->data;
        }
        struct ArenaBlock *fresh = block_new(size > bytes ? size : bytes);
        fresh->next = b;
        a->head = b = fresh;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
}

char *arena_text(Arena *a, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (size < 0)
        fault("arena", "bad format '%s'", format);
    char *text = arena_alloc(a, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

char *arena_copy(Arena *a, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(arena_alloc(a, size), text, size);
}

void arena_free(Arena *a)
{
    for (struct ArenaBlock *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->head = NULL;
    a->used = 0;
}

static void text_grow(Text *t, size_t more)
{
    if (t->room - t->size > more) /* one byte stays for the terminator */
        return;
    size_t room = (t->room ? t->room : 128) * 2;
    while (room - t->size <= more)
        room *= 2;
    char *data = realloc(t->data, room);
    if (!data)
        fault("text", "no memory left for %zu bytes", room);
    t->data = data;
    t->room = room;
}

void text_add_bytes(Text *t, const char *bytes, size_t size)
{
    text_grow(t, size);
    if (size)
        memcpy(t->data + t->size, bytes, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_add(Text *t, const char *format, ...)
{
    va_list list;
    for (;;) {
        size_t room = t->room - t->size;
        va_start(list, format);
        int size = vsnprintf(room ? t->data + t->size : NULL, room, format, list);
        va_end(list);
        if (size < 0)
            fault("text", "bad format '%s'", format);
        if ((size_t)size < room) {
            t->size += (size_t)size;
            return;
        }
        text_grow(t, (size_t)size);
    }
}

void text_free(Text *t)
{
    free(t->data);
    *t = (Text){0};
}
