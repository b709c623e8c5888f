/* Shared by extras.c and the files of the single kinds. */
#ifndef KP_COLLECTORS_PROVIDERS_PROVIDER_H
#define KP_COLLECTORS_PROVIDERS_PROVIDER_H

#include "collectors/providers/providers.h"
#include "cupti/source.h"

/* One count of a launch. */
struct kp_gathered_count {
    uint32_t code, offset;
    uint32_t metric; /* index into kp_gathered.names */
    uint64_t value;
};

struct kp_gathered_launch {
    struct kp_gathered_count *counts;
    size_t n_counts, cap_counts;
    struct kp_pcsamp_totals samples;
    bool sampled; /* PC sampling went well */
    struct kp_series *series;
    size_t n_series;
    uint64_t pm_dropped; /* times that samples were lost */
    bool short_of_memory;
};

enum { KP_PROVIDERS_MOST = 3 };

/* What a kind does not tell of a window: of its launches from `first` on, for `why`. */
struct kp_gathered_loss {
    char *why; /* NULL = nothing is lost */
    size_t first;
};

struct kp_gathered {
    struct kp_codes *codes;
    char **names; /* of the metrics of counts */
    size_t n_names;
    struct kp_gathered_launch *launches;
    size_t n_launches;
    int pcsamp_interval;
    size_t pcsamp_buffer;
    uint64_t pm_interval; /* ns, or cycles where `pm_cycles`; 0 = not sampled */
    bool pm_cycles;
    size_t pm_groups, pm_buffer;
    struct kp_gathered_loss lost[KP_PROVIDERS_MOST];
    const struct kp_providers_setup *setup; /* of whom gathered it; NULL = nothing can be lost */
};

struct kp_provider;

struct kp_providers {
    struct kp_providers_setup setup;
    struct kp_gathered *gathered; /* of the window under way */
    uint64_t longest_ns;
    size_t next;                      /* launch of the pass under way */
    const struct kp_provider *kind;   /* of the pass under way; NULL = none, or it failed */
    size_t part;                      /* which of the kind's passes */
    size_t passes[KP_PROVIDERS_MOST]; /* of the window under way */
    bool gone[KP_PROVIDERS_MOST];     /* failed for good */
    char *complaints[KP_PROVIDERS_MOST];
    unsigned told[KP_PROVIDERS_MOST]; /* which complaints there have been: once is enough */
    char *why[KP_PROVIDERS_MOST];     /* it last failed */
    struct kp_pcsamp *pcsamp;
    bool sampling;   /* it is started */
    size_t *reasons; /* of the reasons of PC sampling: their index in the names gathered */
    struct kp_sass *sass;
    size_t sass_names; /* the index of its first metric */
    bool sass_open;    /* a launch is being counted */
    struct pm *pm;
};

/* One kind. What returns int returns 0 or a code for kp_cupti_explain; a failure ends the kind's part of the window. */
struct kp_provider {
    unsigned bit;
    const char *what; /* "PC sampling" */
    bool flushes;
    bool by_time; /* what it makes ready depends on how long launches take */
    size_t (*passes)(struct kp_providers *x);
    int (*begin)(struct kp_providers *x);
    int (*before)(struct kp_providers *x, struct kp_gathered_launch *l);
    int (*after)(struct kp_providers *x, struct kp_gathered_launch *l);
    void (*end)(struct kp_providers *x);  /* also after a begin or a watch that failed */
    int (*watch)(struct kp_providers *x); /* of launches before the first pass, ended by its end; NULL = no need to */
    void (*close)(struct kp_providers *x, bool alive);
};

/* The index of metric `name` among those gathered, where it is added; -1 without memory. */
long kp_providers_name(struct kp_gathered *g, const char *name);

/* A line for the user, which is taken over; it takes the place of one that nobody has read. NULL = none. */
void kp_providers_tell(struct kp_providers *x, const struct kp_provider *kind, char *text);
/* Notes why the kind fails, once. */
void kp_providers_complain(struct kp_providers *x, const struct kp_provider *kind, int rc);

/* Calls `fn` for each metric of kind number `k` that was asked for, by sections or by name; series of sections are left
 * out. Ends when it returns other than 0, which is returned. */
int kp_providers_each_asked(const struct kp_providers_setup *setup, size_t k, int (*fn)(const char *metric, void *arg),
                            void *arg);

extern const struct kp_provider kp_provider_pcsamp, kp_provider_sass, kp_provider_pm;

#endif
