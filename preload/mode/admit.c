#include "preload/mode/admit.h"

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "collectors/replay/rewound.h"
#include "preload/program/host_snapshot.h"
#include "preload/program/attributes.h"
#include "preload/program/hostmem.h"
#include "preload/program/variables.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/graphs/host_pointers.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

/* A window closes after so many unwanted launches in a row. It accepts a few, because closing costs as much as a few
 * dozen of them. */
enum { MOST_UNWANTED = 16 };

/* Launches of a window that is counted in one pass. Starting and stopping the counters once for so many adds a tenth to
 * each launch; more would only delay the evaluation. */
enum { COUNTED_ROOM = 256 };

/* Bits of enum kp_once: it works with the host, or another device, while it runs. */
enum { SHARES = KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS };

/* A predicate and its reason. */
struct row {
    bool (*holds)(const struct kp_question *q);
    enum kp_reason why;
    enum kp_reason (*says)(const struct kp_question *q); /* instead of the other two: the reason, or none */
    bool once;                                           /* it must not run again, but does not wait for anything */
};

/* Returns the reason of the first row that holds, and the row; or none. */
static enum kp_reason first_of(const struct row *r, const struct kp_question *q, const struct row **found)
{
    enum kp_reason why = KP_REASON_NONE;
    while (!why && (r->holds || r->says)) {
        *found = r;
        why = r->says ? r->says(q) : r->holds(q) ? r->why : KP_REASON_NONE;
        r++;
    }
    return why;
}

/* ---- why it must not be replayed ---- */

/* Returns the reason that the process found. Without replays, the only one is waiting for other devices of this
 * process. */
static enum kp_reason told_before(const struct kp_question *q)
{
    bool harmless = !kp_mode_repeats(q->setup->mode) && !kp_context_several(q->setup);
    return harmless ? KP_REASON_NONE : q->what->once_reason;
}

static bool reaches_heap(const struct kp_question *q)
{
    return q->fit.heap;
}

/* A replay would rewind memory that others write meanwhile: a partner's message that a kernel waits for. */
static bool is_memory_shared(const struct kp_question *q)
{
    (void)q;
    return kp_flags_met(KP_MET_SHARED);
}

/* A replay would rewind what a thread of the program may write at any time for such kernels. */
static bool is_memory_served(const struct kp_question *q)
{
    (void)q;
    return kp_flags_met(KP_MET_SERVED);
}

static bool is_registered_shared(const struct kp_question *q)
{
    (void)q;
    return kp_hostmem_shared();
}

static bool takes_heap(const struct kp_question *q)
{
    return q->function && q->function->once & KP_ONCE_HEAP;
}

static bool launches_more(const struct kp_question *q)
{
    return q->function && q->function->once & KP_ONCE_LAUNCHES;
}

static bool writes_host(const struct kp_question *q)
{
    return q->function && q->function->writes_host;
}

static enum kp_reason has_attributes(const struct kp_question *q)
{
    return kp_attributes_reason(q->launch->config.attrs, q->launch->config.numAttrs);
}

/* The host may already have acted on what the kernel wrote: a second run would make it act again. */
static bool posts(const struct kp_question *q)
{
    const struct kp_context *c = q->context;
    bool shares = kp_hostmem_any() || kp_flags_met(KP_MET_MANAGED) || c->device.pageable_access;
    return shares && q->function && q->function->once & KP_ONCE_POSTS;
}

/* Such memory is not restored for a repetition, because its address is unknown. */
static bool waits_unseen(const struct kp_question *q)
{
    bool shares = kp_hostmem_any() || kp_flags_met(KP_MET_MANAGED);
    return shares && q->fit.code && q->function->once & KP_WAITS_FOR_OTHERS;
}

static enum kp_reason met_heap_blocks(const struct kp_question *q)
{
    (void)q;
    return kp_flags_met(KP_MET_HEAP_BLOCKS) ? kp_not_rewound(KP_MEMORY_HEAP_BLOCKS) : KP_REASON_NONE;
}

static enum kp_reason met_virtual_memory(const struct kp_question *q)
{
    (void)q;
    return kp_flags_met(KP_MET_VIRTUAL) ? kp_not_rewound(KP_MEMORY_HOST_VIRTUAL) : KP_REASON_NONE;
}

/* Saving failed once. Asks again between windows: the program may have less memory by then. */
static bool is_memory_unsaved(const struct kp_question *q)
{
    struct kp_context *c = q->context;
    if (c->unsaved && !q->window->open && c->collector && kp_collector_can_save(c->collector))
        c->unsaved = false;
    return c->unsaved;
}

static enum kp_reason turns_reason_of(const struct kp_question *q)
{
    return q->turns_reason;
}

