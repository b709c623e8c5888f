#include "preload/window/admit.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/code/cubin.h"
#include "collectors/replay/rewound.h"
#include "preload/program/hostmem.h"
#include "preload/window/closers.h"
#include "preload/window/record.h"
#include "preload/window/signs.h"
#include "preload/window/strategy.h"

/* Launches that nobody wants are taken along when they come between wanted ones, since closing costs as much as a few
 * dozen of them; this many in a row, and the window closes. */
enum { MOST_UNWANTED = 16 };

/* Room of a window whose launches are counted as they come. Starting and stopping the counters once for so many adds a
 * tenth to what each takes; more only delays the evaluation. */
enum { COUNTED_ROOM = 256 };

bool kp_admit_has_counters(const struct kp_context_setup *setup, const struct kp_context *c)
{
    return c->collector && !c->no_counters && (setup->one_pass || kp_plan_counts(c->plan) || c->extras);
}

size_t kp_admit_room(const struct kp_context_setup *setup, const struct kp_context *c)
{
    size_t room = c->collector ? kp_collector_room(c->collector) : 1;
    return setup->one_pass && room > COUNTED_ROOM ? COUNTED_ROOM : room;
}

/* ---- the memory that a launch can reach ---- */

/* Where kernels can read and write any memory of the host: whether a word of the arguments may be an address of such
 * memory, which is not known to CUDA but mapped in this process. It cannot be rewound, as its extent is not known. */
static bool reaches_heap(const struct kp_driver *d, const struct kp_launch *l)
{
    const uint64_t page = 4096, lowest = 1 << 16, end = 1ull << 47;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        unsigned char resident;
        unsigned type = 0;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        bool ours = word >= (uint64_t)(uintptr_t)l->copy && word < (uint64_t)(uintptr_t)l->copy + l->copied;
        if (word < lowest || word >= end || ours || mincore((void *)(uintptr_t)(word / page * page), page, &resident))
            continue;
        if (!d->cuPointerGetAttribute ||
            d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
            return true;
    }
    return false;
}

bool kp_admit_reaches_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, bool *kept)
{
    bool found = false;
    unsigned type = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        void *base;
        size_t bytes;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        /* Pinned memory ends with its context, of which the table is not told. */
        if (!kp_hostmem_find(word, &base, &bytes) ||
            (d->cuPointerGetAttribute &&
             (d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS ||
              type != CU_MEMORYTYPE_HOST)))
            continue;
        found = true;
        if (into && (kp_snapshot_bytes(into) + bytes > KP_MOST_COPIED || !kp_snapshot_add(into, base, bytes)))
            *kept = false;
    }
    return found;
}

/* ---- what is decided ---- */

/* What the decisions look at. */
struct sight {
    const struct kp_context_setup *setup;
    const struct kp_launch *l;
    const struct kp_candidate *what;
    const struct kp_known_function *f; /* NULL for a graph */
    bool heap;                         /* an argument may be an address of the program's heap */
    const struct kp_fit *fit;          /* as far as it is decided */
};

/* The first row that holds gives the reason; a row without a text of its own has one that it tells. */
struct reason {
    bool (*holds)(const struct sight *s);
    const char *text;
    const char *(*tell)(const struct sight *s);
    bool once; /* as in struct kp_fit */
};

static const struct reason *first_that_holds(const struct reason *row, const struct sight *s)
{
    while (row->holds && !row->holds(s))
        row++;
    return row->holds ? row : NULL;
}

static const char *text_of(const struct reason *row, const struct sight *s)
{
    return !row ? NULL : row->tell ? row->tell(s) : row->text;
}

/* Where nothing is replayed, only what waits for other devices of this process is in the way; and KP_VENDOR: of several
 * graphs that allocate memory CUPTI counts the first range alone, seen on an H200. */
static bool is_told_of(const struct sight *s)
{
    return s->what->obstacle &&
           (!s->setup->one_pass || kp_context_several(s->setup) || (s->what->graph && s->what->graph->allocates));
}

static const char *told(const struct sight *s)
{
    return s->what->obstacle;
}

static bool is_not_replayed(const struct sight *s)
{
    return s->setup->one_pass;
}

static bool is_on_the_heap(const struct sight *s)
{
    return s->heap;
}

/* What others write while a window is replayed would be rewound: a partner's message, and with it all that wait for
 * it. */
static bool shares_memory(const struct sight *s)
{
    (void)s;
    return kp_signs_shared_memory();
}

static bool shares_host_memory(const struct sight *s)
{
    (void)s;
    return kp_hostmem_shared();
}

static bool takes_heap(const struct sight *s)
{
    return s->f && s->f->once & KP_ONCE_HEAP;
}

static bool launches_itself(const struct sight *s)
{
    return s->f && s->f->once & KP_ONCE_LAUNCHES;
}

static const char *heap_not_rewound(const struct sight *s)
{
    (void)s;
    return kp_not_rewound(KP_MEMORY_HEAP_BLOCKS);
}

static const char *virtual_not_rewound(const struct sight *s)
{
    (void)s;
    return kp_not_rewound(KP_MEMORY_HOST_VIRTUAL);
}

static bool finds_heap_blocks(const struct sight *s)
{
    return kp_signs_heap_blocks() && heap_not_rewound(s);
}

static bool finds_virtual_memory(const struct sight *s)
{
    return kp_signs_virtual_memory() && virtual_not_rewound(s);
}

