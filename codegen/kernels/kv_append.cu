/* kv_append: writes the new keys KN and values VN [B, heads, S, width] as rows START.. of the caches KO and VO.
 * ROWED: START.. beyond each row's own length, and nothing for a row that rests. */
KERNEL(256)
{
    EXTENTS
    const idx width = HEAD + VHEAD, count = KN_D0 * KN_D1 * KN_D2 * width;
    for (idx i = (idx)BID_X * KERNEL_BLOCK + TID; i < count; i += (idx)GRID_X * KERNEL_BLOCK) {
        const idx d = i % width, s = i / width % KN_D2, h = i / width / KN_D2 % KN_D1, b = i / width / KN_D2 / KN_D1;
#if ROWED
        const idx start = RL_LD(RL_OFF + b) + START;
        if (!RT_LD(RT_OFF + b)) continue;
#else
        const idx start = START;
#endif
        if (d < HEAD) KO_ST(KO_AT(b, h, start + s, d), KN_LD(KN_AT(b, h, s, d)));
        else VO_ST(VO_AT(b, h, start + s, d - HEAD), VN_LD(VN_AT(b, h, s, d - HEAD)));
    }
}
