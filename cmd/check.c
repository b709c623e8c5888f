#include "cmd/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failures.h"
#include "base/path.h"
#include "base/text.h"
#include "cmd/catalog.h"
#include "cmd/console.h"
#include "cmd/whole_file.h"
#include "collectors/providers/library.h"
#include "report/options/options.h"

/* Reports why the program is not started. */
static int refuse(const struct kp_options *o, enum kp_failure kind, const char *what, const char *path, const char *why)
{
    return kp_console_error(o->strict ? kp_failure_rows[kind].status : KP_EXIT_USAGE,
                            "%s: %s: %s; the program was not started", what, path, why);
}

/* ---- paths ---- */

static bool is_stream(const char *path)
{
    return kp_options_log_target(path) != KP_LOG_TO_FILE;
}

/* Returns true if each process expands the pattern differently, so that the path is unknown beforehand. */
static bool varies(const char *pattern)
{
    for (const char *p = pattern; (p = strchr(p, '%')) && p[1]; p += 2)
        if (strchr("pir", p[1]))
            return true;
    return false;
}

/* Returns the path that all processes expand it to; malloc'ed, NULL if unknown. A variable may be one that a launcher
 * sets. */
static char *known_path(const char *pattern)
{
    char host[256] = "", *path = NULL, *err = NULL;
    if (!*pattern || varies(pattern))
        return NULL;
    gethostname(host, sizeof host - 1);
    if (kp_expand_path(pattern, 0, host, &path, &err))
        path = NULL;
    free(err);
    return path;
}

char *kp_check_export_path(const struct kp_options *o)
{
    return known_path(o->export_file);
}

/* Returns the part of a pattern before the last slash. */
static char *folder_of(const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    return slash ? strndup(pattern, slash > pattern ? (size_t)(slash - pattern) : 1) : strdup(".");
}

static bool begins_at_root(const char *pattern)
{
    char host[1] = "", *path = NULL, *err = NULL;
    bool known = !kp_expand_path(pattern, 0, host, &path, &err);
    bool root = !known || *path == '/'; /* unknown parts stay as they are */
    free(path);
    free(err);
    return root;
}

/* Makes the pattern absolute: the program may change its folder before it first uses CUDA. */
static int anchor(char **pattern, const char *variable)
{
    char now[PATH_MAX], *whole = NULL;
    size_t size;
    if (!**pattern || is_stream(*pattern) || begins_at_root(*pattern) || !getcwd(now, sizeof now))
        return 0;
    FILE *f = open_memstream(&whole, &size);
    if (!f)
        return -ENOMEM;
    for (const char *c = now; *c; c++)
        fprintf(f, *c == '%' ? "%%%%" : "%c", *c);
    fprintf(f, "/%s", *pattern);
    if (kp_text_end(f, &whole) || setenv(variable, whole, 1)) {
        free(whole);
        return -ENOMEM;
    }
    free(*pattern);
    *pattern = whole;
    return 0;
}

/* Returns the folder that a file of the pattern lies in; malloc'ed, NULL if unknown. Variables are replaced first
 * because they may contain slashes. */
static char *known_folder(const char *pattern)
{
    char *path = known_path(pattern), *part = folder_of(path ? path : pattern), *folder = part;
    if (!path && part) { /* the file's name alone may be unknown */
        folder = known_path(part);
        free(part);
    }
    free(path);
    return folder;
}

/* Returns why no file can be made at the path; NULL when one can. */
static const char *no_file(const char *path)
{
    int rc = kp_target_try(path);
    return rc ? strerror(-rc) : NULL;
}

/* Does the same for some file in a folder. */
static const char *no_file_in(const char *folder)
{
    char *path = NULL;
    if (asprintf(&path, "%s/kprof", folder) < 0)
        return strerror(ENOMEM);
    const char *why = no_file(path);
    free(path);
    return why;
}

/* Returns why no file can be made in the folder of `pattern`; NULL when one can, or the folder is unknown. */
static const char *no_folder(const char *pattern)
{
    struct stat st;
    char *folder = known_folder(pattern);
    const char *why = NULL;
    if (folder && stat(folder, &st))
        why = strerror(errno);
    else if (folder && !S_ISDIR(st.st_mode))
        why = strerror(ENOTDIR);
    else if (folder)
        why = no_file_in(folder);
    free(folder);
    return why;
}

static const char is_folder[] = "it is a folder; name a file in it";
static const char is_session[] = "it is a session, which would be overwritten; name another file";

/* Returns why no session can have the name (its journal's is longer); NULL if one can. */
static const char *no_name(const char *path)
{
    struct stat st;
    char *journal = NULL;
    if (asprintf(&journal, "%s-journal", path) < 0)
        return strerror(ENOMEM);
    int why = lstat(journal, &st) && errno != ENOENT ? errno : 0;
    free(journal);
    return why ? strerror(why) : NULL;
}

