#include "report/model/short_names.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/width.h"
#include "report/model/launch_names.h"
#include "report/model/renames.h"

static const char cut[] = "...";

/* --- one name --- */

/* Offsets of the parts of a demangled name; all are its end if it has no parts. */
struct parts {
    size_t scoped; /* the function with its scopes, after the return type */
    size_t function;
    size_t arguments; /* of a template */
    size_t parameters;
};

/* Returns the opening bracket of the one that ends before `end`; the closing bracket itself if unmatched. */
static size_t opening(const char *name, size_t end)
{
    int depth = 0;
    for (size_t at = end; at--;) {
        depth += strchr(")>]", name[at]) ? 1 : strchr("(<[", name[at]) ? -1 : 0;
        if (!depth)
            return at;
    }
    return end - 1;
}

static struct parts find_parts(const char *name)
{
    size_t end = strlen(name), at;
    struct parts p = {.parameters = end};
    if (end && name[end - 1] == ')')
        p.parameters = end = opening(name, end);
    p.arguments = end;
    if (end && name[end - 1] == '>')
        p.arguments = end = opening(name, end);
    for (at = end; at && name[at - 1] != ':' && name[at - 1] != ' '; at--)
        ;
    p.function = at;
    while (at && name[at - 1] != ' ')
        at = strchr(")>]", name[at - 1]) ? opening(name, at) : at - 1;
    p.scoped = at;
    return p;
}

static bool is_text(const struct kp_long_name *n)
{
    return n->is_text || kp_renames_gave(n->name + n->range);
}

static struct parts parts_of(const struct kp_long_name *n, const char *name)
{
    size_t end = strlen(name);
    return is_text(n) ? (struct parts){0, 0, end, end} : find_parts(name);
}

/* Writes as much of the name as fits into `room` columns. Drops the return type and parameters first, then scopes, then
 * the end. */
static void write_signature(const struct kp_long_name *n, const char *name, size_t room, char *out)
{
    static const char parameters[] = "(...)";
    struct parts p = parts_of(n, name);
    const char *tail = name[p.parameters] ? parameters : "";
    const size_t starts[] = {p.scoped, p.function};
    if (kp_width(name) <= room) {
        strcpy(out, name);
        return;
    }
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (kp_width_of(name + starts[i], p.parameters - starts[i]) + strlen(tail) <= room) {
            sprintf(out, "%.*s%s", (int)(p.parameters - starts[i]), name + starts[i], tail);
            return;
        }
    const char *function = name + p.function;
    sprintf(out, "%.*s%s", (int)kp_width_fit(function, strlen(function), room - strlen(cut)), function, cut);
}

/* Writes the function, and the name from `differs` on: the only part that distinguishes it from another one. Returns
 * the offset up to which the name is written. */
static size_t write_difference(const struct kp_long_name *n, const char *name, size_t differs, size_t room, char *out)
{
    struct parts p = parts_of(n, name);
    const char *function = name + p.function;
    size_t head = kp_width_fit(function, p.arguments - p.function, room / 2), gap = strlen(cut);
    for (size_t back = 0; differs && back < room / 8 && !strchr(" ,<:_", name[differs - 1]); back++)
        differs--; /* moves to the start of the word */
    while (((unsigned char)name[differs] & 0xc0) == 0x80)
        differs--; /* and to that of a character */
    const char *rest = name + differs;
    size_t left = room - kp_width_of(function, head) - 2 * gap;
    bool ends = kp_width(rest) <= left + gap;
    size_t shown = ends ? strlen(rest) : kp_width_fit(rest, strlen(rest), left);
    sprintf(out, "%.*s%s%.*s%s", (int)head, function, cut, (int)shown, rest, ends ? "" : cut);
    return differs + shown;
}

