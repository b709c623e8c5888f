#include "report/define/derive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/expr.h"
#include "base/room.h"
#include "base/text.h"

/* Definitions nested in each other, at most; a deeper chain counts as a circle. */
enum { MAX_CHAIN = 32 };

static const struct kp_derived rows[] = {
#define KP_DERIVED(name, unit, expression) {name, unit, expression},
#include "report/define/derived.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* Definitions from section files. Kept to the end of the process, like the sections. */
static struct {
    struct kp_arena arena;
    const struct kp_derived **list;
    size_t n;
} users;

static const struct kp_derived *find_user(const char *name, size_t *at)
{
    for (*at = 0; *at < users.n; ++*at)
        if (!strcmp(users.list[*at]->name, name))
            return users.list[*at];
    return NULL;
}

const struct kp_derived *kp_derived_find(const char *name)
{
    size_t at;
    const struct kp_derived *user = find_user(name, &at);
    for (size_t i = 0; !user && i < N_ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return user;
}

const struct kp_derived **kp_derived_all(size_t *n)
{
    const struct kp_derived **all = malloc((users.n + N_ROWS) * sizeof *all);
    size_t at;
    *n = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < users.n; i++)
        all[(*n)++] = users.list[i];
    for (size_t i = 0; i < N_ROWS; i++)
        if (!find_user(rows[i].name, &at))
            all[(*n)++] = &rows[i];
    return all;
}

static const struct kp_derived *copy(const struct kp_derived *d)
{
    struct kp_derived *c = kp_arena_alloc(&users.arena, sizeof *c);
    if (!c)
        return NULL;
    c->name = kp_arena_text(&users.arena, d->name, strlen(d->name));
    c->unit = kp_arena_text(&users.arena, d->unit, strlen(d->unit));
    c->expression = kp_arena_text(&users.arena, d->expression, strlen(d->expression));
    return c->name && c->unit && c->expression ? c : NULL;
}

int kp_derived_add(const struct kp_derived *d, char **err)
{
    struct kp_expr *e = NULL;
    size_t at;
    int rc = kp_expr_compile(d->expression, &e, err);
    kp_expr_free(e);
    if (rc)
        return rc;
    const struct kp_derived *added = copy(d);
    if (!added)
        return -ENOMEM;
    if (!find_user(d->name, &at)) {
        if (!KP_ROOM(users.list, users.n))
            return -ENOMEM;
        users.n++;
    }
    users.list[at] = added;
    return 0;
}

/* A walk through the metrics that a definition needs. */
struct walk {
    struct kp_arena arena;
    struct seen {
        const char *name;
        const struct seen *next;
    } * seen;
    int (*fn)(const char *metric, void *arg);
    void *arg;
};

/* The definitions on the walk's way, innermost first. */
struct path {
    const char *name;
    const struct path *outer;
    size_t length;
};

static bool is_on(const struct path *path, const char *name)
{
    for (; path; path = path->outer)
        if (!strcmp(path->name, name))
            return true;
    return false;
}

static bool was_seen(const struct walk *w, const char *name)
{
    for (const struct seen *s = w->seen; s; s = s->next)
        if (!strcmp(s->name, name))
            return true;
    return false;
}

static int mark_seen(struct walk *w, const char *name)
{
    struct seen *s = kp_arena_alloc(&w->arena, sizeof *s);
    const char *kept = kp_arena_text(&w->arena, name, strlen(name));
    if (!s || !kept)
        return -ENOMEM;
    *s = (struct seen){kept, w->seen};
    w->seen = s;
    return 0;
}

static int compile(const struct kp_derived *d, struct kp_expr **e)
{
    char *err = NULL;
    int rc = kp_expr_compile(d->expression, e, &err);
    free(err);
    return rc;
}

static int walk_inputs(struct walk *w, const struct kp_derived *d, const struct path *outer)
{
    const struct path path = {d->name, outer, outer ? outer->length + 1 : 1};
    struct kp_expr *e = NULL;
    size_t n = 0;
    if (path.length > MAX_CHAIN)
        return -ELOOP;
    int rc = compile(d, &e);
    const char *const *names = rc ? NULL : kp_expr_names(e, &n);
    for (size_t i = 0; !rc && i < n; i++) {
        const struct kp_derived *inner = kp_derived_find(names[i]);
        if (is_on(&path, names[i]))
            rc = -ELOOP;
        else if (was_seen(w, names[i]))
            continue;
        else if (!(rc = mark_seen(w, names[i])))
            rc = inner ? walk_inputs(w, inner, &path) : w->fn(names[i], w->arg);
    }
    kp_expr_free(e);
    return rc;
}

int kp_derived_inputs(const struct kp_derived *d, int (*fn)(const char *metric, void *arg), void *arg)
{
    struct walk w = {.fn = fn, .arg = arg};
    int rc = walk_inputs(&w, d, NULL);
    kp_arena_free(&w.arena);
    return rc;
}

/* Looks up the names of an expression. */
struct derivation {
    struct kp_result *r;
    size_t length;     /* of the chain of definitions so far */
    struct kp_why why; /* of the missing metric */
};

static int derive(struct kp_result *r, const char *name, size_t length);

/* Keeps the reason and ends the evaluation. */
static int missing(struct derivation *v, const char *format, const char *what)
{
    v->why.reason = KP_REASON_INPUT_MISSING;
    return kp_error(&v->why.text, format, what) == -ENOMEM ? -ENOMEM : -ENODATA;
}

/* Takes over the reason of an input. */
static int missing_as(struct derivation *v, const struct kp_metric *m)
{
    v->why = kp_why_copy(kp_metric_why(m));
    return v->why.text ? -ENODATA : -ENOMEM;
}

static int look_up(const char *name, void *arg, double *value)
{
    struct derivation *v = arg;
    const struct kp_metric *m = kp_result_find(v->r, name);
    if (!m) {
        int rc = derive(v->r, name, v->length + 1);
        if (rc == -ENOENT)
            return missing(v, "%s was not collected", name);
        if (rc)
            return rc;
        m = kp_result_find(v->r, name);
    }
    if (kp_metric_number(m, value))
        return 0;
    return m->kind == KP_VALUE_NA ? missing_as(v, m) : missing(v, "%s is not a number", name);
}

static int derive(struct kp_result *r, const char *name, size_t length)
{
    const struct kp_derived *d = kp_derived_find(name);
    if (!d)
        return -ENOENT;
    if (kp_result_find(r, name))
        return 0;
    if (length > MAX_CHAIN)
        return kp_result_set_na(r, name, KP_REASON_NEEDS_ITSELF);
    struct derivation v = {r, length, {KP_REASON_NONE, NULL}};
    struct kp_expr *e = NULL;
    double value;
    size_t at;
    int rc = compile(d, &e);
    if (!rc)
        rc = kp_expr_eval(e, look_up, &v, &value);
    if (rc == -EDOM && !find_user(name, &at))
        rc = 0;
    if (!rc)
        rc = kp_result_set_real(r, name, d->unit, value);
    else if (rc == -ENODATA)
        rc = kp_result_set_why(r, name, v.why);
    else if (rc == -EDOM)
        rc = kp_result_set_na(r, name, KP_REASON_DIVIDES_BY_ZERO);
    kp_expr_free(e);
    kp_why_free(&v.why);
    return rc;
}

int kp_derive(struct kp_result *r, const char *name)
{
    return derive(r, name, 1);
}

int kp_derive_users(struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < users.n; i++)
        rc = kp_derive(r, users.list[i]->name);
    return rc;
}

bool kp_derive_has_users(void)
{
    return users.n > 0;
}
