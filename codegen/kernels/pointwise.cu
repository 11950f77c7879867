/* pointwise: OUT[i0, i1, ...] = an expression over operands at the same (broadcast) index. INDEXES declares i0.. from n,
 * BODY computes and stores one element. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const COUNTER total = (COUNTER)(TOTAL);
    for (COUNTER n = (COUNTER)BID_X * KERNEL_BLOCK + TID; n < total; n += (COUNTER)GRID_X * KERNEL_BLOCK) {
        INDEXES
        BODY
    }
}
