/* The driver's interface as the doors know it. */
#ifndef KP_PRELOAD_DOORS_API_H
#define KP_PRELOAD_DOORS_API_H

#include <stdbool.h>
#include <stddef.h>

enum kp_api_class {
#define KP_CLASS(name, ...) KP_CLASS_##name,
#include "preload/doors/classes.def"
#undef KP_CLASS
};

/* KP_UNSEEN: what the functions of a class start may go on during a counted launch. */
enum { KP_SEEN, KP_UNSEEN };

struct kp_api_row {
    const char *symbol, *base;
    enum kp_api_class class;
};

/* The rows of cuda_api.def, in its order. */
extern const struct kp_api_row kp_api[];
extern const size_t kp_api_rows;

/* Set in a number of stack words that is an upper bound. */
enum { KP_API_AT_MOST = 0x100 };

/* Returns how many words of 8 bytes the driver function of that exported name expects on the stack (stack_words.def).
 * Any thread. */
unsigned kp_api_stack_words(const char *symbol);
/* Does the same for a function that cuGetProcAddress calls `base`, of any version. NULL: a function in no table. */
unsigned kp_api_base_words(const char *base);

#endif
