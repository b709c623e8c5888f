#include "report/pattern.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

static const char REGEX_PREFIX[] = "regex:";

struct kp_pattern {
    char *exact; /* NULL: use `regex` */
    regex_t regex;
};

/* The C library's compiler calls itself for each parenthesis, and copies what is repeated: some expressions would take
 * all of the program's stack or memory. */
enum {
    MAX_NESTING = 100,
    MAX_POSITIONS = 5000, /* characters to match, with the copies */
};

/* What is inside one pair of parentheses. */
struct group {
    size_t positions, last; /* of all of it, and of what a repetition would repeat */
};

static void add_item(struct group *g, size_t positions)
{
    g->last = positions;
    g->positions += positions;
}

/* `p` stands at a bracket expression: its last character. */
static const char *bracket_end(const char *p)
{
    const char *at = p + 1 + (p[1] == '^');
    at += *at == ']';
    while (*at && *at != ']') {
        const char *inner = at[0] == '[' && at[1] && strchr(".:=", at[1]) ? strchr(at + 2, at[1]) : NULL;
        at = inner && inner[1] == ']' ? inner + 2 : at + 1;
    }
    return *at ? at : p;
}

/* The copies that the repetition at `*p` makes, whose last character becomes `*p`; 0 when it is none. */
static size_t copies(const char **p)
{
    if (strchr("*+?", **p))
        return **p == '+' ? 2 : 1;
    const char *end = *p + 1 + strspn(*p + 1, "0123456789,");
    if (**p != '{' || *end != '}')
        return 0;
    size_t least = strtoul(*p + 1, NULL, 10);
    const char *comma = memchr(*p, ',', (size_t)(end - *p));
    size_t most = !comma ? least : comma + 1 == end ? least + 1 : strtoul(comma + 1, NULL, 10);
    *p = end;
    return most > MAX_POSITIONS ? MAX_POSITIONS + 1 : most ? most : 1;
}

static bool is_bounded(const char *expr)
{
    struct group groups[MAX_NESTING + 1] = {{0}}, *g = groups;
    for (const char *p = expr; *p; p++) {
        size_t n = copies(&p);
        if (n) {
            g->positions += (n - 1) * g->last;
            g->last *= n;
        } else if (*p == '(') {
            if (++g == groups + MAX_NESTING)
                return false;
            *g = (struct group){0};
        } else if (*p == ')' && g > groups) {
            size_t inside = g->positions + 1; /* an empty one is copied, too */
            add_item(--g, inside);
        } else {
            p = *p == '[' ? bracket_end(p) : p + (*p == '\\' && p[1]);
            add_item(g, 1);
        }
        if (g->positions > MAX_POSITIONS)
            return false;
    }
    return true;
}

static int compile(struct kp_pattern *p, const char *expr, char **err)
{
    if (!is_bounded(expr))
        return kp_error(err, "bad expression '%.60s%s': it is too large", expr, strlen(expr) > 60 ? "..." : "");
    int code = regcomp(&p->regex, expr, REG_EXTENDED | REG_NOSUB);
    if (code == REG_ESPACE)
        return -ENOMEM;
    if (!code)
        return 0;
    char why[128];
    regerror(code, &p->regex, why, sizeof why);
    return kp_error(err, "bad expression '%.60s%s': %s", expr, strlen(expr) > 60 ? "..." : "", why);
}

int kp_pattern_new(const char *text, struct kp_pattern **out, char **err)
{
    *out = NULL;
    *err = NULL;
    struct kp_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    int rc = 0;
    size_t prefix = sizeof REGEX_PREFIX - 1;
    if (!strncmp(text, REGEX_PREFIX, prefix))
        rc = compile(p, text + prefix, err);
    else if (!(p->exact = strdup(text)))
        rc = -ENOMEM;
    if (rc) {
        free(p); /* regcomp frees what it took when it fails */
        return rc;
    }
    *out = p;
    return 0;
}

bool kp_pattern_match(const struct kp_pattern *p, const char *name)
{
    if (p->exact)
        return !*p->exact || !strcmp(p->exact, name);
    return !regexec(&p->regex, name, 0, NULL, 0);
}

void kp_pattern_free(struct kp_pattern *p)
{
    if (!p)
        return;
    if (!p->exact)
        regfree(&p->regex);
    free(p->exact);
    free(p);
}
