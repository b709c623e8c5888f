/* The nearest of several names. Threads: pure functions. */
#ifndef KP_BASE_NEAREST_H
#define KP_BASE_NEAREST_H

/* The entry of the NULL-terminated list nearest to `word` by edit distance (letter case does not count, neighbours
 * swapped count as one); NULL when none is near enough to help. */
const char *kp_nearest(const char *word, const char *const *list);

#endif
