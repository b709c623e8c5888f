#include "preload/doors/api.h"

#include <string.h>

const struct kp_api_row kp_api[] = {
#define KP_API(symbol, base, class) {#symbol, #base, KP_CLASS_##class},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

const size_t kp_api_rows = sizeof(kp_api) / sizeof(*kp_api);

static const struct {
    const char *symbol;
    unsigned words;
} on_stack[] = {
#define KP_STACK_WORDS(symbol, words) {#symbol, words},
#include "preload/doors/stack_words.def"
#undef KP_STACK_WORDS
};

unsigned kp_api_stack_words(const char *symbol)
{
    for (size_t i = 0; i < sizeof(on_stack) / sizeof(*on_stack); i++)
        if (!strcmp(on_stack[i].symbol, symbol))
            return on_stack[i].words;
    return 0;
}

unsigned kp_api_base_words(const char *base)
{
    enum { MOST = 16 }; /* exceeds those of any function so far */
    unsigned words = 0, rows = 0;
    bool differ = false;
    for (size_t i = 0; base && i < kp_api_rows; i++) {
        if (strcmp(kp_api[i].base, base))
            continue;
        unsigned here = kp_api_stack_words(kp_api[i].symbol);
        differ |= rows++ && here != words;
        words = here > words ? here : words;
    }
    return !rows ? MOST | KP_API_AT_MOST : differ ? words | KP_API_AT_MOST : words;
}
