#include "cmd/together.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/room.h"
#include "base/text.h"
#include "cmd/joined_codes.h"
#include "collectors/code/sass.h"
#include "report/define/derive_source.h"
#include "report/model/launch_names.h"
#include "report/model/ranks.h"
#include "report/store/store.h"

/* The session of one rank. */
struct session {
    const struct kp_rank_file *file;
    struct kp_session facts;
    char *rank; /* its name */
    int device; /* the first that it launched on; -1 = none yet */
    bool has_devices, is_rotated;
};

/* An entry on one device of one rank. */
struct share {
    size_t session;
    int device;
    uint64_t launches;
    struct kp_mean duration; /* ns; counted 0 = not known */
};

/* A kernel and shape. */
struct entry {
    struct kp_result result;
    uint64_t hash; /* of what distinguishes it from others */
    struct share *shares;
    size_t n;
};

struct together {
    struct session *sessions;
    size_t n;
    struct entry *entries;
    size_t n_entries;
    size_t now;       /* the session being read */
    size_t next;      /* expected place of its next launch's entry: ranks launch in the same order */
    const char *chip; /* of all entries; NULL = there is none yet */
    size_t chip_of;   /* the session that it is from */
    struct kp_store *to;
    uint64_t stacks; /* written so far */
    struct kp_joined_codes codes;
    char **err;
};

/* ---- what cannot be put together ---- */

static bool is_other(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") != 0;
}

static bool is_the_same(const struct kp_session *a, const struct kp_session *b)
{
    return a->pid == b->pid && a->start_unix_ns == b->start_unix_ns && !is_other(a->host, b->host);
}

static bool is_of_others(const struct kp_session *a, const struct kp_session *b)
{
    return is_other(a->set, b->set) || is_other(a->sections, b->sections) || is_other(a->metrics, b->metrics) ||
           is_other(a->section_folder, b->section_folder);
}

static const struct reason {
    bool (*holds)(const struct kp_session *a, const struct kp_session *b);
    const char *text;
} reasons[] = {
    {is_the_same, "both are the same session"},
    {is_of_others, "other sets, sections or metrics were collected"},
};

/* Compares a session with those before it. */
static int check_session(const struct together *t, size_t at)
{
    const struct session *s = t->sessions;
    for (size_t i = 0; i < at; i++)
        for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
            if (reasons[k].holds(&s[i].facts, &s[at].facts))
                return kp_error(t->err, "%s and %s cannot be merged: %s", s[i].file->path, s[at].file->path,
                                reasons[k].text);
    return 0;
}

static int check_chip(struct together *t, const struct kp_launch_info *l)
{
    const struct session *s = t->sessions;
    if (t->chip && is_other(t->chip, l->chip))
        return kp_error(t->err, "%s and %s cannot be merged: they have counters of different chips, %s and %s",
                        s[t->chip_of].file->path, s[t->now].file->path, t->chip, l->chip ? l->chip : "");
    return 0;
}

/* ---- entries ---- */

/* With kernel, grid and block, what distinguishes shapes if the session has it. */
static const char *const shape_metrics[] = {
    "launch__shared_mem_per_block_dynamic",
    "launch__cluster_dim_x",
    "launch__cluster_dim_y",
    "launch__cluster_dim_z",
};

static uint64_t hash_of(const struct kp_result *r)
{
    const struct kp_launch_info *l = &r->launch;
    const char *name = l->mangled ? l->mangled : "";
    uint64_t hash = kp_hash(name, strlen(name), (uint64_t)l->kind);
    hash = kp_hash(kp_launch_kind(l), strlen(kp_launch_kind(l)), hash);
    hash = kp_hash(l->grid, sizeof l->grid, hash);
    hash = kp_hash(l->block, sizeof l->block, hash);
    for (size_t i = 0; i < sizeof shape_metrics / sizeof *shape_metrics; i++) {
        double value = 0;
        kp_metric_number(kp_result_find(r, shape_metrics[i]), &value);
        hash = kp_hash(&value, sizeof value, hash);
    }
    return hash;
}

