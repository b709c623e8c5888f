// A matrix product whose blocks may have any number of threads: each thread computes one element, by a grid-wide index. In
// small blocks the tiles of rows that threads share in the L1 are small; large ones leave SMs idle at the end. Which size
// is the best differs between GPUs: the program times each of them by events, and prints the times on stderr.
//   series N [BLOCK...]     N: rows; the first launch has blocks of 256 threads, and its result is checked
//   series N tiles          the same first launch; then the product by tiles, which many registers hold, and a kernel that
//                           uses a variable of its module
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t rc_ = (call);                                                                                      \
        if (rc_ != cudaSuccess) {                                                                                      \
            printf("%s: %s\n", #call, cudaGetErrorString(rc_));                                                        \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void multiply(const float *a, const float *b, float *c, int n)
{
    long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long)n * n)
        return;
    int row = at / n, column = at % n;
    float sum = c[at]; // adds, so that a launch too many shows
    for (int k = 0; k < n; k++)
        sum += a[(long)row * n + k] * b[(long)k * n + column];
    c[at] = sum;
}

// Each thread computes a tile of elements, with all their sums in registers.
enum { TILE = 8 };

__global__ void tiles(const float *a, const float *b, float *c, int n)
{
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * TILE, column = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;
    float sum[TILE][TILE];
    if (row + TILE > n || column + TILE > n)
        return;
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < TILE; j++)
            sum[i][j] = c[(long)(row + i) * n + column + j];
    for (int k = 0; k < n; k++) {
        float left[TILE], right[TILE];
        for (int i = 0; i < TILE; i++) {
            left[i] = a[(long)(row + i) * n + k];
            right[i] = b[(long)k * n + column + i];
        }
        for (int i = 0; i < TILE; i++)
            for (int j = 0; j < TILE; j++)
                sum[i][j] += left[i] * right[j];
    }
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < TILE; j++)
            c[(long)(row + i) * n + column + j] = sum[i][j];
}

__device__ int launches;

__global__ void counted(float *c)
{
    atomicAdd(&launches, 1);
    c[threadIdx.x]++;
}

// Prints the sum of what the tiles' product and the counter's kernel leave. N has to be a multiple of 128.
static void multiply_tiles(const float *a, const float *b, float *c, int n)
{
    std::vector<float> out((size_t)n * n);
    size_t bytes = sizeof(float) * n * n;
    int count = 0;
    double sum = 0;
    MUST(cudaMemset(c, 0, bytes));
    dim3 threads(16, 16), blocks(n / (16 * TILE), n / (16 * TILE));
    tiles<<<blocks, threads>>>(a, b, c, n);
    MUST(cudaGetLastError());
    counted<<<1, 32>>>(c);
    MUST(cudaMemcpy(out.data(), c, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpyFromSymbol(&count, launches, sizeof(count)));
    for (float x : out)
        sum += x;
    printf("tiles %.0f, counted by %d threads\n", sum, count);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2048;
    size_t bytes = sizeof(float) * n * n;
    float *a, *b, *c, *d;
    std::vector<float> host((size_t)n * n), out((size_t)n * n);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = (float)(i % 7) - 3;
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaMalloc(&c, bytes));
    MUST(cudaMalloc(&d, bytes));
    MUST(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(b, host.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemset(c, 0, bytes));
    multiply<<<((long)n * n + 255) / 256, 256>>>(a, b, c, n);
    MUST(cudaMemcpy(out.data(), c, bytes, cudaMemcpyDeviceToHost));
    double sum = 0, right = 0;
    for (float x : out)
        sum += x;
    for (int k = 0; k < n; k++) { // the sum of a product is that of its columns' sums by its rows' sums
        double column = 0, row = 0;
        for (int i = 0; i < n; i++) {
            column += host[(size_t)i * n + k];
            row += host[(size_t)k * n + i];
        }
        right += column * row;
    }
    printf("sum %.0f, %s\n", sum, sum == right ? "right" : "WRONG");

    if (argc > 2 && !strcmp(argv[2], "tiles")) {
        multiply_tiles(a, b, d, n);
        return sum == right ? 0 : 1;
    }
    cudaEvent_t start, stop;
    MUST(cudaEventCreate(&start));
    MUST(cudaEventCreate(&stop));
    for (int i = 2; i < argc; i++) {
        enum { TIMES = 7 };
        int block = atoi(argv[i]);
        float best = 1e30f;
        for (int t = 0; t < TIMES; t++) {
            float ms;
            MUST(cudaEventRecord(start));
            multiply<<<((long)n * n + block - 1) / block, block>>>(a, b, d, n);
            MUST(cudaEventRecord(stop));
            MUST(cudaEventSynchronize(stop));
            MUST(cudaEventElapsedTime(&ms, start, stop));
            best = ms < best ? ms : best;
        }
        fprintf(stderr, "block %d: %.3f us\n", block, 1000 * best);
    }
    return sum == right ? 0 : 1;
}
