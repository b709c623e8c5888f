/* The part of the code cache that only source.c uses; source.h has the rest. */
#ifndef KP_REPORT_DEFINE_CODE_CACHE_H
#define KP_REPORT_DEFINE_CODE_CACHE_H

#include "report/define/source.h"

/* Returns in *out the code of that id, valid until the next trim. *out is NULL, with 0, when the code is missing or
 * unreadable. Else -ENOMEM. */
int kp_codecache_code(struct kp_code_cache *c, uint64_t id, const struct kp_code **out);
/* Frees code when the cache holds much, so that long sessions need bounded memory. */
void kp_codecache_trim(struct kp_code_cache *c);

#endif
