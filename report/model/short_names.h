/* Kernel names in little room: shortened, but different names stay different. Threads: pure functions. */
#ifndef KP_REPORT_MODEL_SHORT_NAMES_H
#define KP_REPORT_MODEL_SHORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Which part of a name that is too long is kept. If several then look the same, each shows the function and the part in
 * which it differs. */
enum kp_short_form {
    KP_SHORT_SIGNATURE, /* loses its return type and parameters, then scopes, then its end; a text only its end */
    KP_SHORT_BARE,      /* has no return type, template arguments and parameters, however short it is: kp_trace_name;
                         * but Kernel<...> keeps its arguments, which say what it does */
};

struct kp_long_name {
    const char *name;
    size_t range; /* length of the NVTX range in it, see kp_launch_range_length */
    bool is_text; /* no signature: the text for a graph, a range */
};

enum { KP_SHORT_ROOM_MIN = 16 };

/* Shortens the first `n` of `all` names to at most `room` columns, which are KP_SHORT_ROOM_MIN or more, and blanks
 * control characters. Indistinguishable names get their number among all whose functions begin alike (f...#2), which
 * depends neither on the room nor on how many are shown. *out receives `n` texts. 0 or -ENOMEM; free *out with
 * kp_short_names_free. */
int kp_short_names(const struct kp_long_name *names, size_t all, size_t n, size_t room, enum kp_short_form form,
                   char ***out);
void kp_short_names_free(char **names, size_t n);

#endif