/* Returns true if the name of a template's function says nothing of what it does: its arguments do. */
static bool says_nothing(const struct parts *p, const char *name)
{
    static const char *const words[] = {"Kernel", "Kernel2", "kernel", "device_kernel"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (p->arguments < p->parameters && p->arguments - p->function == strlen(words[i]) &&
            !strncmp(name + p->function, words[i], strlen(words[i])))
            return true;
    return false;
}

static int write_bare(const struct kp_long_name *n, const char *name, size_t room, char *out)
{
    struct parts p = parts_of(n, name);
    if (says_nothing(&p, name)) {
        write_signature(n, name, room, out);
        return 0;
    }
    char *bare = is_text(n) ? strndup(name, kp_width_fit(name, strlen(name), room)) : kp_trace_name(name, room);
    if (bare)
        strcpy(out, bare);
    free(bare);
    return bare ? 0 : -ENOMEM;
}

/* Shortens a name; `differs` 0: from its start. A range before it has at most half of the room. Then *visible is the
 * offset up to which the name is written from `differs` on; 0 without `differs`. malloc'ed; NULL without memory. */
static char *shorten(const struct kp_long_name *n, size_t differs, size_t room, enum kp_short_form form,
                     size_t *visible)
{
    char *out = malloc(2 * strlen(n->name) + 16); /* for the function, what differs, and the cuts */
    int rc = 0;
    *visible = 0;
    if (!out)
        return NULL;
    size_t range = form == KP_SHORT_BARE || kp_width(n->name) > room ? n->range : 0;
    size_t used = kp_range_cut(n->name, range, room / 2, out);
    room -= kp_width_of(out, used);
    if (differs > range)
        *visible = range + write_difference(n, n->name + range, differs - range, room, out + used);
    else if (form == KP_SHORT_BARE)
        rc = write_bare(n, n->name + range, room, out + used);
    else
        write_signature(n, n->name + range, room, out + used);
    if (!rc) {
        kp_blank_controls(out, strlen(out));
        return out;
    }
    free(out);
    return NULL;
}

/* --- all of them --- */

/* A name while all are shortened. */
struct shortened {
    const struct kp_long_name *of;
    char *first; /* as if it were the only one */
    size_t index;
};

/* Names that look the same when each is shortened alone, in the order of the whole names. */
struct alike {
    const struct shortened *at;
    size_t n, room;
    enum kp_short_form form;
};

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

static size_t common_of(const struct alike *a, size_t i, size_t j)
{
    return common(a->at[i].of->name, a->at[j].of->name);
}

/* Returns how many names after name `which`, or before it if `step` is -1, share its first `visible` bytes. In sorted
 * order, names share less with it the further away they are. */
static size_t reach(const struct alike *a, size_t which, int step, size_t visible)
{
    size_t low = 0, high = step > 0 ? a->n - 1 - which : which;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (common_of(a, which, step > 0 ? which + middle : which - middle) >= visible)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Returns 1 if name `other` differs from `which` after `differs`, and looks like `text` when it is shortened there,
 * else 0; or -ENOMEM. */
static int looks_like(const struct alike *a, size_t which, size_t other, size_t differs, const char *text)
{
    size_t same = common_of(a, which, other), visible;
    const struct kp_long_name *x = a->at[which].of, *y = a->at[other].of;
    if ((!x->name[same] && !y->name[same]) || same <= differs) /* one kernel, or already visible */
        return 0;
    char *shown = differs ? shorten(y, differs, a->room, a->form, &visible) : kp_strdup(a->at[other].first);
    if (!shown)
        return -ENOMEM;
    int looks = !strcmp(text, shown);
    free(shown);
    return looks;
}

/* Finds the next difference of name `which`, shortened at `differs` to `text`, from names that look the same then: the
 * least that it has in common with one of them. *next is SIZE_MAX when there is none. */
static int next_difference(const struct alike *a, size_t which, size_t differs, size_t visible, const char *text,
                           size_t *next)
{
    size_t before = reach(a, which, -1, visible), behind = reach(a, which, 1, visible);
    *next = SIZE_MAX;
    while (before || behind) {
        size_t first = before ? common_of(a, which, which - before) : SIZE_MAX;
        size_t last = behind ? common_of(a, which, which + behind) : SIZE_MAX;
        bool is_first = first <= last;
        int looks = looks_like(a, which, is_first ? which - before : which + behind, differs, text);
        if (looks)
            *next = is_first ? first : last;
        if (looks)
            return looks < 0 ? looks : 0;
        before -= is_first;
        behind -= !is_first;
    }
    return 0;
}

/* Shortens name `which` so that it differs from the others. Cuts at the first difference from those that look the same.
 * If it still looks like some of them, cuts at the next difference. NULL without memory. */
static char *tell_apart(const struct alike *a, size_t which)
{
    size_t differs = 0, next = 0, visible;
    char *text = NULL;
    do {
        differs = next;
        free(text);
        text = shorten(a->at[which].of, differs, a->room, a->form, &visible);
        if (text && next_difference(a, which, differs, visible, text, &next)) {
            free(text);
            text = NULL;
        }
    } while (text && next != SIZE_MAX);
    return text;
}

static int by_first(const void *a, const void *b)
{
    const struct shortened *x = a, *y = b;
    int order = strcmp(x->first, y->first);
    return order ? order : strcmp(x->of->name, y->of->name);
}

/* Shortens each of the names so that they differ, into `texts`. 0 or -ENOMEM, with some of them. */
static int tell_all_apart(struct shortened *all, size_t n, size_t room, enum kp_short_form form, char **texts)
{
    if (n)
        qsort(all, n, sizeof *all, by_first);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && !strcmp(all[end].first, all[first].first);)
            end++;
        struct alike a = {all + first, end - first, room, form};
        for (size_t i = 0; i < a.n; i++)
            if (!(texts[a.at[i].index] = tell_apart(&a, i)))
                return -ENOMEM;
    }
    return 0;
}

