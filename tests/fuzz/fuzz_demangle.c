/* A symbol of C++, in its three forms. Names that take all the steps there are would be most of what is run, at 20 ms
 * each, so there are fewer. */
#define KP_DEMANGLE_STEPS (1 << 11)
#include "base/demangle.c"

#include "tests/fuzz/fuzz.h"

/* The most text that a symbol may make, for each of its characters and in all; what is longer is not written out. */
enum { MOST = 1 << 20 };

static void check(char *(*demangle)(const char *), const char *symbol)
{
    char *text = demangle(symbol);
    kp_fuzz_require(text != NULL, "no text for a symbol");
    kp_fuzz_require(strlen(text) <= MOST + strlen(symbol), "a symbol makes more text than a report can hold");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *symbol = kp_fuzz_text(data, size);
    check(kp_demangle, symbol);
    check(kp_demangle_function, symbol);
    check(kp_demangle_base, symbol);
    free(symbol);
    return 0;
}
