// A flag in host memory that no argument names: a variable of the module has a list in device memory, and its last
// entry points to the host. Three streams wait for it, each with work queued after the gate.
#include "contact.cuh"

enum { STREAMS = 3, ROUNDS = 3, N = 1 << 14 };
struct entry {
    entry *next;
    volatile unsigned *word;
};
__device__ entry *list_head;
__device__ unsigned late_gates;

__global__ void gate(unsigned value)
{
    entry *e = list_head;
    while (e->next)
        e = e->next;
    if (!wait_for(e->word, value))
        atomicAdd(&late_gates, 1u);
}

int main()
{
    entry host[3] = {}, *list = device_zeros<entry>(3);
    volatile unsigned *flag;
    unsigned *flag_d, *v[STREAMS], want = 0, late;
    cudaStream_t s[STREAMS];
    CK(cudaHostAlloc((void **)&flag, 64, cudaHostAllocMapped | cudaHostAllocPortable));
    CK(cudaHostGetDevicePointer((void **)&flag_d, (void *)flag, 0));
    for (int i = 0; i < 3; i++)
        host[i].next = i < 2 ? list + i + 1 : NULL;
    host[2].word = flag_d;
    CK(cudaMemcpy(list, host, sizeof(host), cudaMemcpyHostToDevice));
    CK(cudaMemcpyToSymbol(list_head, &list, sizeof(list)));
    for (int i = 0; i < STREAMS; i++) {
        CK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        v[i] = device_zeros<unsigned>(N);
    }
    *flag = 0;
    gate<<<1, 1>>>(0);
    mix<<<16, 256>>>(v[0], N, 0);
    CK(cudaDeviceSynchronize());
    for (unsigned r = 1; r <= ROUNDS; r++) {
        for (int i = 0; i < STREAMS; i++) {
            gate<<<1, 1, 0, s[i]>>>(r);
            mix<<<16, 256, 0, s[i]>>>(v[i], N, r);
            mix<<<16, 256, 0, s[i]>>>(v[i], N, r + 9);
        }
        want = mixed(mixed(want, r), r + 9);
        sleep_ms(2);
        *flag = r;
        for (int i = 0; i < STREAMS; i++)
            CK(cudaStreamSynchronize(s[i]));
    }
    CK(cudaMemcpyFromSymbol(&late, late_gates, sizeof(late)));
    bool ok = late == 0;
    for (int i = 0; i < STREAMS; i++) {
        unsigned got = from_device(v[i] + N / 2);
        printf("stream %d: %u\n", i, got);
        ok = ok && got == want;
    }
    printf("late %u\n", late);
    return verdict("deepflag", ok);
}
