/* Prints collectors/plan/packings.def: finds the one-pass lists of each set on each chip, with the metric tables of
 * CUPTI. `make packings` runs it, in some minutes; needed when a set's counters change.
 *
 * usage: packings FOLDER [CHIP...]     FOLDER: of libcupti.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/catalog.h"
#include "collectors/plan/chips.h"
#include "collectors/plan/plan_internal.h"
#include "cupti/loader.h"
#include "report/define/sections.h"

enum { COLUMNS = 116 };

static struct kp_plan *plan(const struct kp_cupti *c, const struct kp_chip *chip, const char *set, unsigned how)
{
    const struct kp_section **sections;
    struct kp_plan *p = NULL;
    char *err = NULL;
    size_t n;
    if (!kp_sections_select(set, "", &sections, &n, &err) &&
        kp_plan_make(c, chip->name, NULL, chip->major, chip->minor, sections, n, "",
                     KP_PLAN_ROTATE | KP_PLAN_RULES | how, &p, &err))
        fprintf(stderr, "%s, %s: %s\n", chip->name, set, err ? err : "no plan");
    free(err);
    free(sections);
    return p;
}

/* Whether the row, alone in the table, is used for the set. */
static bool is_used(const struct kp_cupti *c, const struct kp_chip *chip, const char *set, const struct kp_packing *row)
{
    const struct kp_packing table[] = {*row, {NULL, 0, 0, NULL}}, *all = kp_plan_packings;
    kp_plan_packings = table;
    struct kp_plan *p = plan(c, chip, set, 0);
    kp_plan_packings = all;
    bool used = p && p->packed_as_found;
    kp_plan_free(p);
    return used;
}

static void print_row(const struct kp_packing *row, const char *set)
{
    printf("KP_PACKING(\"%s\", 0x%016llx, %u /* %s */,\n", row->chip, (unsigned long long)row->names, row->along, set);
    for (const char *l = row->lists; *l; l += strnlen(l, COLUMNS - 13))
        printf("           \"%.*s\"%s\n", COLUMNS - 13, l, l[strnlen(l, COLUMNS - 13)] ? "" : ")");
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"basic", "detailed", "full", "roofline"};
    struct kp_cupti *c;
    char *err = NULL;
    if (argc < 2 || kp_cupti_load(&kp_catalog_dl, argv[1], NULL, &c, &err)) {
        fprintf(stderr, "%s\n", err ? err : "usage: packings FOLDER [CHIP...]");
        return 2;
    }
    puts("/* Made by `make packings`. KP_PACKING(chip, hash of the counters' names, lists that have the canaries, a "
         "letter for\n"
         " * each counter's list): one-pass lists of a set on a chip, see plan_packings.c. */");
    for (size_t i = 0; i < kp_n_chips; i++) {
        bool wanted = argc == 2 && 10 * kp_chips[i].major + kp_chips[i].minor >= 75; /* others are not profiled */
        for (int a = 2; a < argc; a++)
            wanted |= !strcmp(argv[a], kp_chips[i].name);
        for (size_t s = 0; wanted && s < sizeof(sets) / sizeof(*sets); s++) {
            struct kp_plan *p = plan(c, &kp_chips[i], sets[s], KP_PLAN_ANEW);
            if (p && p->packing && is_used(c, &kp_chips[i], sets[s], p->packing))
                print_row(p->packing, sets[s]);
            else
                fprintf(stderr, "%s, %s: no row\n", kp_chips[i].name, sets[s]);
            kp_plan_free(p);
        }
    }
    return 0;
}
