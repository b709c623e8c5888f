/* The driver's interface, as far as the doors know it. */
#ifndef KP_PRELOAD_DOORS_API_H
#define KP_PRELOAD_DOORS_API_H

#include <stdbool.h>
#include <stddef.h>

enum kp_api_class {
    KP_CLASS_LAUNCH,
    KP_CLASS_DOOR,
    KP_CLASS_GATE,
    KP_CLASS_WORK,
    KP_CLASS_JOIN,
    KP_CLASS_JOIN_WORK,
    KP_CLASS_ALLOC,
    KP_CLASS_ALLOC_ASYNC,
    KP_CLASS_FREE,
    KP_CLASS_FREE_ASYNC,
    KP_CLASS_ASK_FREE,
    KP_CLASS_ASK_POOL,
    KP_CLASS_MODULE,
    KP_CLASS_GLOBAL,
    KP_CLASS_LOAD,
    KP_CLASS_IMAGE,
    KP_CLASS_SHARE,
    KP_CLASS_MANAGED,
    KP_CLASS_VIRTUAL,
    KP_CLASS_POOL,
    KP_CLASS_MAP,
    KP_CLASS_ACCESS,
    KP_CLASS_RELEASE,
    KP_CLASS_CTX_END,
    KP_CLASS_DEVICE_END,
    KP_CLASS_ALL_END,
    KP_CLASS_CREATE,
    KP_CLASS_STREAM_END,
    KP_CLASS_SET,
    KP_CLASS_SET_FUNCTION,
    KP_CLASS_SET_KERNEL,
    KP_CLASS_UNLOAD,
    KP_CLASS_HOLD,
    KP_CLASS_CALL_HOST,
    KP_CLASS_CAPTURE_BEGIN,
    KP_CLASS_CAPTURE_END,
    KP_CLASS_INIT,
    KP_CLASS_SYNC,
    KP_CLASS_PURE,
};

struct kp_api_row {
    const char *symbol, *base;
    enum kp_api_class class;
};

/* The rows of cuda_api.def, in its order. */
extern const struct kp_api_row kp_api[];
extern const size_t kp_api_rows;

/* Set in a number of stack words that may be lower. */
enum { KP_API_AT_MOST = 0x100 };

/* Returns how many words of 8 bytes the driver function of that exported name takes on the stack (stack_words.def). Any
 * thread. */
unsigned kp_api_stack_words(const char *symbol);
/* Does the same for a function that cuGetProcAddress calls `base`, of any version. NULL: for one that no table has. */
unsigned kp_api_base_words(const char *base);

#endif
