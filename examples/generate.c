/* generate.c - generates text with a plan whose tokens are bytes and that was compiled with a sampling tail.
 *
 *     gcc-plan model.onnx -o model.plan --sample greedy
 *     cc generate.c -o generate $(pkg-config --cflags --libs plan)
 *     ./generate model.plan 'The king'
 *
 * N tokens cost N graph launches: between them the host does nothing. */
#include <plan.h>
#include <stdio.h>
#include <string.h>

#define TOKENS 64
#define PROMPT 256

int main(int argc, char **argv) {
    plan_options options = PLAN_OPTIONS_INIT;
    plan *p = NULL;
    plan_session *s = NULL;
    int64_t prompt[PROMPT], tokens[TOKENS];
    int result = 1;
    if (argc != 3 || !argv[2][0] || strlen(argv[2]) > PROMPT) {
        fprintf(stderr, "usage: generate MODEL.plan PROMPT (at most %d bytes)\n", PROMPT);
        return 2;
    }
    size_t length = strlen(argv[2]);
    for (size_t i = 0; i < length; i++)
        prompt[i] = (unsigned char)argv[2][i];

    /* Once: map the plan, bring code and weights to the device, build the graphs. */
    if (plan_load(argv[1], &options, &p) || plan_session_open(p, NULL, &s) || plan_session_warm(s) || plan_session_capture(s))
        goto done;

    /* The prompt gives the first token, each replayed step one more. */
    if (plan_session_prefill(s, prompt, length) || plan_session_replay(s, TOKENS - 1) || plan_session_tokens(s, tokens, TOKENS))
        goto done;

    fputs(argv[2], stdout);
    for (int i = 0; i < TOKENS; i++)
        putchar((int)tokens[i]);
    putchar('\n');
    result = 0;
done:
    if (result)
        fprintf(stderr, "%s\n", plan_error_message());
    plan_session_close(s);
    plan_free(p);
    return result;
}
