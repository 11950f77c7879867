/* rnn: one block runs one sequence in one direction through a recurrent cell: CELL 0 plain, 1 gated (GRU), 2 LSTM. G holds
 * what the inputs give to the gates (rnn_input); H and C the present state, A the recurrent part of the gates. A reversed
 * direction reads and writes the steps of its sequence from the last one on. Steps beyond a sequence's length are zero. */
KERNEL(THREADS)
{
    EXTENTS
    const idx d = BID_X, b = BID_Y;
    if (b >= (BATCH)) return;
    const idx length = LENGTH;
    const int backward = BACKWARD;
    for (idx j = TID; j < HIDDEN; j += THREADS) {
#if HAS_H0
        H_ST(H_AT(d, b, j), H0_LD(H0_AT(d, b, j)));
#else
        H_ST(H_AT(d, b, j), 0);
#endif
#if CELL == 2
#if HAS_C0
        C_ST(C_AT(d, b, j), C0_LD(C0_AT(d, b, j)));
#else
        C_ST(C_AT(d, b, j), 0);
#endif
#endif
    }
    SYNC();
    for (idx s = 0; s < length; s++) {
        const idx t = backward ? length - 1 - s : s;
        /* recurrent part; a GRU that resets first does its last HIDDEN rows below */
        for (idx row = TID; row < FIRST_ROWS; row += THREADS) {
            H_C sum = 0;
            for (idx j = 0; j < HIDDEN; j++) sum += (H_C)R_LD(R_AT(d, row, j)) * H_LD(H_AT(d, b, j));
            A_ST(A_AT(d, b, row), sum);
        }
        SYNC();
#if CELL == 1
#if RESET_FIRST
        for (idx j = TID; j < HIDDEN; j += THREADS) {
            const H_C r = ACT_F(CLIP(G_LD(G_AT(t, d, b, HIDDEN + j)) + A_LD(A_AT(d, b, HIDDEN + j))));
            C_ST(C_AT(d, b, j), r * H_LD(H_AT(d, b, j)));
        }
        SYNC();
        for (idx row = FIRST_ROWS + TID; row < 3 * HIDDEN; row += THREADS) {
            H_C sum = 0;
            for (idx j = 0; j < HIDDEN; j++) sum += (H_C)R_LD(R_AT(d, row, j)) * C_LD(C_AT(d, b, j));
            A_ST(A_AT(d, b, row), sum);
        }
        SYNC();
#endif
#endif
        for (idx j = TID; j < HIDDEN; j += THREADS) {
#if CELL == 0
            const H_C h = ACT_F(CLIP(G_LD(G_AT(t, d, b, j)) + A_LD(A_AT(d, b, j))));
#elif CELL == 1
            const H_C z = ACT_F(CLIP(G_LD(G_AT(t, d, b, j)) + A_LD(A_AT(d, b, j))));
            H_C inner = A_LD(A_AT(d, b, 2 * HIDDEN + j));
#if !RESET_FIRST
#if HAS_B
            inner += (H_C)B_LD(B_AT(d, 5 * HIDDEN + j));
#endif
            inner *= ACT_F(CLIP(G_LD(G_AT(t, d, b, HIDDEN + j)) + A_LD(A_AT(d, b, HIDDEN + j))));
#endif
            const H_C n = ACT_G(CLIP(G_LD(G_AT(t, d, b, 2 * HIDDEN + j)) + inner));
            const H_C h = ((H_C)1 - z) * n + z * H_LD(H_AT(d, b, j));
#else
            const H_C old = C_LD(C_AT(d, b, j));
            H_C in = G_LD(G_AT(t, d, b, j)) + A_LD(A_AT(d, b, j));
            H_C out = G_LD(G_AT(t, d, b, HIDDEN + j)) + A_LD(A_AT(d, b, HIDDEN + j));
            H_C keep = G_LD(G_AT(t, d, b, 2 * HIDDEN + j)) + A_LD(A_AT(d, b, 2 * HIDDEN + j));
#if HAS_P
            in += (H_C)P_LD(P_AT(d, j)) * old;
            keep += (H_C)P_LD(P_AT(d, 2 * HIDDEN + j)) * old;
#endif
            in = ACT_F(CLIP(in));
            keep = COUPLED ? (H_C)1 - in : ACT_F(CLIP(keep));
            const H_C fresh = ACT_G(CLIP(G_LD(G_AT(t, d, b, 3 * HIDDEN + j)) + A_LD(A_AT(d, b, 3 * HIDDEN + j))));
            const H_C c = keep * old + in * fresh;
#if HAS_P
            out += (H_C)P_LD(P_AT(d, HIDDEN + j)) * c;
#endif
            const H_C h = ACT_F(CLIP(out)) * ACT_H(c);
            C_ST(C_AT(d, b, j), c);
#endif
            H_ST(H_AT(d, b, j), h);
#if HAS_Y
            Y_ST(Y_AT(t, d, b, j), h);
#endif
        }
        SYNC();
    }
    for (idx j = TID; j < HIDDEN; j += THREADS) {
#if HAS_Y
        for (idx t = length; t < (STEPS); t++) Y_ST(Y_AT(t, d, b, j), 0);
#endif
#if HAS_YH
        YH_ST(YH_AT(d, b, j), H_LD(H_AT(d, b, j)));
#endif
#if HAS_YC
        YC_ST(YC_AT(d, b, j), C_LD(C_AT(d, b, j)));
#endif
    }
}
