/* Large memory that is written completely. */
#ifndef KP_BASE_MAPPED_PAGES_H
#define KP_BASE_MAPPED_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Returns `size` bytes of zeros, in huge pages if available: with small pages, the faults of hundreds of megabytes cost
 * as much as filling them. NULL without memory. Give it back with kp_pages_give. Any thread may call it. */
uint8_t *kp_pages_take(size_t size);

/* Gives back what kp_pages_take returned for that size; NULL is allowed. */
void kp_pages_give(uint8_t *pages, size_t size);

#endif
