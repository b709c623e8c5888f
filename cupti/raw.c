#include "cupti/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { BITS = 64 };

/* Names, numbered from 0. */
struct names {
    char **at;
    size_t n, cap;
    uint32_t *slots; /* hash: number plus one, 0 = free; twice `cap`, which is a power of two */
};

/* The raw counters that a metric needs. */
struct needs {
    uint32_t *raw;
    size_t n;
    bool unknown; /* the library does not say */
};

/* Raw counters, one bit each. */
struct set {
    size_t words;
    uint64_t bits[];
};

struct sets {
    struct set **at;
    size_t n, cap;
};

struct kp_raw {
    const struct kp_cupti *c;
    NVPW_MetricsEvaluator *evaluator;
    struct NVPW_RawCounterConfig *config; /* with an empty pass open for all domains; NULL = there is none */
    struct names metrics, counters;
    struct needs *needs;              /* by metric; as long as metrics.cap */
    uint64_t *bits;                   /* the counters of the current question; as many as counters.cap */
    NVPW_RawCounterRequest *requests; /* the same, in order */
    size_t n;
    struct sets fit, unfit; /* the library's answers */
};

/* ---- names ---- */

static uint32_t *slot_of(const struct names *t, const char *name)
{
    for (size_t i = kp_hash(name, strlen(name), 0);; i++) {
        uint32_t *slot = &t->slots[i & (2 * t->cap - 1)];
        if (!*slot || !strcmp(t->at[*slot - 1], name))
            return slot;
    }
}

/* Doubles the room for names. */
static int grow_names(struct names *t)
{
    size_t cap = t->cap ? 2 * t->cap : 256;
    char **at = realloc(t->at, cap * sizeof(*at));
    if (!at)
        return -ENOMEM;
    t->at = at;
    uint32_t *slots = calloc(2 * cap, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
    for (size_t i = 0; i < t->n; i++)
        *slot_of(t, t->at[i]) = (uint32_t)i + 1;
    return 0;
}

/* Adds a name that has no number yet. There must be room. */
static int add_name(struct names *t, const char *name, size_t *number)
{
    if (!(t->at[t->n] = strdup(name)))
        return -ENOMEM;
    *number = t->n;
    *slot_of(t, name) = (uint32_t)++t->n;
    return 0;
}

static bool find_name(const struct names *t, const char *name, size_t *number)
{
    uint32_t *slot = t->n ? slot_of(t, name) : NULL;
    if (!slot || !*slot)
        return false;
    *number = *slot - 1;
    return true;
}

static void free_names(struct names *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->at[i]);
    free(t->at);
    free(t->slots);
}

static void free_sets(struct sets *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->at[i]);
    free(s->at);
}

/* Grows an array from `had` to `cap` elements; the new ones are zero. */
static int grow_array(void *array, size_t had, size_t cap, size_t size)
{
    void **at = array;
    char *grown = realloc(*at, cap * size);
    if (!grown)
        return -ENOMEM;
    memset(grown + had * size, 0, (cap - had) * size);
    *at = grown;
    return 0;
}

/* Returns the number of a raw counter. */
static int number_counter(struct kp_raw *r, const char *name, uint32_t *number)
{
    size_t had = r->counters.cap, found;
    if (!find_name(&r->counters, name, &found)) {
        size_t cap = had ? 2 * had : 256;
        if (r->counters.n == had &&
            (grow_array(&r->bits, had / BITS, cap / BITS, sizeof(*r->bits)) ||
             grow_array(&r->requests, had, cap, sizeof(*r->requests)) || grow_names(&r->counters)))
            return -ENOMEM;
        if (add_name(&r->counters, name, &found))
            return -ENOMEM;
    }
    *number = (uint32_t)found;
    return 0;
}

/* ---- what a metric needs ---- */