/* A name, for sorting. */
struct entry {
    const char *name, *key, *text;
    size_t key_len, index;
};

enum { KEY_MAX = 4 /* no shortened name has less of its function */ };

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t both = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, both);
    order = order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
    return order ? order : strcmp(x->name, y->name);
}

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int texts = strcmp(x->text, y->text);
    return texts ? texts : strcmp(x->name, y->name);
}

static void fill_entry(const struct kp_long_name *n, size_t index, struct entry *e)
{
    struct parts p = parts_of(n, n->name + n->range);
    size_t len = p.arguments - p.function;
    *e = (struct entry){n->name, n->name + n->range + p.function, "", len < KEY_MAX ? len : KEY_MAX, index};
}

/* Numbers names whose functions begin alike, by the alphabet: all that can look the same. The number of a name is
 * thus the same in any room. malloc'ed; NULL without memory. */
static size_t *numbers_of(const struct kp_long_name *names, size_t n)
{
    struct entry *sorted = calloc(n + 1, sizeof *sorted);
    size_t *numbers = calloc(n + 1, sizeof *numbers);
    for (size_t i = 0; sorted && i < n; i++)
        fill_entry(&names[i], i, &sorted[i]);
    if (sorted && n)
        qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 0, number = 0; sorted && numbers && i < n; i++) {
        const struct entry *e = &sorted[i], *before = i ? e - 1 : NULL;
        bool alike = before && e->key_len == before->key_len && !memcmp(e->key, before->key, e->key_len);
        number = !alike ? 1 : number + (strcmp(e->name, before->name) != 0);
        numbers[e->index] = number;
    }
    free(sorted);
    return numbers;
}

/* Appends the number to a text, in at most `room` columns. 0 or -ENOMEM. */
static int mark(char **text, size_t number, size_t room)
{
    char words[32], *marked;
    size_t used = (size_t)snprintf(words, sizeof words, "#%zu", number);
    int kept = (int)kp_width_fit(*text, strlen(*text), room - used);
    if (asprintf(&marked, "%.*s%s", kept, *text, words) < 0)
        return -ENOMEM;
    free(*text);
    *text = marked;
    return 0;
}

/* Numbers names that still look the same because they differ in places too far apart: f...#2. */
static int number_equal(const struct kp_long_name *names, size_t all, size_t n, size_t room, char **texts)
{
    struct entry *sorted = calloc(n + 1, sizeof *sorted);
    size_t *numbers = numbers_of(names, all);
    int rc = sorted && numbers ? 0 : -ENOMEM;
    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = (struct entry){.name = names[i].name, .text = texts[i], .index = i};
    if (sorted && n)
        qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t first = 0, end; !rc && first < n; first = end) {
        for (end = first + 1; end < n && !strcmp(sorted[end].text, sorted[first].text);)
            end++;
        if (!strcmp(sorted[first].name, sorted[end - 1].name))
            continue; /* one kernel */
        for (size_t i = first; !rc && i < end; i++)
            rc = mark(&texts[sorted[i].index], numbers[sorted[i].index], room);
    }
    free(sorted);
    free(numbers);
    return rc;
}

int kp_short_names(const struct kp_long_name *names, size_t all, size_t n, size_t room, enum kp_short_form form,
                   char ***out)
{
    struct shortened *at = calloc(n ? n : 1, sizeof *at);
    char **texts = calloc(n ? n : 1, sizeof *texts);
    int rc = at && texts ? 0 : -ENOMEM;
    size_t visible;
    for (size_t i = 0; !rc && i < n; i++) {
        at[i] = (struct shortened){&names[i], shorten(&names[i], 0, room, form, &visible), i};
        rc = at[i].first ? 0 : -ENOMEM;
    }
    if (!rc)
        rc = tell_all_apart(at, n, room, form, texts);
    if (!rc)
        rc = number_equal(names, all, n, room, texts);
    for (size_t i = 0; at && i < n; i++)
        free(at[i].first);
    free(at);
    if (rc)
        kp_short_names_free(texts, n);
    *out = rc ? NULL : texts;
    return rc;
}

void kp_short_names_free(char **names, size_t n)
{
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}
