/* launches.c - the time of each launch of one signature of a plan, by itself: a chain of repeats in a graph.
 *
 *   launches PLAN SIGNATURE [OPERATIONS]      target: cuda where it is possible, else host
 *
 * Prints microseconds, kernel and label of each, then their sum; with OPERATIONS (floating-point, of the whole signature) also how
 * many 10^12 of them a second that is. Inputs are filled with numbers that differ: a GPU's clock depends on them. */
#include <plan.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 20 };

/* Halves near 0.1 of either sign and kind; bytes that are anything. */
static void fill(unsigned char *bytes, const plan_tensor *t)
{
    uint32_t seed = 1;
    const uint16_t base = t->dtype == PLAN_F16 ? 0x2c00 : 0x3d80;
    for (size_t i = 0; i < t->bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
        if (t->dtype != PLAN_U8 && i % 2) bytes[i] = (unsigned char)((base >> 8) | (seed >> 24 & 0x80));
    }
}

static plan_status fill_inputs(plan *p, plan_session *s, const char *signature)
{
    plan_status status = PLAN_OK;
    for (int i = 0; i < plan_input_count(p, signature) && !status; i++) {
        plan_tensor t;
        status = plan_input(p, signature, i, &t);
        if (status || t.feed != PLAN_FEED_CALLER || (t.dtype != PLAN_F16 && t.dtype != PLAN_BF16 && t.dtype != PLAN_U8)) continue;
        unsigned char *bytes = malloc(t.bytes);
        if (!bytes) abort();
        fill(bytes, &t);
        status = plan_session_write_input(s, signature, t.name, bytes, t.bytes);
        free(bytes);
    }
    return status;
}

static plan_status print_times(plan *p, plan_session *s, const char *signature, double operations)
{
    uint64_t launches = 0, bytes;
    double total = 0;
    plan_status status = plan_step_cost(p, signature, 0, 1, &launches, &bytes);
    if (status) return status;
    double *times = calloc(launches + 1, sizeof *times);
    if (!times) abort();
    if (launches) status = plan_session_profile(s, signature, REPEATS, times, (size_t)launches);
    for (size_t i = 0; i < launches && !status; i++) {
        const char *kernel, *label;
        status = plan_launch_info(p, signature, i, &kernel, &label, &bytes);
        if (!status) printf("%10.2f us  %-24s %s\n", times[i], kernel, label);
        total += times[i];
    }
    free(times);
    if (status) return status;
    printf("%10.2f us  in all", total);
    if (operations > 0 && total > 0) printf("  %.1f TFLOP/s", operations / total / 1e6);
    printf("  %s\n", plan_target(p));
    return status;
}

int main(int argc, char **argv)
{
    plan_options options = PLAN_OPTIONS_INIT;
    plan *p = NULL;
    plan_session *s = NULL;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: launches PLAN SIGNATURE [OPERATIONS]\n");
        return 2;
    }
    plan_status status = plan_load(argv[1], &options, &p);
    if (!status) status = plan_session_open(p, NULL, &s);
    if (!status) status = plan_session_warm(s);
    if (!status) status = fill_inputs(p, s, argv[2]);
    if (!status) status = print_times(p, s, argv[2], argc > 3 ? strtod(argv[3], NULL) : 0);
    if (status) fprintf(stderr, "%s: %s: %s\n", argv[1], plan_status_name(status), plan_error_message());
    plan_session_close(s);
    plan_free(p);
    return status ? 1 : 0;
}
