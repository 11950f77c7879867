/* nll: the loss of each target n (PLACE_X takes `pick`, the target's class) and its weight. REDUCE 0: into Y, one thread an
 * element. 1, 2: one block sums them all, in an order of its own threads, and 2 divides by the sum of the weights. */
KERNEL(THREADS)
{
    EXTENTS
#if REDUCE
    SHARED(LOSS_C, losses, THREADS);
    SHARED(LOSS_C, weights, THREADS);
    LOSS_C loss_sum = 0, weight_sum = 0;
    for (idx n = TID; n < (COUNT); n += THREADS) {
#else
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
#endif
        INDEX
        idx pick = T_LD(PLACE_T);
        LOSS_C loss = 0, weight = 0;
        if (!(IGNORED)) {
            if (pick < 0) pick += (CLASSES);
            if (pick >= 0 && pick < (CLASSES)) {
                weight = WEIGHT;
                loss = -weight * (LOSS_C)X_LD(PLACE_X);
            }
        }
#if REDUCE
        loss_sum += loss;
        weight_sum += weight;
    }
    losses[TID] = loss_sum;
    weights[TID] = weight_sum;
    SYNC();
    if (TID == 0) {
        for (int t = 1; t < THREADS; t++) {
            loss_sum += losses[t];
            weight_sum += weights[t];
        }
        Y_ST(Y_OFF, REDUCE == 2 ? loss_sum / weight_sum : loss_sum);
    }
#else
        Y_ST(PLACE_Y, loss);
    }
#endif
}
