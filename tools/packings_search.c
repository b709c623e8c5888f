#include "tools/packings_search.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/tables.h"

enum { NOWHERE = -1, CHOICES = 4, REST = 5, MORE_REST = 10 };

/* The search at hand: where each counter is, of those that one list less leaves without a place. */
struct state {
    struct kp_search *s;
    int *list;           /* of each name; NOWHERE: it is left over */
    unsigned long *rest; /* of each name: the step until which it stays */
    const char **asked;  /* room for all */
    size_t *kept;        /* likewise: names of one list */
    size_t left;
    unsigned long step, questions;
    uint64_t random;
};

/* The same numbers each time (xorshift64), so that a table can be made again. */
static size_t below(struct state *x, size_t n)
{
    x->random ^= x->random << 13;
    x->random ^= x->random >> 7;
    x->random ^= x->random << 17;
    return x->random % n;
}

/* Whether names fit one pass beside what each list has; `more` is one of them, too. */
static bool fits(struct state *x, const size_t *kept, size_t n, size_t more)
{
    bool fit = false;
    size_t k = x->s->n_in_each;
    memcpy(x->asked, x->s->in_each, k * sizeof(*x->asked));
    for (size_t i = 0; i < n; i++)
        x->asked[k++] = x->s->names[kept[i]];
    x->asked[k++] = x->s->names[more];
    x->questions -= x->questions > 0;
    return !kp_tables_fit(x->s->host, x->asked, k, &fit) && fit;
}

/* Sets `kept` to the names of a list but `without` (SIZE_MAX: all), and returns how many they are. */
static size_t names_of(struct state *x, int list, size_t without)
{
    size_t n = 0;
    for (size_t i = 0; i < x->s->n; i++)
        if (x->list[i] == list && i != without)
            x->kept[n++] = i;
    return n;
}

static void put(struct state *x, size_t name, int list)
{
    x->left += (list == NOWHERE) - (x->list[name] == NOWHERE);
    x->list[name] = list;
}

static bool put_where_it_fits(struct state *x, size_t name, size_t first)
{
    size_t lists = (size_t)x->s->lists - 1;
    for (size_t i = 0; i < lists; i++) {
        int list = (int)((first + i) % lists);
        if (fits(x, x->kept, names_of(x, list, SIZE_MAX), name)) {
            put(x, name, list);
            return true;
        }
    }
    return false;
}

/* Finds a name whose place in its list it can take, one of the first few at random. */
static bool take_a_place(struct state *x, size_t name, size_t first)
{
    size_t lists = (size_t)x->s->lists - 1, choices = 0, chosen = 0;
    for (size_t i = 0; i < lists && choices < CHOICES; i++) {
        int list = (int)((first + i) % lists);
        for (size_t other = 0; other < x->s->n; other++)
            if (x->list[other] == list && x->rest[other] <= x->step &&
                fits(x, x->kept, names_of(x, list, other), name) && !below(x, ++choices))
                chosen = other;
    }
    if (!choices)
        return false;
    put(x, name, x->list[chosen]);
    put(x, chosen, NOWHERE);
    x->rest[name] = x->step + REST + below(x, MORE_REST);
    return true;
}

/* Puts it into a list all the same, of which only what still fits stays. */
static void make_a_place(struct state *x, size_t name, int list)
{
    size_t n = names_of(x, list, SIZE_MAX), stay = 0;
    size_t *in = malloc((n + 1) * sizeof(*in));
    if (!in)
        return;
    memcpy(in, x->kept, n * sizeof(*in));
    x->kept[stay++] = name;
    put(x, name, list);
    while (n) {
        size_t at = below(x, n), other = in[at];
        in[at] = in[--n];
        if (fits(x, x->kept, stay, other))
            x->kept[stay++] = other;
        else
            put(x, other, NOWHERE);
    }
    x->rest[name] = x->step + REST + MORE_REST;
    free(in);
}

/* Gives one of those left over a place. */
static void take_step(struct state *x)
{
    size_t nth = below(x, x->left), name = 0, first = below(x, (size_t)x->s->lists - 1);
    while (x->list[name] != NOWHERE || nth--)
        name++;
    x->step++;
    if (!put_where_it_fits(x, name, first) && !take_a_place(x, name, first))
        make_a_place(x, name, (int)first);
}

static void count_names(const struct kp_search *s, size_t *of)
{
    for (int list = 0; list < s->lists; list++)
        of[list] = 0;
    for (size_t i = 0; i < s->n; i++)
        of[s->list[i]]++;
}

/* Leaves over what the shortest list has; the last one takes its number. */
static void leave_shortest(struct state *x, const size_t *of)
{
    int shortest = 0, last = x->s->lists - 1;
    for (int list = 1; list <= last; list++)
        if (of[list] < of[shortest])
            shortest = list;
    for (size_t i = 0; i < x->s->n; i++) {
        int list = x->s->list[i];
        x->list[i] = list == shortest ? NOWHERE : list == last ? shortest : list;
        x->left += list == shortest;
    }
}

/* The longest lists come first: a kernel that is launched a few times gets most of its counters. */
static void put_longest_first(struct kp_search *s, size_t *of)
{
    count_names(s, of);
    for (int to = 0; to < s->lists; to++) {
        int longest = to;
        for (int list = to + 1; list < s->lists; list++)
            if (of[list] > of[longest])
                longest = list;
        size_t n = of[to];
        of[to] = of[longest];
        of[longest] = n;
        for (size_t i = 0; i < s->n; i++)
            s->list[i] = s->list[i] == to ? longest : s->list[i] == longest ? to : s->list[i];
    }
}

bool kp_search_fewer(struct kp_search *s, unsigned long questions)
{
    struct state x = {.s = s, .questions = questions, .random = 88172645463325252u};
    size_t *of = calloc((size_t)s->lists + 1, sizeof(*of));
    x.list = calloc(s->n + 1, sizeof(*x.list));
    x.rest = calloc(s->n + 1, sizeof(*x.rest));
    x.kept = calloc(s->n + 1, sizeof(*x.kept));
    x.asked = calloc(s->n + s->n_in_each + 1, sizeof(*x.asked));
    bool found = of && x.list && x.rest && x.kept && x.asked && s->lists > 1;
    if (found) {
        count_names(s, of);
        leave_shortest(&x, of);
        while (x.left && x.questions)
            take_step(&x);
        found = !x.left;
    }
    if (found) {
        memcpy(s->list, x.list, s->n * sizeof(*s->list));
        s->lists--;
        put_longest_first(s, of);
    }
    free(of);
    free(x.list);
    free(x.rest);
    free(x.kept);
    free((void *)x.asked);
    return found;
}