static bool is_same_shape(const struct kp_result *a, const struct kp_result *b)
{
    bool same = a->launch.kind == b->launch.kind && !is_other(a->launch.mangled, b->launch.mangled) &&
                !strcmp(kp_launch_kind(&a->launch), kp_launch_kind(&b->launch)) &&
                !memcmp(a->launch.grid, b->launch.grid, sizeof a->launch.grid) &&
                !memcmp(a->launch.block, b->launch.block, sizeof a->launch.block);
    for (size_t i = 0; same && i < sizeof shape_metrics / sizeof *shape_metrics; i++) {
        double x = 0, y = 0;
        kp_metric_number(kp_result_find(a, shape_metrics[i]), &x);
        kp_metric_number(kp_result_find(b, shape_metrics[i]), &y);
        same = x == y;
    }
    return same;
}

/* Returns true if the entry has launches of this device of the session: each has its kernels and shapes once in a
 * context. */
static bool has_share(const struct entry *e, size_t session, int device)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->shares[i].session == session && e->shares[i].device == device)
            return true;
    return false;
}

/* Finds the entry that a launch of the present session belongs to; NULL: there is none. */
static struct entry *find(struct together *t, const struct kp_result *r, uint64_t hash)
{
    for (size_t i = 0; i < t->n_entries; i++) {
        size_t at = (t->next + i) % t->n_entries;
        struct entry *e = &t->entries[at];
        if (e->n && e->hash == hash && is_same_shape(&e->result, r) && !has_share(e, t->now, r->launch.device)) {
            t->next = at + 1;
            return e;
        }
    }
    return NULL;
}

/* Writes the call stack of a launch under a number of its own. */
static int take_stack(struct together *t, struct kp_launch_info *l)
{
    struct kp_stack s = {0};
    int rc = l->stack ? kp_store_get_stack(t->sessions[t->now].file->store, l->stack, &s, t->err) : -ENOENT;
    l->stack = 0;
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    s.id = t->stacks + 1;
    rc = kp_store_put_stack(t->to, &s, t->err);
    if (!rc)
        l->stack = ++t->stacks;
    kp_frames_free(&s);
    return rc;
}

static int append(struct together *t, struct kp_result *r, uint64_t hash, struct entry **out)
{
    if (!KP_ROOM(t->entries, t->n_entries))
        return -ENOMEM;
    int rc = take_stack(t, &r->launch);
    if (rc)
        return rc;
    *out = &t->entries[t->n_entries];
    **out = (struct entry){.result = *r, .hash = hash};
    *r = (struct kp_result){.launch.id = r->launch.id}; /* the store continues after it */
    (*out)->result.launch.id = t->n_entries++;
    return 0;
}

static int add_share(struct together *t, struct entry *e, const struct share *s)
{
    if (!KP_ROOM(e->shares, e->n))
        return -ENOMEM;
    e->shares[e->n++] = *s;
    struct session *of = &t->sessions[s->session];
    of->has_devices |= of->device >= 0 && of->device != s->device;
    of->device = s->device;
    of->is_rotated = true;
    return 0;
}

static int take_launch(struct kp_result *r, void *arg)
{
    struct together *t = arg;
    struct share s = {.session = t->now, .device = r->launch.device, .launches = r->launch.alike};
    struct entry *e = NULL;
    int rc = kp_joined_codes_name(&t->codes, t->sessions[t->now].file->store, r, t->err);
    if (rc)
        return rc;
    if (!r->launch.groups) /* the session has it for another reason, and so has what is printed */
        return append(t, r, 0, &e);
    rc = check_chip(t, &r->launch);
    if (rc)
        return rc;
    const struct kp_metric *ns = kp_result_find(r, "gpu__time_duration.sum");
    if (ns && ns->kind == KP_VALUE_REAL && ns->counted)
        s.duration = (struct kp_mean){ns->counted, ns->real, ns->deviation};
    uint64_t hash = hash_of(r);
    e = find(t, r, hash);
    rc = e ? kp_ranks_add(&e->result, r) : append(t, r, hash, &e);
    if (!rc && !t->chip) {
        t->chip = e->result.launch.chip;
        t->chip_of = t->now;
    }
    return rc ? rc : add_share(t, e, &s);
}

