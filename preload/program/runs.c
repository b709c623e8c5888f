#include "preload/program/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/text.h"
#include "collectors/plan/runs.h"
#include "collectors/providers/library.h"

/* Runs before the first list: the program as it is, with what needs no counter. */
enum { RUNS_BEFORE = 1, MOST_TEXT = 8 << 20 };

static char *file_of(const struct kp_context_setup *setup, const char *chip, const char *ending)
{
    char *path = NULL;
    return asprintf(&path, "%s/plan.%s%s", setup->options->replay_folder, chip, ending) < 0 ? NULL : path;
}

char *kp_runs_read(const struct kp_context_setup *setup, const char *chip)
{
    char *path = file_of(setup, chip, ""), *text = NULL;
    FILE *f = path ? fopen(path, "re") : NULL;
    size_t size = 0;
    if (f && getdelim(&text, &size, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    free(path);
    return text;
}

/* Writes whole files alone: several processes of the program may do so at once, all the same. */
static int write_shared(const struct kp_context_setup *setup, const char *chip, const char *text)
{
    char ending[32];
    snprintf(ending, sizeof(ending), ".%d", (int)getpid());
    char *path = file_of(setup, chip, ""), *whole = file_of(setup, chip, ending);
    FILE *f = path && whole ? fopen(whole, "wex") : NULL;
    int rc = f ? 0 : -errno;
    if (f && fputs(text, f) < 0)
        rc = -EIO;
    if (f && fclose(f))
        rc = -errno;
    if (!rc && rename(whole, path))
        rc = -errno;
    free(whole);
    free(path);
    return rc;
}

static int write_plan(const struct kp_context_setup *setup, const struct kp_context *c, char **err)
{
    char *text = kp_plan_runs_text(c->plan);
    int rc = text ? write_shared(setup, c->chip, text) : -ENOMEM;
    free(text);
    return rc && rc != -ENOMEM
               ? kp_error(err, "cannot write to %s: %s", setup->options->replay_folder, strerror(-rc))
               : rc;
}

int kp_runs_share(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_cupti *cupti,
                  char *shared, char **err)
{
    size_t lists_before = setup->run - RUNS_BEFORE;
    int rc = shared ? kp_plan_runs_read(c->plan, shared) : write_plan(setup, c, err);
    if (rc)
        return rc == -EINVAL ? kp_error(err, "the folder %s has a file that is none of kprof's",
                                        setup->options->replay_folder)
                             : rc;
    bool counts = lists_before && lists_before <= c->plan->runs;
    c->beside = lists_before > c->plan->runs ? lists_before - c->plan->runs : 0;
    rc = kp_plan_runs_keep(c->plan, cupti, c->chip, c->availability, counts ? (int)lists_before - 1 : KP_NO_LIST);
    if (rc > 0) {
        *err = kp_library_explain(cupti, "cannot plan the collection", rc);
        rc = -EIO;
    }
    return rc;
}
