/* external.h - files mapped for reading: the model itself, and its external data, which never leaves its folder. */
#ifndef GCC_PLAN_EXTERNAL_H
#define GCC_PLAN_EXTERNAL_H

#include "compiler.h"
#include "names.h"

/* Maps an open file read-only and private, for the rest of the process; closes `file`. NULL, or why not. */
const char *map_whole(int file, const uint8_t **bytes, uint64_t *size);

typedef struct ExternalFile {
    const char *name;     /* as the model says it, relative to its folder */
    const uint8_t *bytes;
    uint64_t size;
    bool missing, failed; /* missing: allowed with weights_reference; failed: reported */
} ExternalFile;
typedef struct ExternalFiles {
    Names names; /* -> index in files + 1 */
    uint32_t count, room;
    ExternalFile *files;
} ExternalFiles;

typedef struct ExternalPlace {
    const char *location, *offset, *length; /* texts of the model; NULL: absent */
} ExternalPlace;

/* Finds the `need` bytes of a tensor. False after an error at `place`. */
bool external_find(Compilation *c, ExternalFiles *files, const char *place, const ExternalPlace *where, uint64_t need,
                   Data *out);

#endif
