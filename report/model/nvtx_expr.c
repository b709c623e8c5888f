#include "report/model/nvtx_expr.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "base/room.h"
#include "base/text.h"

static const char SEPARATORS[] = ";\n";
static const char SPECIAL[] = "@,[]/*+;\\";

/* A literal name or an expression. */
struct name {
    char *exact;
    struct kp_pattern *pattern;
};

/* A name and its distance from the one before. */
struct step {
    struct name name;
    size_t least; /* ranges between, */
    bool more;    /* or more of them */
};

struct expression {
    struct name domain; /* neither: the default domain */
    enum kp_nvtx_kind kind;
    bool bottom, top;
    struct step *steps; /* of start-end ranges: the names, in any order */
    size_t n;
};

struct kp_nvtx_filter {
    struct expression *list;
    size_t n;
};

/* ---- reading ---- */

/* A piece of the text of an expression. */
struct piece {
    const char *at, *end;
    bool regex;
};

/* Returns the first of `characters` in the piece without '\' before it; the end when there is none. */
static const char *find_character(const struct piece *p, const char *characters)
{
    const char *c = p->at;
    while (c < p->end && !strchr(characters, *c))
        c += *c == '\\' && c + 1 < p->end ? 2 : 1;
    return c < p->end ? c : p->end;
}

static bool ends_with(const struct piece *p, char mark)
{
    const char *c = p->at, *last = NULL;
    for (; c < p->end; c += *c == '\\' ? 2 : 1)
        last = c;
    return last && *last == mark;
}

/* Removes the '\' of a name; in an expression, only those that this syntax needs. malloc'ed. */
static char *unescape(const struct piece *p)
{
    char *text = malloc(sizeof KP_REGEX + (size_t)(p->end - p->at)), *to = text;
    if (!text)
        return NULL;
    if (p->regex)
        to = stpcpy(to, KP_REGEX);
    for (const char *c = p->at; c < p->end; c++) {
        if (*c == '\\' && c + 1 < p->end) {
            if (p->regex && !strchr("@,/;", c[1]))
                *to++ = *c;
            c++;
        }
        *to++ = *c;
    }
    *to = '\0';
    return text;
}

static int read_name(const struct piece *p, struct name *out, char **err)
{
    const char *bare = p->regex ? p->end : find_character(p, "[]*+");
    if (p->at == p->end)
        return kp_error(err, "a name is missing");
    if (bare < p->end)
        return kp_error(err, "'%c' within a name is written '\\%c'; patterns begin with %s", *bare, *bare, KP_REGEX);
    char *text = unescape(p);
    if (!text)
        return -ENOMEM;
    if (!p->regex) {
        out->exact = text;
        return 0;
    }
    int rc = kp_pattern_new(text, &out->pattern, err);
    free(text);
    return rc;
}

static bool is_quantifier(const struct piece *p, char which)
{
    return p->end - p->at == 1 && *p->at == which;
}

/* Adds the name of `p` after the `gap` read since the last one. */
static int add_step(struct expression *e, const struct piece *p, struct step *gap, char **err)
{
    if (!KP_ROOM(e->steps, e->n))
        return -ENOMEM;
    int rc = read_name(p, &gap->name, err);
    if (rc)
        return rc;
    e->steps[e->n++] = *gap;
    *gap = (struct step){.least = 0};
    return 0;
}

/* Reads the names of a range part without its end marks: separated by '/', or for start-end ranges by ','. */
static int read_steps(struct expression *e, const struct piece *part, char **err)
{
    const char *mark = e->kind == KP_NVTX_PUSH_POP ? "/" : ",";
    struct piece p = *part;
    struct step gap = {.least = 0};
    int rc = 0;
    for (const char *at = part->at; !rc; at = p.end + 1) {
        p = (struct piece){at, part->end, part->regex};
        p.end = find_character(&p, mark);
        bool one = *mark == '/' && is_quantifier(&p, '+'), any = *mark == '/' && is_quantifier(&p, '*');
        gap.least += one;
        gap.more |= any;
        if ((one || any) && (!e->n || p.end == part->end))
            return kp_error(err, "'%c' stands between two ranges", *p.at);
        if (!one && !any)
            rc = add_step(e, &p, &gap, err);
        if (p.end == part->end)
            break;
    }
    return rc;
}

/* Removes the marks from both ends of a range part: they give its place in the stack, and make it one of a stack. In an
 * expression, a '/' in front of a bracket means that the bracket is not a mark; *shielded is the '/' at the end. */
