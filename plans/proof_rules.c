/* proof_rules.c - rules of operators that move elements and count dims: Shape, Reshape, Concat, Slice, Gather and the like.
 * Each says what the output's dims and integer contents are, given those of the inputs; proofs.c compares. */
#include "proofs.h"

#include <inttypes.h>
#include <string.h>

/* --- dims as contents --- */

static void give_one(proof_node *n, poly p) {
    proof_give(n, 0, 0, NULL);
    proof_give_contents(n, 0, 1, &p);
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }

static void shape_of(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    int64_t rank = x->rank, start = proof_int(n, "start", 0), end = proof_int(n, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, start, rank);
    poly count = proof_const(n, end - start);
    proof_give(n, 0, 1, &count);
    proof_give_contents(n, 0, (uint32_t)(end - start), x->dims + start);
}

static void size_of(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (x) give_one(n, proof_product(n, x, 0, x->rank));
}

/* --- the same elements in another shape --- */

static void pass_contents(proof_node *n, const proof_value *x) {
    if (x->has_contents) proof_give_contents(n, 0, x->count, x->contents);
}

/* Target contents agree with the dims; at most one -1; the product stays. */
static void reshape(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *target = proof_in(n, 1), *y = proof_out(n, 0);
    if (!x || !target || !y) return;
    proof_equal(n, proof_product(n, x, 0, x->rank), proof_product(n, y, 0, y->rank), "elements", 0);
    if (!target->has_contents) { /* the product alone */
        n->unknown = 1;
        return;
    }
    int keep_zero = proof_int(n, "allowzero", 0) != 0, inferred = 0;
    poly dims[PLAN_RANK_LIMIT];
    for (uint32_t k = 0; k < target->count && k < PLAN_RANK_LIMIT; k++) {
        dims[k] = target->contents[k];
        if (poly_is(n->t, dims[k], 0) && !keep_zero) dims[k] = k < x->rank ? x->dims[k] : 0;
        if (!poly_is(n->t, dims[k], -1)) continue;
        dims[k] = k < y->rank ? y->dims[k] : 0; /* the product decided it */
        if (inferred++) proof_fail(n, "one -1", "two");
    }
    proof_give(n, 0, target->count, dims);
    pass_contents(n, x);
}

static void flatten(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    int64_t axis = proof_int(n, "axis", 1);
    if (!x) return;
    if (axis < 0) axis += x->rank;
    uint32_t at = (uint32_t)clamp(axis, 0, x->rank);
    poly dims[2] = {proof_product(n, x, 0, at), proof_product(n, x, at, x->rank)};
    proof_give(n, 0, 2, dims);
    pass_contents(n, x);
}

/* Axes from an attribute or from input 1, normalised for RANK, as bits. -1: none given; -2: not known. */
static int64_t axes_of(proof_node *n, uint32_t rank) {
    int64_t list[PROOF_LIST], bits = 0;
    int count = proof_ints(n, "axes", list);
    const proof_value *given = proof_has_in(n, 1) ? proof_in(n, 1) : NULL;
    if (count < 0 && !proof_has_in(n, 1)) return -1;
    if (count < 0) {
        if (!given || !given->has_contents || given->count > PROOF_LIST) return n->unknown = 1, -2;
        count = (int)given->count;
        for (int i = 0; i < count; i++)
            if (!proof_number(n, given, (uint32_t)i, &list[i])) return -2;
    }
    for (int i = 0; i < count; i++) {
        uint32_t axis;
        if (proof_axis(n, list[i], rank, &axis)) return -2;
        bits |= INT64_C(1) << axis;
    }
    return bits;
}

static void squeeze(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    int64_t axes = axes_of(n, x->rank);
    poly dims[PLAN_RANK_LIMIT];
    uint32_t rank = 0;
    if (axes == -2) return;
    for (uint32_t k = 0; k < x->rank; k++) {
        int drop = axes == -1 ? poly_is(n->t, x->dims[k], 1) : (int)(axes >> k & 1);
        if (drop) proof_equal(n, proof_const(n, 1), x->dims[k], "squeezed dim", k);
        else dims[rank++] = x->dims[k];
    }
    proof_give(n, 0, rank, dims);
    pass_contents(n, x);
}

