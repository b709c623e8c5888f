/* The nearest of several names. Threads: pure functions. */
#ifndef KP_BASE_NEAREST_H
#define KP_BASE_NEAREST_H

/* Returns the entry of the NULL-terminated list that alone begins with `word`, else the nearest by edit distance; NULL
 * when none is near enough to help. Letter case does not count, swapped neighbours count as one edit. */
const char *kp_nearest(const char *word, const char *const *list);

#endif
