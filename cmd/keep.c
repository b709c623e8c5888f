#include "cmd/keep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/room.h"
#include "base/text.h"
#include "cmd/console.h"
#include "report/define/units.h"
#include "report/store/store.h"
#include "report/view/chooser.h"

struct kept {
    struct kp_store *from, *to;
    struct kp_chooser *chooser;
    uint64_t *codes; /* ids of the functions that were written */
    size_t n_codes;
    uint64_t stored, launches; /* of the session; kept */
    char **err;
};

static int keep_stack(struct kept *k, uint64_t id)
{
    struct kp_stack stack = {0};
    int rc = id ? kp_store_get_stack(k->from, id, &stack, k->err) : -ENOENT;
    if (!rc)
        rc = kp_store_put_stack(k->to, &stack, k->err);
    kp_frames_free(&stack);
    return rc == -ENOENT ? 0 : rc;
}

static bool has_code(const struct kept *k, uint64_t id)
{
    for (size_t i = 0; i < k->n_codes; i++)
        if (k->codes[i] == id)
            return true;
    return false;
}

static int keep_code(struct kept *k, uint64_t id)
{
    struct kp_code code = {0};
    if (has_code(k, id))
        return 0;
    if (!KP_ROOM(k->codes, k->n_codes))
        return -ENOMEM;
    k->codes[k->n_codes++] = id;
    int rc = kp_store_get_code(k->from, id, &code, k->err);
    if (!rc)
        rc = kp_store_put_code(k->to, &code, k->err);
    kp_code_free(&code);
    return rc == -ENOENT ? 0 : rc;
}

static int keep_launch(struct kp_result *r, void *arg)
{
    struct kept *k = arg;
    int takes = k->chooser ? kp_chooser_takes(k->chooser, r) : 1;
    k->stored++;
    if (takes <= 0)
        return takes;
    k->launches++;
    int rc = keep_stack(k, r->launch.stack);
    for (size_t i = 0; !rc && i < r->n_counts; i++)
        rc = keep_code(k, r->counts[i].code);
    return rc ? rc : kp_store_put_result(k->to, r, k->err);
}

static int keep_timeline(struct kept *k)
{
    struct kp_timeline t = {0};
    int rc = kp_store_get_timeline(k->from, &t, k->err);
    for (size_t i = 0; !rc && i < t.n_names; i++)
        rc = kp_store_put_activity_name(k->to, (uint32_t)i, t.names[i], k->err);
    if (!rc)
        rc = kp_store_put_activities(k->to, t.at, t.n, k->err);
    kp_timeline_free(&t);
    return rc == -ENOENT ? 0 : rc;
}

/* Makes the account that of the launches kept. */
static int keep_facts(struct kept *k, struct kp_session *s)
{
    uint64_t left = k->stored - k->launches;
    s->launches_profiled = s->launches_profiled > left ? s->launches_profiled - left : 0;
    int rc = left ? kp_session_add_skip(s, (struct kp_why){.reason = KP_REASON_FILTERED}, left) : 0;
    return rc ? rc : kp_store_put_session(k->to, s, k->err);
}

static int keep_all(struct kept *k, struct kp_session *s)
{
    int rc = kp_store_begin(k->to, k->err);
    if (k->chooser)
        kp_chooser_begin(k->chooser);
    if (!rc)
        rc = kp_store_each_result(k->from, keep_launch, k, k->err);
    if (!rc && k->stored && !k->launches)
        rc = kp_error(k->err, "none of the %" PRIu64 " launches is chosen; no session was written", k->stored);
    if (!rc)
        rc = keep_timeline(k);
    if (!rc)
        rc = keep_facts(k, s);
    return rc ? rc : kp_store_commit(k->to, k->err);
}

/* Writes the file. An earlier one that is no session stays. */
static int keep_in(struct kept *k, struct kp_session *s, const char *path, bool force)
{
    if (force && !access(path, F_OK) && !kp_store_is_database(path))
        return kp_error(k->err, "%s is not a session and would be overwritten; name another file", path);
    int rc = kp_store_create(path, force, &k->to, k->err);
    if (rc)
        return rc;
    rc = keep_all(k, s);
    kp_store_close(k->to);
    if (rc)
        kp_store_remove(path);
    return rc;
}

static bool is_same_file(const char *read, const char *path)
{
    struct stat a, b;
    char *whole = kp_path_with_ending(read); /* the ending may have been left out */
    bool known = !stat(path, &b) && (!stat(read, &a) || (whole && !stat(whole, &a)));
    free(whole);
    return known && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void tell_kept(const struct kept *k, const char *path)
{
    char few[KP_NUMBER_MAX], all[KP_NUMBER_MAX];
    kp_format_count(k->launches, few);
    kp_format_count(k->stored, all);
    fprintf(stderr, "==KPROF== %s of %s launches are in %s\n", few, all, path);
}

int kp_keep(struct kp_store *from, const char *read, struct kp_chooser *chooser, const char *pattern, bool force)
{
    char *err = NULL, *path = NULL;
    struct kept k = {.from = from, .chooser = chooser, .err = &err};
    struct kp_session s = {0};
    int rc = kp_store_get_session(from, &s, &err);
    if (!rc)
        rc = kp_expand_path(pattern, s.pid, s.host, &path, &err);
    if (!rc && is_same_file(read, path))
        rc = kp_error(&err, "%s is the session that is read; name another file", path);
    if (!rc)
        rc = keep_in(&k, &s, path, force);
    if (rc)
        rc = kp_console_error(rc == -EINVAL || rc == -EEXIST ? KP_EXIT_USAGE : KP_EXIT_FAILED, "%s",
                              err ? err : strerror(-rc));
    else
        tell_kept(&k, path);
    kp_session_free(&s);
    free(k.codes);
    free(path);
    free(err);
    return rc;
}
