#include "preload/session/session.h"

#include <errno.h>
#include <limits.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/room.h"
#include "base/text.h"
#include "base/version.h"
#include "base/wait_limits.h"
#include "collectors/providers/library.h"
#include "preload/gate/fast_path.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/quiet.h"
#include "preload/who/stack.h"
#include "preload/who/timeline.h"
#include "report/model/nvtx_expr.h"
#include "report/pages/page.h"
#include "report/store/store.h"

/* A result that the store refused, kept for the report. */
struct kept {
    struct kp_result result;
    bool replaces; /* it replaces the result of its number in the store */
    struct kept *next;
};

/* Two locks, so that counting a launch does not wait while a window is stored. */
static struct kp_lock *const storing = &kp_locks[KP_LOCK_STORING];
static struct kp_lock *const lock = &kp_locks[KP_LOCK_SESSION];
static struct {
    struct kp_store *store; /* this and the following under `storing` */
    struct kp_codes *codes;
    uint64_t codes_prepared, codes_put; /* codes that have their texts, codes already in the store */
    uint32_t names_put;                 /* the same for names of the timeline */
    bool lost_timeline;                 /* the store has refused it */
    char *file;                         /* of the store */
    char *own_folder;                   /* the file's folder, when nobody asked for the file; malloc'ed */
    char *folder;                       /* working folder of the process, when the session was opened */
    bool begun;                         /* the log has been opened */
    bool stores;                        /* the store has, or could not be */
    const struct kp_options *options;
    bool temporary; /* nobody asked for the file: removed at the end */
    struct kept *kept, **kept_end;
    bool store_failed;
    uint64_t next_id;
    atomic_bool open; /* changed under `storing` */

    struct kp_display display; /* set when the session is opened */
    char *trace_columns;       /* of the display */

    struct kp_session facts; /* this and the following under `lock` */
    uint64_t unexplained;    /* launches whose reason was lost because memory was short */
    char *warned[64];
    size_t n_warned;
} session;

static int64_t now_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- facts of the process ---- */

char *kp_session_executable(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return kp_strdup(path);
}

/* Quotes an argument for a shell. */
static void quote(FILE *to, const char *argument)
{
    if (*argument && strspn(argument, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
                         strlen(argument)) {
        fputs(argument, to);
        return;
    }
    fputc('\'', to);
    for (; *argument; argument++)
        fputs(*argument == '\'' ? "'\\''" : (char[]){*argument, '\0'}, to);
    fputc('\'', to);
}

static char *command_line(void)
{
    char *text = NULL, argument[4096];
    size_t size = 0, n = 0;
    int c;
    bool first = true;
    FILE *from = fopen("/proc/self/cmdline", "re"), *to = open_memstream(&text, &size);
    while (from && to && (c = fgetc(from)) != EOF) {
        if (c && n < sizeof(argument) - 1) {
            argument[n++] = (char)c;
            continue;
        }
        if (c)
            continue;
        argument[n] = '\0';
        fputs(first ? "" : " ", to);
        quote(to, argument);
        first = false;
        n = 0;
    }
    if (from)
        fclose(from);
    if (to)
        fclose(to);
    return text ? text : kp_strdup("");
}

static char *join_sections(const struct kp_section *const *sections, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s%s", i ? "," : "", sections[i]->id);
    fclose(to);
    return text;
}

static int note_facts(const struct kp_options *o, const struct kp_driver *d, const struct kp_section *const *sections,
                      size_t n_sections)
{
    static char *no_environment[] = {NULL}; /* after clearenv() */
    struct kp_session *s = &session.facts;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    s->pid = (uint64_t)getpid();
    s->exe = kp_session_executable();
    s->cmdline = command_line();
    s->host = kp_strdup(host);
    s->kprof_version = kp_strdup(KP_VERSION);
    s->start_unix_ns = now_unix_ns();
    d->cuDriverGetVersion(&s->driver_version);
    s->cupti_version = kp_strdup("");
    s->set = kp_strdup(o->set);
    s->sections = join_sections(sections, n_sections);
    s->metrics = kp_strdup(o->metrics);
    s->section_folder = kp_strdup(o->section_folder);
    s->cache_control = kp_strdup(kp_option_word(offsetof(struct kp_options, cache_control), o->cache_control));
    s->clock_control = kp_strdup(kp_option_word(offsetof(struct kp_options, clock_control), KP_CLOCKS_LEFT));
    s->environment = kp_environment_lines(environ ? environ : no_environment);
    return s->exe && s->cmdline && s->host && s->kprof_version && s->cupti_version && s->set && s->sections &&
                   s->metrics && s->section_folder && s->cache_control && s->clock_control && s->environment
               ? 0
               : -ENOMEM;
}

/* ---- the store ---- */

/* Makes a file of our own, in a folder that nobody else may enter. In a shared folder, others could plant a journal
 * next to it for SQLite to replay. */
static int own_file(char **path)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;
    base = base && *base ? base : "/tmp";
    bool is_relative = *base != '/' && session.folder;
    if (asprintf(&folder, "%s%s%s/kprof-%llu-XXXXXX", is_relative ? session.folder : "", is_relative ? "/" : "", base,
                 (unsigned long long)session.facts.pid) < 0)
        return -ENOMEM;
    if (!mkdtemp(folder)) {
        int rc = -errno;
        free(folder);
        return rc;
    }
    session.own_folder = folder;
    return asprintf(path, "%s/session.kprof", folder) < 0 ? -ENOMEM : 0;
}