static uint32_t bit_count(int64_t bits) {
    uint32_t count = 0;
    for (; bits > 0; bits &= bits - 1) count++;
    return count;
}

static void unsqueeze(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *y = proof_out(n, 0);
    if (!x || !y) return;
    int64_t axes = axes_of(n, y->rank);
    poly dims[PLAN_RANK_LIMIT];
    uint32_t from = 0;
    if (axes < 0) return;
    if (x->rank + bit_count(axes) != y->rank) {
        proof_fail(n, "a rank more for each axis", "another rank");
        return;
    }
    for (uint32_t k = 0; k < y->rank; k++) dims[k] = axes >> k & 1 ? proof_const(n, 1) : x->dims[from++];
    proof_give(n, 0, y->rank, dims);
    pass_contents(n, x);
}

static void transpose(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    int64_t perm[PROOF_LIST];
    poly dims[PLAN_RANK_LIMIT];
    uint32_t seen = 0;
    if (!x) return;
    int count = proof_ints(n, "perm", perm);
    for (uint32_t k = 0; k < x->rank; k++) {
        int64_t from = count < 0 ? x->rank - 1 - k : k < (uint32_t)count ? perm[k] : -1;
        if (from < 0 || from >= x->rank || seen >> from & 1) {
            proof_fail(n, "a permutation of the axes", "another list");
            return;
        }
        seen |= 1u << from;
        dims[k] = x->dims[from];
    }
    proof_give(n, 0, x->rank, dims);
    if (x->rank < 2) pass_contents(n, x);
}

static void same(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    for (uint32_t i = 0; i < proof_outputs(n); i++)
        if (proof_out(n, i)) proof_give_like(n, i, x);
    pass_contents(n, x);
}

/* The input's shape, other contents. */
static void same_shape(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    proof_give_like(n, 0, x);
}

/* --- made from contents --- */

static void fill(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    poly all[64];
    if (!x) return;
    if (!x->has_contents) {
        n->unknown = 1;
        return;
    }
    proof_give(n, 0, x->count, x->contents);
    const proof_value *y = proof_out(n, 0);
    size_t length;
    if (!y || !y->has_contents || y->count > 64 || !proof_attribute(n, "value", &length)) return;
    for (uint32_t i = 0; i < y->count; i++) all[i] = proof_const(n, proof_int(n, "value", 0));
    proof_give_contents(n, 0, y->count, all);
}

static void expand(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *target = proof_in(n, 1);
    poly dims[PLAN_RANK_LIMIT];
    if (!x || !target) return;
    if (!target->has_contents) {
        n->unknown = 1;
        return;
    }
    uint32_t rank = target->count > x->rank ? target->count : x->rank;
    if (rank > PLAN_RANK_LIMIT) return;
    for (uint32_t k = 0; k < rank; k++) dims[k] = k + target->count < rank ? proof_const(n, 1) : target->contents[k + target->count - rank];
    if (proof_broadcast(n, x, rank, dims)) return;
    proof_give(n, 0, rank, dims);
    const proof_value *y = proof_out(n, 0);
    if (!y || !y->has_contents) return;
    if (!x->has_contents || x->count != 1) return;
    poly *all = proof_room(n, y->count);
    for (uint32_t i = 0; all && i < y->count; i++) all[i] = x->contents[0];
    if (all) proof_give_contents(n, 0, y->count, all);
}

