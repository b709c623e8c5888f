/*
 * Our own descriptors, which have high numbers. A program gets the lowest free number, and must get the same one as
 * without us. A program may close all descriptors that it does not know, and open its own files under their numbers:
 * we must not write into those. Threads: any.
 */
#ifndef KP_BASE_DESCRIPTOR_H
#define KP_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns a close-on-exec copy of `fd` with a high number; at least 10 where the limit is low. -1 with errno. */
int kp_descriptor_copy(int fd);
/* Does the same, and closes `fd`. Returns a negative `fd` with errno as it was. */
int kp_descriptor_raise(int fd);

/* Makes an unnamed file in memory, as large as it is written to; `name` is for /proc. -1 with errno. */
int kp_descriptor_memory(const char *name);

/* Identifies the file behind a descriptor. */
struct kp_descriptor_file {
    bool known;
    dev_t device;
    ino_t file;
};
struct kp_descriptor_file kp_descriptor_file(int fd);
/* Whether `fd` is open and is that file. */
bool kp_descriptor_is(int fd, const struct kp_descriptor_file *f);
/* Opens that file again, with a high number. Negative if `path` cannot be opened or has become another file. */
int kp_descriptor_open_again(const char *path, int flags, const struct kp_descriptor_file *f);

#endif