/* Only where launches are replayed. */
static const struct row once_reasons[] = {
    {.holds = reaches_heap, .why = KP_REASON_HOST_HEAP},
    {.holds = is_memory_shared, .why = KP_REASON_SHARED_MEMORY},
    {.holds = is_registered_shared, .why = KP_REASON_REGISTERED_SHARED},
    {.holds = takes_heap, .why = KP_REASON_DEVICE_HEAP, .once = true},
    {.holds = launches_more, .why = KP_REASON_DYNAMIC_PARALLELISM, .once = true},
    {.holds = writes_host, .why = KP_REASON_WRITES_HOST, .once = true},
    {.says = has_attributes, .once = true},
    {.holds = posts, .why = KP_REASON_POSTS, .once = true},
    {.holds = waits_unseen, .why = KP_REASON_WAITS_UNSEEN, .once = true},
    {.holds = is_memory_served, .why = KP_REASON_MEMORY_SERVED, .once = true},
    {.says = met_heap_blocks, .once = true},
    {.says = met_virtual_memory, .once = true},
    {.holds = is_memory_unsaved, .why = KP_REASON_MEMORY_UNSAVED, .once = true},
    {.says = turns_reason_of, .once = true},
    {.holds = NULL},
};

static void find_once_reason(struct kp_question *q)
{
    const struct row *row;
    q->fit.once_reason = told_before(q);
    if (q->fit.once_reason || !kp_mode_repeats(q->setup->mode))
        return;
    q->fit.once_reason = first_of(once_reasons, q, &row);
    q->fit.once = q->fit.once_reason && row->once;
}

/* ---- why it gets a separate window ---- */

static bool reaches_host(const struct kp_question *q)
{
    return q->fit.host && !q->fit.quiet;
}

/* Arguments of unknown size stay in the program's memory, valid only until the call returns. */
static bool has_uncopied(const struct kp_question *q)
{
    const struct kp_launch *l = q->launch;
    return q->function && ((l->params && !q->function->facts.params_known) || (l->extra && !l->extra_copied));
}

static bool is_reading_graph(const struct kp_question *q)
{
    return q->what->graph && q->what->graph->reads_host;
}

static bool met_managed_memory(const struct kp_question *q)
{
    (void)q;
    return kp_flags_met(KP_MET_MANAGED);
}

/* A window that keeps the memory of the program's own execution keeps this memory too, but a repetition lacks what the
 * host wrote there meanwhile. */
static bool is_host_rewound(const struct kp_question *q)
{
    return kp_hostmem_rewound() &&
           (q->fit.host || q->what->graph || kp_context_several(q->setup) || !q->setup->options->window_reads);
}

static const struct row reasons_alone[] = {
    {.holds = reaches_host, .why = KP_REASON_REACHES_HOST},
    {.holds = has_uncopied, .why = KP_REASON_ARGUMENTS},
    {.holds = is_reading_graph, .why = KP_REASON_READING_GRAPH},
    {.holds = met_managed_memory, .why = KP_REASON_MANAGED},
    {.holds = is_host_rewound, .why = KP_REASON_HOST_REWOUND},
    {.holds = NULL},
};

/* ---- decisions ---- */

bool kp_admit_counters(const struct kp_question *q)
{
    const struct kp_context *c = q->context;
    return c->collector && !c->no_counters.reason &&
           (!kp_mode_repeats(q->setup->mode) || kp_plan_counts(c->plan) || c->extras);
}

/* Finds whether the launch can reach host memory, and how that is known. */
static void find_reach(struct kp_question *q)
{
    const struct kp_known_function *f = q->function;
    const struct kp_driver *d = q->setup->driver;
    bool managed = kp_flags_met(KP_MET_MANAGED);
    q->fit.heap = q->context->device.pageable_access && kp_reach_heap(d, q->launch);
    q->fit.host = q->fit.heap || kp_reach_host(d, q->launch, NULL, 0, NULL);
    if (!q->fit.host && f->once & SHARES)
        q->fit.host = q->fit.code = true;
    if (q->fit.host && f->once & SHARES && (kp_hostmem_rewound() || managed))
        kp_flags_served();
    q->fit.host |= kp_flags_met(KP_MET_VIRTUAL); /* no list has it */
    if (!q->fit.host && managed) {
        q->fit.host = true;
        q->fit.patience = KP_WAIT_PAGING;
    }
    q->fit.quiet = q->fit.host && !q->fit.heap && !managed && !f->loud;
}

bool kp_admit_ends(const struct kp_known_function *f)
{
    return f && f->ends >= (f->once & SHARES ? KP_ENDS_ENOUGH : 1);
}

void kp_admit_judge(struct kp_question *q)
{
    const struct kp_known_function *f = q->function;
    const struct row *row;
    q->fit = (struct kp_fit){.mode = q->launch->is_graph && !q->by_node ? KP_RANGE_USER : KP_RANGE_AUTO,
                             .waits_reason = kp_stuck_known(q->launch, f),
                             .ends = kp_admit_ends(f),
                             .patience = KP_WAIT_ALONE};
    if (f)
        find_reach(q);
    find_once_reason(q);
    q->fit.alone_reason = first_of(reasons_alone, q, &row);
}

