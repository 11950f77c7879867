/* names.c - a table from names to numbers: open addressing, at most half full. */
#include "names.h"

#include <string.h>

static uint64_t hash_name(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

static NameSlot *slot_of(const Names *t, const char *name)
{
    for (uint64_t i = hash_name(name);; i++) {
        NameSlot *s = &t->slots[i & (t->room - 1)];
        if (!s->number || !strcmp(s->name, name))
            return s;
    }
}

uint32_t names_find(const Names *t, const char *name)
{
    return t->room ? slot_of(t, name)->number : 0;
}

bool names_add(Compilation *c, Names *t, const char *name, uint32_t number)
{
    if (t->count * 2 >= t->room) {
        Names fresh = {.count = t->count, .room = t->room ? t->room * 2 : 32};
        fresh.slots = NEW_ARRAY(c, NameSlot, fresh.room);
        for (uint32_t i = 0; i < t->room; i++)
            if (t->slots[i].number)
                *slot_of(&fresh, t->slots[i].name) = t->slots[i];
        *t = fresh;
    }
    NameSlot *s = slot_of(t, name);
    if (s->number)
        return false;
    *s = (NameSlot){name, number};
    t->count++;
    return true;
}
