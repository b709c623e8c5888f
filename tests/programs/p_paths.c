/* LINK: -lcuda -ldl */
/* Launches of one kernel and shape in NVTX ranges whose names have the number of the step, as those of a training do:
 * one in `forward`, two in `backward`, and one in no range. Arguments: number of steps. Ends with 77 where NVTX's
 * headers are not at hand. */
#include "linked.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

enum { N = 512 };

static struct session session;
static CUdeviceptr values;
static nvtxDomainHandle_t layers;

static void launch(void)
{
    int n = N;
    void *params[] = {&values, &n};
    MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 4, 1, 1, 128, 1, 1, 0, session.stream, params,
                        NULL));
}

static void in_a_layer(const char *pass, int layer)
{
    nvtxEventAttributes_t a = {0};
    char name[32];
    snprintf(name, sizeof(name), "conv2d_%d", layer);
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    a.payload.llValue = layer;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = name;
    nvtxRangePushA(pass);
    nvtxDomainRangePushEx(layers, &a);
    launch();
    nvtxDomainRangePop(layers);
    nvtxRangePop();
}

static void one_step(int step)
{
    char name[32];
    snprintf(name, sizeof(name), "step %d", step);
    nvtxRangePushA(name);
    in_a_layer("forward", step % 3);
    in_a_layer("backward", step % 3);
    in_a_layer("backward", 1 + step % 3);
    nvtxRangePop();
    launch();
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    static const int zeros[N];
    open_session(&linked, &session, 0);
    layers = nvtxDomainCreateA("layers");
    values = device_ints(&linked, zeros, N);
    nvtxRangeId_t epoch = nvtxRangeStartA("epoch");
    for (int step = 0; step < steps; step++)
        one_step(step);
    nvtxRangeEnd(epoch);
    MUST(cuStreamSynchronize(session.stream));
    report_number("increments", sum_ints(&linked, values, N), 4ll * N * steps);
    close_session(&linked, &session);
    return program_wrong;
}
#else
int main(void)
{
    return 77;
}
#endif
