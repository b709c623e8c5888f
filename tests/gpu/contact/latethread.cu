// The flag is in memory that was allocated by malloc and registered. A second thread sets it after a sleep, while main
// waits for the stream; the kernel answers, and the thread changes what the next launch reads.
#include "contact.cuh"
#include <pthread.h>

enum { ROUNDS = 4, N = 1 << 14 };
struct mail {
    volatile unsigned go, done, number, answer;
};
static mail *box;
static unsigned total;

__global__ void reader(mail *m, unsigned round, unsigned *late)
{
    if (!wait_for(&m->go, round))
        *late += 1;
    m->answer = m->number * 7u;
    __threadfence_system();
    m->done = round;
}

static void *writer(void *)
{
    for (unsigned r = 1; r <= ROUNDS; r++) {
        sleep_ms(25);
        box->number = 100 + r;
        __sync_synchronize();
        box->go = r;
        if (!host_wait_for(&box->done, r))
            return NULL;
        total += box->answer;
    }
    return NULL;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *late = device_zeros<unsigned>(1);
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, 4096))
        return 9;
    memset(memory, 0, 4096);
    box = (mail *)memory;
    CK(cudaHostRegister(memory, 4096, cudaHostRegisterMapped));
    mail *d;
    CK(cudaHostGetDevicePointer((void **)&d, memory, 0));
    mix<<<16, 256>>>(v, N, 1);
    reader<<<1, 1>>>(d, 0, late); // passes at once
    CK(cudaDeviceSynchronize());
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    unsigned want = mixed(0, 1);
    for (unsigned r = 1; r <= ROUNDS; r++) {
        mix<<<16, 256>>>(v, N, r);
        reader<<<1, 1>>>(d, r, late);
        mix<<<16, 256>>>(v, N, r + 50);
        CK(cudaStreamSynchronize(0));
        want = mixed(mixed(want, r), r + 50);
    }
    pthread_join(thread, NULL);
    CK(cudaHostUnregister(memory));
    unsigned got = from_device(v + 77), l = from_device(late);
    printf("value %u, late %u, answers %u\n", got, l, total);
    return verdict("latethread", got == want && l == 0 && total == 7u * (100 * ROUNDS + ROUNDS * (ROUNDS + 1) / 2));
}
