/* The doors in front of dlsym and dlvsym (lookup.S). Threads: any. */
#ifndef KP_PRELOAD_DOORS_DOOR_LOOKUP_H
#define KP_PRELOAD_DOORS_DOOR_LOOKUP_H

/* Replace dlsym and dlvsym for an explicit handle and a name that may be a door's (called from lookup.S). */
void *kp_dlsym(void *handle, const char *name);
void *kp_dlvsym(void *handle, const char *name, const char *version);

#endif
