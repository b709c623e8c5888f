/*
 * A provider is one way of collecting, a row of kp_provider_table. Shared by the files of this room. A new way of
 * collecting needs a row, and the functions in it.
 */
#ifndef KP_COLLECTORS_PROVIDERS_PROVIDER_H
#define KP_COLLECTORS_PROVIDERS_PROVIDER_H

#include "collectors/providers/providers.h"

/* One count of a launch. */
struct kp_counters_count {
    uint32_t code, offset;
    uint32_t metric; /* index into kp_counters.names */
    uint64_t value;
};

struct kp_provider;

/* The results of one launch. */
struct kp_counters_launch {
    struct kp_counters_count *counts;
    size_t n_counts, cap_counts;
    uint64_t samples, dropped; /* of PC sampling */
    bool sampled;              /* sampling succeeded, */
    int interval;              /* with this one, from kp_pcsamp_interval, */
    size_t buffer;             /* and this device buffer, in bytes */
    struct kp_series *series;
    size_t n_series;
    uint64_t pm_dropped;            /* times that samples were lost */
    const struct kp_provider *lost; /* its values are lost for this launch only; NULL = none, */
    enum kp_reason why;             /* for this reason */
    bool short_of_memory;
};

enum { KP_PROVIDERS_MOST = 8 };

/* The loss of a provider in a window: the values of launches from `first` on, and the reason. */
struct kp_counters_loss {
    struct kp_why why; /* no reason = nothing is lost */
    size_t first;
};

struct kp_counters {
    const struct kp_provider *const *rows; /* of the providers that gathered it */
    const struct kp_providers_setup *setup;
    bool by_all;                    /* all providers took part, not only those with `carries` */
    void *of[KP_PROVIDERS_MOST];    /* data of each provider */
    bool any;                       /* there is something to evaluate */
    const struct kp_provider *only; /* the only one that took part, without replay; NULL = another kind of window */
    struct kp_codes *codes;
    char **names; /* of the metrics of counts */
    size_t n_names;
    struct kp_counters_launch *launches;
    size_t n_launches;
    uint64_t pm_interval; /* ns, or cycles with `pm_cycles`; 0 = not sampled */
    bool pm_cycles;
    size_t pm_groups, pm_buffer;
    struct kp_counters_loss lost[KP_PROVIDERS_MOST];
};

/* The providers of one context. */
struct kp_providers {
    struct kp_providers_setup setup;
    const struct kp_provider *const *rows;
    void *own[KP_PROVIDERS_MOST]; /* kp_provider.size bytes for each */
    struct kp_providers_window window;
    bool swept;                       /* a kernel flushes the caches before each launch that has a result */
    const struct kp_carry *carry;     /* of the current pass of several runs; NULL = it is none */
    struct kp_counters *gathered;     /* of the current window */
    uint64_t longest_ns;              /* of its launches */
    size_t next;                      /* launch of the current pass */
    bool begun;                       /* it has started, in a pass without replay */
    CUstream stream;                  /* the launch's stream */
    bool alone;                       /* the context was idle before it */
    const struct kp_provider *kind;   /* of the current pass; NULL = none, or it failed */
    size_t part;                      /* which of the provider's groups of passes */
    size_t groups[KP_PROVIDERS_MOST]; /* of passes, in the current window */
    bool gone[KP_PROVIDERS_MOST];     /* failed for good */
    char *complaints[KP_PROVIDERS_MOST];
    unsigned told[KP_PROVIDERS_MOST];     /* complaints already made: each is made once */
    struct kp_why why[KP_PROVIDERS_MOST]; /* why it last failed */
};

/* One provider. Functions may be NULL unless noted. Functions that return int return 0 or a code for
 * kp_library_explain. */
struct kp_provider {
    unsigned bit;        /* of kp_providers_setup.kinds; 0 = always there */
    enum kp_reason what; /* its text starts the line that reports a failure */
    size_t size;         /* of its data in a collection, zeroed, see kp_provider_own */
    bool flushes;        /* its launches need cold caches */
    bool adds_up;        /* its values of several launches of a kernel add up; otherwise one launch is enough */
    bool by_launch;      /* `before` starts counting or sampling for a single launch */
    bool by_time;        /* its preparation depends on how long launches take */
    /* The window exists for its counts, graphs included, and its failure is the window's. Any other provider's failure
     * only ends its own part of the window. */
    bool carries;

    int (*open)(struct kp_providers *x);
    void (*close)(struct kp_providers *x, bool alive); /* never NULL */
    /* Computes its cost on a chip without a GPU; NULL = one pass, and no metrics beyond those counted elsewhere. */
    int (*cost)(const struct kp_providers_query *q, size_t *metrics, size_t *passes);

