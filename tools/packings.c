/* Prints collectors/plan/packings.def: finds the one-pass lists of each set on each chip, with the metric tables of
 * CUPTI, and looks for fewer. `make packings` runs it; needed when a set's counters change. It begins with the table as
 * it stands, so that each run may find more.
 *
 * usage: packings FOLDER QUESTIONS [CHIP...]
 *
 * FOLDER has libcupti.so. QUESTIONS (100,000 take 10 to 30 s) may be asked for each list less. The rows of other chips
 * than those named stay as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/catalog.h"
#include "collectors/plan/chips.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/tables.h"
#include "cupti/loader.h"
#include "report/define/sections.h"
#include "tools/packings_search.h"

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

/* Returns how many lists the row makes, alone in the table; 0 = the library does not confirm it. */
static size_t prove(const struct kp_cupti *c, const struct kp_chip *chip, const struct kp_packing *row)
{
    const struct kp_packing table[] = {*row, {.chip = NULL}}, *all = kp_plan_packings;
    kp_plan_packings = table;
    struct kp_plan *p = plan(c, chip, row->set, 0);
    kp_plan_packings = all;
    size_t lists = p && p->packed_as_found ? p->n_groups : 0;
    kp_plan_free(p);
    return lists;
}

/* Takes the lists of rows of the table for the same counters, of this chip or another one, where they are fewer. */
static void take_known(const struct kp_cupti *c, const struct kp_chip *chip, struct kp_packing *row, size_t *lists)
{
    for (const struct kp_packing *k = kp_plan_packings; k->chip; k++) {
        if (k->names != row->names || strlen(k->lists) != strlen(row->lists))
            continue;
        struct kp_packing known = {row->chip, row->set, k->names, k->along, k->lists};
        size_t n = prove(c, chip, &known);
        if (n && n < *lists) {
            *row = known;
            *lists = n;
        }
    }
}

/* ---- fewer lists ---- */

/* What a row's letters stand for: names[i] is of letter at[i]. */
struct packed {
    const char **names;
    size_t *at;
    int *list;
    size_t n;
};

/* Finds the names of the row's lists that have the canaries. The plan's names are in the order of the letters. */
static void read_row(const struct kp_plan *p, const struct kp_packing *row, struct packed *out)
{
    size_t letter = 0;
    out->n = 0;
    for (size_t i = 0; i < p->n_metrics; i++) {
        const char *name = p->metrics[i].name;
        if (p->metrics[i].group < 0 || kp_plan_is_canary(name))
            continue;
        while (kp_plan_list_of(row->lists[letter]) < 0 && row->lists[letter])
            letter++;
        int list = kp_plan_list_of(row->lists[letter]);
        if (list >= 0 && (unsigned)list < row->along) {
            out->names[out->n] = name;
            out->at[out->n] = letter;
            out->list[out->n++] = list;
        }
        letter++;
    }
}

/* Writes the row with other lists; those without canaries follow them. */
static void write_row(const struct packed *in, int lists, const struct kp_packing *before, char *letters)
{
    for (size_t i = 0; before->lists[i]; i++) {
        int list = kp_plan_list_of(before->lists[i]);
        letters[i] = list < (int)before->along ? before->lists[i] : kp_plan_letter(list - (int)before->along + lists);
    }
    for (size_t i = 0; i < in->n; i++)
        letters[in->at[i]] = kp_plan_letter(in->list[i]);
}

/* Looks for one list less. Returns whether the library confirms one; the row's letters are malloc'ed then. */
static bool find_fewer(const struct kp_cupti *c, const struct kp_chip *chip, const struct kp_plan *p,
                       struct kp_packing *row, unsigned long questions)
{
    const char *canaries[KP_CANARIES + 1];
    struct packed in = {calloc(p->n_metrics + 1, sizeof(*in.names)), calloc(p->n_metrics + 1, sizeof(*in.at)),
                        calloc(p->n_metrics + 1, sizeof(*in.list)), 0};
    char *letters = strdup(row->lists);
    struct kp_host *host = NULL;
    bool found =
        in.names && in.at && in.list && letters && !kp_tables_open(c, KP_TABLES_COUNTED, chip->name, NULL, &host);
    if (found) {
        read_row(p, row, &in);
        struct kp_search s = {host, canaries,       kp_plan_canaries_of(p, canaries), in.names, in.list,
                              in.n, (int)row->along};
        found = kp_search_fewer(&s, questions);
        write_row(&in, s.lists, row, letters);
        struct kp_packing less = {row->chip, row->set, row->names, (unsigned)s.lists, letters};
        found = found && prove(c, chip, &less);
        if (found)
            *row = less;
    }
    kp_tables_close(host);
    free(in.names);
    free(in.at);
    free(in.list);
    if (!found)
        free(letters);
    return found;
}

/* ---- rows ---- */

static void print_row(const struct kp_packing *row)
{
    printf("KP_PACKING(\"%s\", \"%s\", 0x%016llx, %u,\n", row->chip, row->set, (unsigned long long)row->names,
           row->along);
    for (const char *l = row->lists; *l; l += strnlen(l, COLUMNS - 13))
        printf("           \"%.*s\"%s\n", COLUMNS - 13, l, l[strnlen(l, COLUMNS - 13)] ? "" : ")");
    fflush(stdout);
}

static void copy_rows(const char *chip)
{
    for (const struct kp_packing *k = kp_plan_packings; k->chip; k++)
        if (!strcmp(k->chip, chip))
            print_row(k);
}

static void make_row(const struct kp_cupti *c, const struct kp_chip *chip, const char *set, unsigned long questions)
{
    struct kp_plan *p = plan(c, chip, set, KP_PLAN_ANEW);
    struct kp_packing row = p && p->packing ? *p->packing : (struct kp_packing){.chip = NULL};
    row.set = set;
    size_t lists = row.chip ? prove(c, chip, &row) : 0, first = lists;
    if (lists)
        take_known(c, chip, &row, &lists);
    size_t known = lists;
    while (lists && find_fewer(c, chip, p, &row, questions))
        lists--;
    if (lists)
        print_row(&row);
    fprintf(stderr, "%s, %s: %zu lists, %zu as known, %zu at first\n", chip->name, set, lists, known, first);
    kp_plan_free(p);
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"basic", "detailed", "full", "roofline"};
    struct kp_cupti *c;
    char *err = NULL;
    if (argc < 3 || kp_cupti_load(&kp_catalog_dl, argv[1], NULL, &c, &err)) {
        fprintf(stderr, "%s\n", err ? err : "usage: packings FOLDER QUESTIONS [CHIP...]");
        return 2;
    }
    puts("/* Made by `make packings`. KP_PACKING(chip, set, hash of the counters' names, lists that have the canaries, "
         "a "
         "letter for\n"
         " * each counter's list): one-pass lists of a set on a chip, see plan_packings.c. */");
    for (size_t i = 0; i < kp_n_chips; i++) {
        bool named = argc == 3;
        for (int a = 3; a < argc; a++)
            named |= !strcmp(argv[a], kp_chips[i].name);
        bool profiled = 10 * kp_chips[i].major + kp_chips[i].minor >= 75;
        if (!named)
            copy_rows(kp_chips[i].name);
        for (size_t s = 0; named && profiled && s < sizeof(sets) / sizeof(*sets); s++)
            make_row(c, &kp_chips[i], sets[s], strtoul(argv[2], NULL, 10));
    }
    return 0;
}
