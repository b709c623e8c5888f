#include "report/pattern.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char REGEX_PREFIX[] = "regex:";

struct kp_pattern {
    char *exact; /* NULL: use `regex` */
    regex_t regex;
};

static int compile(struct kp_pattern *p, const char *expr, char **err)
{
    int code = regcomp(&p->regex, expr, REG_EXTENDED | REG_NOSUB);
    if (code == REG_ESPACE)
        return -ENOMEM;
    if (!code)
        return 0;
    char why[128];
    regerror(code, &p->regex, why, sizeof why);
    if (asprintf(err, "bad expression '%s': %s", expr, why) < 0)
        *err = NULL;
    return *err ? -EINVAL : -ENOMEM;
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
