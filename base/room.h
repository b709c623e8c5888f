/*
 * Lists that grow by one element at a time. Their room is a power of 2 and follows from their length, so that nothing
 * else is kept of it: all elements of such a list are added this way. Elements may be taken from its end.
 */
#ifndef KP_BASE_ROOM_H
#define KP_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for an element after the `n` of a list, whose elements have `size` bytes. `list` is the address of the
 * pointer to them, which is NULL for an empty list. Returns false without memory, with the list as it was. Free the
 * list with free(). */
bool kp_room(void *list, size_t n, size_t size);
#define KP_ROOM(list, n) kp_room(&(list), n, sizeof *(list))

#endif
