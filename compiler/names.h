/* names.h - a table from names to numbers, in the arena. */
#ifndef GCC_PLAN_NAMES_H
#define GCC_PLAN_NAMES_H

#include "compiler.h"

typedef struct NameSlot { const char *name; uint32_t number; } NameSlot; /* number 0: free */
typedef struct Names { uint32_t count, room; NameSlot *slots; } Names;   /* room is a power of two */

uint32_t names_find(const Names *t, const char *name); /* 0: absent */
/* The name must outlive the table. False, and nothing changed, when it is there already. number > 0. */
bool names_add(Compilation *c, Names *t, const char *name, uint32_t number);

#endif
