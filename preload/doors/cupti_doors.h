/*
 * Doors in front of CUPTI, for a program that profiles itself (cupti_doors.def): kprof gives way before such a call
 * reaches CUPTI. kprof's own calls bypass them.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_DOORS_CUPTI_DOORS_H
#define KP_PRELOAD_DOORS_CUPTI_DOORS_H

/* Returns what to give to a program that looks up function `symbol` of CUPTI, found at `real`; NULL: there is no
 * door. */
void *kp_door_wrap_cupti(const char *symbol, void *real);

#endif
