/* bitcast.c - BitCast: the same bytes under another type. A view, but below 8 bits, where a byte in a buffer has bits beyond
 * the element's (a sign extended), which another type reads otherwise. */
#include "ops/move.h"

static bool bitcast_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const DType to = attr_dtype(n, "to");
    if (dtype_bits(to) == 0 || dtype_bits(to) > 64 || dtype_bits(to) != dtype_bits(x->dtype)) {
        node_error(c, n, "to: %s has not the width of %s", dtype_name(to), dtype_name(x->dtype));
        return false;
    }
    return output_set(c, n, 0, to, x->rank, x->dims);
}

/* Bits as unsigned numbers; storing to a signed type extends the sign. */
static void bitcast_copy(Lower *l, const Node *n, View x, DType to)
{
    Compilation *c = lower_compilation(l);
    View y = lower_output(l, n, 0);
    const int bits = dtype_bits(to);
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    if (dtype_bits(x.store) < 8) x.store = bits == 4 ? DT_U4 : DT_U2;
    else x.store = DT_U8;
    if (to == DT_F4E2M1) y.store = DT_U8;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    kernel_text(k, "VALUE", arena_text(&c->arena, "(X_LD(%s) & %d)", index_at(l, "X", x.rank, "i"), (1 << bits) - 1));
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

static void bitcast_lower(Lower *l, Node *n)
{
    const DType to = attr_dtype(n, "to");
    View v = lower_input(l, n, 0);
    if (dtype_bits(to) < 8) {
        bitcast_copy(l, n, v, to);
        return;
    }
    v.store = to;
    lower_set_view(l, n, 0, v);
}

static const OpRow rows[] = {
    {.domain = "", .name = "BitCast", .since = 26, .schema = "input:T1 -> output:T2 ; to:int | T1=" TYPES_ANY ", T2=" TYPES_ANY, .facts = OP_VIEW,
     .shape = bitcast_shape, .lower = bitcast_lower},
};

const OpFamily ops_bitcast = {rows, COUNT_OF(rows), "compiler/ops/bitcast.c"};
