/* read_file.h - for the programs that run plans of tests: a whole file. */
#ifndef GCC_PLAN_TESTS_READ_FILE_H
#define GCC_PLAN_TESTS_READ_FILE_H

#include <stdio.h>
#include <stdlib.h>

/* FOLDER/NAME in memory of its own, *size its bytes; NULL when it cannot be read. */
static void *read_file(const char *folder, const char *name, size_t *size)
{
    char path[5200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    void *data = malloc(*size + 1);
    if (data && fread(data, 1, *size, f) != *size) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

#endif
