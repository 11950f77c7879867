/* timers.h - of plans made with gcc-plan --timers: each block of a launch stamps when it began, when its wait for the kernels before it was over,
 * and when it ended. It stands behind the prelude, in place of what that has where TIMERS is not defined. A kernel gets one more parameter, gp_timers:
 * the launch's records in the plan's memory, one for each block, blocks of x first (plan_stamp of runtime/plan.h: begin, waited, end, processor).
 *
 * Only the first thread of a block writes, and at once, so that no time is held in registers; `waited` becomes 0 at the begin, for blocks that end without a
 * wait. Kernels return from many places, so the body is a function that the kernel calls between two stamps. No barrier before the last one: threads
 * that have ended count as arrived at those of a cluster. */
#define GP_STAMPS_OF(timers) ((timers) + 4 * (BID_X + (idx)GRID_X * (BID_Y + (idx)GRID_Y * BID_Z)))
#define GP_STAMPS GP_STAMPS_OF(gp_timers)
#if ON_GPU

/* By predicates: the other threads take no branch. */
#define GP_BY_FIRST(text) "{\n\t.reg .pred first;\n\t.reg .u32 r;\n\t.reg .u64 now, more;\n\tmov.u32 r, %%tid.x;\n\tsetp.eq.u32 first, r, 0;\n\t" text "}"
FN void gp_begun(gp_u64 *at)
{
    asm volatile(GP_BY_FIRST("mov.u64 more, 0;\n\t@first mov.u64 now, %%globaltimer;\n\t@first st.global.v2.u64 [%0], {now, more};\n\t") : : "l"(at) : "memory");
}
FN void gp_waited(gp_u64 *at)
{
    asm volatile(GP_BY_FIRST("@first mov.u64 now, %%globaltimer;\n\t@first st.global.u64 [%0], now;\n\t") : : "l"(at + 1) : "memory");
}
FN void gp_ended(gp_u64 *at)
{
    asm volatile(GP_BY_FIRST("mov.u32 r, %%smid;\n\tcvt.u64.u32 more, r;\n\t@first mov.u64 now, %%globaltimer;\n\t@first st.global.v2.u64 [%0], {now, more};\n\t")
                 : : "l"(at + 2) : "memory");
}
#define GP_WAITED gp_waited(GP_STAMPS);
#define GP_BODY GP_PASTE(KERNEL_NAME, _body)
#define GP_KERNEL(...) \
    FN void GP_BODY(KERNEL_PARAMS); \
    extern "C" __global__ void __VA_ARGS__ KERNEL_NAME(KERNEL_PARAMS) \
    { \
        gp_begun(GP_STAMPS); \
        GP_BODY(KERNEL_ARGS); \
        gp_ended(GP_STAMPS); \
    } \
    FN void GP_BODY(KERNEL_PARAMS)

#else /* host: a kernel with fibres is called for each thread by itself, another one for all of a block */

FN void gp_begun(gp_u64 *at)
{
    at[0] = plan_host->now();
    at[1] = 0;
}
FN void gp_ended(gp_u64 *at)
{
    at[2] = plan_host->now();
    at[3] = plan_host->worker();
}
#define GP_WAITED if (gp_thread == 0) GP_STAMPS[1] = plan_host->now();
#define GP_BEGUN if (gp_index->first_thread == 0) gp_begun(GP_STAMPS_OF((gp_u64 *)KERNEL_TIMERS));
#define GP_ENDED if (gp_index->first_thread == 0) gp_ended(GP_STAMPS_OF((gp_u64 *)KERNEL_TIMERS));

#endif