static void remove_own_file(void)
{
    if (session.file)
        kp_store_remove(session.file);
    if (session.own_folder)
        rmdir(session.own_folder);
}

/* Chooses the session's file while the program runs: the export, else the file that the kprof command waits for,
 * else one of our own. *path is malloc'ed. */
static int choose_file(const struct kp_options *o, char **path, bool *ours, char **err)
{
    const char *pattern = *o->export_file ? o->export_file : o->session_file;
    *ours = !*pattern;
    if (*pattern)
        return kp_expand_path(pattern, session.facts.pid, session.facts.host, path, err);
    int rc = own_file(path);
    if (rc) {
        *path = NULL;
        if (rc != -ENOMEM)
            kp_error(err, "cannot make a folder for the session: %s; set TMPDIR", strerror(-rc));
    }
    return rc;
}

/* Makes a path absolute: the process may have changed its folder since. */
static int anchor(char **path)
{
    char now[PATH_MAX], *there;
    if (**path == '/' || !session.folder || (getcwd(now, sizeof(now)) && !strcmp(now, session.folder)))
        return 0;
    if (asprintf(&there, "%s/%s", session.folder, *path) < 0)
        return -ENOMEM;
    free(*path);
    *path = there;
    return 0;
}

/* Call under `lock`. */
static void add_skip(enum kp_reason reason, uint64_t launches)
{
    if (kp_session_add_skip(&session.facts, kp_why_of(reason, NULL), launches))
        session.unexplained += launches;
}

/* Adds launches that have passed. */
static void add_passed(enum kp_pass_why why, uint64_t launches)
{
    static const enum kp_reason reasons[KP_PASS_WHYS] = {
        [KP_PASS_PROFILER] = KP_REASON_PROFILER,  [KP_PASS_DURATION] = KP_REASON_DURATION,
        [KP_PASS_NAME] = KP_REASON_KERNEL_NAME,   [KP_PASS_ID] = KP_REASON_KERNEL_ID,
        [KP_PASS_COUNT] = KP_REASON_LAUNCH_COUNT, [KP_PASS_ROTATED] = KP_REASON_ROTATED,
        [KP_PASS_BUDGET] = KP_REASON_BUDGET,
    };
    session.facts.launches_seen += launches;
    add_skip(reasons[why], launches);
}

/* Counts launches that have passed. Call under `lock`. */
static void count_passed(void)
{
    kp_passing_take(add_passed);
}

/* Stores the counters of the run. Call under `lock`. */
static int put_counted(char **err)
{
    count_passed();
    return kp_store_put_session(session.store, &session.facts, err);
}

/* Does so while other threads count. Stores the launches too, so that they match if the session is cut short. */
static int put_facts(char **err)
{
    kp_lock_take(lock, KP_FOREVER);
    int rc = put_counted(err);
    kp_lock_give(lock);
    return rc;
}

/* `put` stores the facts, by the locks that are held. */
static int open_store(const struct kp_options *o, int (*put)(char **err), char **err)
{
    char *path = NULL;
    bool ours = false;
    int rc = choose_file(o, &path, &ours, err);
    if (!rc)
        rc = anchor(&path);
    if (!rc)
        rc = kp_store_create(path, o->force_overwrite, &session.store, err);
    if (!rc)
        rc = put(err);
    if (rc && !*o->export_file) {
        /* Without an export file, keeps the results in memory instead. */
        kp_log_warning("%s; results are lost if the program is killed", *err ? *err : "no session file");
        free(*err);
        *err = NULL;
        kp_store_close(session.store);
        session.store = NULL;
        rc = 0;
    }
    if (!rc && *o->export_file)
        kp_outcome_stored(path);
    session.temporary = ours && session.store;
    session.file = path;
    if (ours && !session.store)
        remove_own_file();
    return rc;
}

static int open_log(const struct kp_options *o, char **err)
{
    enum kp_log_target target = kp_options_log_target(o->log_file);
    char *path = NULL;
    if (target == KP_LOG_TO_STDERR) {
        kp_log_report_to_pipe(o->report_pipe);
        return 0;
    }
    int rc = kp_expand_path(o->log_file, session.facts.pid, session.facts.host, &path, err);
    if (!rc && target == KP_LOG_TO_FILE)
        rc = anchor(&path);
    if (!rc && target == KP_LOG_TO_FILE && kp_store_is_database(path))
        rc = kp_error(err, "KPROF_LOG_FILE: %s is a session, which would be lost; name another file", path);
    int unwritten = rc ? 0 : kp_log_to(path);
    if (unwritten == -EBADF && target == KP_LOG_TO_STDOUT)
        kp_log_warning("stdout is closed: these lines and the report go to stderr");
    else if (unwritten)
        rc = kp_error(err, "KPROF_LOG_FILE: cannot write %s: %s", path, strerror(-unwritten));
    free(path);
    return rc;
}

