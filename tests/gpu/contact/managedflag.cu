// Flags in managed memory: one from cudaMallocManaged that stays with the host, and one __managed__ variable. The host
// opens both without a call, after more work was queued in two streams.
#include "contact.cuh"

enum { ROUNDS = 3, N = 1 << 15 };
__managed__ unsigned gate_variable;

__global__ void by_pointer(volatile unsigned *flag, unsigned value, unsigned *late)
{
    if (!wait_for(flag, value))
        atomicAdd(late, 1u);
}
__global__ void by_variable(unsigned value, unsigned *late)
{
    if (!wait_for(&gate_variable, value))
        atomicAdd(late, 1u);
}

int main()
{
    if (!attribute(cudaDevAttrConcurrentManagedAccess))
        NEEDS(1, "concurrent access to managed memory");
    unsigned *x = device_zeros<unsigned>(N), *y = device_zeros<unsigned>(N), *late = device_zeros<unsigned>(1), *flag;
    cudaStream_t a, b;
    cudaMemLocation host = {cudaMemLocationTypeHost, 0}, device = {cudaMemLocationTypeDevice, 0};
    CK(cudaMallocManaged(&flag, 4096));
    CK(cudaMemAdvise(flag, 4096, cudaMemAdviseSetPreferredLocation, host));
    CK(cudaMemAdvise(flag, 4096, cudaMemAdviseSetAccessedBy, device));
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    *(volatile unsigned *)flag = 0;
    *(volatile unsigned *)&gate_variable = 0;
    by_pointer<<<1, 1, 0, a>>>(flag, 0, late);
    by_variable<<<1, 1, 0, b>>>(0, late);
    mix<<<32, 256, 0, a>>>(x, N, 0);
    CK(cudaDeviceSynchronize());
    unsigned want = 0;
    for (unsigned r = 1; r <= ROUNDS; r++) {
        by_pointer<<<1, 1, 0, a>>>(flag, r, late);
        by_variable<<<1, 1, 0, b>>>(r, late);
        for (unsigned k = 0; k < 3; k++) {
            mix<<<32, 256, 0, a>>>(x, N, r + k);
            mix<<<32, 256, 0, b>>>(y, N, r + k);
            want = mixed(want, r + k);
        }
        *(volatile unsigned *)flag = r;
        *(volatile unsigned *)&gate_variable = r;
        CK(cudaStreamSynchronize(a));
        CK(cudaStreamSynchronize(b));
    }
    unsigned gx = from_device(x + 3), gy = from_device(y + N - 1), l = from_device(late);
    printf("values %u %u, late %u\n", gx, gy, l);
    return verdict("managedflag", gx == want && gy == want && l == 0);
}
