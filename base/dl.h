/* Functions of the dynamic loader, for code that may run inside of another program. */
#ifndef KP_BASE_DL_H
#define KP_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

/* The caller chooses the functions: the preloaded object passes the real ones, past its own doors. */
struct kp_dl {
    void *(*open)(const char *path, int flags);
    void *(*sym)(void *handle, const char *name);
    /* Directory of the loaded file that `address` lies in, into dir[size]; false when unknown. */
    bool (*directory_of)(const void *address, char *dir, size_t size);
    /* Whether two addresses lie in the same loaded file. May be NULL where no sanitiser is to be expected. */
    bool (*same_file)(const void *a, const void *b);
};

#endif