int kp_session_open(const struct kp_options *o, const struct kp_driver *d, const struct kp_section *const *sections,
                    size_t n_sections)
{
    session.options = o;
    session.folder = getcwd(NULL, 0);
    session.kept_end = &session.kept;
    session.display = kp_display_of(o);
    session.display.trace_columns = session.trace_columns = kp_strdup(o->trace_columns);
    if (session.display.format != KP_FORMAT_TEXT && o->face != KP_FACE_NCU)
        kp_log_apart(); /* programs read the log file */
    int rc = note_facts(o, d, sections, n_sections);
    atomic_store(&session.open, !rc);
    return rc;
}

static int lose(enum kp_failure kind, int rc)
{
    kp_outcome_failed(kind);
    atomic_store(&session.open, false);
    return rc;
}

/* Opens the log of an open session. Call under `storing`. */
static int begin_log(char **err)
{
    session.begun = true;
    session.facts.timeline = kp_timeline_has_begun();
    int rc = open_log(session.options, err);
    if (rc)
        return lose(KP_FAILURE_LOG, rc);
    if (session.options->face == KP_FACE_NCU && !session.options->quiet)
        kp_log_warning("Note: Running with unmodified GPU clocks; values may differ from run to run.");
    kp_log_profiler("Connected to process %llu (%s)", (unsigned long long)session.facts.pid, session.facts.exe);
    return 0;
}

/* Opens its file, which takes some ms. Call under `storing`. */
static int begin_store(int (*put)(char **err), char **err)
{
    session.stores = true;
    int rc = open_store(session.options, put, err);
    if (rc)
        return lose(KP_FAILURE_EXPORT, rc);
    if (session.temporary)
        kp_log_progress("Session file %s, removed at the end; after a kill: kprof report %s", session.file,
                        session.file);
    else if (session.store && !kp_outcome_is_awaited()) /* otherwise the command reports it */
        kp_log_progress("Session file %s; after a kill: kprof report %s", session.file, session.file);
    return 0;
}

/* `put`: see open_store; NULL opens only the log. */
static int begin(int (*put)(char **err), char **err)
{
    int rc = session.begun ? 0 : begin_log(err);
    return rc || !put || session.stores ? rc : begin_store(put, err);
}

int kp_session_begin(bool stores, char **err)
{
    int rc = 0;
    *err = NULL;
    kp_lock_take(storing, KP_FOREVER);
    if (atomic_load(&session.open)) {
        struct kp_quiet q = kp_quiet_begin();
        rc = begin(stores ? put_facts : NULL, err);
        kp_quiet_end(&q);
    }
    kp_lock_give(storing);
    return rc;
}

/* Returns true if another process has written to such a file since the session was opened. */
static bool is_others(const char *pattern)
{
    struct stat st;
    char *path = NULL, *err = NULL;
    int64_t written = 0;
    if (*pattern && kp_options_log_target(pattern) == KP_LOG_TO_FILE &&
        !kp_expand_path(pattern, session.facts.pid, session.facts.host, &path, &err) && !anchor(&path) &&
        !stat(path, &st) && S_ISREG(st.st_mode) && kp_log_own_output(&st) < 0)
        written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    free(path);
    free(err);
    return written > session.facts.start_unix_ns;
}

/* Opens what is not open at the session's end because no launch was wanted. Returns false if it stays silent, because
 * there was no launch at all and a child, which made the launches, has the files; or if they cannot be opened. */
static bool begin_late(void)
{
    const struct kp_options *o = session.options;
    char *err = NULL;
    bool taken = !session.stores && is_others(o->export_file);
    if (!session.begun && (taken || is_others(o->log_file)))
        return false;
    bool asked = *o->export_file || *o->session_file; /* a file of our own would be of no use any more */
    if (begin(asked && !taken ? put_counted : NULL, &err)) {
        kp_log_error("%s", err ? err : "out of memory");
        free(err);
        return false;
    }
    return true;
}

/* ---- results ---- */

static void keep(struct kp_result *r, bool replaces)
{
    struct kept *k = calloc(1, sizeof(*k));
    if (!k) {
        kp_log_error("out of memory: the result of launch %llu is lost", (unsigned long long)r->launch.id);
        kp_outcome_failed(KP_FAILURE_MEMORY);
        kp_result_free(r);
        return;
    }
    k->result = *r;
    k->replaces = replaces;
    *r = (struct kp_result){.n_metrics = 0};
    *session.kept_end = k;
    session.kept_end = &k->next;
}