static void range(proof_node *n) {
    const proof_value *from = proof_in(n, 0), *to = proof_in(n, 1), *by = proof_in(n, 2), *y = proof_out(n, 0);
    int64_t step;
    if (!from || !to || !by || !y) return;
    if (!from->has_contents || !to->has_contents || !proof_number(n, by, 0, &step) || step == 0) {
        n->unknown = 1;
        return;
    }
    poly span = step > 0 ? poly_sub(n->t, to->contents[0], from->contents[0]) : poly_sub(n->t, from->contents[0], to->contents[0]);
    poly count = poly_op(n->t, PLAN_EXPR_CEILDIV, span, proof_const(n, step > 0 ? step : -step));
    count = poly_op(n->t, PLAN_EXPR_MAX, count, proof_const(n, 0));
    proof_give(n, 0, 1, &count);
    if (!y->has_contents) return;
    poly *all = proof_room(n, y->count), at = from->contents[0];
    for (uint32_t i = 0; all && i < y->count; i++, at = poly_add(n->t, at, proof_const(n, step))) all[i] = at;
    if (all) proof_give_contents(n, 0, y->count, all);
}

/* --- pieces --- */

static void concat(proof_node *n) {
    const proof_value *first = proof_in(n, 0);
    uint32_t axis, total = 0;
    poly dims[PLAN_RANK_LIMIT];
    int whole = 1;
    if (!first || proof_axis(n, proof_int(n, "axis", 0), first->rank, &axis)) return;
    memcpy(dims, first->dims, sizeof dims);
    for (uint32_t i = 0; i < proof_inputs(n); i++) {
        const proof_value *x = proof_in(n, i);
        if (!x) return;
        proof_rank(n, x, first->rank, "input");
        for (uint32_t k = 0; !n->failed && k < x->rank; k++)
            if (k != axis) proof_equal(n, first->dims[k], x->dims[k], "input dim", k);
        if (i && !n->failed) dims[axis] = poly_add(n->t, dims[axis], x->dims[axis]);
        whole &= x->has_contents;
        total += x->has_contents ? x->count : 0;
    }
    proof_give(n, 0, first->rank, dims);
    if (!whole || first->rank > 1) return;
    poly *all = proof_room(n, total);
    for (uint32_t i = 0, at = 0; all && i < proof_inputs(n); i++)
        for (uint32_t k = 0; k < proof_in(n, i)->count; k++) all[at++] = proof_in(n, i)->contents[k];
    if (all) proof_give_contents(n, 0, total, all);
}

/* One bound of a slice with positive step: from the end when negative, then 0..dim. */
static poly slice_bound(proof_node *n, poly at, poly dim) {
    int64_t least, most;
    poly zero = proof_const(n, 0);
    poly_bounds(n->t, at, NULL, NULL, &least, &most);
    if (most < 0) at = poly_add(n->t, at, dim);
    else if (least < 0) return 0;
    return poly_op(n->t, PLAN_EXPR_MIN, poly_op(n->t, PLAN_EXPR_MAX, at, zero), dim);
}

/* Bounds for a negative step: start in 0..dim-1, end in -1..dim-1. */
static poly slice_backwards(proof_node *n, poly at, poly dim, int start) {
    int64_t least, most;
    poly low = proof_const(n, start ? 0 : -1);
    poly_bounds(n->t, at, NULL, NULL, &least, &most);
    if (most < 0) at = poly_add(n->t, at, dim);
    else if (least < 0) return 0;
    return poly_op(n->t, PLAN_EXPR_MIN, poly_op(n->t, PLAN_EXPR_MAX, at, low), poly_sub(n->t, dim, proof_const(n, 1)));
}

static poly slice_dim(proof_node *n, poly start, poly end, int64_t step, poly dim) {
    if (step > 0) {
        poly span = poly_sub(n->t, slice_bound(n, end, dim), slice_bound(n, start, dim));
        return poly_op(n->t, PLAN_EXPR_MAX, poly_op(n->t, PLAN_EXPR_CEILDIV, span, proof_const(n, step)), proof_const(n, 0));
    }
    poly span = poly_sub(n->t, slice_backwards(n, start, dim, 1), slice_backwards(n, end, dim, 0));
    return poly_op(n->t, PLAN_EXPR_MAX, poly_op(n->t, PLAN_EXPR_CEILDIV, span, proof_const(n, -step)), proof_const(n, 0));
}

