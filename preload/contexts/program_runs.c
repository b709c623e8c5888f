#include "preload/contexts/program_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/room.h"
#include "base/text.h"
#include "collectors/plan/runs.h"
#include "collectors/providers/library.h"

/* Runs before the first list: the program as it is, for values that need no counter. */
enum { RUNS_BEFORE = 1 };

static char *file_of(const struct kp_context_setup *setup, const char *chip, const char *ending)
{
    return kp_asprintf("%s/plan.%s%s", setup->options->replay_folder, chip, ending);
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

/* Writes only whole files: several processes of the program may write the same file at once. */
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
    return rc && rc != -ENOMEM ? kp_error(err, "cannot write to %s: %s", setup->options->replay_folder, strerror(-rc))
                               : rc;
}

int kp_runs_share(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_cupti *cupti,
                  char *shared, char **err)
{
    size_t lists_before = setup->options->replay_run - RUNS_BEFORE;
    int rc = shared ? kp_plan_runs_read(c->plan, shared) : write_plan(setup, c, err);
    if (rc)
        return rc == -EINVAL
                   ? kp_error(err, "the folder %s has a file that is not kprof's", setup->options->replay_folder)
                   : rc;
    bool counts = lists_before && lists_before <= c->plan->runs;
    c->beside = lists_before > c->plan->runs ? lists_before - c->plan->runs : 0;
    rc = kp_plan_runs_keep(c->plan, cupti, c->chip, c->availability, counts ? (int)lists_before - 1 : KP_NO_LIST);
    if (rc > 0) {
        *err = kp_library_explain(cupti, KP_REASON_NOT_PLANNED, rc).text;
        rc = -EIO;
    }
    return rc;
}

/* ---- launches of lists that need several passes ---- */

/* A kernel with its shape. */
struct kernel {
    uint64_t hash;
    size_t launches;
};

static struct {
    char *folder; /* for this process's images; NULL until the first one */
    struct kernel *list;
    size_t n;
} images;

/* Makes the folder of images that this process reads and leaves. Processes of one program are distinguished by their
 * order in the run. */
static int make_folder(const struct kp_context_setup *setup)
{
    char exe[PATH_MAX], *claim = NULL;
    ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe));
    uint64_t program = kp_hash(exe, len > 0 ? (size_t)len : 0, 0);
    int rc = 0;
    for (size_t i = 0; !rc && !images.folder; i++) {
        if (asprintf(&claim, "%s/claim.%" PRIu64 ".%" PRIx64 ".%zu", setup->options->replay_folder,
                     setup->options->replay_run, program, i) < 0)
            rc = -ENOMEM;
        else if (!mkdir(claim, 0700))
            rc = asprintf(&images.folder, "%s/images.%" PRIx64 ".%zu", setup->options->replay_folder, program, i) < 0
                     ? -ENOMEM
                     : 0;
        else if (errno != EEXIST)
            rc = -errno;
        free(claim);
    }
    if (!rc && mkdir(images.folder, 0700) && errno != EEXIST)
        rc = -errno;
    return rc;
}

/* Returns how many launches of the kernel preceded this one; -1 if memory is short. */
static long count_launch(uint64_t hash)
{
    for (size_t i = 0; i < images.n; i++)
        if (images.list[i].hash == hash)
            return (long)images.list[i].launches++;
    if (!KP_ROOM(images.list, images.n))
        return -1;
    images.list[images.n++] = (struct kernel){hash, 1};
    return 0;
}

static uint64_t hash_of(const struct kp_context_setup *setup, const struct kp_context *c, const char *mangled,
                        const struct kp_shape *shape)
{
    uint64_t hash = kp_hash(mangled, strlen(mangled), (uint64_t)c->device_ordinal);
    if (setup->options->app_replay_match == KP_MATCH_NAME)
        return hash;
    hash = kp_hash(shape->grid, sizeof(shape->grid), hash);
    return kp_hash(shape->block, sizeof(shape->block), hash);
}

int kp_runs_carry(const struct kp_context_setup *setup, const struct kp_context *c, const char *mangled,
                  const struct kp_shape *shape, struct kp_carried *out)
{
    const struct kp_plan *p = c->plan;
    uint64_t hash = hash_of(setup, c, mangled, shape);
    long at = count_launch(hash);
    int rc = at < 0 ? -ENOMEM : images.folder ? 0 : make_folder(setup);
    *out = (struct kp_carried){.carry = {.pass = p->pass, .last = p->pass + 1 == p->several}};
    if (!rc && p->pass && asprintf(&out->from, "%s/%" PRIx64 ".%ld.%zu", images.folder, hash, at, p->pass) < 0)
        rc = -ENOMEM;
    if (!rc && asprintf(&out->to, "%s/%" PRIx64 ".%ld.%zu", images.folder, hash, at, p->pass + 1) < 0)
        rc = -ENOMEM;
    if (!rc && out->from && access(out->from, R_OK))
        rc = -errno;
    out->carry.from = out->from;
    out->carry.to = out->to;
    if (rc)
        kp_runs_carried(out, false);
    return rc;
}

void kp_runs_carried(struct kp_carried *carried, bool counted)
{
    if (counted && carried->from)
        unlink(carried->from);
    free(carried->from);
    free(carried->to);
    *carried = (struct kp_carried){.from = NULL};
}