static void count(const struct kp_session_entry *entries, size_t n)
{
    struct kp_session *s = &session.facts;
    kp_lock_take(lock, KP_FOREVER);
    for (size_t i = 0; i < n; i++) {
        const struct kp_launch_info *l = &entries[i].result->launch;
        if (entries[i].profiled && l->note && !l->groups && !entries[i].goes_on)
            kp_outcome_failed(KP_FAILURE_IN_PART);
        uint64_t launches = l->launches ? l->launches : l->counted ? l->counted : 1;
        if (entries[i].profiled)
            s->launches_profiled += launches;
        else
            add_skip(KP_REASON_NO_COUNTERS, launches);
        s->profiling_ns += l->profiler_ns;
        s->rotated |= l->groups;
    }
    if (n) /* the launches of a window share its passes: count them once */
        s->passes += entries[0].result->launch.passes;
    kp_lock_give(lock);
}

/* The first of several runs of the program counts nothing. */
static bool is_first_run(void)
{
    return session.options->replay_run == 1;
}

/* Adds the line as ncu 2025.3.1 prints it: none with CSV; the name with its parameters where that fits, else without,
 * cut; "(i/n)" of a given number of launches. */
static void add_line_as_ncu(struct kp_log_lines *lines, const char *base, const struct kp_launch_info *l)
{
    enum { NAME_MAX_NCU = 32 };
    unsigned long long id = l->id, most = session.options->launch_count;
    const char *name = l->demangled && strlen(l->demangled) <= NAME_MAX_NCU ? l->demangled : base;
    bool cut = strlen(name) > NAME_MAX_NCU;
    char of[48] = "";
    if (session.display.format == KP_FORMAT_CSV)
        return;
    if (most)
        snprintf(of, sizeof of, " (%llu/%llu)", id + 1, most);
    kp_log_lines_add(lines, "Profiling \"%.*s%s\" - %llu%s: 0%%....50%%....100%% - %u pass%s",
                     cut ? NAME_MAX_NCU - 3 : NAME_MAX_NCU, name, cut ? "..." : "", id, of, l->passes,
                     l->passes == 1 ? "" : "es");
}

static void add_line(struct kp_log_lines *lines, const char *base, const struct kp_launch_info *l)
{
    if (is_first_run())
        kp_log_lines_add(lines, "Profiling \"%s\" - %llu: the first run is without counters", base,
                         (unsigned long long)l->id);
    else if (session.options->face == KP_FACE_NCU)
        add_line_as_ncu(lines, base, l);
    else
        kp_log_lines_add(lines, "Profiling \"%s\" - %llu: %u pass%s, %.1f ms", base, (unsigned long long)l->id,
                         l->passes, l->passes == 1 ? "" : "es", l->profiler_ns / 1e6);
}

static void number(struct kp_session_entry *entries, size_t n)
{
    struct kp_log_lines lines = {.to = NULL};
    for (size_t i = 0; i < n; i++) {
        struct kp_launch_info *l = &entries[i].result->launch;
        l->id = entries[i].id = session.next_id++;
        add_line(&lines, entries[i].base, l);
    }
    kp_log_lines_write(&lines);
    if (n)
        kp_progress_told();
}

void kp_session_codes(struct kp_codes *codes)
{
    kp_lock_take(storing, KP_FOREVER);
    session.codes = codes;
    kp_lock_give(storing);
}

/* Returns the number of functions so far, which all have their texts now. Call under `storing`. */
static uint64_t prepare_codes(void)
{
    uint64_t n = session.codes && session.options->import_sass ? kp_codes_count(session.codes) : 0;
    if (n > session.codes_prepared)
        kp_codes_prepare(session.codes, session.codes_prepared + 1, n + 1);
    session.codes_prepared = n;
    return n;
}

void kp_session_prepare_codes(void)
{
    kp_lock_take(storing, KP_FOREVER);
    struct kp_quiet q = kp_quiet_begin();
    prepare_codes();
    kp_quiet_end(&q);
    kp_lock_give(storing);
}

/* Stores functions that are new since the last results. Leaves out those that cannot be stored. */
static int put_codes(char **err)
{
    uint64_t n = prepare_codes();
    int rc = 0;
    while (!rc && session.codes_put < n) {
        const struct kp_code *code = kp_codes_get(session.codes, session.codes_put + 1);
        rc = code ? kp_store_put_code(session.store, code, err) : 0;
        if (rc == -EINVAL) {
            free(*err);
            *err = NULL;
            rc = 0;
        }
        session.codes_put += !rc;
    }
    return rc;
}

/* Stores a stack; `err` is as in the store's functions. */
static int put_stack(const struct kp_stack *s, void *err)
{
    return kp_store_put_stack(session.store, s, err);
}

static int store_all(const struct kp_session_entry *entries, size_t n, char **err)
{
    int rc = kp_store_begin(session.store, err);
    if (!rc)
        rc = put_codes(err);
    if (!rc)
        rc = kp_stack_each_new(put_stack, err);
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_store_put_result(session.store, entries[i].result, err);
    if (!rc)
        rc = put_facts(err);
    return rc ? rc : kp_store_commit(session.store, err);
}