static void take_marks(struct expression *e, struct piece *p, bool *stack, bool *shielded)
{
    size_t len = (size_t)(p->end - p->at);
    *shielded = p->regex && len >= 2 && ends_with(p, ']') && p->end[-2] == '/';
    if (p->regex && len >= 2 && p->at[0] == '/' && p->at[1] == '[') {
        p->at++;
    } else if (len && *p->at == '[') {
        e->bottom = true;
        p->at++;
    }
    if (!*shielded && ends_with(p, ']')) {
        e->top = true;
        p->end--;
    } else if (ends_with(p, '/')) {
        *stack = true;
        p->end--;
    }
    *stack |= e->bottom || e->top;
}

static int read_ranges(struct expression *e, struct piece *p, char **err)
{
    bool stack = false, shielded = false;
    char *copy = NULL;
    take_marks(e, p, &stack, &shielded);
    struct piece own = *p;
    if (shielded) { /* the same without the '/' */
        size_t len = (size_t)(p->end - p->at);
        if (!(copy = strndup(p->at, len)))
            return -ENOMEM;
        copy[len - 2] = ']';
        own.at = copy;
        own.end = copy + len - 1;
    }
    bool list = find_character(&own, ",") < own.end;
    int rc = 0;
    stack |= find_character(&own, "/") < own.end;
    if (list && stack)
        rc = kp_error(
            err, "push-pop and start-end ranges cannot be combined in one expression; a '/' or ',' within a name is "
                 "written '\\/' or '\\,'");
    e->kind = stack ? KP_NVTX_PUSH_POP : KP_NVTX_START_END;
    if (!rc)
        rc = read_steps(e, &own, err);
    free(copy);
    return rc;
}

static int read_expression(struct expression *e, struct piece p, char **err)
{
    size_t prefix = sizeof KP_REGEX - 1;
    if ((size_t)(p.end - p.at) >= prefix && !strncmp(p.at, KP_REGEX, prefix)) {
        p.regex = true;
        p.at += prefix;
    }
    struct piece domain = {p.at, find_character(&p, "@"), p.regex};
    if (domain.end == p.end)
        return read_ranges(e, &p, err);
    p.at = domain.end + 1;
    if (find_character(&p, "@") < p.end)
        return kp_error(
            err, "ranges of several domains cannot be combined in one expression; a '@' within a name is written "
                 "'\\@'");
    if (!p.regex && find_character(&domain, "/,") < domain.end)
        return kp_error(err, "the domain comes first; a '/' or ',' in its name is written '\\/' or '\\,'");
    int rc = read_name(&domain, &e->domain, err);
    return rc ? rc : read_ranges(e, &p, err);
}

static void free_name(struct name *n)
{
    free(n->exact);
    kp_pattern_free(n->pattern);
}

static void free_expression(struct expression *e)
{
    free_name(&e->domain);
    for (size_t i = 0; i < e->n; i++)
        free_name(&e->steps[i].name);
    free(e->steps);
}

/* Returns true if the last character of the piece has a '\' of this syntax before it. */
static bool last_is_escaped(const struct piece *p)
{
    const char *c = p->end - 1;
    while (c > p->at && c[-1] == '\\')
        c--;
    return (p->end - 1 - c) % 2;
}

static void trim(struct piece *p)
{
    while (p->at < p->end && isspace((unsigned char)*p->at))
        p->at++;
    while (p->at < p->end && isspace((unsigned char)p->end[-1]) && !last_is_escaped(p))
        p->end--;
}

static int add_expression(struct kp_nvtx_filter *f, const struct piece *p, char **err)
{
    struct expression e = {.n = 0};
    char *why = NULL;
    if (!KP_ROOM(f->list, f->n))
        return -ENOMEM;
    int rc = read_expression(&e, *p, &why);
    if (rc)
        free_expression(&e);
    else
        f->list[f->n++] = e;
    if (rc == -EINVAL)
        rc = kp_error(err, "'%.*s': %s", (int)(p->end - p->at), p->at, why);
    free(why);
    return rc;
}

int kp_nvtx_filter_new(const char *text, struct kp_nvtx_filter **out, char **err)
{
    struct piece all = {text, text + strlen(text), false};
    struct kp_nvtx_filter *f = calloc(1, sizeof *f);
    int rc = f ? 0 : -ENOMEM;
    *out = NULL;
    *err = NULL;
    while (!rc && all.at < all.end) {
        struct piece p = {all.at, find_character(&all, SEPARATORS), false};
        all.at = p.end + (p.end < all.end);
        trim(&p);
        if (p.at < p.end)
            rc = add_expression(f, &p, err);
    }
    if (rc)
        kp_nvtx_filter_free(f);
    else
        *out = f;
    return rc;
}

