/* checksum.h - the 64-bit checksum of the plan file, over bytes that arrive in pieces.
 *
 * FORMAT.md has the algorithm. The bytes are cut into blocks of PLAN_CHECKSUM_BLOCK; a file of more than one block
 * is the checksum of its blocks' checksums, so that blocks may be computed in any order or by several threads.
 */
#ifndef PLAN_CHECKSUM_H
#define PLAN_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define PLAN_CHECKSUM_BLOCK 1048576u /* bytes; a multiple of the stripe */
#define PLAN_CHECKSUM_STRIPE 32u

typedef struct plan_checksum_lanes {
    uint64_t lane[4];
    uint64_t size; /* bytes that were taken in, all whole stripes until the end */
} plan_checksum_lanes;

/* Plain data: copy it, drop it, keep it on the stack. */
typedef struct plan_checksum_state {
    plan_checksum_lanes block; /* the block that is being read */
    plan_checksum_lanes top;   /* over the checksums of the blocks before it */
    uint64_t total;            /* bytes so far */
    uint8_t part[PLAN_CHECKSUM_STRIPE]; /* block.size % stripe of them are waiting for the rest of their stripe */
    uint32_t part_size;
    uint8_t top_part[PLAN_CHECKSUM_STRIPE];
    uint32_t top_part_size;
} plan_checksum_state;

void plan_checksum_begin(plan_checksum_state *state);
void plan_checksum_add(plan_checksum_state *state, const void *bytes, uint64_t size);
/* The checksum of several blocks from theirs: COUNT of them, all but the last of PLAN_CHECKSUM_BLOCK bytes. */
uint64_t plan_checksum_join(const uint64_t *blocks, uint64_t count);
/* The checksum of all bytes added so far. The state may go on being added to. */
uint64_t plan_checksum_end(const plan_checksum_state *state);

#endif
