#include "preload/program/variables.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "collectors/code/cubin.h"

/* An image with variables. Only `holder` changes once it is in the list. */
struct image {
    uint64_t number;
    uint64_t holder; /* the last that holds its variables */
    bool unreadable;
    uint64_t *kernels; /* hashes of their names */
    size_t n_kernels;
    char **names; /* of the variables */
    size_t n_names;
    struct image *next;
};

static _Atomic(struct image *) images; /* the last one first */
static atomic_uint_fast64_t questions;
static atomic_bool unreadable; /* one was unreadable, so any kernel may belong to it */
static atomic_bool lost;       /* one is missing because memory was short */

/* A set of names that needs no lock (a Bloom filter): each name sets two bits, and may be there if both are set. */
enum { WORDS = 1 << 14, WORD_BITS = 64 };
static atomic_uint_fast64_t names[WORDS];

struct place {
    atomic_uint_fast64_t *word;
    uint64_t bit;
};

static uint64_t hash_of(const char *name, uint64_t which)
{
    return kp_hash(name, strlen(name), which);
}

static struct place place_of_variable(const char *name, uint64_t which)
{
    uint64_t h = hash_of(name, which);
    return (struct place){&names[h / WORD_BITS % WORDS], UINT64_C(1) << h % WORD_BITS};
}

static int add_kernel(const struct kp_cubin_function *f, void *arg)
{
    struct image *i = arg;
    for (uint64_t which = 0; which < 2; which++) {
        struct place p = place_of_variable(f->name, which);
        atomic_fetch_or(p.word, p.bit);
    }
    i->unreadable |= !KP_ROOM(i->kernels, i->n_kernels);
    if (!i->unreadable)
        i->kernels[i->n_kernels++] = hash_of(f->name, 0);
    return i->unreadable;
}

static int add_name(const char *name, void *arg)
{
    struct image *i = arg;
    char *copy = strdup(name);
    i->unreadable |= !copy || !KP_ROOM(i->names, i->n_names);
    if (i->unreadable)
        free(copy);
    else
        i->names[i->n_names++] = copy;
    return i->unreadable;
}

static void read_image(struct image *i, const void *image, size_t size)
{
    struct kp_cubin *c;
    i->unreadable = !image || kp_cubin_open(image, size, &c);
    if (i->unreadable)
        return;
    kp_cubin_each_function(c, add_kernel, i);
    kp_cubin_each_variable(c, add_name, i);
    kp_cubin_close(c);
}

void kp_variables_note(const void *image, size_t size)
{
    struct image *i;
    if (!kp_cubin_variables(image, size))
        return;
    if ((i = calloc(1, sizeof(*i))))
        read_image(i, image, size);
    if (!i || i->unreadable)
        atomic_store(&unreadable, true);
    if (!i) {
        atomic_store(&lost, true);
        return;
    }
    i->next = atomic_load(&images);
    do
        i->number = i->next ? i->next->number + 1 : 0;
    while (!atomic_compare_exchange_weak(&images, &i->next, i));
}

uint64_t kp_variables_count(void)
{
    const struct image *last = atomic_load(&images);
    return last ? last->number + 1 : 0;
}

void kp_variables_asked(void)
{
    atomic_fetch_add(&questions, 1);
}

uint64_t kp_variables_questions(void)
{
    return atomic_load(&questions);
}

bool kp_variables_come_with(const char *mangled)
{
    bool found = true;
    for (uint64_t which = 0; mangled && which < 2 && found; which++) {
        struct place p = place_of_variable(mangled, which);
        found = atomic_load(p.word) & p.bit;
    }
    return found || atomic_load(&unreadable);
}

uint64_t kp_variables_pending(uint64_t known, uint64_t holder)
{
    uint64_t pending = atomic_load(&lost);
    for (const struct image *i = atomic_load(&images); i && i->number >= known; i = i->next)
        pending += i->holder != holder;
    return pending;
}

static bool may_have(const struct image *i, const char *mangled)
{
    bool has = !mangled || i->unreadable;
    uint64_t h = has ? 0 : hash_of(mangled, 0);
    for (size_t k = 0; k < i->n_kernels && !has; k++)
        has = i->kernels[k] == h;
    return has;
}

static bool hold_all(const struct image *i, bool (*hold)(void *arg, const char *name), void *arg)
{
    bool all = !i->unreadable;
    for (size_t k = 0; k < i->n_names && all; k++)
        all = hold(arg, i->names[k]);
    return all;
}

/* The order in which images are tried for a module: most variables first, because the module also has all those of a
 * smaller image. Of equal images each counts for one module: first one that no module has had, and the oldest. */
static bool comes_before(const struct image *a, const struct image *b)
{
    if (a->n_names != b->n_names)
        return a->n_names > b->n_names;
    if (!a->holder != !b->holder)
        return !a->holder;
    return a->number < b->number;
}

/* Returns the next image after `last` (NULL: the first) that may have the kernel, or NULL. */
static struct image *next_of(const struct image *last, const char *mangled)
{
    struct image *next = NULL;
    for (struct image *i = atomic_load(&images); i; i = i->next)
        if (may_have(i, mangled) && (!last || comes_before(last, i)) && (!next || comes_before(i, next)))
            next = i;
    return next;
}

/* Returns the image whose variables `fn` was called for, or NULL. *any: there is one that may have the kernel. */
static struct image *each_of(const char *mangled, bool (*fn)(void *arg, const char *name), void *arg, bool *any)
{
    struct image *i = next_of(NULL, mangled);
    *any = i;
    while (i && !hold_all(i, fn, arg))
        i = next_of(i, mangled);
    return i;
}

bool kp_variables_hold(uint64_t holder, const char *mangled, bool (*hold)(void *arg, const char *name), void *arg)
{
    bool any;
    struct image *i = each_of(mangled, hold, arg, &any);
    if (i)
        i->holder = holder;
    return (i || !any) && !atomic_load(&lost);
}

bool kp_variables_list(const char *mangled, bool (*fn)(void *arg, const char *name), void *arg)
{
    bool any;
    return (each_of(mangled, fn, arg, &any) || !any) && !atomic_load(&lost);
}
