// Two kernels that a rule of the report has an advice for, each beside the variant that follows it:
//   horner_double  in double precision without need (SOLFPRoofline)           -> horner_float
//   branch_lanes   neighbouring threads take different branches (ThreadDivergence) -> branch_warps
// Without arguments each is launched once, to be profiled; with the argument "time" they are timed, and the gain is
// printed that the report's estimates can be held against. Checks its results, and exits with 1 if they are wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

constexpr int BLOCK = 256;
constexpr int KINDS = 8; // ways through branch_lanes
constexpr int WARP = 32;
constexpr int STEPS = 2048;
constexpr int REPEATS = 20;
static_assert(BLOCK == KINDS * WARP, "branch_warps gives each kind a warp of the block");

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

template <typename T> __device__ T horner(T x)
{
    T sum = 0, other = 1;
    for (int i = 0; i < STEPS; i++) {
        sum = sum * x + T(1);
        other = other * x + T(0.5);
    }
    return sum + other;
}

__global__ void horner_double(float *out, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = float(horner(double(i) / (2.0 * n)));
}

// The results are floats, and so are the inputs: nothing is lost that anybody sees.
__global__ void horner_float(float *out, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = horner(float(i) / (2.0f * n));
}

// What has to be done depends on the element, differently for each of eight neighbours.
__device__ unsigned work(unsigned i)
{
    unsigned v = i;
    switch (i % KINDS) {
    case 0:
        for (int k = 0; k < 200; k++)
            v = v * 3 + 1;
        break;
    case 1:
        for (int k = 0; k < 200; k++)
            v ^= v << 3 | 1;
        break;
    case 2:
        for (int k = 0; k < 200; k++)
            v += v >> 2;
        break;
    case 3:
        for (int k = 0; k < 200; k++)
            v = v * 5 - 7;
        break;
    case 4:
        for (int k = 0; k < 200; k++)
            v = (v ^ 0x55) + k;
        break;
    case 5:
        for (int k = 0; k < 200; k++)
            v = v * 9 ^ k;
        break;
    case 6:
        for (int k = 0; k < 200; k++)
            v -= v << 1 ^ k;
        break;
    default:
        for (int k = 0; k < 200; k++)
            v = (v << 1 | v >> 31) + k;
    }
    return v;
}

__global__ void branch_lanes(unsigned *out, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = work(i);
}

// The same elements of a block, dealt out so that all threads of a warp have the same kind of them; through shared
// memory, so that they are still written in rows. `n` is a multiple of the block.
__global__ void branch_warps(unsigned *out, int n)
{
    __shared__ unsigned tile[BLOCK];
    int mine = threadIdx.x % WARP * KINDS + threadIdx.x / WARP;
    tile[mine] = work(blockIdx.x * BLOCK + mine);
    __syncthreads();
    out[blockIdx.x * BLOCK + threadIdx.x] = tile[threadIdx.x];
}

static double microseconds(const std::function<void()> &launch)
{
    cudaEvent_t begin, end;
    float ms;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    launch();
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < REPEATS; i++)
        launch();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return 1000.0 * ms / REPEATS;
}

static void compare(const char *name, const std::function<void()> &before, const std::function<void()> &after)
{
    double slow = microseconds(before), fast = microseconds(after);
    std::printf("%s: %.1f us, fixed %.1f us: %.1f%% less\n", name, slow, fast, 100 * (1 - fast / slow));
}

template <typename T> static std::vector<T> run(const std::function<void()> &launch, const T *from, int n)
{
    std::vector<T> result(n);
    launch();
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(result.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
}

int main(int argc, char **argv)
{
    int device, sms;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    const int grid = sms * 32, n = grid * BLOCK;
    float *floats;
    unsigned *numbers;
    CHECK(cudaMalloc(&floats, n * sizeof *floats));
    CHECK(cudaMalloc(&numbers, n * sizeof *numbers));
    auto doubles_slow = [=] { horner_double<<<grid, BLOCK>>>(floats, n); };
    auto doubles_fast = [=] { horner_float<<<grid, BLOCK>>>(floats, n); };
    auto branches_slow = [=] { branch_lanes<<<grid, BLOCK>>>(numbers, n); };
    auto branches_fast = [=] { branch_warps<<<grid, BLOCK>>>(numbers, n); };

    if (argc > 1 && !std::strcmp(argv[1], "time")) {
        compare("horner_double", doubles_slow, doubles_fast);
        compare("branch_lanes", branches_slow, branches_fast);
    }
    std::vector<float> exact = run(doubles_slow, floats, n), rounded = run(doubles_fast, floats, n);
    std::vector<unsigned> lanes = run(branches_slow, numbers, n), warps = run(branches_fast, numbers, n);
    long wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += !(std::fabs(exact[i] - rounded[i]) <= 1e-5f * exact[i]) + (lanes[i] != warps[i]);
    CHECK(cudaFree(floats));
    CHECK(cudaFree(numbers));
    std::printf("fixes: %d elements, %s\n", n, wrong ? "WRONG RESULTS" : "results correct");
    return wrong != 0;
}
