#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

enum { MAX_WORD = 128 }; /* longer words are not typing errors */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment: insert, delete, replace, or swap two neighbours, each at a cost of one. */
static size_t distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b), d[3][MAX_WORD + 1];
    if (la > MAX_WORD || lb > MAX_WORD)
        return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = d[i % 3], *before = d[(i + 2) % 3], *before2 = d[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
                before2[j - 2] + 1 < now[j])
                now[j] = before2[j - 2] + 1;
        }
    }
    return d[la % 3][lb];
}

/* The only entry that the word begins, or NULL. One letter is too little to go by. */
static const char *begun(const char *word, const char *const *list)
{
    const char *found = NULL;
    size_t len = strlen(word);
    for (; len > 1 && *list; list++) {
        if (strncasecmp(word, *list, len) != 0)
            continue;
        if (found)
            return NULL;
        found = *list;
    }
    return found;
}

const char *kp_nearest(const char *word, const char *const *list)
{
    const char *best = begun(word, list);
    if (best)
        return best;
    size_t len = strlen(word), best_distance = (len + 3) / 4 + 1; /* one letter in four may be wrong */
    if (len && best_distance > len)
        best_distance = len; /* and one must be right */
    for (; *list; list++) {
        size_t d = distance(word, *list);
        if (d < best_distance) {
            best_distance = d;
            best = *list;
        }
    }
    return best;
}
