/* checksum.c - plan_checksum and its incremental form.
 *
 * Four lanes take one 8-byte word each of a 32-byte stripe. A lane's step is a bijection of the lane for a given
 * word and of the word for a given lane, the lanes are folded by bijections, and so is the end: therefore two inputs
 * of one length that differ within a single aligned 8-byte word never have the same checksum. The same holds for the
 * second level, whose words are the checksums of blocks.
 */
#include "checksum.h"
#include "format.h"

#include <string.h>

#define MULTIPLY_A UINT64_C(0x9e3779b185ebca87) /* odd, so that multiplication is a bijection */
#define MULTIPLY_B UINT64_C(0xc2b2ae3d27d4eb4f)
#define MULTIPLY_C UINT64_C(0x165667b19e3779f9)

static uint64_t rotate(uint64_t value, unsigned bits) {
    return value << bits | value >> (64 - bits);
}

static uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static uint64_t step(uint64_t lane, uint64_t word) {
    return rotate(lane + word * MULTIPLY_B, 31) * MULTIPLY_A;
}

static void lanes_begin(plan_checksum_lanes *lanes, uint64_t level) {
    for (unsigned i = 0; i < 4; i++) lanes->lane[i] = (i + 1 + 4 * level) * MULTIPLY_C;
    lanes->size = 0;
}

static void lanes_stripes(plan_checksum_lanes *lanes, const uint8_t *bytes, uint64_t stripes) {
    uint64_t a = lanes->lane[0], b = lanes->lane[1], c = lanes->lane[2], d = lanes->lane[3];
    for (uint64_t i = 0; i < stripes; i++, bytes += PLAN_CHECKSUM_STRIPE) {
        a = step(a, load_word(bytes));
        b = step(b, load_word(bytes + 8));
        c = step(c, load_word(bytes + 16));
        d = step(d, load_word(bytes + 24));
    }
    lanes->lane[0] = a, lanes->lane[1] = b, lanes->lane[2] = c, lanes->lane[3] = d;
    lanes->size += stripes * PLAN_CHECKSUM_STRIPE;
}

/* PART is the incomplete last stripe; it is taken as if zeros followed. */
static uint64_t lanes_end(const plan_checksum_lanes *given, const uint8_t *part, uint32_t part_size) {
    plan_checksum_lanes lanes = *given;
    if (part_size) {
        uint8_t stripe[PLAN_CHECKSUM_STRIPE] = {0};
        memcpy(stripe, part, part_size);
        lanes_stripes(&lanes, stripe, 1);
    }
    uint64_t hash = (given->size + part_size) * MULTIPLY_C;
    for (unsigned i = 0; i < 4; i++) hash = rotate(hash ^ lanes.lane[i], 27) * MULTIPLY_A + MULTIPLY_B;
    hash = (hash ^ hash >> 33) * MULTIPLY_B;
    hash = (hash ^ hash >> 29) * MULTIPLY_C;
    return hash ^ hash >> 32;
}

/* Adds bytes to lanes, keeping an incomplete stripe in PART. */
static void lanes_add(plan_checksum_lanes *lanes, uint8_t *part, uint32_t *part_size, const uint8_t *bytes,
                      uint64_t size) {
    if (*part_size) {
        uint64_t take = PLAN_CHECKSUM_STRIPE - *part_size;
        if (take > size) take = size;
        memcpy(part + *part_size, bytes, take);
        *part_size += (uint32_t)take;
        bytes += take, size -= take;
        if (*part_size < PLAN_CHECKSUM_STRIPE) return;
        lanes_stripes(lanes, part, 1);
        *part_size = 0;
    }
    lanes_stripes(lanes, bytes, size / PLAN_CHECKSUM_STRIPE);
    *part_size = (uint32_t)(size % PLAN_CHECKSUM_STRIPE);
    if (*part_size) memcpy(part, bytes + (size - *part_size), *part_size);
}

static void close_block(plan_checksum_state *state) {
    uint64_t hash = lanes_end(&state->block, state->part, state->part_size);
    lanes_add(&state->top, state->top_part, &state->top_part_size, (const uint8_t *)&hash, 8);
    lanes_begin(&state->block, 0);
    state->part_size = 0;
}

void plan_checksum_begin(plan_checksum_state *state) {
    memset(state, 0, sizeof *state);
    lanes_begin(&state->block, 0);
    lanes_begin(&state->top, 1);
}

void plan_checksum_add(plan_checksum_state *state, const void *bytes, uint64_t size) {
    const uint8_t *at = bytes;
    while (size) {
        uint64_t room = PLAN_CHECKSUM_BLOCK - (state->block.size + state->part_size);
        if (room == 0) { /* only now is it certain that another block follows */
            close_block(state);
            room = PLAN_CHECKSUM_BLOCK;
        }
        uint64_t take = size < room ? size : room;
        lanes_add(&state->block, state->part, &state->part_size, at, take);
        state->total += take;
        at += take, size -= take;
    }
}

uint64_t plan_checksum_end(const plan_checksum_state *state) {
    if (state->total <= PLAN_CHECKSUM_BLOCK) return lanes_end(&state->block, state->part, state->part_size);
    plan_checksum_state copy = *state;
    close_block(&copy);
    return lanes_end(&copy.top, copy.top_part, copy.top_part_size);
}

uint64_t plan_checksum_join(const uint64_t *blocks, uint64_t count) {
    plan_checksum_state state;
    if (count == 1) return blocks[0];
    plan_checksum_begin(&state);
    for (uint64_t i = 0; i < count; i++)
        lanes_add(&state.top, state.top_part, &state.top_part_size, (const uint8_t *)&blocks[i], 8);
    return count ? lanes_end(&state.top, state.top_part, state.top_part_size) : plan_checksum_end(&state);
}

uint64_t plan_checksum(const void *bytes, uint64_t size) {
    plan_checksum_state state;
    plan_checksum_begin(&state);
    plan_checksum_add(&state, bytes, size);
    return plan_checksum_end(&state);
}
