/*
 * The journal: a record of what the program does in one context between two points in time, and its repetition. It
 * knows no counters and no modes. A window keeps one while it is open (preload/mode); a process has at most one.
 *
 * Launches and operations are recorded in the order of their calls, each with everything needed to issue it again.
 * Operations that give the host a result are logged, and compared when they are repeated (reads.h). Memory that the
 * program frees meanwhile is kept (defer.h); memory queries are answered as if there were no journal
 * (memory_queries.c).
 *
 * Threads: inside the gate's exclusive section, under kp_guard, with the journal's context current, unless stated
 * otherwise. The caller frees nothing that is returned.
 */
#ifndef KP_PRELOAD_JOURNAL_JOURNAL_H
#define KP_PRELOAD_JOURNAL_JOURNAL_H

#include <pthread.h>

#include "preload/contexts/context.h"
#include "preload/graphs/graphs.h"
#include "preload/journal/defer.h"
#include "preload/program/launch.h"

struct kp_rotation_key;
struct kp_journal;

/* The most operations of a journal, launches included: each is issued again for every pass. */
enum { KP_MOST_ITEMS = 1 << 16 };

/* The most host memory copied for the operations of one journal, bytes. */
enum { KP_MOST_COPIED = 256 << 20 };

/* A recorded launch, and what it has become. */
struct kp_entry {
    struct kp_launch launch;
    struct kp_graph graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_known_config config;      /* all 0 = not known */
    bool reaches_host;                  /* an argument points into host memory, or may do so */
    bool as_graph;                      /* its next execution is that of a graph, for the probe */
    struct kp_result *result;           /* NULL: not wanted. The journal frees it */
    struct kp_rotation_key *key;        /* what it counts for; NULL = for itself */
    struct kp_rotation_key *kind;       /* in a bounded mode, the kernel and shape that its result is of; or NULL */
};

/* What the journal reports of itself. */
struct kp_journal_facts {
    bool open;
    size_t records, launches, wanted; /* operations; those that are launches; those that have a result */
    size_t repeated;                  /* operations that are issued again, from the first on */
    size_t reads, settings;           /* operations that gave the host a result; that set attributes */
    uint64_t serial;                  /* unique to this journal */
    uint64_t variables, questions;    /* kp_variables_count() and _questions() when it opened */
    bool has_per_thread;              /* launches used the default stream of this thread */
    pthread_t per_thread;
    bool keeps_host;       /* see kp_journal_keeps_host */
    bool hangs;            /* its launches did not end in time: nothing waits for the driver */
    bool much_host;        /* its host memory is too much to compare at each launch */
    CUgraphExec allocates; /* the one graph of it that allocates memory, or NULL */
};

struct kp_journal_facts kp_journal_facts(void);

/* Returns true if a launch may wait for the host, or for a later launch, judging by its code or its arguments. */
bool kp_journal_may_wait(void);

/* ---- recording ---- */

/* Opens the journal in `c`. `rewinds`: its operations will be issued again from the current memory, so operations on
 * memory are recorded or refused. `whole`: they are one workload, which neither age nor a read ends. */
void kp_journal_open(const struct kp_context_setup *setup, struct kp_context *c, bool rewinds, bool whole);

/* Records a launch that is about to be made. Takes over the copy of its arguments, and `result` (NULL: it has none).
 * Returns NULL if memory is short: the caller keeps everything. The entry is valid until the next one. */
struct kp_entry *kp_journal_launch(struct kp_launch *l, const struct kp_graph *graph, struct kp_known_function *f,
                                   struct kp_result *result);
/* Appends an entry that stands for all that follows, and issues nothing. Takes over `result`. NULL if memory is
 * short. */
struct kp_entry *kp_journal_stand_in(struct kp_result *result);
/* Drops the last operation: the driver has refused it. */
void kp_journal_drop_last(void);
/* Drops the result of an entry. */
void kp_journal_drop_result(struct kp_entry *e);
/* Returns the entry of operation `k`; NULL if it has none. */
struct kp_entry *kp_journal_entry(size_t k);

/* Issues a launch, between the hooks (may be NULL) if it has a result. Returns the driver's code. */
CUresult kp_journal_issue(struct kp_entry *e, const struct kp_issue_hooks *hooks);

/* Returns why the launch cannot be recorded after the operations so far, if there is a reason. `reaches`: it can reach
 * host memory, so it waits for them. `quiet`: its function was not seen to write any; the memory is added to the
 * journal's. Waits in limited time. */
