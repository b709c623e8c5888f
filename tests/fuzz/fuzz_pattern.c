/* A name pattern, "NAME" or "regex:EXPR", and after a line break the name that it looks at. */
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_pattern *pattern = NULL;
    char *err = NULL, *text = kp_fuzz_text(data, size), *name = strchr(text, '\n');
    if (name)
        *name++ = '\0';
    int rc = kp_pattern_new(text, &pattern, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc) {
        kp_pattern_match(pattern, "void ns::kernel<(int)128, float>(const float *, unsigned int)");
        kp_pattern_match(pattern, name ? name : "");
        if (!*text)
            kp_fuzz_require(kp_pattern_match(pattern, "x"), "the empty pattern does not match");
        else if (strncmp(text, "regex:", strlen("regex:")))
            kp_fuzz_require(kp_pattern_match(pattern, text), "a plain name does not match itself");
    }
    kp_pattern_free(pattern);
    free(text);
    return 0;
}
