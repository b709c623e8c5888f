#include "base/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"

static const char REGEX_PREFIX[] = "regex:";

struct kp_pattern {
    char *exact; /* NULL: use `regex` */
    struct kp_regex *regex;
};

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
        rc = kp_regex_new(text + prefix, false, &p->regex, err);
    else if (!(p->exact = strdup(text)))
        rc = -ENOMEM;
    if (rc) {
        free(p);
        return rc;
    }
    *out = p;
    return 0;
}

bool kp_pattern_match(const struct kp_pattern *p, const char *name)
{
    if (p->exact)
        return !*p->exact || !strcmp(p->exact, name);
    return kp_regex_match(p->regex, name);
}

void kp_pattern_free(struct kp_pattern *p)
{
    if (!p)
        return;
    kp_regex_free(p->regex);
    free(p->exact);
    free(p);
}
