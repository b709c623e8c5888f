/* The options of ncu, and what kprof does with each: the rows of ncu.def. Static data; any thread. */
#ifndef KP_REPORT_OPTIONS_NCU_H
#define KP_REPORT_OPTIONS_NCU_H

#include <stddef.h>

enum kp_ncu_how { KP_NCU_SAME, KP_NCU_AS, KP_NCU_ANY, KP_NCU_FILE, KP_NCU_NOT, KP_NCU_ALIEN };

/* A row of ncu.def; see there. */
struct kp_ncu_option {
    const char *flag;
    char letter;
    enum kp_ncu_how how;
    const char *values, *text;
};

/* Returns all rows; *n receives their number. */
const struct kp_ncu_option *kp_ncu_options(size_t *n);
/* Returns the row of a flag, or NULL. */
const struct kp_ncu_option *kp_ncu_option(const char *flag);
/* Returns what kprof has in place of an option of ncu's, or of another profiler, that is no option of kprof: the end of
 * a sentence. NULL for any other name. */
const char *kp_ncu_instead(const char *flag);
/* The same for a short flag. */
const char *kp_ncu_instead_of_letter(int letter);

#endif
