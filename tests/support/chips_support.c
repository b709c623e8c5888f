#include "tests/support/chips_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

static const struct kp_test_chip chips[] = {
#define KP_CHIP(...) {__VA_ARGS__},
#include "tests/support/chips.def"
};

enum { CHIPS = sizeof(chips) / sizeof(*chips) };

const struct kp_test_chip *kp_test_chips(size_t *n)
{
    *n = CHIPS;
    return chips;
}

bool kp_test_is_profiled(const struct kp_test_chip *chip)
{
    return chip->opens && 10 * chip->major + chip->minor >= 75;
}

void kp_test_every_chip(char *(*describe)(const struct kp_test_chip *chip), const char *golden)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    char *text = NULL, *lines = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    for (size_t i = 0; i < CHIPS; i++) {
        char *next = kp_test_is_profiled(&chips[i]) ? describe(&chips[i]) : NULL;
        if (!next)
            continue;
        bool same = lines && !strcmp(next, lines);
        if (lines && !same)
            fprintf(f, "\n%s", lines);
        fprintf(f, "%s%s (%d.%d)", same ? ", " : "", chips[i].name, chips[i].major, chips[i].minor);
        free(lines);
        lines = next;
    }
    fprintf(f, "\n%s", lines ? lines : "");
    assert_int_equal(fclose(f), 0);
    if (!strcmp(kp_cupti_version(c), "13.0"))
        kp_test_golden(text, golden);
    free(lines);
    free(text);
}