/* Handles a failed write. If nobody asked for the file, the report still has everything. */
static void failed_to_store(void)
{
    if (*session.options->export_file)
        kp_outcome_failed(KP_FAILURE_EXPORT);
}

/* Handles the outcome of a write. Returns true if it was made. */
static bool judge_write(int rc, char *err)
{
    if (!rc)
        return true;
    session.store_failed = true;
    failed_to_store();
    kp_log_error("%s; results from here on are in the report only", err ? err : "the session file failed");
    free(err);
    return false;
}

static bool stored(const struct kp_session_entry *entries, size_t n)
{
    char *err = NULL;
    if (!session.store || session.store_failed)
        return false;
    int rc = store_all(entries, n, &err);
    return judge_write(rc, err);
}

void kp_session_results(struct kp_session_entry *entries, size_t n)
{
    kp_lock_take(storing, KP_FOREVER);
    struct kp_quiet q = kp_quiet_begin();
    bool taken = !atomic_load(&session.open);
    if (!taken) {
        count(entries, n);
        number(entries, n);
        taken = stored(entries, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (taken)
            kp_result_free(entries[i].result);
        else
            keep(entries[i].result, false);
    }
    kp_quiet_end(&q);
    kp_lock_give(storing);
}

static void count_more(const struct kp_launch_info *l, struct kp_session_told *told)
{
    kp_lock_take(lock, KP_FOREVER);
    session.facts.launches_profiled += l->counted - told->counted;
    session.facts.passes += l->passes - told->passes;
    session.facts.profiling_ns += l->profiler_ns - told->profiler_ns;
    session.facts.rotated |= l->groups;
    kp_lock_give(lock);
    *told = (struct kp_session_told){l->counted, l->passes, l->profiler_ns};
}

static int replace_stored(const struct kp_result *r, char **err)
{
    int rc = kp_store_begin(session.store, err);
    rc = rc ? rc : kp_store_replace_result(session.store, r, err);
    rc = rc ? rc : put_facts(err);
    return rc ? rc : kp_store_commit(session.store, err);
}

static struct kept *find_kept(uint64_t id)
{
    struct kept *k = session.kept;
    while (k && k->result.launch.id != id)
        k = k->next;
    return k;
}

/* Replaces a kept result by this one. If none is kept, the store has it. */
static void replace_kept(struct kp_result *r)
{
    struct kept *k = find_kept(r->launch.id);
    if (!k) {
        keep(r, true);
        return;
    }
    kp_result_free(&k->result);
    k->result = *r;
    *r = (struct kp_result){.n_metrics = 0};
}

void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told)
{
    char *err = NULL;
    kp_lock_take(storing, KP_FOREVER);
    struct kp_quiet q = kp_quiet_begin();
    if (atomic_load(&session.open)) {
        struct kp_log_lines lines = {.to = NULL};
        count_more(&result->launch, told);
        add_line(&lines, base, &result->launch);
        kp_log_lines_write(&lines);
        bool writes = session.store && !session.store_failed;
        int rc = writes ? replace_stored(result, &err) : 0;
        if (!writes || !judge_write(rc, err))
            replace_kept(result);
    }
    kp_result_free(result);
    kp_quiet_end(&q);
    kp_lock_give(storing);
}

void kp_session_alike(const struct kp_launch_info *l)
{
    char *err = NULL;
    kp_lock_take(storing, KP_FOREVER);
    struct kp_quiet q = kp_quiet_begin();
    struct kept *k = atomic_load(&session.open) ? find_kept(l->id) : NULL;
    struct kp_launch_info *kept = k ? &k->result.launch : NULL;
    if (kept) {
        kept->alike = l->alike;
        kept->recorded = l->recorded;
        kept->recorded_ns = l->recorded_ns;
    } else if (atomic_load(&session.open) && session.store && !session.store_failed &&
               kp_store_put_alike(session.store, l, &err)) {
        kp_log_error("%s", err ? err : "the session file failed");
    }
    free(err);
    kp_quiet_end(&q);
    kp_lock_give(storing);
}

/* ---- the timeline ---- */

/* Stores new names; kernel names are demangled. */
static int put_names_until(uint32_t n, char **err)
{
    int rc = 0;
    while (!rc && session.names_put < n) {
        bool mangled;
        const char *text = kp_timeline_text(session.names_put, &mangled);
        char *demangled = mangled ? kp_demangle(text) : NULL;
        rc = kp_store_put_activity_name(session.store, session.names_put, demangled ? demangled : text, err);
        free(demangled);
        session.names_put += !rc;
    }
    return rc;
}

