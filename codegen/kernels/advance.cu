/* advance: the last launch of a step applies the step map to the extents table: the position W, and ROWED the length of each row,
 * which grows by what the row was fed. Rows that are fed get STEP tokens each, so W stays the length of the longest of them. */
KERNEL(32)
{
    EXTENTS
    if (TID == 0) W_ST(0, W_LD(0) + STEP);
#if ROWED
    for (int b = TID; b < RL_D0; b += 32) RL_ST(RL_OFF + b, RL_LD(RL_OFF + b) + RT_LD(RT_OFF + b));
#endif
}
