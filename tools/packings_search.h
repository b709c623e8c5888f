/* Looks for a packing of fewer one-pass lists, by moving counters between them: a local search with a tabu list. It
 * takes far longer than a plan may, and is done once, for the table. */
#ifndef KP_TOOLS_PACKINGS_SEARCH_H
#define KP_TOOLS_PACKINGS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

struct kp_host;

/* Counters in lists. The arrays and the names are the caller's. */
struct kp_search {
    struct kp_host *host;
    const char *const *in_each; /* names that each list has besides: the canaries */
    size_t n_in_each;
    const char *const *names;
    int *list; /* of each name: 0 to lists - 1 */
    size_t n;
    int lists;
};

/* Has one list less, if that is found within so many questions to the library, and puts the longest lists first. Else
 * nothing has changed. */
bool kp_search_fewer(struct kp_search *s, unsigned long questions);

#endif
