#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "report/main.h"
#include "report/model.h"
#include "report/options.h"
#include "report/page.h"

/* The name in the folder of `path` that is nearest to `path`'s; malloc'ed, NULL when none is near. */
static char *nearest_file(const char *path)
{
    char *for_dir = kp_strdup(path), *for_base = kp_strdup(path), *found = NULL;
    struct dirent **entries = NULL;
    const char **names = NULL;
    int n = for_dir && for_base ? scandir(dirname(for_dir), &entries, NULL, alphasort) : -1;
    if (n < 0 || !(names = calloc((size_t)n + 1, sizeof *names)))
        goto out;
    size_t used = 0;
    for (int i = 0; i < n; i++)
        if (entries[i]->d_name[0] != '.')
            names[used++] = entries[i]->d_name;
    const char *near = kp_nearest(basename(for_base), names);
    found = near ? strdup(near) : NULL;
out:
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    free(names);
    free(for_dir);
    free(for_base);
    return found;
}

static int cannot_open(const char *path, int rc, const char *err)
{
    char *near = rc == -ENOENT ? nearest_file(path) : NULL;
    if (near)
        kp_main_error(0, "%s; did you mean '%s'?", err, near);
    else
        kp_main_error(0, "%s", err ? err : strerror(-rc));
    free(near);
    return rc == -ENOENT || rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

static int print_file(const char *path)
{
    struct kp_store *store = NULL;
    char *err = NULL;
    int status = EXIT_SUCCESS;
    int rc = kp_store_open(path, &store, &err);
    if (rc) {
        status = cannot_open(path, rc, err);
        goto out;
    }
    struct kp_sink out = kp_main_sink(stdout);
    rc = kp_page_details(&out, store, &err);
    if (fflush(stdout) && !rc)
        rc = -errno;
    if (rc)
        status = kp_main_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
out:
    kp_store_close(store);
    free(err);
    return status;
}

int kp_main_report(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return kp_main_help();
    if (argc >= 2 && argv[1][0] == '-' && argv[1][1])
        return kp_main_error(KP_EXIT_USAGE, "kprof report has no option %s; it takes a session file", argv[1]);
    if (argc != 2)
        return kp_main_error(KP_EXIT_USAGE, "kprof report takes one session file");
    return print_file(argv[1]);
}
