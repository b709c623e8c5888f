#include "cmd/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "cmd/console.h"
#include "cmd/html_file.h"
#include "cmd/open_sessions.h"
#include "report/model/launch_names.h"

struct names {
    char **at;
    size_t n;
};

static int note_name(struct kp_result *r, void *arg)
{
    struct names *names = arg;
    const char *name = kp_launch_name(&r->launch);
    size_t i = 0;
    while (i < names->n && strcmp(names->at[i], name) != 0)
        i++;
    if (i < names->n || r->launch.kind != KP_WORKLOAD_KERNEL)
        return 0;
    char *copy = KP_ROOM(names->at, names->n) ? kp_strdup(name) : NULL;
    if (!copy)
        return -ENOMEM;
    names->at[names->n++] = copy;
    return 0;
}

static int print_names(void *arg, FILE *to)
{
    const struct names *names = arg;
    for (size_t i = 0; i < names->n; i++)
        fprintf(to, "-\n - Original: %s\n - Renamed: %s\n", names->at[i], names->at[i]);
    return ferror(to) ? -EIO : 0;
}

int kp_names_export(const char *session, const char *file, bool force)
{
    static const char *const nothing[] = {NULL};
    struct names names = {0};
    struct kp_store *store = NULL;
    char *err = NULL;
    int status = kp_open_session(session, false, &store);
    if (status)
        return status;
    int rc = kp_store_each_result_with(store, nothing, note_name, &names, &err);
    status = rc ? kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc)) : kp_file_check(file, force);
    if (!status)
        status = kp_file_save(print_names, &names, file, force, 0666 & kp_store_mode(store));
    for (size_t i = 0; i < names.n; i++)
        free(names.at[i]);
    free(names.at);
    free(err);
    kp_store_close(store);
    return status;
}