enum kp_reason kp_journal_refuses(const struct kp_launch *l, bool reaches, bool quiet);
/* Waits, in limited time, for values that may still be on their way to pinned memory, and for host functions. Returns
 * false if they have not arrived. */
bool kp_journal_arrives(void);
/* Keeps the host memory that the first launch can reach. Returns false if it is more than can be kept. */
bool kp_journal_takes_host(const struct kp_launch *l);
/* Makes the journal end with the program's own memory, including pinned memory that a restore rewinds. */
void kp_journal_keeps_host(void);
/* Learns from a launch that has ended whether it, or the host meanwhile, has changed host memory that it can reach. */
void kp_journal_learn(const struct kp_entry *e);

/* What is recorded: launches of graphs, copies and memsets, and the streams used. */
struct kp_journal_content {
    size_t graphs, copies, streams;
};
struct kp_journal_content kp_journal_content(void);

/* ---- operations of the program ---- */

/* The effect of an operation. KP_JOINED_READ: also recorded, and the call returns with a result, for kp_journal_log.
 * KP_JOINED_LATER: the same, but the result comes later, or a host function is called later; no other thread may issue
 * anything before kp_journal_log. */
enum kp_joined {
    KP_JOINED_NOT, /* it cannot be recorded */
    KP_JOINED,     /* it is recorded */
    KP_JOINED_READ,
    KP_JOINED_LATER
};

/* Records an operation of class JOIN that is about to be made with these arguments. *ticket identifies the record for
 * kp_window_refused, if the driver refuses the operation, and for kp_journal_log and kp_journal_reads. */
enum kp_joined kp_journal_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                               const uint64_t *args, uint64_t *ticket);
/* Logs what a read has returned, or will return later; notes that a host function is in its stream. Call it inside the
 * gate, shared or exclusive, before anything can change the value. Returns false if the journal ends with it. */
bool kp_journal_log(uint64_t ticket);
/* Returns true if the journal ends after the read of that ticket, whose launches have then ended. */
bool kp_journal_ends_read(uint64_t ticket);

/* Records that an attribute of a function is set from `before` to `after`, arguments of the driver's function `real`.
 * Returns false if it cannot be. */
bool kp_journal_sets(const struct kp_context_setup *setup, void *real, const uint64_t *before, const uint64_t *after,
                     uint64_t *ticket);

/* Returns true if function `f` can be given a setting that is not recorded: no operation so far launches it. Later ones
 * find it in repetitions as the program's did. */
bool kp_journal_prefers(const struct kp_context_setup *setup, CUfunction f);

/* Keeps the contents of new device memory of the program (`later`: in the order of a stream). Returns false if it
 * cannot. */
bool kp_journal_allocated(const struct kp_context_setup *setup, CUdeviceptr memory, size_t bytes, bool later);
/* Returns true if device memory is scarce for what a module needs, because the journal's copies hold some. */
bool kp_journal_is_scarce(const struct kp_context_setup *setup);

/* Return true if the journal may go on while the program maps memory, or gives access to it: the arguments are those of
 * cuMemMap and cuMemSetAccess. It may for memory that was never mapped before, which becomes new memory as soon as the
 * journal's device, and no other, may read and write it. */
bool kp_journal_takes_mapping(const struct kp_context_setup *setup, const uint64_t *args);
bool kp_journal_takes_access(const struct kp_context_setup *setup, const uint64_t *args);
/* Notes a mapping that was made; returns false if memory is short. The second notes that access to the range was
 * given. */
bool kp_journal_mapped(CUdeviceptr at, size_t bytes);
void kp_journal_accessible(CUdeviceptr at, size_t bytes);

/* Return true if device memory that the program frees (`later`: in the order of a stream), or what it destroys by its
 * handle, is kept; *answer is then what the driver's function returns. */
bool kp_journal_frees(const struct kp_context_setup *setup, CUdeviceptr memory, bool later, CUresult *answer);
bool kp_journal_ends(const struct kp_context_setup *setup, enum kp_ended kind, uint64_t handle, CUresult *answer);

/* Returns true if the free memory of the current device is known: without the journal it would be *more bytes above
 * what the driver reports. The second returns true if an attribute of a pool is the same as without the journal. */
bool kp_journal_tells_free(const struct kp_context_setup *setup, uint64_t *more);
bool kp_journal_tells_pool(CUmemPool_attribute what);