/* Asks the library for the raw counters of a metric: *raw is malloc'ed. -EINVAL if it does not say. */
static int ask_needs(struct kp_raw *r, const char *name, const char ***raw, size_t *n)
{
    NVPW_MetricEvalRequest request;
    KP_PARAMS(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params, c);
    c.pMetricsEvaluator = r->evaluator;
    c.pMetricName = name;
    c.pMetricEvalRequest = &request;
    c.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    if (KP_CALL(r->c, NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest, &c))
        return -EINVAL;
    KP_PARAMS(NVPW_MetricsEvaluator_GetMetricRawDependencies_Params, d);
    d.pMetricsEvaluator = r->evaluator;
    d.pMetricEvalRequests = &request;
    d.numMetricEvalRequests = 1;
    d.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    d.metricEvalRequestStrideSize = sizeof(request);
    if (KP_CALL(r->c, NVPW_MetricsEvaluator_GetMetricRawDependencies, &d))
        return -EINVAL;
    *raw = calloc(d.numRawDependencies + 1, sizeof(**raw));
    const char **optional = calloc(d.numOptionalRawDependencies + 1, sizeof(*optional));
    int rc = *raw && optional ? 0 : -ENOMEM;
    d.ppRawDependencies = *raw;
    d.ppOptionalRawDependencies = optional;
    if (!rc && KP_CALL(r->c, NVPW_MetricsEvaluator_GetMetricRawDependencies, &d))
        rc = -EINVAL;
    *n = rc ? 0 : d.numRawDependencies;
    free(optional); /* the scheduler does without them */
    return rc;
}

/* Learns what a metric needs. */
static int learn(struct kp_raw *r, const char *name, size_t *number)
{
    const char **raw = NULL;
    size_t had = r->metrics.cap, n = 0;
    if (r->metrics.n == had &&
        (grow_array(&r->needs, had, had ? 2 * had : 256, sizeof(*r->needs)) || grow_names(&r->metrics)))
        return -ENOMEM;
    struct needs needs = {.unknown = false};
    int rc = ask_needs(r, name, &raw, &n);
    needs.unknown = rc == -EINVAL || (!rc && !n);
    if (!rc && !(needs.raw = calloc(n + 1, sizeof(*needs.raw))))
        rc = -ENOMEM;
    for (; !rc && needs.n < n; needs.n++)
        rc = number_counter(r, raw[needs.n], &needs.raw[needs.n]);
    rc = rc == -ENOMEM ? rc : add_name(&r->metrics, name, number);
    if (rc)
        free(needs.raw);
    else
        r->needs[*number] = needs;
    free(raw);
    return rc;
}

/* ---- questions ---- */

/* Adds the needs of a metric to the current question. */
static int add_needs(struct kp_raw *r, const char *name)
{
    size_t number;
    int rc = find_name(&r->metrics, name, &number) ? 0 : learn(r, name, &number);
    if (rc)
        return rc;
    const struct needs *m = &r->needs[number];
    for (size_t i = 0; i < m->n; i++) {
        uint32_t k = m->raw[i];
        uint64_t bit = UINT64_C(1) << k % BITS;
        if (r->bits[k / BITS] & bit)
            continue;
        r->bits[k / BITS] |= bit;
        r->requests[r->n++] = (NVPW_RawCounterRequest){.pRawCounterName = r->counters.at[k]};
    }
    return m->unknown ? -EINVAL : 0;
}

static bool is_within(const uint64_t *a, size_t a_words, const uint64_t *b, size_t b_words)
{
    for (size_t i = 0; i < a_words; i++)
        if (a[i] & ~(i < b_words ? b[i] : 0))
            return false;
    return true;
}

/* Returns true if an answer is known: any part of a set that fits also fits, and any set that contains one that does
 * not fit does not fit either. That answers half of the questions, among them the library's slowest. */
static bool is_known(const struct kp_raw *r, bool *fits)
{
    size_t words = r->counters.cap / BITS;
    *fits = false;
    for (size_t i = r->unfit.n; i--;)
        if (is_within(r->unfit.at[i]->bits, r->unfit.at[i]->words, r->bits, words))
            return true;
    *fits = true;
    for (size_t i = r->fit.n; i--;)
        if (is_within(r->bits, words, r->fit.at[i]->bits, r->fit.at[i]->words))
            return true;
    return false;
}

