// Graphs with conditional nodes: a loop that the device ends, with a copy and a kernel in its body, and a branch that
// is taken in every other launch. Ordinary kernels run between the launches.
#include "contact.cuh"

enum { N = 1 << 12, TIMES = 6 };

__global__ void count_down(unsigned *left, cudaGraphConditionalHandle loop)
{
    unsigned n = *left;
    if (n)
        *left = --n;
    cudaGraphSetConditional(loop, n > 0);
}
__global__ void set_turns(unsigned *left, unsigned *turn, cudaGraphConditionalHandle loop,
                          cudaGraphConditionalHandle branch)
{
    *turn += 1;
    *left = *turn + 2;
    cudaGraphSetConditional(loop, 1);
    cudaGraphSetConditional(branch, *turn & 1);
}

static cudaGraphNode_t add(cudaGraph_t g, const cudaGraphNode_t *after, cudaGraphNodeParams *p)
{
    cudaGraphNode_t n;
    NEEDS(cudaGraphAddNode(&n, g, after, NULL, after ? 1 : 0, p), "conditional nodes");
    return n;
}

static cudaGraphNodeParams conditional(cudaGraphConditionalHandle h, cudaGraphConditionalNodeType type)
{
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = h;
    p.conditional.type = type;
    p.conditional.size = 1;
    return p;
}

static cudaGraphNodeParams kernel(void *f, unsigned grid, unsigned block, void **args)
{
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeKernel;
    p.kernel.func = f;
    p.kernel.gridDim = dim3(grid);
    p.kernel.blockDim = dim3(block);
    p.kernel.kernelParams = args;
    return p;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *w = device_zeros<unsigned>(N), *left = device_zeros<unsigned>(1);
    unsigned *turn = device_zeros<unsigned>(1), want = 0, want_w = 0, k = 5, other = 9;
    int n = N;
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphConditionalHandle loop, branch;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaGraphCreate(&g, 0));
    NEEDS(cudaGraphConditionalHandleCreate(&loop, g, 0, 0), "conditional nodes");
    CK(cudaGraphConditionalHandleCreate(&branch, g, 0, 0));
    void *start_args[] = {&left, &turn, &loop, &branch}, *mix_args[] = {&v, &n, &k}, *down_args[] = {&left, &loop};
    void *other_args[] = {&w, &n, &other};
    cudaGraphNodeParams p = kernel((void *)set_turns, 1, 1, start_args);
    cudaGraphNode_t first = add(g, NULL, &p);
    cudaGraphNodeParams while_node = conditional(loop, cudaGraphCondTypeWhile);
    cudaGraphNode_t looping = add(g, &first, &while_node);
    cudaGraph_t body = while_node.conditional.phGraph_out[0];
    p = kernel((void *)mix, 16, 256, mix_args);
    cudaGraphNode_t mixes = add(body, NULL, &p);
    p = kernel((void *)count_down, 1, 1, down_args);
    add(body, &mixes, &p);
    cudaGraphNodeParams if_node = conditional(branch, cudaGraphCondTypeIf);
    add(g, &looping, &if_node);
    p = kernel((void *)mix, 16, 256, other_args);
    add(if_node.conditional.phGraph_out[0], NULL, &p);
    CK(cudaGraphInstantiate(&x, g, 0));
    for (unsigned t = 1; t <= TIMES; t++) {
        mix<<<16, 256, 0, s>>>(v, N, t);
        CK(cudaGraphLaunch(x, s));
        mix<<<16, 256, 0, s>>>(w, N, t);
        want = mixed(want, t);
        for (unsigned i = 0; i < t + 2; i++)
            want = mixed(want, k);
        if (t & 1)
            want_w = mixed(want_w, other);
        want_w = mixed(want_w, t);
    }
    CK(cudaStreamSynchronize(s));
    unsigned got = from_device(v + N - 1), got_w = from_device(w), turns = from_device(turn);
    printf("values %u %u, turns %u\n", got, got_w, turns);
    return verdict("graphwhile", got == want && got_w == want_w && turns == TIMES);
}
