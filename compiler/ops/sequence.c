/* sequence.c - sequences and optionals: lists of values whose length is known when compiling. No kernel ever sees one: each
 * node is resolved to the values that it names, and the plain nodes that make them (expand.h). Identity takes lists too
 * (shape.c), If and Loop pass them on (control.c). A graph input of such a type is bound (onnx_bind.c), a graph output
 * becomes one output for each value in it (lists_end). */
#include "expand.h"
#include "ops/ops.h"

#include <string.h>

/* ---- operands */

/* Input 0; NULL after an error. */
static const List *sequence_of(Expansion *e)
{
    const List *list = expand_input_list(e, 0);
    if (list && !list->optional) return list;
    expand_refuse(e, "input 0 '%s' is %s; expected a sequence", node_input(e->c, &e->node, 0)->name, list ? "an optional" : "a tensor");
    return NULL;
}

/* The position in input I, which counts from the end where it is negative; WITHOUT where it is left out. -1 after an error. */
static int position_of(Expansion *e, int i, int count, int without)
{
    const Value *v = node_input(e->c, &e->node, i);
    int64_t *known;
    int elements;
    const int places = without == count ? count + 1 : count; /* behind the last one, too, where values are inserted */
    if (!v) return without;
    if (!value_ints(e->c, v, &known, &elements) || elements != 1) {
        expand_refuse(e, "position '%s' is not known when compiling; make it a constant, or bind it (--bind)", v->name);
        return -1;
    }
    if (known[0] < -(int64_t)count || known[0] >= places) {
        expand_refuse(e, "position %lld is out of range for a sequence of %d", (long long)known[0], count);
        return -1;
    }
    return (int)(known[0] < 0 ? known[0] + count : known[0]);
}

static bool give_number(Expansion *e, DType t, int64_t v)
{
    expand_identity(e, expand_number(e, t, 0, v), e->node.outputs[0]);
    return true;
}

/* ---- sequences */

static bool expand_empty(Expansion *e)
{
    return expand_list(e, 0, false, 0, NULL);
}

static bool expand_construct(Expansion *e)
{
    return expand_list(e, 0, false, e->node.input_count, e->node.inputs);
}

static bool expand_length(Expansion *e)
{
    const List *list = sequence_of(e);
    return list && give_number(e, DT_I64, list->count);
}

static bool expand_at(Expansion *e)
{
    const List *list = sequence_of(e);
    const int at = list ? position_of(e, 1, list->count, -1) : -1;
    if (at >= 0) expand_identity(e, list->items[at], e->node.outputs[0]);
    return at >= 0;
}

static bool expand_insert(Expansion *e)
{
    const List *list = sequence_of(e);
    const int at = list ? position_of(e, 2, list->count, list->count) : -1;
    if (at < 0) return false;
    uint32_t *items = NEW_ARRAY(e->c, uint32_t, list->count + 1);
    for (int i = 0; i < list->count; i++) items[i + (i >= at)] = list->items[i];
    items[at] = e->node.inputs[1];
    return expand_list(e, 0, false, list->count + 1, items);
}

static bool expand_erase(Expansion *e)
{
    const List *list = sequence_of(e);
    if (list && !list->count) return expand_refuse(e, "the sequence is empty; there is nothing to erase");
    const int at = list ? position_of(e, 1, list->count, list->count - 1) : -1;
    if (at < 0) return false;
    uint32_t *items = NEW_ARRAY(e->c, uint32_t, list->count);
    for (int i = 0; i < list->count; i++)
        if (i != at) items[i - (i > at)] = list->items[i];
    return expand_list(e, 0, false, list->count - 1, items);
}

static bool expand_concat(Expansion *e)
{
    const List *list = sequence_of(e);
    if (!list) return false;
    if (!list->count) return expand_refuse(e, "the sequence is empty; there is nothing to concatenate");
    const int axis = (int)attr_int(&e->node, "axis");
    if (attr_int(&e->node, "new_axis")) {
        expand_stack(e, list->items, list->count, axis, e->node.outputs[0]);
        return true;
    }
    Node *n = expand_node(e, "", "Concat", list->count, 1);
    memcpy(n->inputs, list->items, sizeof *list->items * (size_t)list->count);
    n->outputs[0] = e->node.outputs[0];
    expand_int(e, n, "axis", axis);
    return true;
}

