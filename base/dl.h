/* Functions of the dynamic loader, for code that may run inside another program. */
#ifndef KP_BASE_DL_H
#define KP_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

/* The caller chooses the functions: the preloaded library passes the real ones, past its own doors. */
struct kp_dl {
    void *(*open)(const char *path, int flags);
    void *(*sym)(void *handle, const char *name);
    /* Writes the folder of the loaded file around `address` to dir[size]; false when unknown. */
    bool (*directory_of)(const void *address, char *dir, size_t size);
    /* Returns true if two addresses lie in the same loaded file. May be NULL if no sanitiser is expected. */
    bool (*same_file)(const void *a, const void *b);
};

#endif
