/* codegen.h - what codegen.c and the back ends agree on. A back end turns one module's source into code; it touches
 * no Compilation, so that modules compile in parallel. */
#ifndef GCC_PLAN_CODEGEN_H
#define GCC_PLAN_CODEGEN_H

#include "compiler.h"

/* What a back end made. Both are from malloc(), and the caller's. */
typedef struct CodeResult {
    void *bytes; /* NULL after an error */
    size_t size;
    char *error; /* what went wrong */
    const char *remedy; /* what the user can do about it; NULL: nothing, our kernel is wrong */
} CodeResult;

void code_error(CodeResult *r, const char *remedy, const char *format, ...);

const char *host_target(void); /* "host-x86_64": what "host" stands for on this machine */
void host_compile(const char *source, size_t size, CodeResult *r);

/* Without NVRTC in the build no target is known. */
bool nvrtc_knows(const char *target);
const char *nvrtc_known(void); /* ", ptx, sm_80, ...": for messages, lives for ever; "" without NVRTC */
/* LINKED: the source calls the device runtime, and is linked with it; for targets that nvrtc_links says yes to. */
void nvrtc_compile(const char *target, const char *source, bool linked, CodeResult *r);
/* Whether code for TARGET can be linked with the device runtime; else *WHY says why not. */
bool nvrtc_links(const char *target, const char **why);

#endif
