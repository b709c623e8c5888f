#include "base/room.h"

#include <stdlib.h>
#include <string.h>

bool kp_room(void *list, size_t n, size_t size)
{
    void *at;
    if (n & (n - 1))
        return true;
    memcpy(&at, list, sizeof at); /* a pointer to any type */
    at = realloc(at, (n ? 2 * n : 1) * size);
    if (at)
        memcpy(list, &at, sizeof at);
    return at;
}
