// A matrix transposed twice, once straight and once through a tile of shared memory, and a vector update: three kernels
// whose reports differ. The program checks its own results, says so in one line and exits with 1 if they are wrong.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int N = 4096;  // rows and columns of the matrix, a multiple of TILE
constexpr int TILE = 32; // edge of a block's tile
constexpr int ROWS = 8;  // rows of a tile that a block takes at a time
constexpr int BLOCK = 256;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

// A warp reads 32 neighbours and writes 32 rows: each of its stores touches 32 sectors.
__global__ void transpose_naive(const float *in, float *out)
{
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        out[x * N + y + i] = in[(y + i) * N + x];
}

// Turned in shared memory, the tile is read and written in rows. The extra column keeps the banks apart.
__global__ void transpose_tiled(const float *in, float *out)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * N + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        out[(y + i) * N + x] = tile[threadIdx.x][threadIdx.y + i];
}

// In place: run twice over the same memory, it gives another result.
__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

static long wrong_transposed(const std::vector<float> &in, const std::vector<float> &out)
{
    long wrong = 0;
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            wrong += out[size_t(x) * N + y] != in[size_t(y) * N + x];
    return wrong;
}

int main()
{
    const size_t count = size_t(N) * N, bytes = count * sizeof(float);
    const dim3 grid(N / TILE, N / TILE), block(TILE, ROWS);
    std::vector<float> in(count), out(count);
    float *d_in, *d_out;
    long wrong = 0;

    for (size_t i = 0; i < count; i++)
        in[i] = float(i); // exact up to 2^24, the number of elements
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));

    transpose_naive<<<grid, block>>>(d_in, d_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    wrong += wrong_transposed(in, out);

    CHECK(cudaMemset(d_out, 0, bytes));
    transpose_tiled<<<grid, block>>>(d_in, d_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    wrong += wrong_transposed(in, out);

    CHECK(cudaMemset(d_out, 0, bytes));
    saxpy<<<int(count / BLOCK), BLOCK>>>(int(count), 0.5f, d_in, d_out);
    saxpy<<<int(count / BLOCK), BLOCK>>>(int(count), 0.5f, d_in, d_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        wrong += out[i] != in[i]; // half of it was added twice

    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    std::printf("transpose: %d x %d floats, 4 launches, %s\n", N, N, wrong ? "WRONG RESULTS" : "results correct");
    return wrong != 0;
}
