/* What a kernel reaches through calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cubin_internal.h"

/* KP_VENDOR: .nv.callgraph is pairs of ELF symbols, caller and callee. Pairs whose caller is symbol 0 begin another
 * list: only those up to the second one are calls. Found in the output of nvcc 11.8 to 13.0. */
enum { CALL_GRAPH = 0x70000001, PAIR = 8, MOST_ROUNDS = 256 };

static struct kp_bytes call_graph(const struct kp_cubin *c)
{
    Elf64_Shdr s;
    for (size_t i = 1; kp_cubin_section(c, i, &s); i++)
        if (s.sh_type == CALL_GRAPH)
            return kp_cubin_bytes(c, &s);
    return (struct kp_bytes){NULL, 0};
}

/* The next call: false behind the last one. */
static bool next_call(struct kp_bytes *rest, unsigned *lists, uint32_t *caller, uint32_t *callee)
{
    for (; rest->size >= PAIR; rest->at += PAIR, rest->size -= PAIR) {
        *caller = kp_u32_at(rest->at);
        *callee = kp_u32_at(rest->at + 4);
        if (*caller) {
            rest->at += PAIR;
            rest->size -= PAIR;
            return true;
        }
        if (++*lists > 1)
            return false;
    }
    return false;
}

static bool starts_with(const char *s, const char *with)
{
    return s && strncmp(s, with, strlen(with)) == 0;
}

/* Of the device's own runtime, by which kernels launch others: of CUDA 12 and later, and of those before. */
static bool is_runtime(const char *function, bool *launches)
{
    bool launch = starts_with(function, "__cudaCDP2LaunchDevice") || starts_with(function, "cudaLaunchDevice");
    *launches |= launch;
    return launch || starts_with(function, "__cudaCDP2") || starts_with(function, "cudaGetParameterBuffer");
}

/* Marks what symbols in reached[n] call, until nothing is added. The runtime is no part of the program's code. */
static int follow(const struct kp_cubin *c, size_t n, bool *reached, bool *launches)
{
    struct kp_bytes graph = call_graph(c);
    bool more = true;
    for (int round = 0; more; round++) {
        struct kp_bytes rest = graph;
        uint32_t caller, callee;
        unsigned lists = 0;
        if (round == MOST_ROUNDS)
            return -E2BIG;
        more = false;
        while (next_call(&rest, &lists, &caller, &callee))
            if (caller < n && callee < n && reached[caller] && !reached[callee] &&
                !is_runtime(kp_cubin_symbol_name(c, callee), launches))
                reached[callee] = more = true;
    }
    return 0;
}

static int stop_at_first(uint64_t at, void *arg)
{
    (void)at, (void)arg;
    return 1;
}

int kp_cubin_reach(const struct kp_cubin *c, uint32_t symbol, struct kp_cubin_reach *out)
{
    struct kp_cubin_place place;
    const char *name;
    Elf64_Sym s;
    size_t n = 0;
    *out = (struct kp_cubin_reach){0};
    if (!kp_cubin_place_of(c, symbol, &name, &place))
        return -ENOENT;
    while (kp_cubin_symbol(c, n, &s))
        n++;
    bool *reached = calloc(n, sizeof(*reached));
    if (!reached)
        return -ENOMEM;
    reached[symbol] = true;
    int rc = follow(c, n, reached, &out->launches);
    for (uint32_t i = 0; !rc && i < n; i++)
        if (reached[i] && kp_cubin_place_of(c, i, &name, &place)) {
            out->functions++;
            out->spills |= kp_cubin_each_spill(c, &place, stop_at_first, NULL) != 0;
        }
    free(reached);
    return rc;
}
