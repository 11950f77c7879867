/* quant_scale: one warp makes the scale S and zero point Z of u8 from the ranges of BLOCKS blocks (quant_range.cu). A range of zero
 * gets the scale 1, as in onnxruntime: ONNX's formula would divide by zero. */
KERNEL(32)
{
    EXTENTS
    float low = 0.0f, high = 0.0f;
    for (int b = LANE; b < BLOCKS; b += 32) {
        low = FMINF(low, X_LD(X_OFF + 2 * b));
        high = FMAXF(high, X_LD(X_OFF + 2 * b + 1));
    }
    low = -WARP_MAX(-low);
    high = WARP_MAX(high);
    if (LANE > 0) return;
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    S_ST(S_OFF, scale);
    Z_ST(Z_OFF, (int)RINTF(FMINF(FMAXF(-low / scale, 0.0f), 255.0f)));
}
