#include "preload/program/variables.h"

#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "collectors/code/cubin.h"

static atomic_uint_fast64_t noted;
static atomic_bool unreadable; /* one was, so any kernel may be of it */

/* A set of names that needs no lock (a Bloom filter): each name sets two bits, and may be there if both are set. */
enum { WORDS = 1 << 14, WORD_BITS = 64 };
static atomic_uint_fast64_t names[WORDS];

struct place {
    atomic_uint_fast64_t *word;
    uint64_t bit;
};

static struct place place_of(const char *name, uint64_t which)
{
    uint64_t h = kp_hash(name, strlen(name), which);
    return (struct place){&names[h / WORD_BITS % WORDS], UINT64_C(1) << h % WORD_BITS};
}

static int add_name(const struct kp_cubin_function *f, void *arg)
{
    (void)arg;
    for (uint64_t which = 0; which < 2; which++) {
        struct place p = place_of(f->name, which);
        atomic_fetch_or(p.word, p.bit);
    }
    return 0;
}

void kp_variables_note(const void *image, size_t size)
{
    struct kp_cubin *c;
    if (!kp_cubin_variables(image, size))
        return;
    if (image && !kp_cubin_open(image, size, &c)) {
        kp_cubin_each_function(c, add_name, NULL);
        kp_cubin_close(c);
    } else {
        atomic_store(&unreadable, true);
    }
    atomic_fetch_add(&noted, 1);
}

uint64_t kp_variables_count(void)
{
    return atomic_load(&noted);
}

bool kp_variables_come_with(const char *mangled)
{
    bool found = true;
    for (uint64_t which = 0; mangled && which < 2 && found; which++) {
        struct place p = place_of(mangled, which);
        found = atomic_load(p.word) & p.bit;
    }
    return found || atomic_load(&unreadable);
}