/* Returns true if a launch of the graph is repeated by its handle: the journal must end before the graph is changed. */
bool kp_journal_repeats_graph(CUgraphExec exec);

/* Copies the variables of the module of `f`, which is about to be launched for the first time: the saved memory may
 * lack them. Returns false if it cannot. */
bool kp_journal_holds_variables(const struct kp_context_setup *setup, CUfunction f, const char *mangled);

/* Forgets memory that was kept of contexts that are no longer known: it ended with them. */
void kp_journal_contexts_ended(void);

/* ---- graphs ---- */

/* The nodes of a graph that are recorded one by one. */
struct kp_journal_graph {
    const struct kp_graph_nodes *nodes;
    CUstream stream;
    size_t first;          /* operations before the graph's */
    bool reads;            /* it copies to the host */
    enum kp_reason closes; /* why the journal ends after it; KP_REASON_CALL: for the launch of the graph itself */
};

/* Records a node, not a kernel, of a graph that runs as a graph. Returns false if it cannot. */
bool kp_journal_node(struct kp_journal_graph *g, const struct kp_graph_node *node);
/* Records a copy or memset that is issued by itself. Returns false if it cannot. */
bool kp_journal_single_node(const struct kp_journal_graph *g, const struct kp_graph_node *node);
/* Logs what the graph, which has ended, has copied to the host. */
void kp_journal_log_graph(struct kp_journal_graph *g);
/* Notes that `exec`, which allocates memory, was launched. */
void kp_journal_allocating_graph(CUgraphExec exec);

/* ---- its end, and repetitions ---- */

/* Stops recording. Drops the operations that the driver has refused. */
void kp_journal_stop(void);

/* Waits for its work, at most *ms, or less if a host function is what does not end; *called reports that, and *ms
 * receives the limit. */
CUresult kp_journal_wait(long *ms, bool *called);
/* Collects the log of its work, which has ended: operations after a read that was not logged are not repeated. Copies
 * to the host, which a timeline must not mistake for the program's. */
void kp_journal_collect(void);
/* Notes that its work does not end: no wait for the driver is allowed, and its memory stays until it has ended. */
void kp_journal_hangs(void);
/* Notes the first unfinished launch of each stream: nothing waits for launches of these functions again. */
void kp_journal_note_unended(void);

/* Prepares repetitions, when its launches have ended and the program's own memory is kept, except new memory with
 * `lacks_new`. Returns why nothing can be repeated, if there is a reason. */
enum kp_reason kp_journal_prepare(bool lacks_new);
/* Leaves memory and attributes as the program's own execution did; with `dead`, the context is not touched. Returns the
 * driver's code. */
CUresult kp_journal_restore(bool dead);
/* Keep the host memory that launches can reach, as it is after the program's own launches; put it back. */
void kp_journal_keep_host(void);
void kp_journal_release_host(void);

/* Waits for what was issued again, with a limit (KP_WAIT_PASS): CUDA_ERROR_NOT_READY after that. */
CUresult kp_journal_end_repeat(void *unused);

/* A way to issue the operations again. The functions are those of struct kp_window_job, with a struct kp_repeat. */
struct kp_repeat {
    long limit_ms; /* the longest that one rehearsed launch may take */
    long least_ms; /* the same once waits have used up their budget */
};
struct kp_order {
    CUresult (*issue)(void *arg, const struct kp_issue_hooks *hooks);
    int (*rehearse)(void *arg);
    bool whole;            /* the counters see all operations as one */
    int tries;             /* repetitions of what precedes a read that comes out differently */
    void (*prepare)(void); /* before the first repetition; NULL = nothing to do */
    void (*over)(void);    /* after the last */
};

/* One operation after the other; and all without waits in between, each in its stream, ordered by events and by the
 * program's waits. */
extern const struct kp_order kp_one_by_one, kp_together;

/* Starts a series of repetitions. */
void kp_journal_begin_repeats(void);
/* Learns from a series that went well, or from the read that ended it. Returns true if a read did: only what precedes
 * it is then repeated. */
bool kp_journal_was_cut(bool well);

/* How the journal is left. */
enum kp_leave {
    KP_LEAVE_CLOSED,    /* in its context: gives back what it holds */
    KP_LEAVE_ABANDONED, /* without a wait */
    KP_LEAVE_UNTOUCHED  /* without a call of the driver */
};
void kp_journal_close(enum kp_leave how);

/* Forgets it in a forked child. */
void kp_journal_forked(void);

#endif
