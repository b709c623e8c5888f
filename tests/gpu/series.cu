// A matrix product whose blocks may have any number of threads: each thread computes one element, by a grid-wide index. In
// small blocks the tiles of rows that threads share in the L1 are small; large ones leave SMs idle at the end. Which size
// is the best differs between GPUs: the program times each of them by events, and prints the times on stderr.
//   series N [BLOCK...]     N: rows; the first launch has blocks of 256 threads, and its result is checked
#include <cstdio>
#include <cstdlib>
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
