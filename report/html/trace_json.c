#include "report/html/trace_json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/plain.h"
#include "base/room.h"
#include "base/text.h"
#include "report/view/timeline_rows.h"

struct process {
    enum kp_activity_kind kind; /* KERNEL: a device */
    int device;
    unsigned pid;
};

/* A launch of the report, and the kernel that it is on the timeline. */
struct launch {
    int64_t ordinal, id;
};

struct trace {
    struct kp_json json;
    int64_t base;
    unsigned next_pid, next_tid;
    /* of the present session: */
    const struct kp_session *session;
    struct kp_timeline line;
    struct kp_timeline_rows rows;
    unsigned *tids; /* of the rows; 0: not named yet */
    struct process *processes;
    size_t n_processes;
    struct launch *launches; /* by ordinal */
    size_t n_launches;
};

/* ---- times ---- */

/* Writes microseconds. Perfetto's parser multiplies by 1000 and cuts: if that would lose a nanosecond, a little less
 * than half of one is added. */
static void write_us(struct kp_json *j, const char *key, int64_t ns)
{
    static const char *const ends[] = {"", "00001", "0001", "001", "01", "1", "4"};
    char text[64];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(text, sizeof text, "%" PRId64 ".%03d%s", ns / 1000, (int)(ns % 1000), ends[i]);
        if ((int64_t)(strtod(text, NULL) * 1000.0) == ns)
            break;
    }
    kp_json_number(j, key, text);
}

/* ---- processes and threads ---- */

static void write_metadata(struct trace *t, const char *what, unsigned pid, unsigned tid, const char *name)
{
    struct kp_json *j = &t->json;
    kp_json_object(j, NULL, true);
    kp_json_text(j, "ph", "M");
    kp_json_text(j, "name", what);
    kp_json_count(j, "pid", pid);
    if (tid)
        kp_json_count(j, "tid", tid);
    kp_json_object(j, "args", true);
    kp_json_text(j, "name", name);
    kp_json_end(j);
    kp_json_end(j);
}

static const char *device_name(const struct trace *t, int device)
{
    for (size_t i = 0; i < t->session->n_devices; i++)
        if (t->session->devices[i].ordinal == device)
            return t->session->devices[i].name;
    return "";
}

static char *process_name(const struct trace *t, enum kp_activity_kind kind, int device)
{
    const char *exe = kp_base_name(kp_or_empty(t->session->exe)), *name = device_name(t, device);
    uint64_t pid = t->session->pid;
    if (kind == KP_ACTIVITY_KPROF)
        return kp_asprintf("kprof in %s, process %" PRIu64, exe, pid);
    if (kind == KP_ACTIVITY_RANGE)
        return kp_asprintf("NVTX of %s, process %" PRIu64, exe, pid);
    return kp_asprintf("Device %d%s%s of %s, process %" PRIu64, device, *name ? " " : "", name, exe, pid);
}

/* Returns the number of a process; names a new one. */
static int process_of(struct trace *t, enum kp_activity_kind kind, int device, unsigned *pid)
{
    size_t i = 0;
    while (i < t->n_processes && (t->processes[i].kind != kind || t->processes[i].device != device))
        i++;
    if (i == t->n_processes) {
        char *name = KP_ROOM(t->processes, t->n_processes) ? process_name(t, kind, device) : NULL;
        if (!name)
            return -ENOMEM;
        t->processes[t->n_processes++] = (struct process){kind, device, t->next_pid++};
        write_metadata(t, "process_name", t->processes[i].pid, 0, name);
        free(name);
    }
    *pid = t->processes[i].pid;
    return 0;
}

static void name_row(struct trace *t, const struct kp_timeline_row *r, unsigned pid, unsigned tid)
{
    char name[96], lane[24] = "";
    if (r->lane)
        snprintf(lane, sizeof lane, " (%u)", r->lane + 1);
    if (r->kind == KP_ACTIVITY_KPROF)
        snprintf(name, sizeof name, "held the program up%s", lane);
    else if (r->kind == KP_ACTIVITY_RANGE)
        snprintf(name, sizeof name, "Thread %" PRIu64 "%s", r->thread, lane);
    else
        snprintf(name, sizeof name, "Context %u, Stream %u%s", r->context_id, r->stream_id, lane);
    write_metadata(t, "thread_name", pid, tid, name);
}

