/*
 * Descriptors of our own. Programs get the lowest free number, and it should be the one that they would have got
 * without us; and one that closes all it does not know, or those up to a number, and opens files of its own, must not
 * find us writing into them. So ours have high numbers. Threads: any.
 */
#ifndef KP_BASE_DESCRIPTOR_H
#define KP_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* A close-on-exec copy of `fd` with a high number; at least 10 where the limit is low. -1 with errno. */
int kp_descriptor_copy(int fd);
/* The same, and `fd` itself, if not negative, is closed. Its errno is kept where it is negative. */
int kp_descriptor_raise(int fd);

/* What file a descriptor stands for. */
struct kp_descriptor_file {
    bool known;
    dev_t device;
    ino_t file;
};
struct kp_descriptor_file kp_descriptor_file(int fd);
/* Whether `fd` is open and stands for that file, which is known. */
bool kp_descriptor_is(int fd, const struct kp_descriptor_file *f);
/* That file, opened again with a high number; negative where `path` cannot be opened or has become another file. */
int kp_descriptor_open_again(const char *path, int flags, const struct kp_descriptor_file *f);

#endif
