/* set_condition: the condition of a conditional node, whose handle the launch gets, becomes that of W: HOLDS is an expression of
 * the byte `word`. */
KERNEL(32)
{
    EXTENTS
    if (TID == 0) {
        const int word = W_LD(W_OFF) != 0;
        CONDITION_SET(gp_condition, HOLDS);
    }
}
