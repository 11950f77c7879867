/* advance: the last launch of a step applies the step map to the extents table: the position W. ROWED: each row that was
 * fed gets longer by what it was fed, and the position is that of the longest of these. */
KERNEL(32)
{
    EXTENTS
    if (TID != 0) return;
#if ROWED
    idx most = 0;
    for (int b = 0; b < RL_D0; b++) {
        const idx fed = RT_LD(RT_OFF + b), length = RL_LD(RL_OFF + b) + fed;
        RL_ST(RL_OFF + b, length);
        if (fed) most = MAX(most, length);
    }
    W_ST(0, most);
#else
    W_ST(0, W_LD(0) + STEP);
#endif
}