/* Returns why the session cannot be written there, if that is known; else NULL. */
static const char *no_export(const struct kp_options *o, const char *path)
{
    struct stat st;
    bool there = path && !stat(path, &st);
    if (there && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? is_folder : "that is not a regular file";
    const char *why = no_folder(o->export_file);
    if (why || !path)
        return why;
    if (there && st.st_size && o->force_overwrite && !kp_target_is_database(path))
        return "it is not a session and would be overwritten; name another file";
    if (!o->force_overwrite && !lstat(path, &st))
        return "the file exists; use --force-overwrite, or %i, %p or %r in the name";
    return no_name(path);
}

static int check_export(const struct kp_options *o)
{
    char *path = known_path(o->export_file);
    const char *why = no_export(o, path), *shown = path ? path : o->export_file;
    int status = why ? refuse(o, KP_FAILURE_EXPORT, "--export", shown, why) : 0;
    free(path);
    return status;
}

/* Checks the HTML file before the program runs: it is written only at the end. */
static int check_html(const struct kp_options *o)
{
    struct stat st;
    char *path = known_path(o->html_file);
    const char *why = NULL, *shown = path ? path : o->html_file;
    if (!path)
        why = no_folder(o->html_file);
    else if (!stat(path, &st) && S_ISDIR(st.st_mode))
        why = is_folder;
    else if (kp_target_is_database(path))
        why = is_session;
    else if (!o->force_overwrite && kp_target_replaces(path))
        why = "the file exists; use --force-overwrite, or %p or %r in the name";
    if (!why && path) /* a file that is replaced needs the folder, too */
        why = no_file(path);
    int status = why ? refuse(o, KP_FAILURE_REPORT, "--html", shown, why) : 0;
    free(path);
    return status;
}

static int check_log(const struct kp_options *o)
{
    struct stat st;
    char *path = known_path(o->log_file);
    const char *why = NULL;
    if (!path)
        why = no_folder(o->log_file);
    else if (stat(path, &st)) /* it may be a link to a file that is to be made elsewhere */
        why = no_file(path);
    else if (S_ISDIR(st.st_mode))
        why = strerror(EISDIR);
    else if (kp_target_is_database(path))
        why = is_session;
    else if (access(path, W_OK))
        why = strerror(errno);
    int status = why ? refuse(o, KP_FAILURE_LOG, "--log-file", path ? path : o->log_file, why) : 0;
    free(path);
    return status;
}

/* Checks the CUPTI folder, which is the only one searched. */
static int check_cupti_library(const struct kp_options *o)
{
    struct stat st;
    const char *why = NULL;
    if (stat(o->cupti_dir, &st))
        why = strerror(errno);
    else if (!S_ISDIR(st.st_mode))
        why = strerror(ENOTDIR);
    else if (!kp_library_lies_in(o->cupti_dir))
        why = "the folder has no libcupti";
    return why ? refuse(o, KP_FAILURE_CUPTI, "--cupti-dir", o->cupti_dir, why) : 0;
}

/* ---- metrics ---- */

/* Seconds that CUPTI has to answer. */
enum { CUPTI_PATIENCE = 30 };

static int tell_item(const char *item, const char *why, void *arg)
{
    return fprintf(arg, "%s\t%s\n", item, why) < 0 ? -EIO : 0;
}

/* Lets a child ask CUPTI: some versions crash without a driver, and a loaded library stays. Returns its answer,
 * "ITEM\tTEXT" in a line each; malloc'ed, NULL if CUPTI cannot answer. */
static char *ask_child(const struct kp_options *o, const char *list, bool columns)
{
    int ends[2], status;
    char *said = NULL, chunk[4096];
    size_t size;
    ssize_t n;
    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        FILE *to = fdopen(ends[1], "w");
        int quiet = open("/dev/null", O_WRONLY);
        dup2(quiet, STDERR_FILENO);
        signal(SIGALRM, SIG_DFL);
        alarm(CUPTI_PATIENCE);
        _exit(!to || kp_catalog_check_metrics(o->cupti_dir, list, columns, tell_item, to) || fclose(to));
    }
    close(ends[1]);
    FILE *f = open_memstream(&said, &size);
    while (pid > 0 && f && ((n = read(ends[0], chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            fwrite(chunk, 1, (size_t)n, f);
    close(ends[0]);
    bool good = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
    if (f && !kp_text_end(f, &said) && good)
        return said;
    free(said);
    return NULL;
}

static size_t count_items(const char *list)
{
    const char *item;
    size_t len, n = 0;
    while (kp_word_next(&list, &item, &len))
        n++;
    return n;
}

/* Prints each line of the child's answer as an error or a warning; adds the items to *told, separated by commas. */
static size_t tell_lines(const char *said, bool error, FILE *told)
{
    size_t n = 0;
    for (const char *end; *said; said = end + 1, n++) {
        const char *text = strchr(said, '\t') + 1;
        end = strchr(text, '\n');
        fprintf(stderr, "==%s== %.*s\n", error ? "ERROR" : "WARNING", (int)(end - text), text);
        fprintf(told, "%s%.*s", n ? "," : "", (int)(text - 1 - said), said);
    }
    return n;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* Checks metrics. The chip is unknown here, and the program may use another copy of CUPTI. So unknown metrics only
 * give a warning, unless nothing else was to be collected. */
static int check_wanted(const struct kp_options *o, kp_failure_set *failures)
{
    char *said = *o->metrics ? ask_child(o, o->metrics, o->only_columns) : NULL, *told = NULL;
    size_t size;
    int status = 0;
    FILE *f = said && *said ? open_memstream(&told, &size) : NULL;
    if (f) {
        bool nothing = !*o->set && !*o->section && count_lines(said) == count_items(o->metrics);
        tell_lines(said, nothing, f);
        fclose(f);
        *failures |= kp_failure_bit(KP_FAILURE_METRIC);
        if (nothing)
            status = kp_console_error(o->strict ? kp_failure_rows[KP_FAILURE_METRIC].status : KP_EXIT_USAGE,
                                      "no valid metric is left, so the program was not started; if the program "
                                      "includes a newer CUPTI, name its folder with --cupti-dir");
        else
            setenv("KPROF_METRICS_TOLD", told, 1);
    }
    free(told);
    free(said);
    return status;
}

/* A range is made of all the launches within it. */
static int check_ranges(const struct kp_options *o)
{
    const char *flag = *o->kernel_name ? "--kernel-name" : "--kernel-id",
               *value = *o->kernel_name ? o->kernel_name : o->kernel_id;
    if (!*value || !kp_options_by_ranges(o))
        return 0;
    return refuse(o, KP_FAILURE_OPTION, flag, value,
                  "the replay modes range and app-range profile whole ranges; choose ranges with --nvtx-include, "
                  "--launch-skip or --launch-count");
}

int kp_check_run(struct kp_options *o, kp_failure_set *failures)
{
    *failures = 0;
    if (anchor(&o->export_file, "KPROF_EXPORT") || anchor(&o->log_file, "KPROF_LOG_FILE"))
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    int status = check_ranges(o);
    if (!status && *o->export_file)
        status = check_export(o);
    if (!status && *o->html_file)
        status = check_html(o);
    if (!status && !is_stream(o->log_file))
        status = check_log(o);
    if (!status && *o->cupti_dir)
        status = check_cupti_library(o);
    return status ? status : check_wanted(o, failures);
}

/* ---- the program ---- */

static bool is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *kp_check_find_program(const char *name)
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    for (folders = folders ? folders : "/bin:/usr/bin"; folders; folders = *folders ? folders + 1 : NULL) {
        size_t len = strcspn(folders, ":");
        char *path;
        if (asprintf(&path, "%.*s%s%s", (int)len, folders, len ? "/" : "", name) < 0)
            return NULL;
        if (is_program(path))
            return path;
        free(path);
        folders += len;
    }
    return NULL;
}

/* Reads the start of a file up to `size` bytes. Returns how many there are. */
static size_t read_start(const char *path, char *start, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(start, 1, size, f) : 0;
    if (f)
        fclose(f);
    return n;
}

bool kp_check_is_binary(const char *path)
{
    enum { LOOKED_AT = 80 };
    char start[LOOKED_AT];
    size_t n = read_start(path, start, sizeof start);
    const char *end = memchr(start, '\n', n);
    return (n >= SELFMAG && !memcmp(start, ELFMAG, SELFMAG)) || memchr(start, '\0', end ? (size_t)(end - start) : n);
}

char *kp_check_interpreter(const char *path)
{
    char start[PATH_MAX] = "";
    read_start(path, start, sizeof start - 1);
    const char *name = start + 2 + strspn(start + 2, " \t");
    return strncmp(start, "#!", 2) != 0 ? NULL : strndup(name, strcspn(name, " \t\n"));
}

static const char for_musl[] = "its C library is musl, not glibc";

/* Judges an executable of this machine's kind by the interpreter that it names, the dynamic loader. */
static const char *judge_loader(FILE *f, const Elf64_Ehdr *head)
{
    char loader[PATH_MAX] = "";
    Elf64_Phdr part;
    for (int i = 0; i < head->e_phnum; i++) {
        if (fseek(f, (long)(head->e_phoff + (size_t)i * head->e_phentsize), SEEK_SET) ||
            fread(&part, sizeof part, 1, f) != 1)
            return NULL;
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_filesz >= sizeof loader || fseek(f, (long)part.p_offset, SEEK_SET) ||
            fread(loader, 1, part.p_filesz, f) != part.p_filesz)
            return NULL;
        return strstr(loader, "/ld-musl-") ? for_musl : NULL;
    }
    return "it is statically linked";
}

const char *kp_check_not_followed(const char *program)
{
    Elf64_Ehdr head;
    struct stat st;
    const char *why = NULL;
    FILE *f = program ? fopen(program, "re") : NULL;
    if (program && !stat(program, &st) &&
        ((st.st_mode & S_ISUID && st.st_uid != getuid()) || (st.st_mode & S_ISGID && st.st_gid != getgid())))
        why = "it is set-user-ID";
    else if (!f || fread(&head, sizeof head, 1, f) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        why = NULL; /* a script, or unreadable */
    else if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
        why = "it is for another architecture";
    else
        why = judge_loader(f, &head);
    if (f)
        fclose(f);
    return why;
}

bool kp_check_is_for_musl(const char *program)
{
    return kp_check_not_followed(program) == for_musl;
}