/* ---- SplitToSequence */

/* As expand_refuse, for rules that count. */
#define REFUSE_COUNT(...) (expand_refuse(__VA_ARGS__), -1)

/* The lengths that a vector gives; the axis is as long as they are together. Their count, -1 after an error. */
static int listed_lengths(Expansion *e, Dim extent, int64_t *parts, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i] < 0 || parts[i] > INT32_MAX)
            return REFUSE_COUNT(e, "split[%d] is %lld, which is out of range", i, (long long)parts[i]);
        sum += parts[i];
    }
    const Node *n = count ? &e->c->graph.nodes[e->at] : NULL; /* nothing takes the node's place otherwise */
    return dim_equate(e->c, n, "the parts of a split are its axis", extent, dim_const(e->c, sum)) ? count : -1;
}

/* Parts of EACH elements, the last one shorter where need be; their count, -1 after an error. */
static int even_lengths(Expansion *e, Dim extent, int64_t each, int64_t **parts)
{
    int64_t length;
    if (!extent || !dim_is_const(e->c, dim_resolve(e->c, extent), &length))
        return REFUSE_COUNT(e, "the extent of its axis is not known when compiling, so neither is the sequence's length");
    if (each < 1) return REFUSE_COUNT(e, "split is %lld; expected 1 or more", (long long)each);
    const int64_t count = length / each + (length % each != 0);
    if (count > MAX_LIST)
        return REFUSE_COUNT(e, "the sequence would hold %lld values; expected at most %d", (long long)count, MAX_LIST);
    *parts = NEW_ARRAY(e->c, int64_t, count + 1);
    for (int64_t i = 0; i < count; i++) (*parts)[i] = i + 1 < count ? each : length - i * each;
    return (int)count;
}

static int split_lengths(Expansion *e, Dim extent, int64_t **parts)
{
    const Value *split = node_input(e->c, &e->node, 1);
    int count;
    if (!split) return even_lengths(e, extent, 1, parts);
    if (!value_ints(e->c, split, parts, &count))
        return REFUSE_COUNT(e, "split '%s' is not known when compiling; make it a constant, or bind it (--bind)", split->name);
    return split->rank ? listed_lengths(e, extent, *parts, count) : even_lengths(e, extent, **parts, parts);
}

static bool expand_split(Expansion *e)
{
    const Value *x = node_input(e->c, &e->node, 0);
    int64_t *parts;
    if (x->rank < 1) return expand_refuse(e, "input '%s' has %s", x->name, x->rank ? "a rank that is not known" : "no axis to split");
    const int axis = axis_normal(e->c, &e->node, attr_int(&e->node, "axis"), x->rank);
    const int count = axis < 0 ? -1 : split_lengths(e, x->dims[axis], &parts);
    if (count < 0) return false;
    uint32_t *items = NEW_ARRAY(e->c, uint32_t, count + 1);
    if (!node_input(e->c, &e->node, 1) && !attr_int(&e->node, "keepdims")) {
        for (int i = 0; i < count; i++) items[i] = expand_element(e, e->node.inputs[0], axis, i);
    } else if (count) {
        const uint32_t lengths = expand_constant(e, DT_I64, 1, count, parts);
        for (int i = 0; i < count; i++) items[i] = expand_value(e, "part");
        Node *n = expand_node(e, "", "Split", 2, count);
        n->opset = 13; /* lengths are an input there */
        n->inputs[0] = e->node.inputs[0];
        n->inputs[1] = lengths;
        memcpy(n->outputs, items, sizeof *items * (size_t)count);
        expand_int(e, n, "axis", axis);
    }
    return expand_list(e, 0, false, count, items);
}

/* ---- SequenceMap: its body for each place; an input that is no sequence is the same for all */

