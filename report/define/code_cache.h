/* What source.c needs of the cache beside what source.h offers. */
#ifndef KP_REPORT_DEFINE_CODE_CACHE_H
#define KP_REPORT_DEFINE_CODE_CACHE_H

#include "report/define/source.h"

/* The code of that id, valid until the next trim; NULL, with 0, when there is none or it cannot be read. -ENOMEM. */
int kp_code_cache_code(struct kp_code_cache *c, uint64_t id, const struct kp_code **out);
/* Lets go of code when much is held, so that long sessions take bounded memory. */
void kp_code_cache_trim(struct kp_code_cache *c);

#endif
