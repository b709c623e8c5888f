/*
 * The options in the environment as the library was loaded: a program may clear its environment before it uses CUDA.
 * Variables that the program has by now take precedence. Threads: any, unless one changes the environment meanwhile.
 */
#ifndef KP_PRELOAD_OS_KEPT_ENVIRONMENT_H
#define KP_PRELOAD_OS_KEPT_ENVIRONMENT_H

/* Keeps the variables whose names begin with KPROF_. Call it once, when the library is loaded. */
void kp_kept_note(void);

/* Returns the environment's entries and the kept ones that it lacks, as a list that ends with NULL, to be freed; the
 * entries stay where they are. NULL if memory runs out. */
char **kp_kept_entries(void);

/* Returns the value of the variable `name`, which begins with KPROF_; NULL if there is none. Not to be freed. */
const char *kp_kept_option(const char *name);

#endif