static int read_session(struct together *t, size_t at)
{
    struct session *s = &t->sessions[at];
    t->now = at;
    t->next = 0;
    int rc = kp_store_each_result(s->file->store, take_launch, t, t->err);
    if (!rc && !s->is_rotated)
        rc = kp_error(t->err,
                      "%s cannot be merged with others: rotation (--replay-mode rotate) counted none of its launches",
                      s->file->path);
    return rc;
}

/* ---- names of ranks ---- */

/* Names a session after its rank, a number: text from a file may be anything. NULL without one. */
static char *rank_name(const struct kp_session *s)
{
    size_t len, digits = 0;
    const char *rank = kp_environment_rank(s->environment ? s->environment : "", &len);
    while (rank && digits < len && isdigit((unsigned char)rank[digits]))
        digits++;
    return rank && digits == len ? strndup(rank, len) : NULL;
}

static bool have_names(const struct together *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (!t->sessions[i].rank)
            return false;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(t->sessions[i].rank, t->sessions[k].rank))
                return false;
    }
    return true;
}

/* Names all sessions, after their files if their ranks are not distinct. */
static int name_sessions(struct together *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->sessions[i].rank = rank_name(&t->sessions[i].facts);
    if (have_names(t))
        return 0;
    for (size_t i = 0; i < t->n; i++) {
        const char *path = t->sessions[i].file->path;
        free(t->sessions[i].rank);
        if (!(t->sessions[i].rank = strdup(path)))
            return -ENOMEM;
        kp_blank_controls(t->sessions[i].rank, strlen(path));
    }
    return 0;
}

static char *share_name(const struct together *t, const struct share *s)
{
    const struct session *of = &t->sessions[s->session];
    if (!of->has_devices)
        return strdup(of->rank);
    return kp_asprintf("%s GPU %d", of->rank, s->device);
}

/* Sets the times by rank. */
static int set_ranks(const struct together *t, struct entry *e)
{
    struct kp_rank *at = calloc(e->n + 1, sizeof *at);
    int rc = at ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < e->n; i++) {
        at[i] = (struct kp_rank){share_name(t, &e->shares[i]), e->shares[i].launches, e->shares[i].duration};
        rc = at[i].name ? 0 : -ENOMEM;
    }
    if (!rc && e->n)
        rc = kp_ranks_set(&e->result, at, e->n);
    for (size_t i = 0; at && i < e->n; i++)
        free((char *)at[i].name);
    free(at);
    return rc;
}

/* ---- facts of the run ---- */

/* Moves the devices of numbers that `s` lacks. */
static int add_devices(struct kp_session *s, struct kp_session *from)
{
    for (size_t i = 0; i < from->n_devices; i++) {
        size_t k = 0;
        while (k < s->n_devices && s->devices[k].ordinal != from->devices[i].ordinal)
            k++;
        if (k < s->n_devices)
            continue;
        if (!KP_ROOM(s->devices, s->n_devices))
            return -ENOMEM;
        s->devices[s->n_devices++] = from->devices[i];
        from->devices[i] = (struct kp_device_info){.ordinal = from->devices[i].ordinal};
    }
    return 0;
}

static int add_facts(struct kp_session *s, struct kp_session *from)
{
    int rc = add_devices(s, from);
    for (size_t i = 0; !rc && i < from->n_skips; i++)
        rc = kp_session_add_skip(s, from->skips[i].why, from->skips[i].count);
    for (size_t i = 0; !rc && i < from->n_kernels; i++)
        rc = kp_session_add_kernel(s, from->kernels[i].name, from->kernels[i].count);
    for (size_t i = 0; !rc && i < from->n_ranges; i++)
        rc = kp_session_add_range(s, from->ranges[i].name, from->ranges[i].count);
    for (size_t i = 0; !rc && i < from->n_lacking; i++)
        rc = kp_session_add_lacking(s, from->lacking[i].name, from->lacking[i].count);
    s->launches_seen += from->launches_seen;
    s->launches_profiled += from->launches_profiled;
    s->passes += from->passes;
    s->profiling_ns += from->profiling_ns;
    s->complete &= from->complete;
    if (from->start_unix_ns < s->start_unix_ns)
        s->start_unix_ns = from->start_unix_ns;
    if (from->end_unix_ns > s->end_unix_ns)
        s->end_unix_ns = from->end_unix_ns;
    return rc;
}