/* Finds the process and the thread of the i-th activity. */
static int place_of(struct trace *t, size_t i, unsigned *pid, unsigned *tid)
{
    size_t row = t->rows.of[i];
    const struct kp_timeline_row *r = &t->rows.at[row];
    int rc = process_of(t, r->kind, r->device, pid);
    if (!rc && !t->tids[row]) {
        t->tids[row] = t->next_tid++;
        name_row(t, r, *pid, t->tids[row]);
    }
    *tid = t->tids[row];
    return rc;
}

/* ---- launches of the report ---- */

static int by_ordinal(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static const struct kp_activity *kernel_of(const struct trace *t, uint64_t ordinal)
{
    for (size_t i = 0; i < t->line.n; i++)
        if (t->line.at[i].kind == KP_ACTIVITY_KERNEL && t->line.at[i].ordinal == (int64_t)ordinal)
            return &t->line.at[i];
    return NULL;
}

static void write_counter_sample(struct trace *t, const char *name, unsigned pid, int64_t ns, double value)
{
    struct kp_json *j = &t->json;
    kp_json_object(j, NULL, true);
    kp_json_text(j, "ph", "C");
    kp_json_text(j, "name", name);
    kp_json_count(j, "pid", pid);
    write_us(j, "ts", ns);
    kp_json_object(j, "args", true);
    kp_json_real(j, "value", value);
    kp_json_end(j);
    kp_json_end(j);
}

/* Writes the samples from a replay of a launch at the times of the program's own execution. */
static int write_counters(struct trace *t, const struct kp_result *r)
{
    const struct kp_activity *a = r->n_series ? kernel_of(t, r->launch.ordinal) : NULL;
    unsigned pid = 0;
    int rc = a ? process_of(t, KP_ACTIVITY_KERNEL, a->device, &pid) : 0;
    for (size_t i = 0; !rc && a && i < r->n_series; i++) {
        const struct kp_series *s = &r->series[i];
        double at = s->start_ns, start = (double)(a->start_ns - t->base);
        for (size_t k = 0; k < s->n_values; k++, at += s->interval_ns)
            if (at >= 0 && at < 1e15)
                write_counter_sample(t, s->name, pid, (int64_t)(start + at), s->values[k]);
    }
    return rc;
}

static int note_launch(struct kp_result *r, void *arg)
{
    struct trace *t = arg;
    if (!KP_ROOM(t->launches, t->n_launches))
        return -ENOMEM;
    t->launches[t->n_launches++] = (struct launch){(int64_t)r->launch.ordinal, (int64_t)r->launch.id};
    return write_counters(t, r);
}

static int64_t launch_id(const struct trace *t, int64_t ordinal)
{
    const struct launch wanted = {.ordinal = ordinal};
    const struct launch *found =
        ordinal >= 0 && t->n_launches ? bsearch(&wanted, t->launches, t->n_launches, sizeof wanted, by_ordinal) : NULL;
    return found ? found->id : -1;
}

/* ---- events ---- */

static void write_size(struct kp_json *j, const char *key, const uint32_t size[3])
{
    char text[48];
    snprintf(text, sizeof text, "%u, %u, %u", size[0], size[1], size[2]);
    kp_json_text(j, key, text);
}

static void write_arguments(struct trace *t, const struct kp_activity *a)
{
    struct kp_json *j = &t->json;
    int64_t id = launch_id(t, a->ordinal);
    kp_json_object(j, "args", true);
    if (a->kind == KP_ACTIVITY_KERNEL) {
        write_size(j, "grid", a->grid);
        write_size(j, "block", a->block);
    }
    if (a->kind == KP_ACTIVITY_COPY || a->kind == KP_ACTIVITY_SET)
        kp_json_count(j, "bytes", a->bytes);
    if (a->device >= 0)
        kp_json_count(j, "correlation", a->correlation);
    if (a->graph)
        kp_json_count(j, "graph", a->graph);
    if (id >= 0)
        kp_json_int(j, "launch", id);
    if (a->launched_ns) {
        kp_json_count(j, "launching thread", a->thread);
        kp_json_int(j, "ns since the launch", a->start_ns - a->launched_ns);
    }
    kp_json_end(j);
}

static int write_event(struct trace *t, size_t i)
{
    const struct kp_activity *a = &t->line.at[i];
    struct kp_json *j = &t->json;
    unsigned pid = 0, tid = 0;
    int rc = place_of(t, i, &pid, &tid);
    if (rc)
        return rc;
    kp_json_object(j, NULL, true);
    kp_json_text(j, "ph", "X");
    kp_json_text(j, "name", a->kind == KP_ACTIVITY_KPROF ? "kprof" : kp_timeline_name(&t->line, a));
    kp_json_text(j, "cat", kp_timeline_activity_word(a->kind));
    kp_json_count(j, "pid", pid);
    kp_json_count(j, "tid", tid);
    write_us(j, "ts", a->start_ns - t->base);
    write_us(j, "dur", a->end_ns - a->start_ns);
    write_arguments(t, a);
    kp_json_end(j);
    return ferror(j->to) ? -EIO : 0;
}

/* ---- a session ---- */

static int prepare_trace(struct trace *t)
{
    int rc = kp_timeline_rows_of(&t->line, true, &t->rows);
    t->tids = rc ? NULL : calloc(t->rows.n ? t->rows.n : 1, sizeof *t->tids);
    return rc ? rc : t->tids ? 0 : -ENOMEM;
}

static void drop_session(struct trace *t)
{
    kp_timeline_free(&t->line);
    kp_timeline_rows_free(&t->rows);
    free(t->tids);
    free(t->processes);
    free(t->launches);
    *t = (struct trace){.json = t->json, .base = t->base, .next_pid = t->next_pid, .next_tid = t->next_tid};
}

static bool has_launches(const struct kp_timeline *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (line->at[i].ordinal >= 0)
            return true;
    return false;
}

static int write_session(struct trace *t, struct kp_store *s, char **err)
{
    struct kp_session session;
    int rc = kp_store_get_session(s, &session, err);
    if (rc)
        return rc;
    t->session = &session;
    rc = kp_store_get_timeline(s, &t->line, err);
    rc = rc == -ENOENT ? 0 : rc ? rc : prepare_trace(t);
    if (!rc && has_launches(&t->line))
        rc = kp_store_each_result(s, note_launch, t, err);
    if (t->n_launches)
        qsort(t->launches, t->n_launches, sizeof *t->launches, by_ordinal);
    for (size_t i = 0; !rc && i < t->line.n; i++)
        rc = write_event(t, i);
    drop_session(t);
    kp_session_free(&session);
    return rc;
}

/* Finds the first activity of all. */
static int find_base(struct kp_store *const *stores, size_t n, int64_t *base, uint64_t *found, char **err)
{
    int rc = 0;
    *base = INT64_MAX;
    *found = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        struct kp_timeline line;
        rc = kp_store_get_timeline(stores[i], &line, err);
        rc = rc == -ENOENT ? 0 : rc;
        *found += line.n;
        if (line.n && line.at[0].start_ns < *base)
            *base = line.at[0].start_ns;
        kp_timeline_free(&line);
    }
    if (!*found)
        *base = 0;
    return rc;
}

int kp_html_trace_print(struct kp_store *const *stores, size_t n, FILE *to, uint64_t *found, char **err)
{
    struct trace t = {.json = {.to = to}, .next_pid = 1, .next_tid = 1};
    char base[32];
    *err = NULL;
    int rc = find_base(stores, n, &t.base, found, err);
    if (rc)
        return rc;
    locale_t before = kp_plain_begin();
    snprintf(base, sizeof base, "%" PRId64, t.base);
    kp_json_object(&t.json, NULL, false);
    kp_json_text(&t.json, "displayTimeUnit", "ns");
    kp_json_object(&t.json, "otherData", true);
    kp_json_text(&t.json, "base_ns", base); /* text: a script's number has too few digits */
    kp_json_end(&t.json);
    kp_json_array(&t.json, "traceEvents", false);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_session(&t, stores[i], err);
    kp_json_end(&t.json);
    kp_json_end(&t.json);
    kp_plain_end(before);
    return rc ? rc : ferror(to) ? -EIO : 0;
}
