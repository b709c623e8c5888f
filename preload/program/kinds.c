#include "preload/program/kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/plan/alike.h"

enum {
    WORD = 4,
    MOST_WORDS = 128, /* of the arguments: what tells a size apart comes early */
    UNKNOWN = 0xff,   /* a value beyond those that are kept */
};

/* The values of a trait, in the order in which they came first. */
struct values {
    size_t n; /* KP_KINDS_MOST + 1: too many */
    uint32_t at[KP_KINDS_MOST];
    uint64_t seen[KP_KINDS_MOST];
};

struct kp_kinds {
    struct kp_trait *traits;
    struct values *values; /* of each trait */
    unsigned char *last;   /* of the launch seen last: as kp_kept.at */
    size_t n, n_params;
    bool unknown; /* a launch was not as the others */
    struct kp_kept **kept;
    size_t n_kept, capacity;
};

/* ---- traits ---- */

bool kp_trait_fits(const struct kp_trait *t, const struct kp_function *f)
{
    return t->before || (f->params_known && t->param < f->n_params && f->params[t->param].size == t->of &&
                         f->params[t->param].offset + t->offset == t->packed);
}

static const char *packed_arguments(const struct kp_launch *l, size_t *size)
{
    const char *buffer = NULL;
    *size = 0;
    for (void **e = l->extra; e && e[0] != CU_LAUNCH_PARAM_END; e += 2) {
        if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = e[1];
        else if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *size = *(const size_t *)e[1];
        else
            return NULL; /* a key of a later driver */
    }
    return buffer;
}

bool kp_trait_read(const struct kp_trait *t, const struct kp_launch *l, uint32_t before, uint32_t *word)
{
    size_t size = 0;
    *word = before;
    if (t->before)
        return true;
    if (!l->params == !l->extra) /* the driver refuses both */
        return false;
    *word = 0;
    if (l->params) {
        memcpy(word, (const char *)l->params[t->param] + t->offset, t->bytes);
        return true;
    }
    const char *buffer = packed_arguments(l, &size);
    if (!buffer || t->packed + t->bytes > size)
        return false;
    memcpy(word, buffer + t->packed, t->bytes);
    return true;
}

char *kp_trait_say(const struct kp_trait *t, uint32_t value, const char *name)
{
    char *text = NULL;
    int len;
    if (t->before && !value)
        len = asprintf(&text, "that come first");
    else if (t->before)
        len = asprintf(&text, "that come after %s", name);
    else if (t->of <= WORD)
        len = asprintf(&text, "whose argument %u is %u", t->param + 1, value);
    else
        len = asprintf(&text, "whose argument %u has %u (0x%x) at byte %u", t->param + 1, value, value, t->offset);
    return len < 0 ? NULL : text;
}

static void add_trait(struct kp_kinds *k, const struct kp_trait *t)
{
    k->traits[k->n++] = *t;
}

/* The arguments come first: of traits that tell the same, the first one is chosen. */
static void add_traits(struct kp_kinds *k, const struct kp_function *f)
{
    for (size_t i = 0; f->params_known && i < f->n_params; i++)
        for (size_t at = 0; at < f->params[i].size && k->n < MOST_WORDS; at += WORD) {
            size_t left = f->params[i].size - at;
            add_trait(k, &(struct kp_trait){.param = (uint32_t)i,
                                            .offset = (uint32_t)at,
                                            .packed = (uint32_t)(f->params[i].offset + at),
                                            .bytes = (uint32_t)(left < WORD ? left : WORD),
                                            .of = (uint32_t)f->params[i].size});
        }
    add_trait(k, &(struct kp_trait){.before = true});
}

static size_t count_words(const struct kp_function *f)
{
    size_t n = 0;
    for (size_t i = 0; f->params_known && i < f->n_params; i++)
        n += (f->params[i].size + WORD - 1) / WORD;
    return n < MOST_WORDS ? n : MOST_WORDS;
}

/* Whether the function, of the same name, takes the same arguments: it may be of another module. */
static bool fits(const struct kp_kinds *k, const struct kp_function *f)
{
    size_t n = f->params_known ? f->n_params : 0;
    if (n != k->n_params || count_words(f) + 1 != k->n)
        return false;
    for (size_t i = 0; i < k->n; i++)
        if (!kp_trait_fits(&k->traits[i], f))
            return false;
    return true;
}

/* ---- launches ---- */

struct kp_kinds *kp_kinds_new(const struct kp_function *f)
{
    size_t n = count_words(f) + 1;
    struct kp_kinds *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->traits = calloc(n, sizeof(*k->traits));
    k->values = calloc(n, sizeof(*k->values));
    k->last = calloc(n, sizeof(*k->last));
    k->n_params = f->params_known ? f->n_params : 0;
    if (!k->traits || !k->values || !k->last) {
        kp_kinds_free(k);
        return NULL;
    }
    add_traits(k, f);
    return k;
}