static int put_activities(char **err)
{
    struct kp_activity *at = NULL;
    uint32_t names = 0;
    size_t n = kp_timeline_take(&at, &names);
    int rc = n ? kp_store_begin(session.store, err) : 0;
    if (n && !rc)
        rc = put_names_until(names, err);
    if (n && !rc)
        rc = kp_store_put_activities(session.store, at, n, err);
    if (n && !rc)
        rc = kp_store_commit(session.store, err);
    free(at);
    return rc;
}

static void lose_timeline(char *err)
{
    session.lost_timeline = true;
    failed_to_store();
    kp_timeline_stop();
    kp_log_error("%s; the timeline ends here", err ? err : "the session file failed");
    free(err);
}

static bool takes_activities(void)
{
    return atomic_load(&session.open) && session.store && !session.store_failed && !session.lost_timeline &&
           kp_timeline_has_begun();
}

void kp_session_timeline(void)
{
    char *err = NULL;
    kp_lock_take(storing, KP_FOREVER);
    struct kp_quiet q = kp_quiet_begin();
    if (takes_activities() && put_activities(&err))
        lose_timeline(err);
    kp_quiet_end(&q);
    kp_lock_give(storing);
}

/* Without a complete list of records, their order does not identify the launches. */
static int link_launches(uint64_t dropped, char **err)
{
    size_t n = 0;
    struct kp_launch_note *notes = dropped ? NULL : kp_timeline_notes(&n);
    int rc = n ? kp_store_link_activities(session.store, notes, n, err) : 0;
    free(notes);
    return rc;
}

static void tell_dropped(uint64_t dropped)
{
    kp_outcome_failed(KP_FAILURE_IN_PART);
    kp_log_warning(
        "The timeline lacks %llu activities for which there was no room, and does not link kernels to launches "
        "of the report; record a shorter part of the program",
        (unsigned long long)dropped);
}

void kp_session_timeline_end(void)
{
    char *err = NULL;
    bool on = kp_timeline_is_on();
    uint64_t dropped = on ? kp_timeline_dropped() : 0;
    if (!kp_timeline_has_begun() || !kp_lock_take(storing, kp_limit_first(KP_WAIT_SESSION)))
        return;
    kp_timeline_stop(); /* later records are too late */
    struct kp_quiet q = kp_quiet_begin();
    if (takes_activities() && (put_activities(&err) || link_launches(dropped, &err)))
        lose_timeline(err);
    else if (session.stores && !session.store)
        kp_log_warning("There is no timeline: it needs a session file");
    session.facts.timeline = true;
    session.facts.timeline_dropped = dropped;
    kp_quiet_end(&q);
    kp_lock_give(storing);
    if (dropped)
        tell_dropped(dropped);
    if (kp_timeline_refused()) {
        kp_outcome_failed(KP_FAILURE_IN_PART);
        kp_log_warning("The timeline ends early: CUPTI did not resume recording after launches had been repeated");
    }
}

/* ---- counting ---- */

uint64_t kp_session_seen(uint64_t launches)
{
    kp_lock_take(lock, KP_FOREVER);
    uint64_t before = session.facts.launches_seen + kp_passing_ahead();
    session.facts.launches_seen += launches;
    kp_lock_give(lock);
    return before;
}

void kp_session_skip(enum kp_reason reason, uint64_t launches)
{
    kp_lock_take(lock, KP_FOREVER);
    add_skip(reason, launches);
    kp_lock_give(lock);
}

void kp_session_let_through(enum kp_reason reason, uint64_t launches)
{
    kp_lock_take(lock, KP_FOREVER);
    session.facts.launches_seen += launches;
    add_skip(reason, launches);
    kp_lock_give(lock);
}

void kp_session_unwanted(const char *base, uint64_t n)
{
    kp_lock_take(lock, KP_FOREVER);
    kp_session_add_kernel(&session.facts, base, n);
    kp_lock_give(lock);
}

void kp_session_lacks(const char *base, uint64_t shapes)
{
    kp_lock_take(lock, KP_FOREVER);
    kp_session_add_lacking(&session.facts, base, shapes);
    kp_lock_give(lock);
}

void kp_session_range(const struct kp_nvtx_range *r, uint64_t n)
{
    char *expression = kp_nvtx_expression(r);
    kp_lock_take(lock, KP_FOREVER);
    if (expression)
        kp_session_add_range(&session.facts, expression, n);
    kp_lock_give(lock);
    free(expression);
}

static void add_device(const struct kp_device *device, const char *chip, const char *breakdowns)
{
    struct kp_session *s = &session.facts;
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].ordinal == device->device)
            return;
    if (!KP_ROOM(s->devices, s->n_devices))
        return;
    struct kp_device_info *i = &s->devices[s->n_devices++];
    *i = (struct kp_device_info){.ordinal = device->device,
                                 .name = kp_strdup(device->name),
                                 .chip = kp_strdup(chip),
                                 .pci_bus_id = kp_strdup(device->pci_bus_id),
                                 .cc_major = device->cc_major,
                                 .cc_minor = device->cc_minor,
                                 .sm_count = device->sm_count,
                                 .breakdowns = kp_strdup(breakdowns)};
}

