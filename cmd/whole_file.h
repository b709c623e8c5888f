/* Files that a command writes as a whole. */
#ifndef KP_CMD_WHOLE_FILE_H
#define KP_CMD_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct kp_target {
    FILE *to;
    char *path, *beside; /* the file that is replaced, and the new one; NULL if the existing one is written through */
    struct stat old;
    bool exists; /* `old` is valid */
    mode_t mode; /* of a new file, before the umask */
};

/* Returns true if the path is `-`, which stands for stdout. A file of that name is `./-`. */
bool kp_target_is_stdout(const char *path);
/* Returns true if kp_target_open and kp_target_end would replace an existing file. */
bool kp_target_replaces(const char *path);
/* Returns true if the folder that the path names does not exist. */
bool kp_target_lacks_folder(const char *path);
/* Tries what kp_target_open would do, and leaves no trace: it creates a file next to the path, and removes it again,
 * because only this detects a read-only file system. Returns 0 or a negative errno. */
int kp_target_try(const char *path);
/* Opens what a path names, links followed. A file is replaced at the end, by one next to it; a descriptor of this
 * process, a pipe or a device is written through. A file that is replaced leaves its mode and owner to the new one;
 * else the mode is `mode`, before the umask. Returns 0 or a negative errno. */
int kp_target_open(struct kp_target *t, const char *path, mode_t mode);
/* Puts the new file in place if `rc` is 0, and removes it otherwise. Returns `rc`, or a negative errno. */
int kp_target_end(struct kp_target *t, int rc);
/* Returns true if the path is an SQLite database like a session: `--html A.kprof B.kprof` lacks the file's name. */
bool kp_target_is_database(const char *path);

#endif