void kp_kinds_free(struct kp_kinds *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n_kept; i++) {
        free(k->kept[i]->values);
        free(k->kept[i]);
    }
    free(k->kept);
    free(k->traits);
    free(k->values);
    free(k->last);
    free(k);
}

/* Counts the value; returns which one it is. */
static unsigned char note(struct values *v, uint32_t word)
{
    size_t i = 0;
    while (i < v->n && i < KP_KINDS_MOST && v->at[i] != word)
        i++;
    if (v->n > KP_KINDS_MOST || i == KP_KINDS_MOST) {
        v->n = KP_KINDS_MOST + 1;
        return UNKNOWN;
    }
    if (i == v->n)
        v->at[v->n++] = word;
    v->seen[i]++;
    return (unsigned char)i;
}

bool kp_kinds_see(struct kp_kinds *k, const struct kp_launch *l, const struct kp_function *f, uint32_t before)
{
    k->unknown = k->unknown || !fits(k, f);
    for (size_t i = 0; !k->unknown && i < k->n; i++) {
        uint32_t word;
        if (kp_trait_read(&k->traits[i], l, before, &word))
            k->last[i] = note(&k->values[i], word);
        else
            k->unknown = true;
    }
    return !k->unknown;
}

size_t kp_kinds_keep(struct kp_kinds *k)
{
    struct kp_kept *one = k->unknown ? NULL : calloc(1, sizeof(*one) + k->n);
    if (one && k->n_kept == k->capacity) {
        size_t capacity = k->capacity ? 2 * k->capacity : 32;
        struct kp_kept **grown = realloc(k->kept, capacity * sizeof(*grown));
        if (grown) {
            k->kept = grown;
            k->capacity = capacity;
        }
    }
    if (!one || k->n_kept == k->capacity) {
        k->unknown = true; /* what it counts would be of no kind */
        free(one);
        return 0;
    }
    memcpy(one->at, k->last, k->n);
    k->kept[k->n_kept++] = one;
    return k->n_kept;
}

void kp_kinds_drop(struct kp_kinds *k)
{
    if (k->n_kept && !k->unknown)
        free(k->kept[--k->n_kept]);
}

struct kp_kept *kp_kinds_kept(struct kp_kinds *k, size_t number)
{
    return number && number <= k->n_kept ? k->kept[number - 1] : NULL;
}

/* ---- the choice ---- */

/* Values of a canary, and the kinds of the launches that counted them. */
struct sample {
    double *values;
    unsigned char *kinds;
    size_t n;
};

static void take_sample(const struct kp_kinds *k, size_t trait, size_t canary, struct sample *s)
{
    s->n = 0;
    for (size_t i = 0; i < k->n_kept; i++) {
        const struct kp_kept *one = k->kept[i];
        if (!one->counted || isnan(one->canaries[canary]))
            continue;
        s->values[s->n] = one->canaries[canary];
        s->kinds[s->n++] = one->at[trait];
    }
}

/* Whether launches that have the same value of the trait are alike, though not all launches are. */
static bool tells_apart(const struct kp_kinds *k, size_t trait, const char *const canaries[], struct sample *s)
{
    if (k->values[trait].n < 2 || k->values[trait].n > KP_KINDS_MOST)
        return false;
    for (size_t c = 0; c < KP_KINDS_CANARIES; c++) {
        take_sample(k, trait, c, s);
        if (!kp_alike_by_kind(canaries[c], s->values, s->kinds, s->n, k->values[trait].n))
            return false;
    }
    return true;
}

bool kp_kinds_choose(const struct kp_kinds *k, const char *const canaries[KP_KINDS_CANARIES],
                     struct kp_kinds_choice *out)
{
    struct sample s = {malloc((k->n_kept + 1) * sizeof(*s.values)), malloc(k->n_kept + 1), 0};
    size_t best = k->n;
    for (size_t i = 0; s.values && s.kinds && !k->unknown && i < k->n; i++)
        if ((best == k->n || k->values[i].n < k->values[best].n) && tells_apart(k, i, canaries, &s))
            best = i;
    free(s.values);
    free(s.kinds);
    if (best == k->n)
        return false;
    *out = (struct kp_kinds_choice){.trait = k->traits[best], .number = best, .n = k->values[best].n};
    memcpy(out->values, k->values[best].at, sizeof(out->values));
    memcpy(out->seen, k->values[best].seen, sizeof(out->seen));
    return true;
}