/* Remembers the counters of the current question in one of the lists. */
static int remember(const struct kp_raw *r, struct sets *to)
{
    size_t words = r->counters.cap / BITS, cap = to->cap ? 2 * to->cap : 64;
    if (to->n == to->cap) {
        if (grow_array(&to->at, to->cap, cap, sizeof(*to->at)))
            return -ENOMEM;
        to->cap = cap;
    }
    struct set *set = malloc(sizeof(*set) + words * sizeof(*set->bits));
    if (!set)
        return -ENOMEM;
    set->words = words;
    memcpy(set->bits, r->bits, words * sizeof(*set->bits));
    to->at[to->n++] = set;
    return 0;
}

/* Sets the current question to the needs of all the metrics. */
static int ask_for(struct kp_raw *r, const char *const *names, size_t n)
{
    int rc = kp_cupti_room();
    r->n = 0;
    if (r->bits)
        memset(r->bits, 0, r->counters.cap / BITS * sizeof(*r->bits));
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_needs(r, names[i]);
    return rc;
}

int kp_raw_fits(struct kp_raw *r, const char *const *names, size_t n, bool *fits)
{
    int rc = r->config ? ask_for(r, names, n) : -ENOSYS;
    *fits = false;
    if (rc || is_known(r, fits))
        return rc;
    KP_PARAMS(NVPW_RawCounterConfig_AreRawCountersSchedulable_Params, p);
    p.pRawCounterConfig = r->config;
    p.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    p.numRawCounterRequests = r->n;
    p.pRawCounterRequests = r->requests;
    p.disallowAddingExtraPasses = true;
    if (KP_CALL(r->c, NVPW_RawCounterConfig_AreRawCountersSchedulable, &p))
        return -EINVAL;
    *fits = p.schedulable;
    return remember(r, *fits ? &r->fit : &r->unfit);
}

/* ---- counter data ---- */

bool kp_raw_lays_out(const struct kp_cupti *c)
{
    return c->NVPW_CUDA_CounterDataBuilder_Create && c->NVPW_CounterDataBuilder_Destroy &&
           c->NVPW_CounterDataBuilder_AddRawCounters && c->NVPW_CounterDataBuilder_GetCounterDataPrefix;
}

/* Adds the counters of the current question, with all their instances: the smallest and the largest are metrics. */
static int add_counters(struct kp_raw *r, NVPA_CounterDataBuilder *builder)
{
    KP_PARAMS(NVPW_CounterDataBuilder_AddRawCounters_Params, a);
    for (size_t i = 0; i < r->n; i++)
        r->requests[i].keepInstances = true;
    a.pCounterDataBuilder = builder;
    a.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    a.numRawCounterRequests = r->n;
    a.pRawCounterRequests = r->requests;
    return KP_CALL(r->c, NVPW_CounterDataBuilder_AddRawCounters, &a) ? -EINVAL : 0;
}

static int fetch_prefix(struct kp_raw *r, NVPA_CounterDataBuilder *builder, uint8_t **prefix, size_t *size)
{
    KP_PARAMS(NVPW_CounterDataBuilder_GetCounterDataPrefix_Params, p);
    p.pCounterDataBuilder = builder;
    if (KP_CALL(r->c, NVPW_CounterDataBuilder_GetCounterDataPrefix, &p))
        return -EINVAL;
    *size = p.bytesCopied;
    *prefix = malloc(*size ? *size : 1);
    if (!*prefix)
        return -ENOMEM;
    p.bytesAllocated = *size;
    p.pBuffer = *prefix;
    if (!KP_CALL(r->c, NVPW_CounterDataBuilder_GetCounterDataPrefix, &p))
        return 0;
    free(*prefix);
    *prefix = NULL;
    return -EINVAL;
}

