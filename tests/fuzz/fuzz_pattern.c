/* A name pattern, "NAME" or "regex:EXPR", and after a line break the name that it looks at. Limits must end it in time
 * (libFuzzer's limit for one input). */
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "tests/fuzz/fuzz.h"

static void look(const char *text, const char *name)
{
    struct kp_pattern *pattern = NULL;
    char *err = NULL;
    int rc = kp_pattern_new(text, &pattern, &err);
    kp_fuzz_outcome(rc, &err);
    if (rc)
        return;
    bool found = kp_pattern_match(pattern, name), gave_up = kp_pattern_gave_up(pattern);
    kp_fuzz_require(gave_up || kp_pattern_match(pattern, name) == found, "a second match differs");
    kp_pattern_match(pattern, "void ns::kernel<(int)128, float>(const float *, unsigned int)");
    if (!*text)
        kp_fuzz_require(kp_pattern_match(pattern, "x"), "the empty pattern does not match");
    else if (strncmp(text, KP_REGEX, strlen(KP_REGEX)))
        kp_fuzz_require(kp_pattern_match(pattern, text), "a plain name does not match itself");
    kp_pattern_free(pattern);
}

/* What matches a whole name is found in it. */
static void look_at_whole(const char *text, const char *name)
{
    struct kp_pattern *whole = NULL, *part = NULL;
    char *err = NULL;
    if (strncmp(text, KP_REGEX, strlen(KP_REGEX)))
        return;
    int rc = kp_pattern_whole(text + strlen(KP_REGEX), &whole, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc && kp_pattern_match(whole, name)) {
        kp_fuzz_outcome(kp_pattern_new(text, &part, &err), &err);
        kp_fuzz_require(!part || kp_pattern_match(part, name) || kp_pattern_gave_up(part), "a whole match is none");
    }
    kp_pattern_free(part);
    kp_pattern_free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kp_fuzz_text(data, size), *name = strchr(text, '\n');
    if (name)
        *name++ = '\0';
    look(text, name ? name : "");
    look_at_whole(text, name ? name : "");
    free(text);
    return 0;
}