    /* The passes of a window come in groups. `groups` returns their number, and `repeats` the passes of a group; NULL =
     * one. */
    size_t (*groups)(struct kp_providers *x);
    size_t (*repeats)(const struct kp_providers *x, size_t group);
    size_t retries;                         /* further passes that a group may need */
    size_t (*room)(struct kp_providers *x); /* launches that a window may hold */
    /* Watches launches before the first pass; `end` ends it. */
    int (*watch)(struct kp_providers *x);
    int (*window)(struct kp_providers *x); /* starts a window: allocates its part of the results */

    /* Releases hardware that other providers need. */
    int (*release)(struct kp_providers *x);
    bool (*stuck)(const struct kp_providers *x);       /* releasing failed for good */
    int (*count)(struct kp_providers *x, size_t room); /* begins and starts one pass without replay */
    int (*begin)(struct kp_providers *x);              /* a group of passes; never NULL */
    int (*start)(struct kp_providers *x);              /* a pass */
    /* Returns true if the context must be idle before (else after) a launch; NULL = for each launch with a result. If
     * not, the next two are called only if another provider waited. */
    bool (*idle)(const struct kp_providers *x, bool before);
    int (*before)(struct kp_providers *x, struct kp_counters_launch *l); /* never NULL; `l` is NULL with an `idle` */
    int (*after)(struct kp_providers *x, struct kp_counters_launch *l);  /* never NULL */
    int (*stop)(struct kp_providers *x, bool *last); /* ends a pass; NULL = it has one pass, ended by `end` */
    int (*decode)(struct kp_providers *x);           /* after the last pass of a group */
    void (*end)(struct kp_providers *x);             /* ends a pass without stop, also after a failed begin or watch */
    void (*over)(struct kp_providers *x);            /* ends the window: frees values not gathered */
    /* Explains code `code` of a stage, if the code alone does not; else there is no reason. */
    struct kp_why (*explain)(const struct kp_providers *x, int code);

    /* Evaluates its part of the results into results[], one for each launch with a result. Any thread. */
    int (*evaluate)(void *of, struct kp_result *const *results);
    int (*store)(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r);
    void (*free)(void *of);
};

/* All providers, NULL at the end. Their passes run in this order. */
extern const struct kp_provider *const kp_provider_table[];
extern const struct kp_provider kp_provider_pcsamp, kp_provider_range, kp_provider_sass, kp_provider_pm;

/* ---- what rows call ---- */

/* Returns its index in the table. */
size_t kp_provider_number(const struct kp_providers *x, const struct kp_provider *p);
/* Returns the provider's own data in the collection. */
void *kp_provider_own(const struct kp_providers *x, const struct kp_provider *p);

/* Returns true if launch `i` of the window has a result. */
bool kp_provider_wants(const struct kp_providers_window *w, size_t i);

/* Sets a line for the user, and owns it; replaces one that nobody has read. NULL = none. */
void kp_provider_tell(struct kp_providers *x, const struct kp_provider *p, char *text);
/* The same, but only the first time for each `what`. */
enum { KP_TOLD_FAILURE = 1, KP_TOLD_REFUSAL = 2 };
void kp_provider_tell_once(struct kp_providers *x, const struct kp_provider *p, unsigned what, char *text);
/* Notes why the provider fails, once. `begins`: while it started counting or sampling. */
void kp_provider_complain(struct kp_providers *x, const struct kp_provider *p, bool begins, int rc);

/* Returns the index of metric `name` among those gathered, adding it if new; -1 without memory. */
long kp_counters_name(struct kp_counters *g, const char *name);
/* Adds one count of a launch. Without memory the launch is marked. */
void kp_counters_add(struct kp_counters_launch *l, uint64_t code, uint32_t offset, size_t metric, uint64_t value);
/* Frees everything gathered about a launch, which is reset. */
void kp_counters_drop(struct kp_counters_launch *l);
/* Stores the counts of a launch in `r`. 0 or -ENOMEM. */
int kp_counters_store_counts(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r);

/* Marks requested metrics of the provider that `r` lacks as missing for `why`. 0 or -ENOMEM. */
int kp_counters_mark(const struct kp_providers_setup *setup, const struct kp_provider *p, struct kp_why why,
                     struct kp_result *r);

/* Calls `fn` for each metric of the provider with that bit that sections or names need, except the series of
 * sections. Ends when `fn` returns other than 0, and returns that. */
int kp_providers_each_asked(const struct kp_providers_setup *setup, unsigned bit,
                            int (*fn)(const char *metric, void *arg), void *arg);

#endif
