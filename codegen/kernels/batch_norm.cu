/* batch_norm: Y element n is X minus MEAN, by the root of VAR + EPSILON, times SCALE, plus BIAS; all four are broadcast to X. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const ACC factor = (ACC)SCALE_LD(SCALE_PLACE) / ROOT((ACC)VAR_LD(VAR_PLACE) + (ACC)EPSILON);
        Y_ST(TARGET, ((ACC)X_LD(SOURCE) - (ACC)MEAN_LD(MEAN_PLACE)) * factor + (ACC)BIAS_LD(BIAS_PLACE));
    }
}