typedef struct slices { uint32_t count; poly starts[PROOF_LIST], ends[PROOF_LIST]; int64_t axes[PROOF_LIST], steps[PROOF_LIST]; } slices;

static int slices_from_attributes(proof_node *n, slices *s) {
    int64_t starts[PROOF_LIST], ends[PROOF_LIST];
    int count = proof_ints(n, "starts", starts);
    if (count < 0 || proof_ints(n, "ends", ends) != count) return 1;
    s->count = (uint32_t)count;
    int axes = proof_ints(n, "axes", s->axes);
    for (int i = 0; i < count; i++) {
        s->starts[i] = proof_const(n, starts[i]);
        s->ends[i] = proof_const(n, ends[i]);
        s->steps[i] = 1;
        if (axes < 0) s->axes[i] = i;
    }
    return 0;
}

static int slices_from_inputs(proof_node *n, slices *s) {
    const proof_value *starts = proof_in(n, 1), *ends = proof_in(n, 2);
    const proof_value *axes = proof_has_in(n, 3) ? proof_in(n, 3) : NULL, *steps = proof_has_in(n, 4) ? proof_in(n, 4) : NULL;
    if (!starts || !ends || !starts->has_contents || !ends->has_contents || starts->count != ends->count || starts->count > PROOF_LIST) return 1;
    s->count = starts->count;
    for (uint32_t i = 0; i < s->count; i++) {
        s->starts[i] = starts->contents[i];
        s->ends[i] = ends->contents[i];
        s->axes[i] = i;
        s->steps[i] = 1;
        if (proof_has_in(n, 3) && (!axes || !proof_number(n, axes, i, &s->axes[i]))) return 1;
        if (proof_has_in(n, 4) && (!steps || !proof_number(n, steps, i, &s->steps[i]))) return 1;
    }
    return 0;
}

static void slice_contents(proof_node *n, const proof_value *x, const slices *s) {
    int64_t start, end, length = x->count;
    poly *all = proof_room(n, x->count);
    uint32_t count = 0;
    if (x->rank != 1 || s->count != 1 || !all || !poly_value(n->t, s->starts[0], &start) || !poly_value(n->t, s->ends[0], &end)) return;
    int64_t by = s->steps[0];
    start = by > 0 ? clamp(start < 0 ? start + length : start, 0, length) : clamp(start < 0 ? start + length : start, 0, length - 1);
    end = by > 0 ? clamp(end < 0 ? end + length : end, 0, length) : clamp(end < 0 ? (end < -length ? -1 : end + length) : end, -1, length - 1);
    for (int64_t i = start; count < x->count && (by > 0 ? i < end : i > end); i += by) all[count++] = x->contents[i];
    proof_give_contents(n, 0, count, all);
}

static void slice(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    slices s = {.count = 0};
    poly dims[PLAN_RANK_LIMIT];
    if (!x) return;
    if (n->version < 10 ? slices_from_attributes(n, &s) : slices_from_inputs(n, &s)) {
        n->unknown = 1;
        return;
    }
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 0; i < s.count; i++) {
        uint32_t axis;
        if (proof_axis(n, s.axes[i], x->rank, &axis)) return;
        dims[axis] = s.steps[i] ? slice_dim(n, s.starts[i], s.ends[i], s.steps[i], x->dims[axis]) : 0;
        if (!dims[axis]) {
            n->unknown = 1;
            return;
        }
    }
    proof_give(n, 0, x->rank, dims);
    if (x->has_contents) slice_contents(n, x, &s);
}

