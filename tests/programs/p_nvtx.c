/* LINK: -lcuda -lpthread -ldl */
/* Launches inside NVTX ranges of two threads, of two domains, started and ended, with names, categories and payloads.
 * Ends with 77 where NVTX's headers are not at hand. The kernels tell where each was launched. */
#include "linked.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { N = 256 };

static struct session session;
static CUdeviceptr values;
static int n = N;
static long long launched;

/* The launch of grid (1 + shape): told apart in the report by its shape. */
static void launch(int shape)
{
    void *params[] = {&values, &n};
    MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 1 + shape, 1, 1, N, 1, 1, 0, session.stream,
                        params, NULL));
    launched++;
}

/* Nobody keeps count where no tool is there. */
static void level(int got, int expected)
{
    report("level", got == expected || got == NVTX_NO_PUSH_POP_TRACKING);
}

static nvtxEventAttributes_t attributes(void)
{
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return a;
}

static void *autograd(void *arg)
{
    (void)arg;
    MUST(cuCtxSetCurrent(session.ctx));
    nvtxRangePushA("backward");
    launch(5);
    nvtxRangePop();
    return NULL;
}

static void in_domains(void)
{
    nvtxDomainHandle_t io = nvtxDomainCreateA("io");
    nvtxEventAttributes_t read = attributes(), wide = attributes();
    nvtxDomainNameCategoryA(io, 3, "disk");
    read.category = 3;
    read.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    read.payload.llValue = -42;
    read.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    read.message.registered = nvtxDomainRegisterStringA(io, "read");
    wide.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    wide.message.unicode = L"gr\u00fc\u00df/e";
    level(nvtxDomainRangePushEx(io, &read), 0);
    level(nvtxDomainRangePushEx(io, &wide), 1);
    launch(3);
    level(nvtxDomainRangePop(io), 1);
    level(nvtxDomainRangePop(io), 0);
    nvtxDomainDestroy(io);
}

static void child(void)
{
    pid_t pid = fork();
    int status = -1;
    if (!pid) {
        nvtxRangePushA("in a child");
        nvtxRangePop();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    report("a child", !status);
}

int main(void)
{
    static const int zeros[N];
    pthread_t thread;
    level(nvtxRangePushA("step"), 0); /* before CUDA is there */
    open_session(&linked, &session, 0);
    values = device_ints(&linked, zeros, N);
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main thread");
    nvtxNameCuStreamA(session.stream, "compute");
    launch(0);
    level(nvtxRangePushA("forward"), 1);
    launch(1);
    nvtxRangeId_t epoch = nvtxRangeStartA("epoch");
    nvtxRangePushA("conv");
    launch(2);
    in_domains();
    nvtxRangePop();
    level(nvtxRangePop(), 1);
    nvtxRangeEnd(epoch);
    launch(4);
    pthread_create(&thread, NULL, autograd, NULL);
    pthread_join(thread, NULL);
    level(nvtxRangePop(), 0);
    launch(6);
    child();
    MUST(cuStreamSynchronize(session.stream));
    report_number("increments", sum_ints(&linked, values, N), launched * N);
    return program_wrong;
}
#else
int main(void)
{
    return 77;
}
#endif
