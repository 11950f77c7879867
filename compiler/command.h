/* command.h - the command line of gcc-plan. */
#ifndef GCC_PLAN_COMMAND_H
#define GCC_PLAN_COMMAND_H

#include "compiler.h"

/* What only the driver needs; the rest goes to c->options. */
typedef struct Command {
    const char *from_text, *run; /* --from-text FILE --run PASS */
    bool json;
} Command;

#define COMMAND_GO -1 /* there is work; else the exit status */

/* Fills c->options, c->file and c->folder. Answers --help, --version and --ops itself. */
int command_read(Compilation *c, int argc, char **argv, Command *out);
/* Says on standard error what is wrong with the command line; 2. */
int command_usage(const char *wrong);
/* The whole of a file in the arena, with a zero behind it; NULL after an error. */
char *command_read_file(Compilation *c, const char *path, size_t *size);

#endif
