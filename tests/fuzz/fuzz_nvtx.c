/* A filter over NVTX ranges, and after a NUL the names of ranges, which must have expressions that take them. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/model/nvtx_expr.h"
#include "tests/fuzz/fuzz.h"

static char empty[] = "", alpha[] = "A", beta[] = "B", domain[] = "D";

/* Two threads' stacks, and ranges with a begin and an end. */
static const struct kp_nvtx_range fixed[] = {
    {KP_NVTX_PUSH_POP, empty, alpha, empty, empty, 1},  {KP_NVTX_PUSH_POP, empty, beta, empty, empty, 1},
    {KP_NVTX_PUSH_POP, domain, alpha, empty, empty, 1}, {KP_NVTX_PUSH_POP, empty, beta, empty, empty, 2},
    {KP_NVTX_PUSH_POP, empty, alpha, empty, empty, 2},  {KP_NVTX_START_END, empty, alpha, empty, empty, 1},
    {KP_NVTX_START_END, domain, beta, empty, empty, 2},
};
enum {
    N_FIXED = sizeof fixed / sizeof *fixed,
    MOST_RANGES = KP_NVTX_DEPTH + 8, /* more than count */
    DEEP = 8,                        /* one size in … has as many */
};

/* A line of text cannot spell control characters, which are shown as blanks, and a filter no range without a name. */
static bool can_be_spelt(const struct kp_nvtx_range *r)
{
    for (const char *c = r->name; *c; c++)
        if (kp_text_is_control(*c))
            return false;
    for (const char *c = r->domain; *c; c++)
        if (kp_text_is_control(*c))
            return false;
    return *r->name;
}

/* The expression that stands for a range takes it. */
static void check_own_expression(const struct kp_nvtx_range *r)
{
    struct kp_nvtx_filter *f = NULL;
    char *err = NULL, *expression = kp_nvtx_expression(r);
    kp_fuzz_require(expression != NULL, "a range without an expression");
    kp_fuzz_outcome(kp_nvtx_filter_new(expression, &f, &err), &err);
    kp_fuzz_require(f && kp_nvtx_filter_match(f, r, 1), "a range that its own expression does not take");
    kp_nvtx_filter_free(f);
    free(expression);
}

static void check_filter(const char *text, const struct kp_nvtx_range *ranges, size_t n)
{
    struct kp_nvtx_filter *f = NULL;
    char *err = NULL;
    int rc = kp_nvtx_filter_new(text, &f, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc) {
        bool taken = kp_nvtx_filter_match(f, ranges, n);
        kp_fuzz_require(!taken || !kp_nvtx_filter_empty(f), "an empty filter takes a launch");
        kp_nvtx_filter_match(f, NULL, 0);
    }
    kp_nvtx_filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_nvtx_range ranges[MOST_RANGES];
    char *text = kp_fuzz_text(data, size), *name = text + strlen(text) + 1, *at;
    size_t n = N_FIXED;
    memcpy(ranges, fixed, sizeof fixed);
    if (name < text + size && *name) {
        at = strchr(name, '@');
        ranges[n++] = (struct kp_nvtx_range){.kind = size % 2 ? KP_NVTX_PUSH_POP : KP_NVTX_START_END,
                                             .domain = at ? at + 1 : empty,
                                             .name = name,
                                             .category = empty,
                                             .payload = empty,
                                             .thread = 1};
        if (at)
            *at = '\0';
        if (can_be_spelt(&ranges[N_FIXED]))
            check_own_expression(&ranges[N_FIXED]);
    }
    for (; size % DEEP == 0 && n < MOST_RANGES; n++)
        ranges[n] = fixed[n % 2];
    check_filter(text, ranges, n);
    free(text);
    return 0;
}
