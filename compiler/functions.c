/* functions.c - model-local functions, inlined where they are called. */
#include <string.h>

#include "reader.h"

static const char *function_key(Compilation *c, const char *domain, const char *name, const char *overload)
{
    return arena_text(&c->arena, "%s\n%s\n%s", domain_of(domain), text_or_empty(name), text_or_empty(overload));
}

bool functions_index(Reader *r)
{
    bool good = true;
    r->function_opsets = NEW_ARRAY(r->c, Opsets, r->model->n_functions);
    for (size_t i = 0; i < r->model->n_functions; i++) {
        const FunctionProto *f = r->model->functions[i];
        const char *place = arena_text(&r->c->arena, "function '%s::%s'", domain_of(f->domain), text_or_empty(f->name));
        const char *key = function_key(r->c, f->domain, f->name, f->overload);
        r->function_opsets[i] = opsets_read(r, f->opset_import, f->n_opset_import, place);
        if (names_add(r->c, &r->functions, key, (uint32_t)i + 1))
            continue;
        diag_error(r->c, place, "it is defined twice");
        good = false;
    }
    return good;
}

uint32_t function_find(const Reader *r, const NodeProto *n)
{
    if (!r->functions.count)
        return 0;
    return names_find(&r->functions, function_key(r->c, n->domain, n->op_type, n->overload));
}

static bool calls_itself(const Scope *s, const FunctionProto *f)
{
    for (const Call *call = s->call; call; call = call->outer)
        if (call->function == f)
            return true;
    return false;
}

static bool bind_inputs(Reader *r, Scope *s, Scope *body, const FunctionProto *f, const NodeProto *n, const char *place)
{
    for (size_t i = 0; i < f->n_input; i++) {
        uint32_t value = 0;
        if (i < n->n_input && *n->input[i] && !scope_find(r, s, n->input[i], &value)) {
            diag_error(r->c, place, "input %zu '%s' does not exist; no node, input or initializer has this name", i,
                       n->input[i]);
            return false;
        }
        if (!*f->input[i] || !names_add(r->c, value ? &body->names : &body->absent, f->input[i], value ? value : 1)) {
            diag_error(r->c, place, "the function's input %zu '%s' has no name, or that of another", i, f->input[i]);
            return false;
        }
    }
    return true;
}

static void promise_outputs(Reader *r, Scope *s, Scope *body, const FunctionProto *f, const NodeProto *n)
{
    for (size_t i = 0; i < f->n_output && i < n->n_output; i++) {
        uint32_t value = *n->output[i] ? names_find(&s->names, n->output[i]) : 0;
        if (value && *f->output[i] && !names_find(&body->names, f->output[i]))
            names_add(r->c, &body->promised, f->output[i], value);
    }
}

static void add_identity(Reader *r, Scope *s, const char *name, uint32_t from, uint32_t to)
{
    uint32_t node = graph_node(r->c, s->graph, "", "Identity", name, 1, 1);
    int version = opset_version(r, s, "");
    s->graph->nodes[node].opset = version ? version : 13;
    s->graph->nodes[node].inputs[0] = from;
    s->graph->nodes[node].outputs[0] = to;
}

/* Outputs that the body does not make itself (it passes an input on, or names a value twice) become copies. */
static void settle_outputs(Reader *r, Scope *s, Scope *body, const FunctionProto *f, const NodeProto *n, const char *place)
{
    for (size_t i = 0; i < f->n_output && i < n->n_output; i++) {
        uint32_t wanted = *n->output[i] ? names_find(&s->names, n->output[i]) : 0, made = 0;
        if (!wanted)
            continue;
        if (!scope_find(r, body, f->output[i], &made) || !made)
            diag_error(r->c, place, "the function's output %zu '%s' does not exist in its body", i, f->output[i]);
        else if (made != wanted)
            add_identity(r, body, arena_text(&r->c->arena, "%s/%s", body->call->prefix, f->output[i]), made, wanted);
    }
}

bool function_inline(Reader *r, Scope *s, uint32_t function, const NodeProto *n, const char *name, const char *place)
{
    const FunctionProto *f = r->model->functions[function - 1];
    if (!work_add(r, place, f->n_input + f->n_output))
        return false;
    if (calls_itself(s, f)) {
        diag_error(r->c, place, "the function calls itself");
        return true;
    }
    if (r->depth >= READER_MAX_DEPTH) {
        diag_error(r->c, place, "subgraphs and functions are nested too deeply; expected at most %d", READER_MAX_DEPTH);
        return true;
    }
    if (n->n_input > f->n_input || n->n_output > f->n_output) {
        diag_error(r->c, place, "the function has %zu inputs and %zu outputs; found %zu and %zu", f->n_input, f->n_output,
                   n->n_input, n->n_output);
        return true;
    }
    Call call = {.outer = s->call, .function = f, .prefix = name, .opsets = r->function_opsets[function - 1]};
    call.attrs = attrs_given(r, s, n, place, &call.attr_count);
    for (int i = 0; i < call.attr_count; i++)
        if (call.attrs[i].attr->g) {
            diag_error(r->c, place, "attribute '%s': a graph as attribute of a function is not supported", call.attrs[i].name);
            return true;
        }
    Scope body = {.graph = s->graph, .call = &call};
    if (!bind_inputs(r, s, &body, f, n, place))
        return true;
    promise_outputs(r, s, &body, f, n);
    r->depth++;
    bool good = nodes_read(r, &body, f->node, f->n_node);
    r->depth--;
    if (good)
        settle_outputs(r, s, &body, f, n, place);
    return good;
}