int kp_raw_layout(struct kp_raw *r, const char *chip, const char *const *names, size_t n, uint8_t **prefix,
                  size_t *size)
{
    KP_PARAMS(NVPW_CUDA_CounterDataBuilder_Create_Params, c);
    KP_PARAMS(NVPW_CounterDataBuilder_Destroy_Params, d);
    *prefix = NULL;
    int rc = ask_for(r, names, n);
    if (rc)
        return rc;
    c.pChipName = chip;
    if (KP_CALL(r->c, NVPW_CUDA_CounterDataBuilder_Create, &c))
        return -EINVAL;
    rc = add_counters(r, c.pCounterDataBuilder);
    if (!rc)
        rc = fetch_prefix(r, c.pCounterDataBuilder, prefix, size);
    d.pCounterDataBuilder = c.pCounterDataBuilder;
    KP_CALL(r->c, NVPW_CounterDataBuilder_Destroy, &d);
    return rc;
}

/* ---- the scheduler ---- */

static bool tells_needs(const struct kp_cupti *c)
{
    return c->NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest &&
           c->NVPW_MetricsEvaluator_GetMetricRawDependencies;
}

static bool has_scheduler(const struct kp_cupti *c)
{
    return c->NVPW_CUDA_RawCounterConfig_Create && c->NVPW_RawCounterConfig_Destroy &&
           c->NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains && c->NVPW_RawCounterConfig_BeginPassGroup &&
           c->NVPW_RawCounterConfig_AreRawCountersSchedulable;
}

/* Opens a pass for all domains of counters. */
static int begin_pass(struct kp_raw *r)
{
    enum { MOST_DOMAINS = 256 };
    NVPW_RawCounterDomain domains[MOST_DOMAINS];
    KP_PARAMS(NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains_Params, d);
    d.pRawCounterConfig = r->config;
    d.pAvailableDomains = domains;
    d.numAvailableDomains = MOST_DOMAINS;
    if (KP_CALL(r->c, NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains, &d))
        return -ENOSYS;
    KP_PARAMS(NVPW_RawCounterConfig_BeginPassGroup_Params, b);
    b.pRawCounterConfig = r->config;
    b.pDomains = domains;
    b.numDomains = d.numAvailableDomains;
    return KP_CALL(r->c, NVPW_RawCounterConfig_BeginPassGroup, &b) ? -ENOSYS : 0;
}

static int make_config(struct kp_raw *r, const char *chip)
{
    KP_PARAMS(NVPW_CUDA_RawCounterConfig_Create_Params, p);
    p.pChipName = chip;
    p.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    if (KP_CALL(r->c, NVPW_CUDA_RawCounterConfig_Create, &p))
        return -ENOSYS;
    r->config = p.pRawCounterConfig;
    return begin_pass(r);
}

int kp_raw_open(const struct kp_cupti *c, NVPW_MetricsEvaluator *evaluator, const char *chip, struct kp_raw **out)
{
    *out = NULL;
    if (!tells_needs(c))
        return -ENOSYS;
    int rc = kp_cupti_room();
    struct kp_raw *r = rc ? NULL : calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->c = c;
    r->evaluator = evaluator;
    rc = has_scheduler(c) ? make_config(r, chip) : 0;
    if (rc)
        kp_raw_close(r);
    else
        *out = r;
    return rc;
}

void kp_raw_close(struct kp_raw *r)
{
    if (!r)
        return;
    KP_PARAMS(NVPW_RawCounterConfig_Destroy_Params, d);
    d.pRawCounterConfig = r->config;
    if (r->config)
        KP_CALL(r->c, NVPW_RawCounterConfig_Destroy, &d);
    for (size_t i = 0; i < r->metrics.n; i++)
        free(r->needs[i].raw);
    free_names(&r->metrics);
    free_names(&r->counters);
    free_sets(&r->fit);
    free_sets(&r->unfit);
    free(r->needs);
    free(r->bits);
    free(r->requests);
    free(r);
}
