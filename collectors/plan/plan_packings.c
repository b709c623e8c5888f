/*
 * Packings of the sets' counters into one-pass lists, as found once: to find one takes 0.2 to 4 s, to prove it a tenth
 * of that. The library schedules each list before it is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/plan_internal.h"

static const struct kp_packing found[] = {
#define KP_PACKING(chip, set, names, along, lists) {chip, set, names, along, lists},
#include "collectors/plan/packings.def"
#undef KP_PACKING
    {NULL, NULL, 0, 0, NULL}};

const struct kp_packing *kp_plan_packings = found;

/* A letter for each list, and one for what the library refuses. */
static const char letters[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+,-./:;<=>@[]^_`{|}~";
enum { REFUSED = ' ' };

char kp_plan_letter(int group)
{
    if (group < 0)
        return REFUSED;
    return group < (int)sizeof(letters) - 1 ? letters[group] : '\0';
}

int kp_plan_list_of(char letter)
{
    const char *at = strchr(letters, letter);
    return letter != REFUSED && at ? (int)(at - letters) : KP_CANNOT_COLLECT;
}

/* Returns the names to pack, in plan order, and their hash. The array is malloc'ed, NULL without memory; the names are
 * the plan's. */
static const char **names_to_pack(const struct kp_plan *p, size_t *n, uint64_t *hash)
{
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    *n = 0;
    *hash = 0;
    for (size_t i = 0; names && i < p->n_metrics; i++) {
        const char *name = p->metrics[i].name;
        if (p->metrics[i].group != KP_NOT_SCHEDULED || kp_plan_is_canary(name))
            continue;
        names[(*n)++] = name;
        *hash = kp_hash(name, strlen(name) + 1, *hash);
    }
    return names;
}

/* ---- using one ---- */

static const struct kp_packing *find(const char *chip, uint64_t hash, size_t n)
{
    for (const struct kp_packing *k = kp_plan_packings; k->chip; k++)
        if (!strcmp(k->chip, chip) && k->names == hash && strlen(k->lists) == n)
            return k;
    return NULL;
}

/* Makes a group of a packing's list; *good: it is one. `list` has room for all names. */
static int prove(struct kp_planner *x, const struct kp_packing *k, int group, const char *const *names, size_t n,
                 const char **list, bool *good)
{
    size_t kept = (unsigned)group < k->along ? kp_plan_canaries_of(x->plan, list) : 0, before = kept;
    for (size_t i = 0; i < n; i++)
        if (kp_plan_list_of(k->lists[i]) == group)
            list[kept++] = names[i];
    *good = false;
    return kept == before ? 0 : kp_plan_commit_one_pass(x, list, kept, good);
}

static int prove_refused(struct kp_planner *x, const struct kp_packing *k, const char *const *names, size_t n,
                         bool *good)
{
    int rc = 0;
    *good = true;
    for (size_t i = 0; !rc && *good && i < n; i++) {
        size_t passes;
        if (k->lists[i] != REFUSED)
            continue;
        rc = kp_plan_passes(x, &names[i], 1, &passes);
        *good = rc > 0;
        rc = rc < 0 ? rc : *good ? kp_plan_leave_refused(x, names[i]) : 0;
    }
    return rc;
}

/* Makes the plan what it was before the packing. */
static void undo(struct kp_plan *p, const char *const *names, size_t n)
{
    for (size_t g = 0; g < p->n_groups; g++)
        kp_config_free(&p->groups[g]);
    p->n_groups = p->passes = 0;
    for (size_t i = 0; i < n; i++) {
        struct kp_planned *m = kp_plan_find(p, names[i]);
        m->group = KP_NOT_SCHEDULED;
        free(m->why);
        m->why = NULL;
    }
    for (size_t i = 0; kp_plan_canaries[i]; i++) {
        struct kp_planned *m = kp_plan_find(p, kp_plan_canaries[i]);
        if (m && m->group >= 0)
            m->group = KP_NOT_SCHEDULED;
    }
}

static int apply(struct kp_planner *x, const struct kp_packing *k, const char *const *names, size_t n, bool *packed)
{
    const char **list = calloc(x->plan->n_metrics + 1, sizeof(*list));
    int lists = 0, rc = list ? prove_refused(x, k, names, n, packed) : -ENOMEM;
    for (size_t i = 0; i < n; i++)
        lists = kp_plan_list_of(k->lists[i]) >= lists ? kp_plan_list_of(k->lists[i]) + 1 : lists;
    for (int group = 0; !rc && *packed && group < lists; group++)
        rc = prove(x, k, group, names, n, list, packed);
    free(list);
    return rc;
}

int kp_plan_pack_as_found(struct kp_planner *x, bool *packed)
{
    size_t n;
    uint64_t hash;
    const char **names = names_to_pack(x->plan, &n, &hash);
    *packed = false;
    if (!names)
        return -ENOMEM;
    const struct kp_packing *k = find(x->chip, hash, n);
    int rc = k && n ? apply(x, k, names, n, packed) : 0;
    if (k && !*packed)
        undo(x->plan, names, n);
    free(names);
    return rc;
}

/* ---- finding one ---- */

/* Returns how many lists, the first ones, have a canary. */
static unsigned count_along(const struct kp_plan *p)
{
    unsigned n = 0;
    for (size_t g = 0; g < p->n_groups; g++)
        for (size_t i = 0; i < p->groups[g].n_names; i++)
            if (kp_plan_is_canary(p->groups[g].names[i])) {
                n++;
                break;
            }
    return n;
}

static int note_row(struct kp_planner *x, const char *const *names, size_t n, uint64_t hash)
{
    struct kp_packing *k = calloc(1, sizeof(*k) + n + 1);
    if (!k)
        return -ENOMEM;
    char *lists = (char *)(k + 1);
    bool told = true;
    for (size_t i = 0; told && i < n; i++)
        told = (lists[i] = kp_plan_letter(kp_plan_find(x->plan, names[i])->group));
    *k = (struct kp_packing){.chip = x->chip, .names = hash, .along = count_along(x->plan), .lists = lists};
    if (told)
        x->plan->packing = k;
    else
        free(k);
    return 0;
}

int kp_plan_pack_and_tell(struct kp_planner *x, int (*pack)(struct kp_planner *x))
{
    size_t n;
    uint64_t hash;
    const char **names = names_to_pack(x->plan, &n, &hash);
    int rc = names ? pack(x) : -ENOMEM;
    if (!rc)
        rc = note_row(x, names, n, hash);
    free(names);
    return rc;
}
