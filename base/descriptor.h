/*
 * Our own descriptors, which have high numbers. A program gets the lowest free number, and must get the same one as
 * without us. A program may close all descriptors that it does not know, and open its own files under their numbers:
 * we must not write into those. Threads: any.
 */
#ifndef KP_BASE_DESCRIPTOR_H
#define KP_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns a close-on-exec copy of `fd` with a high number; at least 10 if the limit is low. -1 with errno. */
int kp_descriptor_copy(int fd);
/* Does the same, and closes `fd`. Returns a negative `fd` with errno as it was. */
int kp_descriptor_raise(int fd);

/* Makes an unnamed file in memory, which grows as it is written; `name` is shown in /proc. -1 with errno. */
int kp_descriptor_memory(const char *name);

/* Identifies the file that a descriptor refers to. */
struct kp_descriptor_file {
    bool known;
    dev_t device;
    ino_t file;
};
struct kp_descriptor_file kp_descriptor_file(int fd);
/* Returns true if `fd` is open and is that file. */
bool kp_descriptor_is(int fd, const struct kp_descriptor_file *f);
/* Opens that file again, with a high number. Negative if `path` cannot be opened or has become another file. */
int kp_descriptor_open_again(const char *path, int flags, const struct kp_descriptor_file *f);

#endif
