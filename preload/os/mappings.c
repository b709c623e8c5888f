#include "preload/os/mappings.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines are "BEGIN-END PERMISSIONS …", in address order; the fourth permission is `s` or `p`. */
static bool any_shared(FILE *from, uint64_t begin, uint64_t end)
{
    char *line = NULL;
    size_t size = 0;
    bool shared = false, beyond = false;
    while (!shared && !beyond && getline(&line, &size, from) > 0) {
        char *at;
        uint64_t first = strtoull(line, &at, 16), last = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
        beyond = first >= end;
        shared = !beyond && last > begin && at[0] == ' ' && at[1] && at[2] && at[3] && at[4] == 's';
    }
    free(line);
    return shared || ferror(from);
}

bool kp_mappings_shared(const void *p, size_t bytes)
{
    int before = errno;
    FILE *from = fopen("/proc/self/maps", "re");
    bool shared = !from || any_shared(from, (uintptr_t)p, (uintptr_t)p + bytes);
    if (from)
        fclose(from);
    errno = before;
    return shared;
}

/* No field before the path contains a slash. */
bool kp_mappings_file(const void *p, char *path, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *from = fopen("/proc/self/maps", "re");
    while (from && !found && getline(&line, &room, from) > 0) {
        char *at, *file = strchr(line, '/');
        uint64_t first = strtoull(line, &at, 16), last = *at == '-' ? strtoull(at + 1, NULL, 16) : 0;
        found = file && first <= (uintptr_t)p && (uintptr_t)p < last;
        if (found) {
            file[strcspn(file, "\n")] = '\0';
            found = strlen(file) < size;
            if (found)
                strcpy(path, file);
        }
    }
    if (from)
        fclose(from);
    free(line);
    return found;
}

bool kp_mappings_beside(const char *name, uintptr_t start, uintptr_t end)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *from = fopen("/proc/self/maps", "re");
    while (from && !found && getline(&line, &room, from) > 0) {
        const char *file = strrchr(line, '/');
        uint64_t first = strtoull(line, NULL, 16);
        found = file && !strncmp(file + 1, name, strlen(name)) && (first < start || first >= end);
    }
    if (from)
        fclose(from);
    free(line);
    return found;
}
