/* exchange.cu - what it costs that all blocks of a device read what all have just written: as launches of a graph with programmatic edges, and
 * within one grid that stays, behind a counter or in words that carry their own epoch. It decides whether a step is worth one launch.
 *
 *   nvcc -O3 -arch=sm_90a -o exchange tests/bench/exchange.cu && ./exchange
 *
 * A phase: each of 132 blocks reads a row of ROW halves, adds it up, and 128 of them write 8 halves each of the next row, in the other
 * buffer. Prints the median time of a phase, in microseconds. */
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

enum { ROW = 1024, PHASES = 200, BLOCKS = 132, WRITERS = ROW / 8, WARM = 10, RUNS = 60 };

static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "exchange: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}
#define CHECK(call) check((call), #call)

__device__ float pair_sum(unsigned word)
{
    const float2 v = __half22float2(*(const half2 *)&word);
    return v.x + v.y;
}

/* The block's sum of V, which depends on all of the row; SUMS has a float for each warp. */
__device__ unsigned next_pair(float v, float *sums)
{
    for (int other = 16; other; other /= 2) v += __shfl_xor_sync(~0u, v, other);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0.0f;
    for (unsigned warp = 0; warp < blockDim.x / 32; warp++) sum += sums[warp];
    const half2 pair = __float2half2_rn(sum / ROW + 1e-3f * blockIdx.x);
    return *(const unsigned *)&pair;
}

__device__ uint4 load(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

__device__ void store(uint4 *p, unsigned x, unsigned y, unsigned z, unsigned w)
{
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(p), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

/* Eight halves a word of 16 bytes. */
__device__ void plain_phase(const uint4 *from, uint4 *to, float *sums)
{
    float v = 0.0f;
    for (int i = threadIdx.x; i < ROW / 8; i += blockDim.x) {
        const uint4 word = load(from + i);
        v += pair_sum(word.x) + pair_sum(word.y) + pair_sum(word.z) + pair_sum(word.w);
    }
    const unsigned pair = next_pair(v, sums);
    if (blockIdx.x < WRITERS && threadIdx.x == 0) store(to + blockIdx.x, pair, pair, pair, pair);
}

__global__ void launched(const uint4 *from, uint4 *to)
{
    __shared__ float sums[32];
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
    plain_phase(from, to, sums);
}

__global__ void counted(uint4 *a, uint4 *b, unsigned *counter)
{
    __shared__ float sums[2][32];
    for (unsigned phase = 0; phase < PHASES; phase++) {
        plain_phase(phase % 2 ? b : a, phase % 2 ? a : b, sums[phase % 2]);
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned seen;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(counter) : "memory");
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
            while (seen < (phase + 1) * BLOCKS);
        }
        __syncthreads();
    }
}

/* Words of 8 bytes, two halves and the epoch of the phase that made them; two are read at once. A block that writes no word may be a phase late. */
__global__ void epochs(uint4 *a, uint4 *b, unsigned first)
{
    __shared__ float sums[2][32];
    for (unsigned phase = 0; phase < PHASES; phase++) {
        const uint4 *from = phase % 2 ? b : a;
        uint4 *to = phase % 2 ? a : b;
        const unsigned epoch = first + phase;
        float v = 0.0f;
        for (int i = threadIdx.x; i < ROW / 4; i += blockDim.x) {
            uint4 word;
            do word = load(from + i);
            while ((int)(word.y - epoch) < 0 || (int)(word.w - epoch) < 0);
            v += pair_sum(word.x) + pair_sum(word.z);
        }
        const unsigned pair = next_pair(v, sums[phase % 2]);
        if (blockIdx.x < WRITERS && threadIdx.x < 2) store(to + 2 * blockIdx.x + threadIdx.x, pair, epoch + 1, pair, epoch + 1);
    }
}

__global__ void begin(uint4 *row, unsigned epoch)
{
    for (int i = threadIdx.x; i < ROW / 4; i += blockDim.x) row[i] = make_uint4(0, epoch, 0, epoch);
}

template <class Work> static float median(Work work)
{
    cudaEvent_t before, after;
    std::vector<float> times;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (int run = 0; run < WARM + RUNS; run++) {
        float ms;
        CHECK(cudaEventRecord(before));
        work();
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        if (run >= WARM) times.push_back(ms * 1e3f / PHASES);
    }
    std::sort(times.begin(), times.end());
    return times[RUNS / 2];
}

static cudaGraphExec_t chain(uint4 *a, uint4 *b, int threads)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t result;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int phase = 0; phase < PHASES; phase++) {
        cudaLaunchAttribute edge = {};
        edge.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        edge.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = BLOCKS;
        config.blockDim = threads;
        config.stream = stream;
        config.attrs = &edge;
        config.numAttrs = phase > 0;
        CHECK(cudaLaunchKernelEx(&config, launched, (const uint4 *)(phase % 2 ? b : a), phase % 2 ? a : b));
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&result, graph, 0));
    return result;
}

int main()
{
    uint4 *a, *b;
    unsigned *counter, epoch = 1;
    CHECK(cudaMalloc(&a, ROW * 4));
    CHECK(cudaMalloc(&b, ROW * 4));
    CHECK(cudaMalloc(&counter, sizeof *counter));
    CHECK(cudaMemset(a, 0, ROW * 4));
    CHECK(cudaMemset(b, 0, ROW * 4));
    for (int threads = 256; threads <= 512; threads *= 2) {
        const cudaGraphExec_t graph = chain(a, b, threads);
        printf("%d threads: programmatic edges %.3f us", threads, median([&] { CHECK(cudaGraphLaunch(graph, 0)); }));
        printf(", counter %.3f", median([&] {
            CHECK(cudaMemsetAsync(counter, 0, sizeof *counter));
            counted<<<BLOCKS, threads>>>(a, b, counter);
        }));
        printf(", epochs %.3f\n", median([&] {
            begin<<<1, 256>>>(a, epoch);
            CHECK(cudaMemsetAsync(b, 0, ROW * 4));
            epochs<<<BLOCKS, threads>>>(a, b, epoch);
            epoch += 2 * PHASES;
        }));
        CHECK(cudaDeviceSynchronize());
    }
    return 0;
}
