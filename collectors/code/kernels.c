#include "collectors/code/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "base/text.h"
#include "collectors/code/cubin.h"

/* A function of a module. */
struct function {
    const char *name; /* in the image */
    uint32_t module;  /* index */
    uint32_t symbol, barriers;
    size_t next; /* index + 1 of the next one in the bucket */
};

struct kp_kernels {
    const void *(*cubin_at)(size_t i, size_t *size);
    size_t seen;               /* images read so far */
    struct kp_cubin **modules; /* the readable ones */
    unsigned *once;            /* per module: enum kp_once of all its code */
    size_t n_modules;
    struct function *functions;
    size_t n;
    size_t *buckets; /* index + 1 of the first function */
    size_t n_buckets;
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_KERNELS];

struct kp_kernels *kp_kernels_new(const void *(*cubin_at)(size_t i, size_t *size))
{
    struct kp_kernels *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->cubin_at = cubin_at;
    return k;
}

void kp_kernels_free(struct kp_kernels *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n_modules; i++)
        kp_cubin_close(k->modules[i]);
    free(k->modules);
    free(k->once);
    free(k->functions);
    free(k->buckets);
    free(k);
}

static size_t hash(const char *name)
{
    return kp_hash(name, strlen(name), 0);
}

static int add_function(const struct kp_cubin_function *f, void *arg)
{
    struct kp_kernels *k = arg;
    if (!KP_ROOM(k->functions, k->n))
        return -1;
    k->functions[k->n++] = (struct function){f->name, (uint32_t)k->n_modules, f->symbol, f->barriers, 0};
    return 0;
}

/* Sorts all functions into buckets again, as many as memory allows. */
static void index_all(struct kp_kernels *k)
{
    size_t n = k->n_buckets ? k->n_buckets : 1024;
    while (n < k->n)
        n *= 2;
    size_t *buckets = calloc(n, sizeof(*buckets));
    if (!buckets)
        return;
    free(k->buckets);
    k->buckets = buckets;
    k->n_buckets = n;
    for (size_t i = 0; i < k->n; i++) {
        size_t *first = &buckets[hash(k->functions[i].name) & (n - 1)];
        k->functions[i].next = *first;
        *first = i + 1;
    }
}

static void look_at(struct kp_kernels *k, const void *image, size_t size)
{
    struct kp_cubin *c;
    if (!KP_ROOM(k->modules, k->n_modules))
        return;
    if (!KP_ROOM(k->once, k->n_modules))
        return;
    if (kp_cubin_open(image, size, &c))
        return;
    k->once[k->n_modules] = kp_cubin_once(image, size);
    kp_cubin_each_function(c, add_function, k);
    k->modules[k->n_modules++] = c;
}

static void look_at_new(struct kp_kernels *k)
{
    const void *image;
    size_t size, before = k->n;
    while ((image = k->cubin_at(k->seen, &size))) {
        k->seen++;
        look_at(k, image, size);
    }
    if (k->n > before)
        index_all(k);
}

static bool read_code(const struct kp_kernels *k, const struct function *f, struct kp_kernel_code *out)
{
    struct kp_cubin_reach reach;
    if (kp_cubin_reach(k->modules[f->module], f->symbol, &reach))
        return false;
    *out = (struct kp_kernel_code){f->barriers, reach.functions, reach.launches, reach.spills, reach.once};
    return true;
}

static bool same(const struct kp_kernel_code *a, const struct kp_kernel_code *b)
{
    return a->barriers == b->barriers && a->functions == b->functions && a->launches == b->launches &&
           a->spills == b->spills && a->once == b->once;
}

static size_t first_in_bucket(const struct kp_kernels *k, const char *name)
{
    return k->n_buckets ? k->buckets[hash(name) & (k->n_buckets - 1)] : 0;
}

unsigned kp_kernels_once(struct kp_kernels *k, const char *name)
{
    unsigned once = 0;
    kp_lock_take(lock, KP_FOREVER);
    look_at_new(k);
    for (size_t i = 0; !*name && i < k->n_modules; i++)
        once |= k->once[i];
    for (size_t i = first_in_bucket(k, name); i; i = k->functions[i - 1].next) {
        const struct function *f = &k->functions[i - 1];
        struct kp_kernel_code code;
        if (!k->once[f->module] || strcmp(f->name, name))
            continue;
        once |= read_code(k, f, &code) ? code.once : k->once[f->module];
    }
    kp_lock_give(lock);
    return once;
}

bool kp_kernels_find(struct kp_kernels *k, const char *name, struct kp_kernel_code *out)
{
    struct kp_kernel_code code = {0};
    bool found = false, agreed = true;
    kp_lock_take(lock, KP_FOREVER);
    look_at_new(k);
    for (size_t i = first_in_bucket(k, name); i; i = k->functions[i - 1].next) {
        const struct function *f = &k->functions[i - 1];
        if (strcmp(f->name, name))
            continue;
        agreed &= read_code(k, f, &code) && (!found || same(&code, out));
        *out = code;
        found = true;
    }
    kp_lock_give(lock);
    return found && agreed;
}
