/* set_extent: word W of the extents table := EXTENT. */
KERNEL(32)
{
    EXTENTS
    if (TID == 0) W_ST(W_OFF, EXTENT);
}
