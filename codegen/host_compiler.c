/* host_compiler.c - the host target: runs the system's C compiler on a module's source and reads the shared object back.
 * The source is the compiler's standard input, so no path gets into the object, and equal sources give equal bytes. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "codegen.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef HOST_CC
#define HOST_CC "cc"
#endif

enum { MAX_WORDS = 16, PATH_ROOM = 4096 };

extern char **environ;

#define OTHER_COMPILER "set GCC_PLAN_CC to a C compiler that takes gcc's options"
#define OTHER_FOLDER "set TMPDIR to a folder with room that can be written"

/* The folder of one compilation; empty names: not made. */
typedef struct Work {
    char folder[PATH_ROOM], source[PATH_ROOM + 32], object[PATH_ROOM + 32], messages[PATH_ROOM + 32];
} Work;

/* No -march=native: a plan must run on another machine of its kind. -ffp-contract=off: roundings as written, also on
 * machines with fused multiply-add. Kernels free of traps and errno may be vectorised; nothing is reordered. */
static const char *const host_flags[] = {
    "-std=gnu11", "-O3", "-w", "-fPIC", "-shared", "-nostartfiles", "-ffp-contract=off", "-fno-math-errno",
    "-fno-trapping-math", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv", "-fno-ident",
    "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-g0", "-Wl,--build-id=none", "-Wl,-s", "-x", "c", "-",
};

const char *host_target(void)
{
#if defined(__x86_64__) || defined(_M_X64)
    return "host-x86_64";
#elif defined(__aarch64__)
    return "host-aarch64";
#else
    return "host-other";
#endif
}

static bool write_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    const bool written = fwrite(bytes, 1, size, f) == size;
    return (fclose(f) == 0) && written;
}

/* Whole file, with a zero behind it; NULL: no such file, or it is empty. */
static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *bytes = NULL;
    struct stat info;
    if (fstat(fileno(f), &info) == 0 && info.st_size > 0 && (bytes = malloc((size_t)info.st_size + 1)) != NULL) {
        *size = fread(bytes, 1, (size_t)info.st_size, f);
        bytes[*size] = 0;
    }
    fclose(f);
    return bytes;
}

static bool work_open(Work *w, CodeResult *r)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    const int length = snprintf(w->folder, sizeof w->folder, "%s/gcc-plan-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof w->folder || !mkdtemp(w->folder)) {
        code_error(r, OTHER_FOLDER, "no temporary folder can be made in '%s': %s", base, strerror(errno));
        w->folder[0] = 0;
        return false;
    }
    snprintf(w->source, sizeof w->source, "%s/module.c", w->folder);
    snprintf(w->object, sizeof w->object, "%s/module.so", w->folder);
    snprintf(w->messages, sizeof w->messages, "%s/messages", w->folder);
    return true;
}

static void work_close(Work *w)
{
    if (!w->folder[0]) return;
    unlink(w->source);
    unlink(w->object);
    unlink(w->messages);
    rmdir(w->folder);
}

/* The command's words: the compiler's name may bring words of its own ("ccache gcc"). WORDS is cut in place. */
static void make_command(char *words, const char *object, char **arguments)
{
    int n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, " \t", &rest); word && n < MAX_WORDS; word = strtok_r(NULL, " \t", &rest))
        arguments[n++] = word;
    for (size_t i = 0; i < COUNT_OF(host_flags); i++) arguments[n++] = (char *)(uintptr_t)host_flags[i];
    arguments[n++] = (char *)(uintptr_t)"-o";
    arguments[n++] = (char *)(uintptr_t)object;
    arguments[n++] = (char *)(uintptr_t)"-lm";
    arguments[n] = NULL;
}

/* Exit status of the compiler, -1 when it did not run (errno says why). */
static int run_compiler(const Work *w, const char *compiler)
{
    char words[PATH_ROOM], *arguments[MAX_WORDS + COUNT_OF(host_flags) + 4];
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    snprintf(words, sizeof words, "%s", compiler);
    make_command(words, w->object, arguments);
    if (!arguments[0] || posix_spawn_file_actions_init(&actions) != 0) return -1;
    posix_spawn_file_actions_addopen(&actions, 0, w->source, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, w->messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        errno = failed;
        return -1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Keeps what a person can use of the compiler's messages. */
static void report_messages(const Work *w, const char *compiler, int status, CodeResult *r)
{
    size_t size = 0;
    char *text = read_file(w->messages, &size);
    static const char *const full[] = {"No space left", "File too large", "File size limit", "file truncated", "Disk quota"};
    for (size_t i = 0; text && i < COUNT_OF(full); i++)
        if (strstr(text, full[i])) {
            code_error(r, OTHER_FOLDER, "there is no room for the C compiler's files in '%s': %.300s", w->folder, strstr(text, full[i]));
            free(text);
            return;
        }
    /* Messages about the source name it; without one the compiler itself is at fault. Signals leave half a message. */
    const bool ours = text && strstr(text, "<stdin>:") && strstr(text, "error:");
    const char *first = text ? strstr(text, "error") : NULL;
    while (first && first > text && first[-1] != '\n') first--;
    code_error(r, ours ? NULL : OTHER_COMPILER, "the C compiler '%s' failed (exit status %d): %.3000s", compiler, status,
               first ? first : text ? text : "it said nothing");
    free(text);
}

void host_compile(const char *source, size_t size, CodeResult *r)
{
    Work w = {.folder = ""};
    const char *compiler = getenv("GCC_PLAN_CC");
    if (!compiler || !*compiler) compiler = HOST_CC;
    if (!work_open(&w, r)) return;
    if (!write_file(w.source, source, size)) {
        code_error(r, OTHER_FOLDER, "'%s' cannot be written: %s", w.source, strerror(errno));
        goto done;
    }
    const int status = run_compiler(&w, compiler);
    if (status < 0) code_error(r, OTHER_COMPILER, "the C compiler '%s' cannot be run: %s", compiler, strerror(errno));
    else if (status == 127) code_error(r, OTHER_COMPILER, "the C compiler '%s' cannot be run", compiler);
    else if (status != 0) report_messages(&w, compiler, status, r);
    else if (!(r->bytes = read_file(w.object, &r->size)))
        code_error(r, OTHER_COMPILER, "the C compiler '%s' wrote no object", compiler);
done:
    work_close(&w);
}