static bool map_inputs(Expansion *e, int count, int place, uint32_t *inputs)
{
    for (int i = 0; i < e->node.input_count; i++) {
        const List *list = expand_input_list(e, i);
        if (list && (list->optional || list->count != count))
            return expand_refuse(e, "input %d is a sequence of %d; expected %d, as input 0", i, list->count, count);
        inputs[i] = list ? list->items[place] : e->node.inputs[i];
    }
    return true;
}

static bool expand_map(Expansion *e)
{
    const Graph *body = expand_subgraph(e, "body");
    const List *list = sequence_of(e);
    if (!list) return false;
    const int count = list->count, outputs = e->node.output_count;
    if ((int)body->input_count != e->node.input_count || (int)body->output_count < outputs)
        return expand_refuse(e, "its body has %u inputs and %u outputs; expected %d and %d", body->input_count, body->output_count,
                             e->node.input_count, outputs);
    uint32_t *inputs = NEW_ARRAY(e->c, uint32_t, e->node.input_count + 1), *items = NEW_ARRAY(e->c, uint32_t, outputs * count + 1);
    for (int k = 0; k < count; k++) {
        uint32_t *made = map_inputs(e, count, k, inputs) ? expand_clone(e, body, inputs) : NULL;
        if (!made) return false;
        for (int i = 0; i < outputs; i++) items[i * count + k] = made[i];
    }
    for (int i = 0; i < outputs; i++)
        if (!expand_list(e, i, false, count, items + i * count)) return false;
    return true;
}

/* ---- optionals */

static bool expand_optional(Expansion *e)
{
    const uint32_t item = e->node.input_count ? e->node.inputs[0] : 0;
    return expand_list(e, 0, true, item != 0, &item);
}

/* Anything that is no optional is there. */
static bool expand_has(Expansion *e)
{
    const List *list = expand_input_list(e, 0);
    return give_number(e, DT_BOOL, node_input(e->c, &e->node, 0) && (!list || !list->optional || list->count > 0));
}

static bool expand_get(Expansion *e)
{
    const List *list = expand_input_list(e, 0);
    if (list && list->optional && !list->count) return expand_refuse(e, "the optional '%s' is empty", node_input(e->c, &e->node, 0)->name);
    expand_identity(e, list && list->optional ? list->items[0] : e->node.inputs[0], e->node.outputs[0]);
    return true;
}

#define ROW(op, first, text, rule) { .name = op, .since = first, .schema = text, .facts = OP_CONTROL, .expand = rule }

static const OpRow rows[] = {
    ROW("SequenceEmpty", 11, " -> output:any ; dtype:int=1", expand_empty),
    ROW("SequenceConstruct", 11, "inputs:any* -> output_sequence:any", expand_construct),
    ROW("SequenceLength", 11, "input_sequence:any -> length:any", expand_length),
    ROW("SequenceAt", 11, "input_sequence:any, position:any -> tensor:any", expand_at),
    ROW("SequenceInsert", 11, "input_sequence:any, tensor:any, position:any? -> output_sequence:any", expand_insert),
    ROW("SequenceErase", 11, "input_sequence:any, position:any? -> output_sequence:any", expand_erase),
    ROW("ConcatFromSequence", 11, "input_sequence:any -> concat_result:any ; axis:int, new_axis:int=0", expand_concat),
    ROW("SplitToSequence", 11, "input:any, split:any? -> output_sequence:any ; axis:int=0, keepdims:int=1", expand_split),
    ROW("SequenceMap", 17, "input_sequence:any, additional_inputs:any?* -> out_sequence:any* ; body:graph", expand_map),
    ROW("Optional", 15, "input:any? -> output:any ; type:type?", expand_optional),
    ROW("OptionalHasElement", 15, "input:any? -> output:bool", expand_has),
    ROW("OptionalGetElement", 15, "input:any -> output:any", expand_get),
};
const OpFamily ops_sequence = { rows, (int)COUNT_OF(rows), "compiler/ops/sequence.c" };
