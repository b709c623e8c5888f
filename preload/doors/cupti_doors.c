#include "preload/doors/cupti_doors.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/work.h"
#include "preload/os/elf.h"
#include "preload/process/process.h"
#include "preload/contexts/context.h"

#define EXPORT __attribute__((visibility("default")))

/* CUPTI_ERROR_NOT_INITIALIZED */
enum { CUPTI_MISSING = 15 };

enum {
#define KP_CUPTI_DOOR(function, effect) DOOR_##function,
#include "preload/doors/cupti_doors.def"
#undef KP_CUPTI_DOOR
    DOORS
};

/* All arguments are integers and pointers, at most four. Registers without an argument are passed on and mean
 * nothing. */
typedef int (*function)(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* A call of the program, copied for work. */
struct call {
    const char *name;
    enum kp_other_effect effect;
    void *real;
    uint64_t args[KP_OTHER_ARGS];
    bool begins, succeeded;
};

static void after(void *arg)
{
    const struct call *c = arg;
    kp_process_gave_way(c->effect, c->real, c->args, c->begins, c->succeeded);
}

static void before(void *arg)
{
    struct call *c = arg;
    c->begins = kp_process_gives_way(c->effect, c->name, c->args);
    if (kp_work_abandoned()) /* the call will not be made */
        after(c);
}

static int pass(const char *name, enum kp_other_effect effect, void *real, const uint64_t *args)
{
    struct call c = {.name = name, .effect = effect, .real = real};
    if (!real)
        return CUPTI_MISSING;
    memcpy(c.args, args, sizeof(c.args));
    kp_work_run(before, &c, sizeof(c));
    int rc = ((function)(uintptr_t)real)(args[0], args[1], args[2], args[3]);
    c.succeeded = !rc;
    kp_work_run(after, &c, sizeof(c));
    return rc;
}

static void *find(void *caller, const char *symbol)
{
    kp_work_begin();
    void *real = kp_elf_find_for(caller, symbol);
    kp_work_end();
    return real;
}

/* Several frameworks may each bring a copy of CUPTI: functions of so many copies are distinguished. */
enum { COPIES = 4 };

static _Atomic(void *) behind_pointer[DOORS][COPIES];

#define KP_POINTER(name, effect, copy)                                                                                 \
    static int pointer_##name##_##copy(uint64_t a, uint64_t b, uint64_t c, uint64_t d)                                 \
    {                                                                                                                  \
        return pass(#name, KP_OTHER_##effect, atomic_load(&behind_pointer[DOOR_##name][copy]),                         \
                    (const uint64_t[KP_OTHER_ARGS]){a, b, c, d});                                                      \
    }
#define KP_CUPTI_DOOR(name, effect)                                                                                    \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d);                                                   \
    int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d)                                                           \
    {                                                                                                                  \
        void *real = find(__builtin_return_address(0), #name);                                                         \
        return pass(#name, KP_OTHER_##effect, real, (const uint64_t[KP_OTHER_ARGS]){a, b, c, d});                      \
    }                                                                                                                  \
    KP_POINTER(name, effect, 0)                                                                                        \
    KP_POINTER(name, effect, 1) KP_POINTER(name, effect, 2) KP_POINTER(name, effect, 3)
#include "preload/doors/cupti_doors.def"
#undef KP_CUPTI_DOOR

#define KP_FUNCTION(name, copy) (void *)(uintptr_t)pointer_##name##_##copy
static const struct {
    const char *symbol;
    void *functions[COPIES];
} doors[DOORS] = {
#define KP_CUPTI_DOOR(name, effect)                                                                                    \
    {#name, {KP_FUNCTION(name, 0), KP_FUNCTION(name, 1), KP_FUNCTION(name, 2), KP_FUNCTION(name, 3)}},
#include "preload/doors/cupti_doors.def"
#undef KP_CUPTI_DOOR
};

/* Returns the index of a copy's function, assigned on first use; COPIES: there is none left. */
static int place_of(_Atomic(void *) *behind, void *real)
{
    int at = 0;
    for (void *expected = NULL; at < COPIES; at++, expected = NULL)
        if (atomic_compare_exchange_strong(&behind[at], &expected, real) || expected == real)
            break;
    return at;
}

void *kp_door_wrap_cupti(const char *symbol, void *real)
{
    if (strncmp(symbol, "cupti", 5))
        return NULL;
    void *instead = kp_context_instead(symbol, real);
    real = instead ? instead : real;
    int door = 0;
    while (door < DOORS && strcmp(doors[door].symbol, symbol))
        door++;
    int at = door < DOORS ? place_of(behind_pointer[door], real) : COPIES;
    return at < COPIES ? doors[door].functions[at] : instead;
}
