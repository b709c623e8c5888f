#include "base/pattern.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

enum {
    MAX_STEPS = 2000000, /* of a match, each about 25 ns */
    MAX_STEPS_LATER = MAX_STEPS / 1000,
    MAX_HEAP = 8192, /* KB of a match, each step that may be taken back 150 bytes */
    MAX_NESTING = 100,
    MAX_LENGTH = 16384,
};

/* What a match needs, of one thread at a time. */
struct scratch {
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

struct kp_pattern {
    char *exact; /* NULL: use `code` */
    pcre2_code *code;
    struct scratch *_Atomic spare; /* NULL while a match has it */
    atomic_bool gave_up;
};

static void free_scratch(struct scratch *s)
{
    if (!s)
        return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->limits);
    free(s);
}

static struct scratch *new_scratch(void)
{
    struct scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->data = pcre2_match_data_create(1, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->data || !s->limits) {
        free_scratch(s);
        return NULL;
    }
    pcre2_set_heap_limit(s->limits, MAX_HEAP);
    return s;
}

static int refuse(const char *expr, int code, size_t at, char **err)
{
    PCRE2_UCHAR why[128];
    if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
        return -ENOMEM;
    pcre2_get_error_message(code, why, sizeof why);
    return kp_error(err, "bad expression '%.60s%s': %s (character %zu)", expr, strlen(expr) > 60 ? "..." : "",
                    (const char *)why, at);
}

static int compile(const char *expr, uint32_t options, struct kp_pattern *p, char **err)
{
    int code = PCRE2_ERROR_NOMEMORY;
    size_t at = 0;
    pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
    if (!limits)
        return -ENOMEM;
    pcre2_set_parens_nest_limit(limits, MAX_NESTING);
    pcre2_set_max_pattern_length(limits, MAX_LENGTH);
    options |= PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;
    p->code = pcre2_compile((PCRE2_SPTR)expr, PCRE2_ZERO_TERMINATED, options, &code, &at, limits);
    pcre2_compile_context_free(limits);
    if (!p->code)
        return refuse(expr, code, at, err);
    p->spare = new_scratch();
    return p->spare ? 0 : -ENOMEM;
}

static int make(const char *name, const char *expr, uint32_t options, struct kp_pattern **out, char **err)
{
    *err = NULL;
    *out = NULL;
    struct kp_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    int rc = expr ? compile(expr, options, p, err) : (p->exact = strdup(name)) ? 0 : -ENOMEM;
    if (rc)
        kp_pattern_free(p);
    else
        *out = p;
    return rc;
}

int kp_pattern_new(const char *text, struct kp_pattern **out, char **err)
{
    size_t prefix = strlen(KP_REGEX);
    return make(text, strncmp(text, KP_REGEX, prefix) ? NULL : text + prefix, 0, out, err);
}

int kp_pattern_whole(const char *expr, struct kp_pattern **out, char **err)
{
    return make(NULL, expr, PCRE2_ANCHORED | PCRE2_ENDANCHORED, out, err);
}

static bool match(struct kp_pattern *p, const char *name)
{
    struct scratch *s = atomic_exchange(&p->spare, NULL), *none = NULL;
    if (!s && !(s = new_scratch()))
        return false;
    pcre2_set_match_limit(s->limits, atomic_load(&p->gave_up) ? MAX_STEPS_LATER : MAX_STEPS);
    int rc = pcre2_match(p->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0, PCRE2_NO_JIT, s->data, s->limits);
    if (rc < PCRE2_ERROR_NOMATCH)
        atomic_store(&p->gave_up, true);
    if (!atomic_compare_exchange_strong(&p->spare, &none, s))
        free_scratch(s);
    return rc >= 0;
}

bool kp_pattern_match(const struct kp_pattern *p, const char *name)
{
    if (p->exact)
        return !*p->exact || !strcmp(p->exact, name);
    return match((struct kp_pattern *)p, name); /* what changes is no part of the pattern that a caller sees */
}

bool kp_pattern_gave_up(const struct kp_pattern *p)
{
    return atomic_load(&p->gave_up);
}

void kp_pattern_free(struct kp_pattern *p)
{
    if (!p)
        return;
    free_scratch(p->spare);
    pcre2_code_free(p->code);
    free(p->exact);
    free(p);
}