/* The pieces add up; each is what `split` says, or an equal share. */
static void split(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *given = proof_has_in(n, 1) ? proof_in(n, 1) : NULL;
    int64_t list[PROOF_LIST];
    uint32_t axis, parts = proof_outputs(n), at = 0;
    int count = proof_ints(n, "split", list);
    if (!x || proof_axis(n, proof_int(n, "axis", 0), x->rank, &axis)) return;
    if (proof_has_in(n, 1) && (!given || !given->has_contents)) {
        n->unknown = 1;
        return;
    }
    poly share = poly_op(n->t, PLAN_EXPR_CEILDIV, x->dims[axis], proof_const(n, parts)), sum = proof_const(n, 0);
    for (uint32_t i = 0; i < parts; i++) {
        poly dims[PLAN_RANK_LIMIT], part = share;
        memcpy(dims, x->dims, sizeof dims);
        if (given) part = i < given->count ? given->contents[i] : 0;
        else if (count >= 0) part = i < (uint32_t)count ? proof_const(n, list[i]) : 0;
        else if (i + 1 == parts) part = poly_sub(n->t, x->dims[axis], sum);
        sum = poly_add(n->t, sum, part);
        dims[axis] = part;
        int64_t size;
        if (!proof_out(n, i)) continue;
        proof_give(n, i, x->rank, dims);
        if (x->has_contents && x->rank == 1 && poly_value(n->t, part, &size) && size >= 0 && at + (uint64_t)size <= x->count) {
            proof_give_contents(n, i, (uint32_t)size, x->contents + at);
            at += (uint32_t)size;
        }
    }
    proof_equal(n, x->dims[axis], sum, "sum of the pieces", 0);
}

static void gather(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *index = proof_in(n, 1);
    uint32_t axis, rank = 0;
    poly dims[2 * PLAN_RANK_LIMIT];
    if (!x || !index || proof_axis(n, proof_int(n, "axis", 0), x->rank, &axis)) return;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (k != axis) dims[rank++] = x->dims[k];
        for (uint32_t i = 0; k == axis && i < index->rank; i++) dims[rank++] = index->dims[i];
    }
    proof_give(n, 0, rank, dims);
    if (!x->has_contents || !index->has_contents) return;
    poly *all = proof_room(n, index->count);
    if (x->rank != 1 || !all) return;
    for (uint32_t i = 0; i < index->count; i++) {
        int64_t at;
        if (!proof_number(n, index, i, &at)) return;
        if (at < 0) at += x->count;
        if (at < 0 || at >= x->count) {
            proof_fail(n, "an index inside the data", "one outside");
            return;
        }
        all[i] = x->contents[at];
    }
    proof_give_contents(n, 0, index->count, all);
}

static void gather_elements(proof_node *n) {
    const proof_value *index = proof_in(n, 1);
    if (index) proof_give_like(n, 0, index);
}

static void gather_nd(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *index = proof_in(n, 1);
    int64_t last, batch = proof_int(n, "batch_dims", 0);
    poly dims[2 * PLAN_RANK_LIMIT];
    uint32_t rank = 0;
    if (!x || !index) return;
    if (!index->rank || !poly_value(n->t, index->dims[index->rank - 1], &last) || batch + last > x->rank || last < 1 || batch < 0) {
        n->unknown = 1;
        return;
    }
    for (uint32_t k = 0; k + 1 < index->rank; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = (uint32_t)(batch + last); k < x->rank; k++) dims[rank++] = x->dims[k];
    proof_give(n, 0, rank, dims);
}

static void tile(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *times = proof_in(n, 1);
    poly dims[PLAN_RANK_LIMIT];
    if (!x || !times) return;
    if (!times->has_contents || times->count != x->rank) {
        n->unknown = 1;
        return;
    }
    for (uint32_t k = 0; k < x->rank; k++) dims[k] = poly_mul(n->t, x->dims[k], times->contents[k]);
    proof_give(n, 0, x->rank, dims);
}