/* Makes the first session's facts those of all. */
static int add_all_facts(struct together *t)
{
    struct kp_session *s = &t->sessions[0].facts;
    int rc = 0;
    for (size_t i = 1; !rc && i < t->n; i++)
        rc = add_facts(s, &t->sessions[i].facts);
    s->timeline = false; /* each process has its own */
    s->timeline_dropped = 0;
    free(s->replay);
    s->replay = kp_asprintf("rotation, %zu rank%s merged", t->n, t->n == 1 ? "" : "s");
    return rc ? rc : s->replay ? 0 : -ENOMEM;
}

/* ---- all of it ---- */

/* Recomputes what follows from the samples of all ranks. */
static int derive_source(struct together *t, struct kp_result *r)
{
    struct kp_lookup code = kp_store_lookup(t->to);
    return r->n_counts ? kp_derive_source(r, &code, kp_disassembly_category) : 0;
}

static int write_entries(struct together *t)
{
    int rc = name_sessions(t);
    if (!rc)
        rc = kp_joined_codes_put(&t->codes, t->to, t->err);
    for (size_t i = 0; !rc && i < t->n_entries; i++) {
        rc = set_ranks(t, &t->entries[i]);
        if (!rc)
            rc = derive_source(t, &t->entries[i].result);
        if (!rc)
            rc = kp_store_put_result(t->to, &t->entries[i].result, t->err);
    }
    if (!rc)
        rc = add_all_facts(t);
    return rc ? rc : kp_store_put_session(t->to, &t->sessions[0].facts, t->err);
}

static int read_all(struct together *t, const struct kp_rank_file *files)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n; i++) {
        t->sessions[i].file = &files[i];
        t->sessions[i].device = -1;
        rc = kp_store_get_session(files[i].store, &t->sessions[i].facts, t->err);
        if (!rc)
            rc = check_session(t, i);
        if (!rc)
            rc = read_session(t, i);
    }
    return rc;
}

static void free_together(struct together *t)
{
    for (size_t i = 0; t->sessions && i < t->n; i++) {
        kp_session_free(&t->sessions[i].facts);
        free(t->sessions[i].rank);
    }
    for (size_t i = 0; i < t->n_entries; i++) {
        kp_result_free(&t->entries[i].result);
        free(t->entries[i].shares);
    }
    free(t->sessions);
    free(t->entries);
    kp_joined_codes_free(&t->codes);
    kp_store_close(t->to);
}

int kp_put_together(const struct kp_rank_file *files, size_t n, const char *to, char **err)
{
    struct together t = {.sessions = calloc(n, sizeof *t.sessions), .n = n, .err = err};
    *err = NULL;
    int rc = t.sessions ? kp_store_create(to, false, &t.to, err) : -ENOMEM;
    if (!rc)
        rc = kp_store_begin(t.to, err);
    if (!rc)
        rc = read_all(&t, files);
    if (!rc)
        rc = write_entries(&t);
    if (!rc)
        rc = kp_store_commit(t.to, err);
    free_together(&t);
    return rc;
}

/* Ends the reading at an entry of a rotation. */
static int find_rotated(struct kp_result *r, void *arg)
{
    (void)arg;
    return r->launch.groups > 0;
}

static bool is_rotated(struct kp_store *s, char **err)
{
    static const char *const none[] = {NULL};
    return kp_store_each_result_with(s, none, find_rotated, NULL, err) > 0;
}

bool kp_are_rotated_ranks(const struct kp_rank_file *files, size_t n)
{
    char *err = NULL;
    struct together t = {.sessions = calloc(n, sizeof *t.sessions), .n = n, .err = &err};
    bool are = t.sessions;
    for (size_t i = 0; are && i < n; i++) {
        struct session *s = &t.sessions[i];
        s->file = &files[i];
        are = !kp_store_get_session(files[i].store, &s->facts, &err) && !check_session(&t, i) &&
              (s->rank = rank_name(&s->facts)) && is_rotated(files[i].store, &err);
    }
    are = are && have_names(&t);
    free_together(&t);
    free(err);
    return are;
}
