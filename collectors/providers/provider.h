/*
 * A provider is one way of collecting, a row of kp_provider_table. Shared by the files of this room. A new way of
 * collecting takes a row, and what the row names.
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

/* What the passes told of one launch. */
struct kp_counters_launch {
    struct kp_counters_count *counts;
    size_t n_counts, cap_counts;
    uint64_t samples, dropped; /* of PC sampling */
    bool sampled;              /* which went well */
    struct kp_series *series;
    size_t n_series;
    uint64_t pm_dropped; /* times that samples were lost */
    bool short_of_memory;
};

enum { KP_PROVIDERS_MOST = 8 };

/* What a window lacks of a provider: the values of its launches from `first` on, for `why`. */
struct kp_counters_loss {
    char *why; /* NULL = nothing is lost */
    size_t first;
};

struct kp_provider;

struct kp_counters {
    const struct kp_provider *const *rows; /* of whom gathered it */
    const struct kp_providers_setup *setup;
    bool by_all;                 /* all providers took part, not only those that carry the window */
    void *of[KP_PROVIDERS_MOST]; /* a provider's own */
    bool any;                    /* there is something to evaluate */
    struct kp_codes *codes;
    char **names; /* of the metrics of counts */
    size_t n_names;
    struct kp_counters_launch *launches;
    size_t n_launches;
    int pcsamp_interval;
    size_t pcsamp_buffer;
    uint64_t pm_interval; /* ns, or cycles where `pm_cycles`; 0 = not sampled */
    bool pm_cycles;
    size_t pm_groups, pm_buffer;
    struct kp_counters_loss lost[KP_PROVIDERS_MOST];
};

/* The providers of one context. */
struct kp_providers {
    struct kp_providers_setup setup;
    const struct kp_provider *const *rows;
    void *own[KP_PROVIDERS_MOST]; /* kp_provider.size bytes each */
    struct kp_providers_window window;
    bool swept;                       /* a kernel flushes the caches before each launch that has a result */
    struct kp_counters *gathered;     /* of the window under way */
    uint64_t longest_ns;              /* of its launches */
    size_t next;                      /* launch of the pass under way */
    const struct kp_provider *kind;   /* of the pass under way; NULL = none, or it failed */
    size_t part;                      /* which of the provider's groups of passes */
    size_t passes[KP_PROVIDERS_MOST]; /* groups of passes of the window under way */
    bool gone[KP_PROVIDERS_MOST];     /* failed for good */
    char *complaints[KP_PROVIDERS_MOST];
    unsigned told[KP_PROVIDERS_MOST]; /* which complaints there have been: once is enough */
    char *why[KP_PROVIDERS_MOST];     /* it last failed */
};

/* One provider. Functions may be NULL where nothing is said to the contrary. What returns int returns 0 or a code for
 * kp_library_explain. */
struct kp_provider {
    unsigned bit;     /* of kp_providers_setup.kinds; 0 = it is always there */
    const char *what; /* begins the line that tells of a failure: "warp states are not sampled" */
    size_t size;      /* of its own part of a collection, which is zeroed, see kp_provider_own */
    bool flushes;     /* its launches need cold caches */
    bool by_time;     /* what it makes ready depends on how long launches take */
    /* What it counts is what the window is for, graphs included, and its failure is the window's. A failure of another
     * ends its own part of the window. */
    bool carries;

    int (*open)(struct kp_providers *x);
    void (*close)(struct kp_providers *x, bool alive); /* never NULL */
    /* What it takes for a chip without a GPU to be asked; NULL = one pass, and metrics that are counted elsewhere. */
    int (*cost)(const struct kp_providers_query *q, size_t *metrics, size_t *passes);

    size_t (*passes)(struct kp_providers *x);                      /* groups of passes of a window; never NULL */
    size_t (*repeats)(const struct kp_providers *x, size_t group); /* passes of a group; NULL = one */
    size_t (*room)(struct kp_providers *x);                        /* launches that a window may hold */
    /* Launches are to be seen before the first pass; ended by its end. */
    int (*watch)(struct kp_providers *x);
    int (*window)(struct kp_providers *x); /* begins: its own part of what is gathered is made */

    /* Lets go of what keeps other providers from the hardware. */
    int (*release)(struct kp_providers *x);
    bool (*stuck)(const struct kp_providers *x);       /* that failed once and for all */
    int (*count)(struct kp_providers *x, size_t room); /* begins and starts one pass without replay */
    int (*begin)(struct kp_providers *x);              /* a group of passes; never NULL */
    int (*start)(struct kp_providers *x);              /* a pass */
    /* Whether the context has to be idle before (else after) a launch; NULL = for each that has a result. Where it has
     * not, the next two are only called where somebody else waited. */
    bool (*idle)(const struct kp_providers *x, bool before);
    int (*before)(struct kp_providers *x, struct kp_counters_launch *l); /* never NULL; `l` is NULL with an `idle` */
    int (*after)(struct kp_providers *x, struct kp_counters_launch *l);  /* never NULL */
    int (*stop)(struct kp_providers *x, bool *last);                     /* a pass; NULL = it has one, ended by `end` */
    int (*decode)(struct kp_providers *x);                               /* after the last pass of a group */
    void (*end)(struct kp_providers *x);  /* of a pass that has no stop, also after a begin or a watch that failed */
    void (*over)(struct kp_providers *x); /* the window is: what was not gathered is given back */
    /* Why code `code` of a stage came, where the code does not tell: malloc'ed, NULL = it does. */
    char *(*explain)(const struct kp_providers *x, int code);

    /* By any thread: its part of what was gathered goes into results[], one for each launch that has a result. */
    int (*evaluate)(void *of, struct kp_result *const *results);
    int (*store)(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r);
    void (*free)(void *of);
};

/* All providers, NULL at the end. Passes are run in this order. */
extern const struct kp_provider *const kp_provider_table[];
extern const struct kp_provider kp_provider_pcsamp, kp_provider_range, kp_provider_sass, kp_provider_pm;

/* ---- what rows call ---- */

/* Its place in the table. */
size_t kp_provider_number(const struct kp_providers *x, const struct kp_provider *p);
/* The provider's own part of the collection. */
void *kp_provider_own(const struct kp_providers *x, const struct kp_provider *p);

/* A line for the user, which is taken over; it takes the place of one that nobody has read. NULL = none. */
void kp_provider_tell(struct kp_providers *x, const struct kp_provider *p, char *text);
/* The same, but only the first time that it tells of `what`. */
enum { KP_TOLD_FAILURE = 1, KP_TOLD_REFUSAL = 2 };
void kp_provider_tell_once(struct kp_providers *x, const struct kp_provider *p, unsigned what, char *text);
/* Notes why it fails, once. */
void kp_provider_complain(struct kp_providers *x, const struct kp_provider *p, int rc);

/* The index of metric `name` among those gathered, where it is added; -1 without memory. */
long kp_counters_name(struct kp_counters *g, const char *name);
/* One more count of a launch. Without memory the launch is marked. */
void kp_counters_add(struct kp_counters_launch *l, uint64_t code, uint32_t offset, size_t metric, uint64_t value);
/* Puts the counts of a launch into `r`. 0 or -ENOMEM. */
int kp_counters_store_counts(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r);

/* Calls `fn` for each metric of the provider with that bit that sections or names ask for, without the series of
 * sections. Ends when `fn` returns other than 0, and returns that. */
int kp_providers_each_asked(const struct kp_providers_setup *setup, unsigned bit,
                            int (*fn)(const char *metric, void *arg), void *arg);

#endif