static void pad(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *pads = proof_has_in(n, 1) ? proof_in(n, 1) : NULL;
    const proof_value *axes = proof_has_in(n, 3) ? proof_in(n, 3) : NULL;
    poly dims[PLAN_RANK_LIMIT];
    int64_t list[PROOF_LIST];
    int fixed = proof_ints(n, "pads", list);
    if (!x) return;
    uint32_t count = axes ? axes->count : x->rank;
    memcpy(dims, x->dims, sizeof dims);
    if (fixed < 0 && (!pads || !pads->has_contents || pads->count != 2 * count)) {
        n->unknown = 1;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t number = i;
        uint32_t axis;
        if ((axes && !proof_number(n, axes, i, &number)) || proof_axis(n, number, x->rank, &axis)) return;
        poly before = fixed >= 0 ? proof_const(n, list[i]) : pads->contents[i];
        poly after = fixed >= 0 ? proof_const(n, list[i + count]) : pads->contents[i + count];
        dims[axis] = poly_add(n->t, dims[axis], poly_add(n->t, before, after));
    }
    proof_give(n, 0, x->rank, dims);
}

static void one_hot(proof_node *n) {
    const proof_value *index = proof_in(n, 0), *depth = proof_in(n, 1);
    poly dims[PLAN_RANK_LIMIT];
    uint32_t axis;
    if (!index || !depth || index->rank == PLAN_RANK_LIMIT || proof_axis(n, proof_int(n, "axis", -1), index->rank + 1, &axis)) return;
    if (!depth->has_contents || depth->count != 1) n->unknown = 1;
    for (uint32_t k = 0; k <= index->rank; k++)
        dims[k] = k == axis ? depth->has_contents ? depth->contents[0] : 0 : index->dims[k - (k > axis)];
    proof_give(n, 0, index->rank + 1, dims);
}

static void top_k(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *k = proof_has_in(n, 1) ? proof_in(n, 1) : NULL;
    uint32_t axis;
    poly dims[PLAN_RANK_LIMIT];
    if (!x || proof_axis(n, proof_int(n, "axis", -1), x->rank, &axis)) return;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = k ? k->has_contents ? k->contents[0] : 0 : proof_const(n, proof_int(n, "k", 0));
    if (!dims[axis]) n->unknown = 1;
    proof_give(n, 0, x->rank, dims);
    if (proof_out(n, 1)) proof_give(n, 1, x->rank, dims);
}

static void non_zero(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    poly dims[2] = {proof_const(n, x->rank ? x->rank : 1), 0}; /* how many, data decides */
    proof_give(n, 0, 2, dims);
}

#define SAME "the input's shape"
const proof_row proof_rules_shape[] = {
    {"Shape", shape_of, "Shape gives the dims"},
    {"Size", size_of, "Size is the product of the dims"},
    {"Reshape", reshape, "Reshape keeps the product"},
    {"Flatten", flatten, "Flatten keeps the product"},
    {"Squeeze", squeeze, "Squeeze drops dims of 1"},
    {"Unsqueeze", unsqueeze, "Unsqueeze adds dims of 1"},
    {"Transpose", transpose, "Transpose permutes"},
    {"Identity", same, SAME}, {"Dropout", same, SAME},
    {"CumSum", same_shape, SAME}, {"CumProd", same_shape, SAME}, {"Trilu", same_shape, SAME}, {"Hardmax", same_shape, SAME},
    {"ScatterElements", same_shape, SAME}, {"ScatterND", same_shape, SAME}, {"Scatter", same_shape, SAME},
    {"ReverseSequence", same_shape, SAME},
    {"ConstantOfShape", fill, "ConstantOfShape by its contents"},
    {"Expand", expand, "Expand broadcasts to its contents"},
    {"Range", range, "Range counts its steps"},
    {"Concat", concat, "Concat adds"},
    {"Slice", slice, "Slice by its contents"},
    {"Split", split, "Split by its contents"},
    {"Gather", gather, "Gather replaces an axis"},
    {"GatherElements", gather_elements, "GatherElements has the index' shape"},
    {"GatherND", gather_nd, "GatherND replaces axes"},
    {"Tile", tile, "Tile multiplies"},
    {"Pad", pad, "Pad adds"},
    {"OneHot", one_hot, "OneHot adds an axis"},
    {"TopK", top_k, "TopK keeps k"},
    {"NonZero", non_zero, "NonZero: data decides"},
    {NULL, NULL, NULL}};