void kp_session_device(const struct kp_device *device, const char *chip, const char *breakdowns)
{
    kp_lock_take(lock, KP_FOREVER);
    add_device(device, chip, breakdowns);
    kp_lock_give(lock);
}

static void replace(char **text, const char *with)
{
    char *copy = kp_strdup(with);
    if (copy) {
        free(*text);
        *text = copy;
    }
}

void kp_session_collection(const char *metrics, const char *cupti_version)
{
    kp_lock_take(lock, KP_FOREVER);
    if (metrics && strcmp(session.facts.metrics, metrics))
        replace(&session.facts.metrics, metrics);
    if (cupti_version && strcmp(session.facts.cupti_version, cupti_version))
        replace(&session.facts.cupti_version, cupti_version);
    kp_lock_give(lock);
}

void kp_session_warn_once(const char *text)
{
    kp_session_warn(KP_FAILURE_COUNTERS, text);
}

/* Returns true if another run of the program has printed this: the runs of application replay share a file of printed
 * lines. */
static bool has_another_run_said(const char *text)
{
    const struct kp_options *o = session.options;
    char *path = NULL, *line = NULL;
    size_t size = 0, len = strlen(text);
    bool said = false;
    if (!o || !o->replay_run || asprintf(&path, "%s/claim.warnings", o->replay_folder) < 0)
        return false;
    FILE *f = fopen(path, "a+e");
    for (ssize_t n; f && !said && (n = getline(&line, &size, f)) > 0;)
        said = (size_t)n == len + 1 && !strncmp(line, text, len);
    if (f && !said)
        fprintf(f, "%s\n", text);
    if (f)
        fclose(f);
    free(line);
    free(path);
    return said;
}

void kp_session_warn(enum kp_failure kind, const char *text)
{
    bool known = false;
    kp_outcome_failed(kind);
    kp_lock_take(lock, KP_FOREVER);
    for (size_t i = 0; i < session.n_warned && !known; i++)
        known = !strcmp(session.warned[i], text);
    if (!known && session.n_warned < sizeof(session.warned) / sizeof(*session.warned) &&
        (session.warned[session.n_warned] = kp_strdup(text)))
        session.n_warned++;
    kp_lock_give(lock);
    if (!known && !has_another_run_said(text))
        kp_log_warning("%s", text);
}

/* ---- the end ---- */

/* What receives the results. */
struct reader {
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
};

/* Leaves out results that a kept result replaces. */
static int pass_stored(struct kp_result *r, void *arg)
{
    const struct reader *to = arg;
    for (const struct kept *k = session.kept; k; k = k->next)
        if (k->replaces && k->result.launch.id == r->launch.id)
            return 0;
    return to->fn(r, to->arg);
}

static bool has_replacements(void)
{
    const struct kept *k = session.kept;
    while (k && !k->replaces)
        k = k->next;
    return k;
}

/* Reads the results that the store accepted before it failed, then those kept since. */
static int each_result(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    (void)from;
    struct reader to = {fn, arg};
    bool replaced = has_replacements();
    int rc =
        session.store ? kp_store_each_result(session.store, replaced ? pass_stored : fn, replaced ? &to : arg, err) : 0;
    if (*err) { /* of the store, not of `fn` */
        kp_log_error("%s", *err);
        failed_to_store();
        free(*err);
        *err = NULL;
        rc = 0;
    }
    for (struct kept *k = session.kept; !rc && k; k = k->next)
        rc = fn(&k->result, arg);
    return rc;
}

/* Finds code, which is still in memory if the store has failed. */
static int find_code(void *arg, uint64_t id, struct kp_code *out)
{
    struct kp_lookup here = kp_codes_lookup(session.codes);
    int rc = kp_lookup_code(arg, id, out);
    return rc && session.codes ? kp_lookup_code(&here, id, out) : rc;
}

/* Names stacks: while the program runs, they are stored as places in modules. */
static int put_names(uint64_t stacks, char **err)
{
    int rc = kp_store_begin(session.store, err);
    for (uint64_t id = 1; !rc && id <= stacks; id++) {
        struct kp_stack s;
        if (kp_stack_get(id, &s))
            continue;
        rc = put_stack(&s, err);
        kp_frames_free(&s);
    }
    return rc ? rc : kp_store_commit(session.store, err);
}

static void name_stacks(void)
{
    char *err = NULL;
    uint64_t stacks = kp_stack_name_all();
    if (kp_stack_python_missing()) {
        kp_outcome_failed(KP_FAILURE_STACKS);
        kp_log_warning("Call stacks have no Python frames: %s", kp_stack_python_missing());
    }
    if (stacks && session.store && !session.store_failed && put_names(stacks, &err))
        kp_log_error("%s", err ? err : "the session file has no names of call stacks");
    free(err);
}

static int find_timeline(void *arg, struct kp_timeline *out)
{
    return kp_lookup_timeline(arg, out);
}

