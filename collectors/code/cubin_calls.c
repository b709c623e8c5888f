/* Follows the calls of a kernel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin_internal.h"

/* KP_VENDOR: .nv.callgraph consists of pairs of 32-bit words, the first an ELF symbol. A pair whose first word is 0
 * starts the next of four lists: caller and callee; functions whose address is taken; functions that call through
 * pointers; functions that mention the address of another. Found in the output of nvcc 11.8 to 13.0. */
enum { CALL_GRAPH = 0x70000001, PAIR = 8, MOST_ROUNDS = 256 };
enum { CALLS = 1, ADDRESS_TAKEN, CALLS_BY_POINTER, MENTIONS };

static struct kp_bytes call_graph(const struct kp_cubin *c)
{
    Elf64_Shdr s;
    for (size_t i = 1; kp_cubin_section(c, i, &s); i++)
        if (s.sh_type == CALL_GRAPH)
            return kp_cubin_bytes(c, &s);
    return (struct kp_bytes){NULL, 0};
}

/* Reads the next pair of any list: false after the last one. */
static bool next_pair(struct kp_bytes *rest, unsigned *list, uint32_t *first, uint32_t *second)
{
    for (; rest->size >= PAIR; rest->at += PAIR, rest->size -= PAIR) {
        *first = kp_u32_at(rest->at);
        *second = kp_u32_at(rest->at + 4);
        if (*first) {
            rest->at += PAIR;
            rest->size -= PAIR;
            return true;
        }
        ++*list;
    }
    return false;
}

/* Functions of the driver and the device's runtime, by name prefix, for CUDA 12 and later and for older versions. The
 * first matching row counts. All other functions of the runtime only query. */
static const struct provided {
    const char *name;
    bool whole;    /* the whole name, not a prefix */
    bool runtime;  /* its calls are not followed: it is not part of the program's code */
    bool launches; /* a kernel */
    unsigned once;
} provided[] = {
    {"malloc", true, false, false, KP_ONCE_HEAP},
    {"free", true, false, false, KP_ONCE_HEAP},
    {"vprintf", true, true, false, KP_ONCE_PRINTS},
    {"__cudaCDP2Malloc", false, true, false, KP_ONCE_HEAP},
    {"__cudaCDP2Free", false, true, false, KP_ONCE_HEAP},
    {"__cudaCDP2LaunchDevice", false, true, true, KP_ONCE_LAUNCHES},
    {"cudaLaunchDevice", false, true, true, KP_ONCE_LAUNCHES},
    {"__cudaCDP2Get", false, true, false, 0},
    {"__cudaCDP2Peek", false, true, false, 0},
    {"__cudaCDP2DeviceGet", false, true, false, 0},
    {"__cudaCDP2FuncGet", false, true, false, 0},
    {"__cudaCDP2Occupancy", false, true, false, 0},
    {"__cudaCDP2RuntimeGet", false, true, false, 0},
    {"__cudaCDP2", false, true, false, KP_ONCE_LAUNCHES},
    {"cudaGetParameterBuffer", false, true, false, 0},
};

/* Returns NULL for a function of the program. */
static const struct provided *provided_of(const char *function)
{
    for (size_t i = 0; function && i < sizeof(provided) / sizeof(*provided); i++) {
        size_t n = strlen(provided[i].name) + provided[i].whole; /* compares the terminator, too */
        if (!strncmp(function, provided[i].name, n))
            return &provided[i];
    }
    return NULL;
}

/* A walk along a module's calls. */
struct walk {
    const struct kp_cubin *c;
    struct kp_bytes graph;
    size_t n;
    bool *reached;
    bool pointers; /* also follows calls through pointers */
    bool pointed;  /* such a call was found */
    struct kp_cubin_reach *out;
};

/* Applies one pair; returns true if that added a symbol. */
static bool step(struct walk *w, unsigned list, uint32_t first, uint32_t second)
{
    uint32_t to = list == CALLS ? second : first;
    if (first >= w->n || to >= w->n)
        return false;
    if (list == CALLS_BY_POINTER && w->reached[first])
        w->pointed = true;
    bool leads = (list == CALLS && w->reached[first]) || (list == ADDRESS_TAKEN && w->pointers && w->pointed);
    if (!leads)
        return false;
    const struct provided *p = provided_of(kp_cubin_symbol_name(w->c, to));
    if (p) {
        w->out->launches |= p->launches && !w->pointers;
        w->out->once |= p->once;
    }
    if (w->reached[to] || (p && p->runtime))
        return false;
    return w->reached[to] = true;
}

/* Marks everything that symbols in reached[n] call, until that adds nothing. */
static int follow(struct walk *w)
{
    bool more = true;
    for (int round = 0; more; round++) {
        struct kp_bytes rest = w->graph;
        uint32_t first, second;
        unsigned list = 0;
        bool pointed = w->pointed;
        if (round == MOST_ROUNDS)
            return -E2BIG;
        more = false;
        while (next_pair(&rest, &list, &first, &second))
            more |= step(w, list, first, second);
        more |= w->pointed != pointed;
    }
    return 0;
}

unsigned kp_cubin_once(const void *image, size_t size)
{
    struct kp_cubin *c;
    Elf64_Sym s;
    unsigned once = 0;
    if (kp_cubin_open(image, size, &c))
        return 0;
    for (size_t i = 1; kp_cubin_symbol(c, i, &s); i++) {
        const struct provided *p = provided_of(kp_cubin_symbol_name(c, i));
        once |= p ? p->once : 0;
    }
    once |= kp_cubin_shares_any(c);
    kp_cubin_close(c);
    return once;
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
    struct walk w = {.c = c, .graph = call_graph(c), .n = n, .reached = reached, .out = out};
    int rc = follow(&w);
    for (uint32_t i = 0; !rc && i < n; i++)
        if (reached[i] && kp_cubin_place_of(c, i, &name, &place)) {
            out->functions++;
            out->spills |= kp_cubin_each_spill(c, &place, stop_at_first, NULL) != 0;
        }
    out->by_pointer = w.pointed;
    w.pointers = true;
    if (!rc && w.pointed)
        rc = follow(&w);
    for (uint32_t i = 0; !rc && i < n; i++)
        if (reached[i] && kp_cubin_place_of(c, i, &name, &place))
            out->once |= kp_cubin_shares(c, place.section, place.begin, place.size);
    free(reached);
    return rc;
}