/* Why a launch must not be replayed. A row without a reason ends the search: nothing is in the way. */
static const struct reason obstacles[] = {
    {.holds = is_told_of, .tell = told},
    {.holds = is_not_replayed},
    {.holds = is_on_the_heap, .text = "can reach memory of the host that cannot be rewound, not replayed"},
    {.holds = shares_memory, .text = "memory is shared with other processes or devices, not replayed"},
    {.holds = shares_host_memory, .text = "host memory that other processes can map is registered, not replayed"},
    {.holds = takes_heap,
     .text = "takes or frees memory of the device's heap, which cannot be rewound, not replayed",
     .once = true},
    {.holds = launches_itself,
     .text = "gives the device work of its own (dynamic parallelism), not replayed",
     .once = true},
    {.holds = finds_heap_blocks, .tell = heap_not_rewound, .once = true},
    {.holds = finds_virtual_memory, .tell = virtual_not_rewound, .once = true},
    {.holds = NULL},
};

static bool has_obstacle(const struct sight *s)
{
    return s->fit->obstacle != NULL;
}

static const char *obstacle(const struct sight *s)
{
    return s->fit->obstacle;
}

static bool can_reach_host(const struct sight *s)
{
    return s->fit->host;
}

/* Arguments of unknown size cannot be copied, so the launch must be over when the call returns. */
static bool has_uncopied_arguments(const struct sight *s)
{
    return s->f && ((s->l->params && !s->f->facts.params_known) || (s->l->extra && !s->l->extra_copied));
}

static bool reads_host_in_graph(const struct sight *s)
{
    return s->what->graph && s->what->graph->reads_host;
}

static bool has_managed_memory(const struct sight *s)
{
    (void)s;
    return kp_signs_managed_memory();
}

static bool has_pinned_memory(const struct sight *s)
{
    (void)s;
    return kp_hostmem_rewound();
}

/* Why a replayed window holds nothing beside a launch. */
static const struct reason alones[] = {
    {.holds = has_obstacle, .tell = obstacle},
    {.holds = can_reach_host, .text = kp_closed_by_host_memory},
    {.holds = has_uncopied_arguments, .text = "arguments of unknown size"},
    {.holds = reads_host_in_graph, .text = "a graph that reads host memory"},
    {.holds = has_managed_memory, .text = "managed memory"},
    {.holds = has_pinned_memory, .text = "pinned memory that a replay would rewind"},
    {.holds = NULL},
};

struct kp_fit kp_admit_judge(const struct kp_context_setup *setup, const struct kp_context *c,
                             const struct kp_launch *l, const struct kp_candidate *what,
                             const struct kp_known_function *f)
{
    struct kp_fit fit = {.mode = l->is_graph ? KP_RANGE_USER : KP_RANGE_AUTO, .wanted = what->wanted};
    struct sight s = {setup, l, what, f, f && c->device.pageable_access && reaches_heap(setup->driver, l), &fit};
    fit.host = f && (s.heap || kp_signs_managed_memory() || kp_admit_reaches_host(setup->driver, l, NULL, NULL));
    fit.ends = f && f->ends;
    const struct reason *row = first_that_holds(obstacles, &s);
    fit.obstacle = text_of(row, &s);
    fit.once = row && row->once;
    fit.alone = text_of(first_that_holds(alones, &s), &s);
    return fit;
}

/* ---- the window that is open ---- */

/* Why the window that is open does not take a launch: each returns NULL where it does. */
typedef const char *refusal(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit);

static const char *refuses_closed(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)l, (void)fit;
    return kp_window.open ? NULL : "none is open";
}

static const char *refuses_context(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)l, (void)fit;
    return kp_window.context == c ? NULL : "a launch in another context";
}

static const char *refuses_obstacle(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)l;
    return fit->obstacle ? fit->obstacle : kp_window.obstacle;
}

static const char *refuses_kind(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)l;
    return kp_window.strategy->takes(fit) ? NULL : "a launch of another kind";
}

/* Launches of several threads' default streams, issued into one stream again, may wait for each other. */
static const char *refuses_thread(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)fit;
    return kp_record_per_thread(l) && kp_window.has_per_thread && !pthread_equal(kp_window.per_thread, pthread_self())
               ? "default streams of several threads"
               : NULL;
}

static const char *refuses_more(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)l, (void)fit;
    return kp_window.launches >= kp_admit_room(kp_window.setup, c) ? kp_closed_full : NULL;
}

static const char *refuses_unwanted(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)l;
    return !fit->wanted && kp_window.unwanted_in_a_row >= MOST_UNWANTED ? "many launches that were not asked for"
                                                                        : NULL;
}

static const char *refuses_company(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    (void)c, (void)l;
    return kp_window.strategy->alone ? kp_window.strategy->alone(fit) : NULL;
}

static refusal *const refusals[] = {refuses_closed, refuses_context, refuses_obstacle, refuses_kind,
                                    refuses_thread, refuses_more,    refuses_unwanted, refuses_company};

const char *kp_admit_misfit(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit)
{
    const char *why = NULL;
    for (size_t i = 0; !why && i < sizeof(refusals) / sizeof(*refusals); i++)
        why = refusals[i](c, l, fit);
    return why;
}

/* ---- a window that is to open ---- */

bool kp_admit_may_hang(const struct kp_context_setup *setup, const struct kp_fit *fit)
{
    return fit->host && (setup->one_pass || fit->obstacle) && !fit->ends;
}

const char *kp_admit_hindrance(const struct kp_context_setup *setup, const struct kp_fit *fit)
{
    if (kp_admit_may_hang(setup, fit))
        return "the first of a kernel that can reach host memory, watched for waiting for it, not counted";
    if (fit->obstacle && !fit->once && kp_context_several(setup))
        return fit->obstacle; /* counted at once it would wait for its partners on devices not yet launched on */
    return NULL;
}