static int stack_of(void *arg, uint64_t id, struct kp_stack *out)
{
    (void)arg;
    return kp_stack_get(id, out);
}

/* Reports launches that no list of reasons has; there may be memory for one now. Call under `lock`. */
static void tell_unexplained(void)
{
    uint64_t n = session.unexplained;
    if (!n)
        return;
    kp_session_add_skip(&session.facts, kp_why_of(KP_REASON_LOST, NULL), n);
    kp_outcome_failed(KP_FAILURE_MEMORY);
    kp_log_warning("out of memory: %llu launch%s no counters, and the reason is lost", (unsigned long long)n,
                   n == 1 ? " has" : "es have");
}

static void report(void)
{
    struct kp_lookup stored = kp_store_lookup(session.store);
    /* Stacks and code are also in memory, in case the file did not accept them. */
    const struct kp_launches launches = {
        .each = each_result,
        .lookup = {.code = find_code, .stack = stack_of, .timeline = find_timeline, .arg = &stored}};
    char *err = NULL;
    struct kp_session in_file = session.facts;
    in_file.complete = !session.store_failed;
    if (session.store && kp_store_put_session(session.store, &in_file, &err) && !session.store_failed) {
        kp_log_error("%s", err ? err : "the session file cannot be written");
        failed_to_store();
    }
    free(err);
    err = NULL;
    if (session.options->replay_run) /* the command joins the runs, and reports */
        return;
    kp_display_fit(&session.display, session.options, kp_log_descriptor());
    if (session.options->unprinted) {
        kp_log_profiler("Report: %s", session.file ? session.file : session.options->export_file);
        return;
    }
    session.display.file = *session.options->export_file && !session.store_failed ? session.file : NULL;
    if (kp_page_print(kp_log_sink(), &session.display, &session.facts, &launches, &err)) {
        kp_log_error("%s", err ? err : "the report could not be written");
        kp_outcome_failed(KP_FAILURE_REPORT);
    }
    free(err);
}

bool kp_session_is_open(void)
{
    return atomic_load(&session.open);
}

void kp_session_discard_if_empty(void)
{
    kp_lock_take(storing, KP_FOREVER);
    if (atomic_load(&session.open) && !session.next_id) {
        atomic_store(&session.open, false);
        kp_store_close(session.store);
        session.store = NULL;
        remove_own_file();
    }
    kp_lock_give(storing);
}

/* Reports how the launches fared, after everything is written. */
static void tell_outcome(void)
{
    const struct kp_session *s = &session.facts;
    uint64_t unwanted = 0, skipped = 0, on_timeline = 0;
    for (size_t i = 0; i < s->n_skips; i++) {
        skipped += s->skips[i].count;
        enum kp_reason reason = s->skips[i].why.reason;
        unwanted += kp_reason_row(reason)->kind == KP_REASON_KIND_FILTER ? s->skips[i].count : 0;
        on_timeline += reason == KP_REASON_TIMELINE ? s->skips[i].count : 0;
    }
    if (skipped > unwanted || s->launches_seen > s->launches_profiled + skipped)
        kp_outcome_failed(KP_FAILURE_NOT_COUNTED);
    if (kp_library_denied())
        kp_outcome_failed(KP_FAILURE_PERMISSION);
    kp_log_outcome(s->launches_seen, s->launches_seen - unwanted + on_timeline);
}

/* The HTML writer is no part of this library: only the command that started the program can write the file. */
static void tell_no_html(void)
{
    const struct kp_options *o = session.options;
    if (*o->html_file && !*o->status_file)
        kp_log_warning(
            "No HTML is written with LD_PRELOAD alone; `kprof report --html FILE %s` writes it from the export",
            *o->export_file && session.file ? session.file : "SESSION");
}

static void close_session(void)
{
    struct kp_quiet q = kp_quiet_begin();
    bool begun = begin_late();
    atomic_store(&session.open, false);
    count_passed();
    if (!begun) {
        tell_outcome();
        kp_quiet_end(&q);
        return;
    }
    session.facts.end_unix_ns = now_unix_ns();
    session.facts.complete = true;
    kp_log_profiler("Disconnected from process %llu", (unsigned long long)session.facts.pid);
    name_stacks();
    tell_unexplained();
    report();
    kp_store_close(session.store);
    session.store = NULL;
    tell_no_html();
    if (session.temporary && !session.store_failed)
        remove_own_file();
    tell_outcome();
    kp_quiet_end(&q);
}

void kp_session_close(void)
{
    /* An exit from a signal handler may have interrupted a lock's holder on this same thread. */
    if (!kp_lock_take(storing, kp_limit_first(KP_WAIT_SESSION)))
        return;
    if (kp_lock_take(lock, kp_limit_first(KP_WAIT_SESSION))) {
        close_session();
        kp_lock_give(lock);
    }
    kp_lock_give(storing);
}

void kp_session_forked(void)
{
    session.store = NULL; /* the parent's: not even closed, which could change its file */
    session.temporary = false;
    atomic_store(&session.open, false);
}
