/* go_on: W := whether a loop, or a branch, runs (again): GOES_ON is an expression over single elements. */
KERNEL(32)
{
    EXTENTS
    if (TID == 0) W_ST(W_OFF, GOES_ON);
}