/* ---- why the open window does not accept it ---- */

/* Returns the most launches that a window of this context may hold. */
static size_t room_of(const struct kp_context_setup *setup, const struct kp_context *c)
{
    size_t room = c->collector ? kp_collector_room(c->collector) : 1;
    return !kp_mode_repeats(setup->mode) && !kp_mode_recurs(setup->mode) && room > COUNTED_ROOM ? COUNTED_ROOM : room;
}

size_t kp_admit_room(const struct kp_window *w)
{
    return w->most ? w->most : room_of(w->setup, w->context);
}

/* A module that was loaded meanwhile. The saved memory lacks its variables, so a repetition would find them changed.
 * Kernels of other modules can reach them if the program has asked for their addresses. */
static bool lacks_variables(const struct kp_question *q)
{
    const struct kp_journal_facts j = kp_journal_facts();
    return q->window->strategy->rewinds && kp_variables_pending(j.variables, j.serial) &&
           (!q->function || j.questions != kp_variables_questions());
}

/* A window that will not be replayed accepts no more launches. */
static bool is_spoiled(const struct kp_question *q)
{
    return q->window->strategy->rewinds && kp_flags_spoiled();
}

static enum kp_reason waits_of(const struct kp_question *q)
{
    return q->fit.waits_reason;
}

static bool is_elsewhere(const struct kp_question *q)
{
    return q->window->context != q->context;
}

static enum kp_reason once_reason_of(const struct kp_question *q)
{
    return q->window->strategy->beside ? KP_REASON_NONE : q->fit.once_reason;
}

static bool is_other_kind(const struct kp_question *q)
{
    const struct kp_window *w = q->window;
    return !w->strategy->whole && q->fit.mode != w->mode &&
           (q->what->wanted || q->fit.mode == KP_RANGE_USER || !w->strategy->rewinds);
}

/* A replay would issue both into one stream, in which they may wait for each other. */
static bool is_other_thread(const struct kp_question *q)
{
    const struct kp_journal_facts j = kp_journal_facts();
    return kp_launch_stream(q->launch) == CU_STREAM_PER_THREAD && j.has_per_thread &&
           !pthread_equal(j.per_thread, pthread_self());
}

static bool is_full(const struct kp_question *q)
{
    size_t more = q->by_node ? q->by_node : 1;
    return kp_journal_facts().launches + more > kp_admit_room(q->window);
}

static bool are_many_unwanted(const struct kp_question *q)
{
    size_t patience = q->window->strategy->patience;
    return !q->what->wanted && q->window->unwanted_in_a_row >= (patience ? patience : MOST_UNWANTED);
}

static enum kp_reason of_strategy(const struct kp_question *q)
{
    const struct kp_strategy *s = q->window->strategy;
    return s->admit ? s->admit(q) : KP_REASON_NONE;
}

static const struct row join_reasons[] = {
    {.holds = is_spoiled, .why = KP_REASON_SPOILED},
    {.holds = lacks_variables, .why = KP_REASON_MODULE_VARIABLES},
    {.says = waits_of},
    {.holds = is_elsewhere, .why = KP_REASON_ELSEWHERE},
    {.says = once_reason_of},
    {.holds = is_other_kind, .why = KP_REASON_OTHER_KIND},
    {.holds = is_other_thread, .why = KP_REASON_OTHER_THREAD},
    {.holds = is_full, .why = KP_REASON_FULL},
    {.holds = are_many_unwanted, .why = KP_REASON_MANY_UNWANTED},
    {.says = of_strategy},
    {.holds = NULL},
};

enum kp_reason kp_admit_join_reason(const struct kp_question *q)
{
    const struct row *row;
    return first_of(join_reasons, q, &row);
}

/* ---- why no window opens for it ---- */

bool kp_admit_may_hang(const struct kp_question *q)
{
    return q->fit.host && (!kp_mode_repeats(q->setup->mode) || q->fit.once_reason) && !q->fit.ends;
}

/* Counting would wait for partners on devices on which the program has not launched yet. */
static enum kp_reason partners_of(const struct kp_question *q)
{
    return !q->fit.once && kp_context_several(q->setup) ? q->fit.once_reason : KP_REASON_NONE;
}

static const struct row open_reasons[] = {
    {.says = waits_of},
    {.holds = kp_admit_may_hang, .why = KP_REASON_FIRST_WATCHED},
    {.says = partners_of},
    {.holds = NULL},
};

enum kp_reason kp_admit_open_reason(const struct kp_question *q)
{
    const struct row *row;
    return first_of(open_reasons, q, &row);
}
