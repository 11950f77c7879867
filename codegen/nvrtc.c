/* nvrtc.c - the CUDA targets, through NVIDIA's run-time compiler: "sm_90a" and the like give a cubin, "ptx" gives PTX for
 * compute_80, which the driver of any later GPU takes. Needs no GPU. Empty in a build without NVRTC. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "codegen.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_NVRTC

#include <nvrtc.h>
#ifdef HAVE_NVJITLINK
#include <nvJitLink.h>
#endif

#define PTX_ARCHITECTURE "compute_80"
#define REINSTALL "reinstall NVRTC, or leave CUDA targets out"
enum { OLDEST = 80, MAX_ARCHITECTURES = 64 };

static int architectures(int *list)
{
    int count = 0;
    if (nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 0 || count > MAX_ARCHITECTURES) return 0;
    return nvrtcGetSupportedArchs(list) == NVRTC_SUCCESS ? count : 0;
}

bool nvrtc_knows(const char *target)
{
    int list[MAX_ARCHITECTURES];
    char *end = NULL;
    if (strcmp(target, "ptx") == 0) return true;
    if (strncmp(target, "sm_", 3) != 0 || target[3] < '1' || target[3] > '9') return false;
    const long number = strtol(target + 3, &end, 10);
    /* From 9.0 on "a" adds what only that architecture has, from 10.0 on "f" what its family has. */
    const bool suffix = strcmp(end, "a") == 0 ? number >= 90 : strcmp(end, "f") == 0 ? number >= 100 : *end == 0;
    if (!suffix || number < OLDEST) return false;
    for (int i = 0, n = architectures(list); i < n; i++)
        if (list[i] == number) return true;
    return false;
}

const char *nvrtc_known(void)
{
    static char text[512];
    int list[MAX_ARCHITECTURES];
    size_t length = (size_t)snprintf(text, sizeof text, ", ptx");
    for (int i = 0, n = architectures(list); i < n && length < sizeof text - 16; i++)
        if (list[i] >= OLDEST) length += (size_t)snprintf(text + length, sizeof text - length, ", sm_%d", list[i]);
    return text;
}

static void report_log(nvrtcProgram program, nvrtcResult status, CodeResult *r)
{
    size_t size = 0;
    char *log = NULL;
    if (nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 0 && (log = malloc(size)) != NULL &&
        nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS)
        log[0] = 0;
    code_error(r, status == NVRTC_ERROR_COMPILATION ? NULL : REINSTALL, "%s: %.3000s", nvrtcGetErrorString(status),
               log ? log : "");
    free(log);
}

static nvrtcResult take_code(nvrtcProgram program, bool ptx, CodeResult *r)
{
    size_t size = 0;
    nvrtcResult status = ptx ? nvrtcGetPTXSize(program, &size) : nvrtcGetCUBINSize(program, &size);
    if (status != NVRTC_SUCCESS) return status;
    char *bytes = malloc(size + 1);
    if (!bytes) return NVRTC_ERROR_OUT_OF_MEMORY;
    status = ptx ? nvrtcGetPTX(program, bytes) : nvrtcGetCUBIN(program, bytes);
    if (status != NVRTC_SUCCESS) {
        free(bytes);
        return status;
    }
    r->bytes = bytes;
    r->size = size;
    return status;
}

#ifdef HAVE_NVJITLINK

bool nvrtc_links(const char *target, const char **why)
{
    *why = "PTX cannot be linked with the device runtime, which sets the conditions of graph nodes";
    return strcmp(target, "ptx") != 0;
}

/* The error texts of the linker, of which LINK may have none. */
static void report_link(nvJitLinkHandle link, nvJitLinkResult status, CodeResult *r)
{
    size_t size = 0;
    char *log = NULL;
    if (link && nvJitLinkGetErrorLogSize(link, &size) == NVJITLINK_SUCCESS && size > 0 && (log = calloc(size + 1, 1)) != NULL &&
        nvJitLinkGetErrorLog(link, log) != NVJITLINK_SUCCESS)
        log[0] = 0;
    code_error(r, REINSTALL, "nvJitLink: error %d: %.3000s", (int)status, log ? log : "");
    free(log);
}

/* The object in R becomes a cubin that has the device runtime in it. */
static void link_code(const char *target, CodeResult *r)
{
    char architecture[64];
    const char *options[] = {architecture};
    nvJitLinkHandle link = NULL;
    size_t size = 0;
    char *bytes = NULL;
    snprintf(architecture, sizeof architecture, "-arch=%s", target);
    nvJitLinkResult status = nvJitLinkCreate(&link, (uint32_t)COUNT_OF(options), options);
    if (status == NVJITLINK_SUCCESS) status = nvJitLinkAddData(link, NVJITLINK_INPUT_CUBIN, r->bytes, r->size, "module");
    if (status == NVJITLINK_SUCCESS) status = nvJitLinkAddFile(link, NVJITLINK_INPUT_LIBRARY, CUDADEVRT);
    if (status == NVJITLINK_SUCCESS) status = nvJitLinkComplete(link);
    if (status == NVJITLINK_SUCCESS) status = nvJitLinkGetLinkedCubinSize(link, &size);
    if (status == NVJITLINK_SUCCESS && (bytes = malloc(size + 1)) != NULL) status = nvJitLinkGetLinkedCubin(link, bytes);
    free(r->bytes);
    r->bytes = bytes;
    r->size = size;
    if (status != NVJITLINK_SUCCESS || !bytes) report_link(link, status, r);
    if (link) nvJitLinkDestroy(&link);
}

#else

bool nvrtc_links(const char *target, const char **why)
{
    (void)target;
    *why = "gcc-plan was built without nvJitLink, which links the kernel that sets the conditions of graph nodes";
    return false;
}

static void link_code(const char *target, CodeResult *r)
{
    (void)r;
    fault("codegen", "a module for %s is to be linked in a build without nvJitLink", target);
}

#endif

void nvrtc_compile(const char *target, const char *source, bool linked, CodeResult *r)
{
    const bool ptx = strcmp(target, "ptx") == 0;
    char architecture[64];
    /* --fmad=false: a product and a sum round as the graph's nodes do; kernels ask for fma where they want it. */
    const char *options[] = {architecture, "--std=c++17", "--fmad=false", "-default-device", "-w", "--relocatable-device-code=true"};
    nvrtcProgram program = NULL;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", ptx ? PTX_ARCHITECTURE : target);
    nvrtcResult status = nvrtcCreateProgram(&program, source, "module.cu", 0, NULL, NULL);
    if (status != NVRTC_SUCCESS) {
        code_error(r, REINSTALL, "NVRTC makes no program: %s", nvrtcGetErrorString(status));
        return;
    }
    status = nvrtcCompileProgram(program, (int)COUNT_OF(options) - !linked, options);
    if (status == NVRTC_SUCCESS) status = take_code(program, ptx, r);
    if (status != NVRTC_SUCCESS) report_log(program, status, r);
    else if (linked) link_code(target, r);
    nvrtcDestroyProgram(&program);
}

#else

bool nvrtc_knows(const char *target)
{
    (void)target;
    return false;
}

const char *nvrtc_known(void) { return " (built without NVRTC)"; }

bool nvrtc_links(const char *target, const char **why)
{
    (void)target;
    *why = "gcc-plan was built without NVRTC";
    return false;
}

void nvrtc_compile(const char *target, const char *source, bool linked, CodeResult *r)
{
    (void)source;
    (void)linked;
    code_error(r, "configure with NVRTC", "target '%s' needs NVRTC, which this build has not", target);
}

#endif
