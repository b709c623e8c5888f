/* Shared by extras.c and the files of the single kinds. */
#ifndef KP_COLLECTORS_PROVIDERS_EXTRAS_INTERNAL_H
#define KP_COLLECTORS_PROVIDERS_EXTRAS_INTERNAL_H

#include "collectors/providers/extras.h"
#include "cupti/source.h"

/* One count of a launch. */
struct kp_extra_count {
    uint32_t code, offset;
    uint32_t metric; /* index into kp_gathered.names */
    uint64_t value;
};

struct kp_gathered_launch {
    struct kp_extra_count *counts;
    size_t n_counts, cap_counts;
    struct kp_pcsamp_totals samples;
    bool sampled; /* PC sampling went well */
    struct kp_series *series;
    size_t n_series;
    uint64_t pm_dropped; /* times that samples were lost */
    bool short_of_memory;
};

enum { KP_EXTRA_KINDS = 3 };

/* What a kind does not tell of a window: of its launches from `first` on, for `why`. */
struct kp_extra_loss {
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
    struct kp_extra_loss lost[KP_EXTRA_KINDS];
    const struct kp_extras_setup *setup; /* of whom gathered it; NULL = nothing can be lost */
};

struct kp_extra_kind;

struct kp_extras {
    struct kp_extras_setup setup;
    struct kp_gathered *gathered; /* of the window under way */
    uint64_t longest_ns;
    size_t next;                      /* launch of the pass under way */
    const struct kp_extra_kind *kind; /* of the pass under way; NULL = none, or it failed */
    size_t part;                      /* which of the kind's passes */
    size_t passes[KP_EXTRA_KINDS];    /* of the window under way */
    bool gone[KP_EXTRA_KINDS];        /* failed for good */
    char *complaints[KP_EXTRA_KINDS];
    unsigned told[KP_EXTRA_KINDS]; /* which complaints there have been: once is enough */
    char *why[KP_EXTRA_KINDS];     /* it last failed */
    struct kp_pcsamp *pcsamp;
    bool sampling;   /* it is started */
    size_t *reasons; /* of the reasons of PC sampling: their index in the names gathered */
    struct kp_sass *sass;
    size_t sass_names; /* the index of its first metric */
    bool sass_open;    /* a launch is being counted */
    struct kp_extra_pm *pm;
};

/* One kind. What returns int returns 0 or a code for kp_cupti_explain; a failure ends the kind's part of the window. */
struct kp_extra_kind {
    unsigned bit;
    const char *what; /* "PC sampling" */
    bool flushes;
    bool by_time; /* what it makes ready depends on how long launches take */
    size_t (*passes)(struct kp_extras *x);
    int (*begin)(struct kp_extras *x);
    int (*before)(struct kp_extras *x, struct kp_gathered_launch *l);
    int (*after)(struct kp_extras *x, struct kp_gathered_launch *l);
    void (*end)(struct kp_extras *x);  /* also after a begin or a watch that failed */
    int (*watch)(struct kp_extras *x); /* of launches before the first pass, ended by its end; NULL = no need to */
    void (*close)(struct kp_extras *x, bool alive);
};

/* The index of metric `name` among those gathered, where it is added; -1 without memory. */
long kp_extras_name(struct kp_gathered *g, const char *name);

/* A line for the user, which is taken over; it takes the place of one that nobody has read. NULL = none. */
void kp_extras_tell(struct kp_extras *x, const struct kp_extra_kind *kind, char *text);
/* Notes why the kind fails, once. */
void kp_extras_complain(struct kp_extras *x, const struct kp_extra_kind *kind, int rc);

/* Calls `fn` for each metric of kind number `k` that was asked for, by sections or by name; series of sections are left
 * out. Ends when it returns other than 0, which is returned. */
int kp_extras_each_asked(const struct kp_extras_setup *setup, size_t k, int (*fn)(const char *metric, void *arg),
                         void *arg);

extern const struct kp_extra_kind kp_extra_pcsamp, kp_extra_sass, kp_extra_pm;

#endif
