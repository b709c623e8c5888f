/* Files that a command writes as a whole. */
#ifndef KP_CMD_TARGET_H
#define KP_CMD_TARGET_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct kp_target {
    FILE *to;
    char *path, *beside; /* the file that is replaced, and the new one; NULL where what is there is written through */
    struct stat old;
    bool exists; /* `old` is valid */
    mode_t mode; /* of a new file, less what the umask takes */
};

/* Whether the path is `-`, which stands for stdout. A file of that name is `./-`. */
bool kp_target_is_stdout(const char *path);
/* Whether a file is there that kp_target_open and kp_target_end would replace. */
bool kp_target_replaces(const char *path);
/* Whether the folder that the path names does not exist. */
bool kp_target_lacks_folder(const char *path);
/* Tries what kp_target_open would do, and leaves no trace: a file is made beside the path, and removed again, as only
 * this tells of a file system that is read-only. Returns 0 or a negative errno. */
int kp_target_try(const char *path);
/* Opens what a path names, links followed. A file is replaced at the end, by one beside it; a descriptor of this
 * process, a pipe or a device is written through. A file that is replaced leaves its mode and owner to the new one;
 * else the mode is `mode`, less what the umask takes. Returns 0 or a negative errno. */
int kp_target_open(struct kp_target *t, const char *path, mode_t mode);
/* Puts the new file in place where `rc` is 0, and removes it otherwise. Returns `rc`, or a negative errno. */
int kp_target_end(struct kp_target *t, int rc);
/* Whether the path is an SQLite database, as a session is: `--html A.kprof B.kprof` lacks the file's name. */
bool kp_target_is_database(const char *path);

#endif
