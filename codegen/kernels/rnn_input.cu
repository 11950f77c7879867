/* rnn_input: what the gates of a recurrent cell get from the inputs, for all steps at once: G[t, d, b, row] is the product
 * of row `row` of W and input t of sequence b, with the biases that stand outside of the recurrence. One thread an element. */
KERNEL(128)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        G_C sum = 0;
        for (idx j = 0; j < X_D2; j++) sum += (G_C)W_LD(W_AT(i1, i3, j)) * (G_C)X_LD(X_AT(i0, i2, j));
#if HAS_B
        sum += (G_C)B_LD(B_AT(i1, i3));
        if (i3 < OUTSIDE) sum += (G_C)B_LD(B_AT(i1, (G_D3) + i3));
#endif
        G_ST(TARGET, sum);
    }
}
