// Steps of heat on a plane, each by conjugate gradients: the five-point operator, dot products in a fixed order, and a
// copy of the residual to the host in each of 4,000 iterations. 20,800 launches of 6 kernels and shapes.
#include "bounded.cuh"

enum { W = 256, CELLS = W * W, BLOCK = 256, BLOCKS = CELLS / BLOCK, SYSTEMS = 400, ITERATIONS = 10 };

struct scalars {
    double rr, alpha, beta;
};

__device__ static double block_sum(double own)
{
    __shared__ double part[BLOCK];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int n = BLOCK / 2; n > 0; n /= 2) {
        if (threadIdx.x < n)
            part[threadIdx.x] += part[threadIdx.x + n];
        __syncthreads();
    }
    return part[0];
}

__global__ void begin(int system, const double *x, double *r, double *p, double *parts)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    double b = 1e-3 * ((i * 7 + system * 13) % 101) - 0.05;
    r[i] = p[i] = b - 0.25 * x[i];
    double sum = block_sum(r[i] * r[i]);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

__global__ void apply(const double *p, double *q, double *parts)
{
    int i = blockIdx.x * BLOCK + threadIdx.x, x = i % W, y = i / W;
    double v = 4.25 * p[i];
    v -= x ? p[i - 1] : 0;
    v -= x < W - 1 ? p[i + 1] : 0;
    v -= y ? p[i - W] : 0;
    v -= y < W - 1 ? p[i + W] : 0;
    q[i] = v;
    double sum = block_sum(p[i] * v);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

__global__ void finish_step(const double *parts, scalars *s)
{
    double sum = block_sum(parts[threadIdx.x]);
    if (threadIdx.x == 0)
        s->alpha = sum != 0 ? s->rr / sum : 0;
}

__global__ void advance(const scalars *s, const double *p, const double *q, double *x, double *r, double *parts)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] += s->alpha * p[i];
    r[i] -= s->alpha * q[i];
    double sum = block_sum(r[i] * r[i]);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

__global__ void finish_residual(const double *parts, scalars *s, bool first)
{
    double sum = block_sum(parts[threadIdx.x]);
    if (threadIdx.x == 0) {
        s->beta = first || s->rr == 0 ? 0 : sum / s->rr;
        s->rr = sum;
    }
}

__global__ void turn(const scalars *s, const double *r, double *p)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    p[i] = r[i] + s->beta * p[i];
}

int main()
{
    static_assert(BLOCKS == BLOCK, "one block adds up the parts");
    double *x = device_zeros<double>(CELLS), *r = device_zeros<double>(CELLS), *p = device_zeros<double>(CELLS);
    double *q = device_zeros<double>(CELLS), *parts = device_zeros<double>(BLOCKS), residual = 0;
    scalars *s = device_zeros<scalars>(1);
    unsigned launches = 0;
    unsigned long long sum = 0;
    for (int system = 0; system < SYSTEMS; system++) {
        begin<<<BLOCKS, BLOCK>>>(system, x, r, p, parts);
        finish_residual<<<1, BLOCK>>>(parts, s, true);
        for (int i = 0; i < ITERATIONS; i++) {
            apply<<<BLOCKS, BLOCK>>>(p, q, parts);
            finish_step<<<1, BLOCK>>>(parts, s);
            advance<<<BLOCKS, BLOCK>>>(s, p, q, x, r, parts);
            finish_residual<<<1, BLOCK>>>(parts, s, false);
            turn<<<BLOCKS, BLOCK>>>(s, r, p);
            CK(cudaGetLastError());
            CK(cudaMemcpy(&residual, &s->rr, sizeof residual, cudaMemcpyDeviceToHost));
            sum = digest(&residual, sizeof residual, sum);
        }
        launches += 2 + 5 * ITERATIONS;
    }
    printf("residual %.6g\n", residual);
    return ended("cg", launches, sum ^ digest_of_device(x, CELLS));
}