bool kp_nvtx_filter_empty(const struct kp_nvtx_filter *f)
{
    return !f->n;
}

void kp_nvtx_filter_free(struct kp_nvtx_filter *f)
{
    for (size_t i = 0; f && i < f->n; i++)
        free_expression(&f->list[i]);
    free(f ? f->list : NULL);
    free(f);
}

/* ---- matching ---- */

static bool is_name(const struct name *n, const char *name)
{
    return n->pattern ? kp_pattern_match(n->pattern, name) : !strcmp(n->exact, name);
}

static bool is_domain(const struct expression *e, const char *domain)
{
    return e->domain.exact || e->domain.pattern ? is_name(&e->domain, domain) : !*domain;
}

/* The ranges of one domain in one thread's stack, the outermost first. */
struct stack {
    const char *names[KP_NVTX_DEPTH];
    size_t n;
};

/* Returns true if the range that the previous step matched is as far from `at` as this step requires. */
static bool follows(const struct step *s, const bool *before, size_t at)
{
    if (!s->more)
        return at > s->least && before[at - s->least - 1];
    for (size_t i = 0; i + s->least < at; i++)
        if (before[i])
            return true;
    return false;
}

static bool match_stack(const struct expression *e, const struct stack *s)
{
    bool now[KP_NVTX_DEPTH], before[KP_NVTX_DEPTH]; /* possible ends of the steps up to this one */
    for (size_t i = 0; i < e->n; i++) {
        const struct step *step = &e->steps[i];
        for (size_t at = 0; at < s->n; at++)
            now[at] = (i ? follows(step, before, at) : !e->bottom || !at) && is_name(&step->name, s->names[at]);
        memcpy(before, now, s->n * sizeof *now);
    }
    for (size_t at = e->top && s->n ? s->n - 1 : 0; at < s->n; at++)
        if (now[at])
            return true;
    return false;
}

static bool same_stack(const struct kp_nvtx_range *a, const struct kp_nvtx_range *b)
{
    return a->kind == b->kind && a->thread == b->thread && !strcmp(a->domain, b->domain);
}

static bool is_first(const struct kp_nvtx_range *ranges, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (same_stack(&ranges[j], &ranges[i]))
            return false;
    return true;
}

static bool match_push_pop(const struct expression *e, const struct kp_nvtx_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct stack s = {.n = 0};
        if (ranges[i].kind != KP_NVTX_PUSH_POP || !is_domain(e, ranges[i].domain) || !is_first(ranges, i))
            continue;
        for (size_t j = i; j < n && s.n < KP_NVTX_DEPTH; j++)
            if (same_stack(&ranges[j], &ranges[i]))
                s.names[s.n++] = ranges[j].name;
        if (match_stack(e, &s))
            return true;
    }
    return false;
}

static bool match_start_end(const struct expression *e, const struct kp_nvtx_range *ranges, size_t n)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t at = 0;
        while (at < n && (ranges[at].kind != KP_NVTX_START_END || !is_domain(e, ranges[at].domain) ||
                          !is_name(&e->steps[i].name, ranges[at].name)))
            at++;
        if (at == n)
            return false;
    }
    return true;
}

bool kp_nvtx_filter_match(const struct kp_nvtx_filter *f, const struct kp_nvtx_range *ranges, size_t n)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct expression *e = &f->list[i];
        if (e->kind == KP_NVTX_PUSH_POP ? match_push_pop(e, ranges, n) : match_start_end(e, ranges, n))
            return true;
    }
    return false;
}

/* ---- writing ---- */

/* Writes a name. At an end of the expression a blank or "regex:" needs a '\', too, to belong to the name. */
static void write_name(FILE *to, const char *name, bool first, bool last)
{
    bool at_begin = first && (*name == ' ' || kp_text_is_control(*name) || !strncmp(name, KP_REGEX, strlen(KP_REGEX)));
    for (const char *c = name; *c; c++) {
        char shown = kp_text_is_control(*c) ? ' ' : *c;
        if (strchr(SPECIAL, *c) || (at_begin && c == name) || (last && !c[1] && shown == ' '))
            fputc('\\', to);
        fputc(shown, to);
    }
}

char *kp_nvtx_expression(const struct kp_nvtx_range *r)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    if (*r->domain) {
        write_name(to, r->domain, true, false);
        fputc('@', to);
    }
    write_name(to, r->name, !*r->domain, r->kind != KP_NVTX_PUSH_POP);
    if (r->kind == KP_NVTX_PUSH_POP)
        fputc('/', to);
    fclose(to);
    return text;
}
