/*
 * The kprof command, run as a user runs it, from a folder of its own in which a harmless library plays libkprof.so. As
 * the program it starts, this test runs itself, too: `--session ...` writes a session as libkprof.so would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/version.h"
#include "report/judge/rules.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/store/store.h"
#include "tests/support/report_support.h"

static const struct kp_display plain = {.rules = KP_RULES_ALL}; /* by default */

/* bin/kprof and lib/libkprof.so below a temporary folder; tmp/ is the command's TMPDIR. */
static char root[PATH_MAX / 4], command[PATH_MAX / 2], library[PATH_MAX / 2], tmp[PATH_MAX / 2];
static char self[PATH_MAX];

static void copy_file(const char *from, const char *to)
{
    char chunk[65536];
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    if (!in || !out)
        fail_msg("cannot copy %s to %s", from, to);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;)
        assert_int_equal(fwrite(chunk, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(to, 0755), 0);
}

/* A shared library that does nothing when it is preloaded: cmocka's, which this process has loaded. */
static void find_harmless_library(char path[PATH_MAX])
{
    char *maps = kp_test_read("/proc/self/maps");
    char *name = strstr(maps, "/libcmocka");
    if (!name)
        fail_msg("libcmocka is not a shared library here");
    while (name[-1] != ' ')
        name--;
    snprintf(path, PATH_MAX, "%.*s", (int)strcspn(name, "\n"), name);
    free(maps);
}

static const char *inside(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static int install(void **state)
{
    char harmless[PATH_MAX];
    (void)state;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    snprintf(root, sizeof root, "%s", kp_test_folder());
    snprintf(command, sizeof command, "%s/bin/kprof", root);
    snprintf(library, sizeof library, "%s/lib/libkprof.so", root);
    snprintf(tmp, sizeof tmp, "%s/tmp", root);
    mkdir(inside("bin"), 0755);
    mkdir(inside("lib"), 0755);
    mkdir(tmp, 0755);
    copy_file(kp_test_build("kprof"), command);
    find_harmless_library(harmless);
    copy_file(harmless, library);
    return 0;
}

static int uninstall(void **state)
{
    static const char *const folders[] = {"bin", "lib", "tmp"};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        kp_test_remove_folder(inside(folders[i]));
    kp_test_remove_folder(root);
    return 0;
}

struct outcome {
    int status; /* as waitpid gives it */
    char *out, *err;
};

static void outcome_free(struct outcome *o)
{
    free(o->out);
    free(o->err);
}

/* The environment of a child: nothing of KPROF_ but `env`, and no sanitiser that minds being loaded second. */
static void set_environment(char *const *env)
{
    setenv("TMPDIR", tmp, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    unsetenv("LD_PRELOAD");
    for (; env && *env; env++)
        putenv(*env);
}

static pid_t start(char *const *argv, char *const *env)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    int out = open(inside("out"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int err = open(inside("err"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out, 1);
    dup2(err, 2);
    set_environment(env);
    execvp(argv[0], argv);
    _exit(99);
}

static struct outcome finish(pid_t pid)
{
    struct outcome o;
    assert_int_equal(waitpid(pid, &o.status, 0), pid);
    o.out = kp_test_read(inside("out"));
    o.err = kp_test_read(inside("err"));
    unlink(inside("out"));
    unlink(inside("err"));
    return o;
}

#define ENV(...)           ((char *[]){__VA_ARGS__, NULL})
#define RUN_WITH(env, ...) finish(start((char *[]){command, __VA_ARGS__, NULL}, env))
#define RUN(...)           RUN_WITH(NULL, __VA_ARGS__)

static void assert_exited(struct outcome o, int status, const char *out, const char *err)
{
    if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != status)
        fail_msg("status %#x, not an exit with %d\nstdout: %s\nstderr: %s", o.status, status, o.out, o.err);
    if (out)
        assert_string_equal(o.out, out);
    if (err)
        assert_string_equal(o.err, err);
    outcome_free(&o);
}

/* What the command says after a program that began no session. */
#define NOTHING_MORE                                                                                                   \
    "Unless a line above says why, the program did not use CUDA, or cannot be profiled (set-user-ID, statically "      \
    "linked).\n"
static const char no_session[] = "==KPROF== No session was stored. " NOTHING_MORE, nothing_more[] = NOTHING_MORE;

static void assert_killed(struct outcome o, int sig)
{
    if (!WIFSIGNALED(o.status) || WTERMSIG(o.status) != sig)
        fail_msg("status %#x, not killed by %d\nstderr: %s", o.status, sig, o.err);
    assert_false(WCOREDUMP(o.status));
    outcome_free(&o);
}

/* --- what libkprof.so does, as far as the command can see --- */

static void write_recording(const char *path, bool complete, size_t launches)
{
    struct kp_recording rec = kp_test_recording();
    struct kp_store *s = NULL;
    char *err = NULL;
    rec.session.pid = (uint64_t)getpid();
    rec.session.complete = complete;
    rec.session.launches_seen = rec.session.launches_profiled = launches;
    if (kp_store_create(path, false, &s, &err) || kp_store_put_session(s, &rec.session, &err))
        fail_msg("%s", err ? err : "no store");
    for (size_t i = 0; i < launches; i++)
        assert_int_equal(kp_store_put_result(s, &rec.results[i], &err), 0);
    kp_store_close(s);
    kp_test_recording_free(&rec);
}

/* In the background, with its output closed so that nobody waits for it: says where its session is, and stays. */
static void outlive(const char *path)
{
    const char *where = getenv("KP_TEST_NAME");
    FILE *f = where ? fopen(where, "we") : NULL;
    if (!f)
        return;
    fputs(path, f);
    fclose(f);
    sleep(30);
}

/* `--session complete|killed|exits|waits|removed`: writes the session that the environment asks for, and ends so. */
static int play_program(const char *how)
{
    char *path = NULL, *err = NULL;
    const char *pattern = getenv("KPROF_SESSION_FILE");
    if (!pattern || kp_expand_path(pattern, (uint64_t)getpid(), "host", &path, &err))
        return 90;
    write_recording(path, !strcmp(how, "complete"), 2);
    printf("%s\n", path);
    fflush(stdout);
    if (!strcmp(how, "killed"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "waits"))
        outlive(path);
    if (!strcmp(how, "removed"))
        unlink(path);
    return 3;
}

static char *page_of(const char *path)
{
    struct kp_store *s = NULL;
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    char *err = NULL;
    assert_int_equal(kp_store_open(path, &s, &err), 0);
    assert_int_equal(kp_page_print_store(&out, &plain, s, &err), 0);
    kp_store_close(s);
    return t.text;
}

/* --- tests --- */

static void report_prints_a_stored_session(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("tmp/done.kprof"));
    write_recording(path, true, 1);
    char *page = page_of(path);
    assert_null(strstr(page, "had not finished"));
    assert_exited(RUN("report", path), 0, page, "");
    free(page);
    unlink(path);
}

static void report_of_an_unfinished_session_says_so(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("tmp/open.kprof"));
    write_recording(path, false, 1);
    struct outcome o = RUN("report", path);
    assert_non_null(strstr(o.out, "stream_triad"));
    assert_non_null(strstr(o.out, "==KPROF== The report above is incomplete"));
    assert_exited(o, 0, NULL, "");
    unlink(path);
}

/* Texts that fill stdio's buffer, where a write fails before the end, and short ones. */
static void a_full_device_is_told_of(void **state)
{
    (void)state;
    char path[PATH_MAX], line[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("tmp/done.kprof"));
    write_recording(path, true, 14);
    static const char *const uses[] = {"report $0",
                                       "report --page session $0",
                                       "report --csv --page raw $0",
                                       "report --json $0",
                                       "--help",
                                       "--version",
                                       "--list-words"};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        snprintf(line, sizeof line, "%s %s >/dev/full", command, uses[i]);
        char *argv[] = {"sh", "-c", line, path, NULL};
        assert_exited(finish(start(argv, NULL)), 1, "", "==ERROR== cannot write the output: No space left on device\n");
    }
    unlink(path);
}

/* Adds to `t` what the command says, with the folder's name, which is random, left out. */
static void collect(struct kp_test_text *t, struct outcome o, int status)
{
    struct kp_sink out = kp_test_sink(t);
    for (char *p; (p = strstr(o.err, root));)
        memmove(p, p + strlen(root), strlen(p + strlen(root)) + 1);
    out.write(out.arg, o.err, strlen(o.err));
    assert_exited(o, status, "", NULL);
}

static void wrong_use_names_the_nearest_choice(void **state)
{
    (void)state;
    struct kp_test_text t = {0};
    char path[PATH_MAX], near[PATH_MAX], text[PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("tmp/gemm.kprof"));
    snprintf(near, sizeof near, "%s", inside("tmp/gem.kprof"));
    snprintf(text, sizeof text, "%s", inside("tmp/notes"));
    write_recording(path, true, 1);
    FILE *f = fopen(text, "we");
    fputs("some text\n", f);
    fclose(f);
    struct {
        struct outcome o;
        int status;
    } cases[] = {
        {finish(start((char *[]){command, NULL}, NULL)), 2},
        {RUN("--"), 2},
        {RUN("--kernelname", "x", "true"), 2},
        {RUN("--print-s", "x", "true"), 2},
        {RUN("--set", "", "true"), 2},
        {RUN("--export", "--", "true"), 2},
        {RUN("@no-such-file", "true"), 2},
        {RUN("--config-file-path", "no-such-file", "true"), 2},
        {RUN("--communicator=tcp", "true"), 2},
        {RUN("-t", "cuda,nvtx", "true"), 2},
        {RUN("--stats=true", "true"), 2},
        {RUN("--capture-range", "cudaProfilerApi", "true"), 2},
        {RUN("--print-gpu-trace", "true"), 2},
        {RUN("profile", "true"), 127},
        {RUN("metrics"), 127},
        {RUN("--zebra", "true"), 2},
        {RUN("--launch-skp=3", "true"), 2},
        {RUN("--app-replay-buffer", "disk", "true"), 2},
        {RUN("--mode", "attach", "true"), 2},
        {RUN("--verbose=1", "true"), 2},
        {RUN("--replay-mode", "kernels", "true"), 2},
        {RUN("--app-replay-match=names", "true"), 2},
        {RUN("--app-replay-mode=strictly", "true"), 2},
        {RUN("--import=x"), 2},
        {RUN("-i", "x"), 2},
        {RUN("--config-file", "x", "true"), 2},
        {RUN("--range-filter=yes:1", "true"), 2},
        {RUN("--open-in-ui", "true"), 2},
        {RUN("/tmp"), 126},
        {RUN("--section=regex:Memory", "true"), 2},
        {RUN("--section=regex:Ocupancy", "true"), 2},
        {RUN("-x", "true"), 2},
        {RUN("--chip", "GH100"), 2},
        {RUN("-fx", "true"), 2},
        {RUN("--help=3"), 2},
        {RUN("-k"), 2},
        {RUN("--set"), 2},
        {RUN("--set", "basci", "true"), 2},
        {RUN("-c", "all", "true"), 2},
        {RUN("--quiet=maybe", "true"), 2},
        {RUN_WITH(ENV("KPROF_KERNELNAME=x"), "true"), 2},
        {RUN_WITH(ENV("KPROF_SAMPLING_INTERVAL=3"), "true"), 2},
        {RUN_WITH(ENV("KPROF_CACHE_CONTROL=nnoe"), "true"), 2},
        {RUN("report"), 2},
        {RUN("report", "a", "b"), 2},
        {RUN("report", "--cold", "a"), 2},
        {RUN("report", path, "--print-metric=name"), 2},
        {RUN("report", "--html", "", path), 2},
        {RUN("report", "--html", path), 2},
        {RUN("report", "--html", path, near), 2},
        {RUN("report", "--trace-json", path), 2},
        {RUN("report", "--html", "run.html"), 2},
        {RUN("report", "--html", "-", "--open", path), 2},
        {RUN("report", "--html=-", "--trace-json=-", path), 2},
        {RUN("diff", "--html", "-", path, path), 2},
        {RUN("-o", "-", "true"), 2},
        {RUN("--html", "-", "true"), 2},
        {RUN("report", "--open"), 2},
        {RUN("report", "--folded", "stack", "--html=x", path), 2},
        {RUN("report", "--trace-json=x", "--folded=nvtx", path), 2},
        {RUN("report", "--folded", "stacks", path), 2},
        {RUN("report", "--fail-above", "5%", path), 2},
        {RUN("diff", "--open", path, path), 2},
        {RUN("--trace-json", "x.json", "true"), 2},
        {RUN("run"), 2},
        {RUN("run", "--"), 2},
        {RUN("report", near), 2},
        {RUN("report", text), 2},
        {RUN("no-such-program-anywhere"), 127},
        {RUN("reprot", near), 127},
        {RUN("list-rule"), 127},
        {RUN("rnu", "true"), 127},
        {RUN("help"), 127},
        {RUN("version"), 127},
        {RUN("run", "list-sets"), 127},
        {RUN("/etc/passwd"), 126},
        {RUN(path), 126},
        {RUN("--rule=Nosuch", "true"), 2},
        {RUN("report", "--quiet", path), 2},
        {RUN("--fail-above=5", "true"), 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        collect(&t, cases[i].o, cases[i].status);
    kp_test_golden(t.text, "tests/golden/report_command_errors.txt");
    free(t.text);
    unlink(path);
    unlink(text);
}

/* What a script passes to ncu and kprof does anyway is no error, and leaves nothing behind. */
static void options_that_ask_for_nothing(void **state)
{
    (void)state;
    assert_exited(RUN("--quiet", "--mod", "launch-and-attach", "--app-replay-buffer=memory",
                      "--warp-sampling-max-passes", "5", "--max-connections=8", "--port", "49152",
                      "--hostname=localhost", "--support-32bit", "no", "--injection-path-64", "/x", "--verbose",
                      "--kill=no", "--check-exit-code", "yes", "--config-file", "off", "true"),
                  0, "", "");
}

/* Whether `text` has `line` as one of its lines. */
static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *p = text; (p = strstr(p, line)); p++)
        if ((p == text || p[-1] == '\n') && p[n] == '\n')
            return true;
    return false;
}

/* `kprof run` is what `kprof` is, but that what follows is a program whatever its name; flags may stand on both sides.
 */
static void run_is_a_word_too(void **state)
{
    (void)state;
    struct outcome o = RUN("--set", "full", "run", "--quiet", "-c", "3", "--", "env");
    assert_true(has_line(o.out, "KPROF_SET=full"));
    assert_true(has_line(o.out, "KPROF_QUIET=on"));
    assert_true(has_line(o.out, "KPROF_LAUNCH_COUNT=3"));
    assert_exited(o, 0, NULL, "");
    assert_exited(RUN("run", "--quiet", "sh", "-c", "exit 5"), 5, "", "");
    char program[PATH_MAX], path[PATH_MAX];
    snprintf(program, sizeof program, "%s", inside("tmp/report"));
    snprintf(path, sizeof path, "PATH=%s:%s", tmp, getenv("PATH"));
    FILE *f = fopen(program, "we");
    fputs("#!/bin/sh\necho a program\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(program, 0755), 0);
    assert_exited(RUN_WITH(ENV(path), "run", "--quiet", "report"), 0, "a program\n", "");
    assert_exited(RUN_WITH(ENV(path), "--quiet", "--", "run"), 127, "", NULL);
    unlink(program);
}

/* Its path is good for programs that go to other folders, and the section folder that it names for flags before it. */
static void a_file_of_options_goes_first(void **state)
{
    char line[PATH_MAX + 32], before[PATH_MAX], here[] = "KPROF_CONFIG=options";
    struct outcome o;
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(tmp), 0);
    mkdir("sections", 0755);
    FILE *f = fopen("sections/own.section", "we");
    fputs("Identifier: \"OwnSection\"\nDisplayName: \"Own\"\n", f);
    assert_int_equal(fclose(f), 0);
    f = fopen("options", "we");
    fputs("section-folder = sections\n", f);
    assert_int_equal(fclose(f), 0);
    snprintf(line, sizeof line, "KPROF_CONFIG=%s/options", tmp);
    o = RUN("--section", "OwnSection", "--config", "options", "--quiet", "env");
    if (!has_line(o.out, line))
        fail_msg("no line %s in\n%s%s", line, o.out, o.err);
    assert_exited(o, 0, NULL, "");
    assert_exited(RUN_WITH(ENV(here), "--section=OwnSection", "--quiet", "true"), 0, "", "");
    o = RUN_WITH(ENV(here), "report", "--section=OwnSection", "no-such-file");
    assert_null(strstr(o.err, "unknown section"));
    assert_exited(o, 2, "", NULL);
    unlink("sections/own.section");
    rmdir("sections");
    assert_exited(RUN_WITH(ENV(here), "--quiet", "true"), 2, "",
                  "==ERROR== KPROF_SECTION_FOLDER: cannot read folder 'sections': No such file or directory\n");
    unlink("options");
    assert_int_equal(chdir(before), 0);
}

/* A word is as good as its flag, and neither needs CUPTI where it is not asked. */
static void rules_are_listed_without_cupti(void **state)
{
    (void)state;
    char nowhere[] = "KPROF_CUPTI_DIR=/nowhere";
    struct outcome word = RUN_WITH(ENV(nowhere), "list-rules"), flag = RUN_WITH(ENV(nowhere), "--list-rules");
    size_t n;
    const struct kp_rule *rules = kp_rules(&n);
    for (size_t i = 0; i < n; i++)
        if (!strstr(word.out, rules[i].id))
            fail_msg("%s is not listed", rules[i].id);
    assert_exited(flag, 0, word.out, "");
    assert_exited(word, 0, NULL, "");
    assert_exited(RUN("list-rules", "more"), 2, "", NULL);
}

/* Several files: one table or document, whichever of them can be read. */
static void report_puts_sessions_together(void **state)
{
    static const struct kp_display displays[] = {
        {.format = KP_FORMAT_CSV, .rules = KP_RULES_ALL},
        {.format = KP_FORMAT_JSON, .rules = KP_RULES_ALL},
    };
    static char *const flags[] = {"--csv", "--json"};
    char path[2][PATH_MAX], *err = NULL;
    struct kp_store *stores[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s", inside(i ? "tmp/rank1" : "tmp/rank0"));
        write_recording(path[i], true, 1 + (size_t)i);
        assert_int_equal(kp_store_open(path[i], &stores[i], &err), 0);
    }
    for (int i = 0; i < 2; i++) {
        struct kp_test_text both = {0}, first = {0};
        struct kp_sink out = kp_test_sink(&both), out_of_first = kp_test_sink(&first);
        assert_int_equal(kp_page_print_stores(&out, &displays[i], stores, 2, &err), 0);
        assert_int_equal(kp_page_print_stores(&out_of_first, &displays[i], stores, 1, &err), 0);
        assert_exited(RUN("report", flags[i], path[0], path[1]), 0, both.text, "");
        struct outcome o = RUN("report", flags[i], "no-such-file", path[0]);
        assert_string_equal(o.err, "==ERROR== cannot open 'no-such-file': No such file or directory\n");
        assert_exited(o, 2, first.text, NULL);
        assert_exited(RUN("report", flags[i], "no-such-file", "nor-this"), 2, "", NULL);
        free(both.text);
        free(first.text);
    }
    for (int i = 0; i < 2; i++) {
        kp_store_close(stores[i]);
        unlink(path[i]);
    }
}

/* A sub-command with options of its own lists those that it takes, wherever it is asked. */
static void help_of_a_command(void **state)
{
    static const struct {
        char *command;
        const char *golden;
        enum kp_option_group least;
    } rows[] = {
        {"report", "tests/golden/help_of_report.txt", KP_OPT_REPORT},
        {"diff", "tests/golden/help_of_diff.txt", KP_OPT_DIFF},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome o = RUN(rows[i].command, "--help");
        size_t n;
        const struct kp_option *option = kp_option_rows(&n);
        char flag[KP_OPTION_NAME_MAX + 4];
        for (; n; n--, option++) {
            bool taken = option->group >= rows[i].least || !strcmp(option->flag, "html"); /* both have their own */
            snprintf(flag, sizeof flag, " --%s ", option->flag);
            if (taken && !strstr(o.out, option->flag))
                fail_msg("%s is not in the help of %s", option->flag, rows[i].command);
            if (!taken && strstr(o.out, flag))
                fail_msg("%s is in the help of %s", option->flag, rows[i].command);
        }
        kp_test_golden(o.out, rows[i].golden);
        assert_exited(RUN(rows[i].command, "-h"), 0, o.out, "");
        assert_exited(RUN(rows[i].command, "none.kprof", "--set", "full", "--help"), 0, o.out, "");
        assert_exited(RUN(rows[i].command, "--", "--help"), 2, NULL, NULL);
        assert_exited(o, 0, NULL, "");
    }
}

/* Others print their part alone: what they have an effect with. */
static void help_of_an_answer(void **state)
{
    static const struct {
        char *command;
        const char *usage, *has, *lacks;
    } rows[] = {
        {"series", "Usage: kprof series --vary NAME=LIST [options]", " --vary ", " --csv "},
        {"doctor", "Usage: kprof doctor [options]\n", " --cupti-dir ", " --metrics "},
        {"query-metrics", "Usage: kprof query-metrics [options]\n", " --query-metrics-mode ", " --set "},
        {"list-sets", "Usage: kprof list-sets [options]\n", " --chip ", " --query-metrics-mode "},
        {"list-sections", "Usage: kprof list-sections [options]\n", " --section ", " --csv "},
        {"list-sections", "Usage: kprof list-sections [options]\n", " --page ", " --json "}, /* enables sections */
        {"list-rules", "Usage: kprof list-rules [options]\n\nLists the rules", " --config ", " --chip "},
        {"list-chips", "Usage: kprof list-chips [options]\n", " --cupti-dir ", " --csv "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome o = RUN(rows[i].command, "--help");
        if (strncmp(o.out, rows[i].usage, strlen(rows[i].usage)) || !strstr(o.out, rows[i].has) ||
            strstr(o.out, rows[i].lacks))
            fail_msg("%s: %s", rows[i].command, o.out);
        assert_exited(RUN(rows[i].command, "-h"), 0, o.out, "");
        assert_exited(o, 0, NULL, "");
    }
}

/* An option that an answer does not heed is told of, however the answer is asked for. */
static void answers_tell_of_options_without_effect(void **state)
{
    (void)state;
    assert_exited(RUN("list-rules", "--csv"), 0, NULL, "==WARNING== --csv has no effect with kprof list-rules\n");
    assert_exited(RUN("--csv", "--list-rules"), 0, NULL, "==WARNING== --csv has no effect with kprof list-rules\n");
    assert_exited(RUN("--chip", "GH100", "list-rules", "--query-metrics-mode", "all", "-k", "x"), 0, NULL,
                  "==WARNING== --kernel-name has no effect with kprof list-rules\n"
                  "==WARNING== --chip has no effect with kprof list-rules\n"
                  "==WARNING== --query-metrics-mode has no effect with kprof list-rules\n");
    assert_exited(RUN("list-rules"), 0, NULL, "");
    struct outcome o = RUN("doctor", "--json");
    assert_string_equal(o.err, "==WARNING== --json has no effect with kprof doctor\n");
    outcome_free(&o);
}

static void help_lists_every_option(void **state)
{
    (void)state;
    struct outcome o = RUN("--help");
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    char flag[KP_OPTION_NAME_MAX];
    for (size_t i = 0; i < n; i++) {
        snprintf(flag, sizeof flag, "--%s", rows[i].flag);
        if (!strstr(o.out, flag) != (rows[i].group <= KP_OPT_TOOLS))
            fail_msg("%s is not in --help, or should not be", flag);
    }
    kp_test_golden(o.out, "tests/golden/report_help.txt");
    assert_exited(RUN("run", "--help"), 0, o.out, "");
    assert_exited(o, 0, NULL, "");
    assert_exited(RUN("--version"), 0, "kprof " KP_VERSION "\n", "");
    assert_exited(RUN("-v"), 0, "kprof " KP_VERSION "\n", "");
}

static void every_flag_reaches_the_environment(void **state)
{
    char now[PATH_MAX / 2], log_file[PATH_MAX], export_file[PATH_MAX], status_file[PATH_MAX], cupti_dir[PATH_MAX],
        nothing[2 * PATH_MAX];
    assert_non_null(getcwd(now, sizeof now));
    snprintf(log_file, sizeof log_file, "KPROF_LOG_FILE=%s/log", now);
    snprintf(export_file, sizeof export_file, "KPROF_EXPORT=%s/out.kprof", now);
    snprintf(status_file, sizeof status_file, "KPROF_STATUS_FILE=%s/kprof.", tmp);
    snprintf(nothing, sizeof nothing,
             "==WARNING== --print-source has no effect without --page source\n"
             "==WARNING== --rule has no effect with --apply-rules no\n"
             "==WARNING== --budget has no effect without --replay-mode auto\n"
             "==WARNING== --rotate-key has no effect without --replay-mode rotate\n"
             "==KPROF== Nothing was written to %s/out.kprof. %s",
             now, nothing_more);
    snprintf(cupti_dir, sizeof cupti_dir, "KPROF_CUPTI_DIR=%s", tmp);
    fclose(fopen(inside("tmp/libcupti.so"), "we")); /* has to be there, is not opened yet */
    const char *const lines[] = {
        "KPROF_SET=basic",
        "KPROF_SECTION=Occupancy",
        "KPROF_METRICS=m",
        "KPROF_KERNEL_NAME=regex:k",
        "KPROF_LAUNCH_SKIP=5",
        "KPROF_LAUNCH_COUNT=6",
        "KPROF_CACHE_CONTROL=none",
        "KPROF_CLOCK_CONTROL=none",
        log_file, /* where the command was started, wherever the program goes */
        export_file,
        status_file, /* the command's own, whatever was given */
        "KPROF_STRICT=no",
        "KPROF_FORCE_OVERWRITE=on",
        "KPROF_QUIET=off",
        "KPROF_DEBUG=lock,fork",
        "KPROF_PROFILE_FROM_START=off",
        cupti_dir,
        "KPROF_WINDOW=7",
        "KPROF_WINDOW_MEMORY=2G",
        "KPROF_WINDOW_READS=off",
        "KPROF_CUPTI_LEAVES=off",
        "KPROF_GRAPH_PROFILING=graph",
        "KPROF_PRINT_DETAILS=all",
        "KPROF_PRINT_METRIC_NAME=name",
        "KPROF_PRINT_UNITS=base",
        "KPROF_PRINT_METRIC_INSTANCES=values",
        "KPROF_SECTION_FOLDER=/tmp",
        "KPROF_APPLY_RULES=no",
        "KPROF_RULE=CPIStall",
        "KPROF_KERNEL_NAME_BASE=demangled",
        "KPROF_KERNEL_ID=1:7:f:2",
        "KPROF_LAUNCH_SKIP_BEFORE_MATCH=9",
        "KPROF_FILTER_MODE=per-gpu",
        "KPROF_DEVICES=0,1",
        "KPROF_DELAY=1s",
        "KPROF_DURATION=2m",
        "KPROF_FALLBACK=quick",
        "KPROF_ROTATE_LAUNCHES=5",
        "KPROF_VARY=block=64;shared=16K", /* of both flags */
        "KPROF_ROTATE_KEY=nvtx",
        "KPROF_SAVE_TIME=1m",
        "KPROF_SAVE=all",
        "KPROF_TARGET_PROCESSES=application-only",
        "KPROF_TARGET_PROCESSES_FILTER=env",
        "KPROF_CONFIG=/dev/null",
        "KPROF_NVTX=on",
        "KPROF_NVTX_INCLUDE=a/;b/", /* of both flags */
        "KPROF_NVTX_EXCLUDE=c",
        "KPROF_NVTX_PUSH_POP_SCOPE=process",
        "KPROF_PAGE=raw,trace",
        "KPROF_CSV=off",
        "KPROF_JSON=on",
        "KPROF_PRINT_SUMMARY=per-gpu",
        "KPROF_TRACE_COLUMNS=a,b",
        "KPROF_PRINT_NVTX_RENAME=kernel",
        "KPROF_PRINT_SOURCE=cuda",
        "KPROF_IMPORT_SOURCE=yes",
        "KPROF_SOURCE_FOLDERS=a,b",
        "KPROF_PM_SAMPLING_INTERVAL=2000",
        "KPROF_PM_SAMPLING_BUFFER_SIZE=8M",
        "KPROF_PM_SAMPLING_MAX_PASSES=3",
        "KPROF_TIMELINE=on",
        "KPROF_HTML=run.%p.html",
        "KPROF_CALL_STACK=native",
        "KPROF_WARP_SAMPLING_INTERVAL=3",
        "KPROF_WARP_SAMPLING_BUFFER_SIZE=1M",
        "KPROF_SORT=name",
        "KPROF_TOP=3",
        "KPROF_BRIEF_ABOVE=4",
        "KPROF_RENAME_KERNELS=/dev/null",
        "KPROF_COLOR=never",
        "KPROF_REPLAY_MODE=kernel",
        "KPROF_BUDGET=90s",
        "KPROF_APP_REPLAY_MATCH=grid",
        "KPROF_APP_REPLAY_MODE=balanced",
        "KPROF_NULL_STDIN=on",
        "KPROF_PRELOAD_LIBRARY=libm.so.6:libdl.so.2", /* of both flags */
        "KPROF_CHECK_EXIT_CODE=yes",
        "KPROF_KILL=no",
        "KPROF_RANGE_FILTER=:1:",
        "KPROF_PRINT_FP=on",
        "KPROF_PRINT_KERNEL_BASE=function",
        "KPROF_IMPORT_SASS=no",
        "KPROF_DISABLE_PROFILER_START_STOP=on",
    };
    (void)state;
    size_t n, all;
    const struct kp_option *rows = kp_option_rows(&all);
    for (size_t i = n = 0; i < all; i++)
        n += rows[i].group != KP_OPT_HANDOVER;
    if (sizeof lines / sizeof *lines != n + 1) /* and one of the command's own */
        fail_msg("%zu variables are tested of %zu options: each needs a line above, and its flag below",
                 sizeof lines / sizeof *lines, n);
    struct outcome o = RUN_WITH(
        ENV("KPROF_CUPTI_DIR=other"), "--set", "basic", "--section=Occupancy", "--metrics", "m", "-k", "regex:k", "-s",
        "5", "-c6", "--cache-control", "none", "--clock-control=none", "--log-file", "log", "-o", "out", "-f",
        "--quiet=off", "--debug=lock,fork", "--profile-from-start=off", "--cupti-dir", strchr(cupti_dir, '/'),
        "--fallback", "quick", "--rotate-launches", "5", "--rotate-key=nvtx", "--save-time=1m", "--save", "all",
        "--vary", "block=64", "--vary=shared=16K", "--window", "7", "--window-memory=2G", "--window-reads=off",
        "--cupti-leaves", "off", "--graph-profiling", "graph", "--print-details", "all", "--print-metric-name=name",
        "--print-units=base", "--print-metric-instances", "values", "--section-folder=/tmp", "--apply-rules", "no",
        "--rule", "CPIStall", "--kernel-name-base", "demangled", "--kernel-id", "1:7:f:2",
        "--launch-skip-before-match=9", "--filter-mode", "per-gpu", "--devices", "0,1", "--delay=1s", "--duration=2m",
        "--target-processes", "application-only", "--target-processes-filter=env", "--config=/dev/null", "--nvtx",
        "--nvtx-include", "a/", "--nvtx-exclude=c", "--nvtx-include=b/", "--nvtx-push-pop-scope", "process", "--page",
        "raw,trace", "--csv=off", "--json", "--print-summary=per-gpu", "--trace-columns", "a,b",
        "--print-nvtx-rename=kernel", "--print-source=cuda", "--import-source", "yes", "--source-folders", "a,b",
        "--pm-sampling-interval", "2000", "--pm-sampling-buffer-size=8M", "--pm-sampling-max-passes", "3", "--timeline",
        "--html", "run.%p.html", "--call-stack=native", "--warp-sampling-interval=3", "--warp-sampling-buffer-size",
        "1M", "--sort=name", "--top", "3", "--brief-above=4", "--rename-kernels", "/dev/null", "--color=never",
        "--strict=no", "--replay-mode", "kernel", "--budget=90s", "--app-replay-match=grid", "--app-replay-mode",
        "balanced", "--null-stdin", "--preload-library", "libm.so.6", "--preload-library=libdl.so.2",
        "--check-exit-code=yes", "--kill", "no", "--range-filter", ":1:", "--print-fp", "--print-kernel-base=function",
        "--import-sass", "no", "--disable-profiler-start-stop", "env");
    for (size_t i = 0; i < n; i++)
        if (lines[i] == status_file ? !strstr(o.out, lines[i]) : !has_line(o.out, lines[i]))
            fail_msg("no line %s in\n%s%s", lines[i], o.out, o.err);
    assert_exited(o, 0, NULL, nothing);
    unlink(inside("tmp/libcupti.so"));
    o = RUN("--quiet", "env");
    assert_true(has_line(o.out, "KPROF_QUIET=on"));
    assert_exited(o, 0, NULL, "");
    assert_exited(RUN("echo", "--zebra", "-k", "--"), 0, "--zebra -k --\n", no_session); /* the program's own */
}

static void lists_that_are_given_again_grow(void **state)
{
    char inherited[] = "KPROF_SECTION=LaunchStats";
    (void)state;
    struct outcome o =
        RUN_WITH(ENV(inherited), "--quiet", "--section", "Occupancy", "--metrics=a", "--section=SpeedOfLight", "--rule",
                 "CPIStall", "--metrics", "b,c", "--rule=SlowPipeLimiter", "--devices", "0", "--devices=2,3",
                 "--target-processes-filter", "x", "--target-processes-filter=y", "--page", "raw", "--page", "trace",
                 "-k", "one", "-k", "two", "env");
    static const char *const lines[] = {
        "KPROF_SECTION=Occupancy,SpeedOfLight", /* what the variable says does not count beside flags */
        "KPROF_METRICS=a,b,c",
        "KPROF_RULE=CPIStall,SlowPipeLimiter",
        "KPROF_DEVICES=0,2,3",
        "KPROF_TARGET_PROCESSES_FILTER=x,y",
        "KPROF_PAGE=trace", /* one that is no list: the last holds */
        "KPROF_KERNEL_NAME=two",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!has_line(o.out, lines[i]))
            fail_msg("no line %s in\n%s", lines[i], o.out);
    assert_exited(o, 0, NULL, NULL); /* with a warning, as no metric is called so */
}

/* Of what holds one value the last one counts, and a line says so; one that takes all is named where there is one. */
static void a_value_in_vain_is_told_of(void **state)
{
    (void)state;
    assert_exited(RUN("--quiet", "-k", "one", "-k", "regex:t.o", "-k", "a<b>(c*)", "true"), 0, "",
                  "==WARNING== --kernel-name is given 3 times; the last one counts: a<b>(c*); for all of them: "
                  "--kernel-name 'regex:^one$|t.o|^a<b>\\(c\\*\\)$'\n");
    assert_exited(RUN("--quiet", "--page", "raw", "--page=trace", "--set", "basic", "--set", "full", "true"), 0, "",
                  "==WARNING== --set is given 2 times; the last one counts: full\n"
                  "==WARNING== --page is given 2 times; the last one counts: trace; for all of them: --page "
                  "'raw,trace'\n");
    assert_exited(RUN("--quiet", "-k", "one", "-k", "one", "--nvtx-include", "a", "--nvtx-include", "b", "true"), 0, "",
                  "");
}

/* A variable may hold for many runs, a flag is of this one. */
static void flags_without_effect_are_told_of(void **state)
{
    static const char source[] = "==WARNING== --print-source has no effect without --page source\n";
    char variable[] = "KPROF_PRINT_SOURCE=sass", page[] = "KPROF_PAGE=source";
    (void)state;
    assert_exited(RUN("--quiet", "--print-source=sass", "true"), 0, "", source);
    assert_exited(RUN("--quiet", "--print-source=sass", "run", "--page=source", "true"), 0, "", "");
    assert_exited(RUN_WITH(ENV(page), "--quiet", "--print-source=sass", "true"), 0, "", "");
    assert_exited(RUN_WITH(ENV(variable), "--quiet", "true"), 0, "", "");
    assert_exited(
        RUN("--quiet", "--app-replay-match=all", "true"), 0, "",
        "==WARNING== --app-replay-match has no effect without --replay-mode application or --replay-mode app-range\n");
    assert_exited(RUN("--quiet", "--rotate-key", "nvtx", "true"), 0, "",
                  "==WARNING== --rotate-key has no effect without --replay-mode rotate\n");
    assert_exited(RUN("--quiet", "--rotate-key", "nvtx", "--replay-mode=rotate", "true"), 0, "", "");
    assert_exited(
        RUN("--quiet", "--replay-mode=rotate", "--fallback", "quick", "--save=all", "true"), 0, "",
        "==WARNING== --fallback has no effect without --replay-mode auto or --replay-mode kernel\n"
        "==WARNING== --save has no effect without --replay-mode auto or --replay-mode kernel or --replay-mode range\n");
    assert_exited(RUN("--quiet", "--replay-mode=range", "--save=all", "true"), 0, "", "");
    assert_exited(RUN("--quiet", "--rule", "CPIStall", "--apply-rules=no", "true"), 0, "",
                  "==WARNING== --rule has no effect with --apply-rules no\n");
    assert_exited(RUN("--quiet", "--filter-mode", "global", "true"), 0, "", "");
    assert_exited(
        RUN("--quiet", "--page", "raw", "--print-summary=per-gpu", "-c", "2", "--filter-mode=per-gpu", "true"), 0, "",
        "");
    assert_exited(RUN("--quiet", "--page", "trace", "--print-summary=per-gpu", "--filter-mode=per-gpu", "true"), 0, "",
                  "==WARNING== --print-summary has no effect without --page details or --page raw\n"
                  "==WARNING== --filter-mode has no effect without --launch-skip or --launch-count\n");
    assert_exited(RUN("--quiet", "-f", "--nvtx-push-pop-scope=process", "--kernel-name-base", "mangled", "true"), 0, "",
                  "==WARNING== --kernel-name-base has no effect without --kernel-name or --kernel-id\n"
                  "==WARNING== --nvtx-push-pop-scope has no effect without --nvtx\n"
                  "==WARNING== --force-overwrite has no effect without --export or --html\n");
    char html[] = "KPROF_HTML=x.html", force[] = "KPROF_FORCE_OVERWRITE=on";
    assert_exited(RUN_WITH(ENV(html), "--quiet", "-f", "true"), 0, "", "");
    assert_exited(RUN_WITH(ENV(force), "--quiet", "true"), 0, "", "");
    struct outcome o = RUN("report", "--print-source=sass", "none");
    assert_int_equal(strncmp(o.err, source, strlen(source)), 0);
    assert_exited(o, 2, "", NULL);
}

static void told_of_report(const char *written, const char *flag, const char *warnings)
{
    char all[512], also[] = "KPROF_PAGE=raw"; /* a variable is not told of */
    /* no folder, so none of its files is like it */
    snprintf(all, sizeof all, "%s==ERROR== cannot open 'no/such/session': No such file or directory\n", warnings);
    assert_exited(RUN_WITH(ENV(also), "report", (char *)written, (char *)flag, "no/such/session"), 2, "", all);
}

/* What is written in place of pages has neither their form nor, of some, what is chosen for them. */
static void flags_of_pages_are_told_of_where_there_are_none(void **state)
{
    (void)state;
    told_of_report("--html=out", "--csv", "==WARNING== --csv has no effect with --html\n");
    told_of_report("--html=out", "--page=trace", "==WARNING== --page has no effect with --html\n");
    told_of_report("--html=out", "--top=3", "==WARNING== --top has no effect with --html\n");
    told_of_report("--html=out", "--set=basic", "");
    told_of_report("--html=out", "-kscale", "");
    told_of_report("--html=out", "-f", "");
    told_of_report("--trace-json=out", "-f", "");
    told_of_report("--open", "-f",
                   "==WARNING== --force-overwrite has no effect without --export, --html or --trace-json\n");
    told_of_report("--page=raw", "-fkscale",
                   "==WARNING== --force-overwrite has no effect without --export, --html or --trace-json\n");
    told_of_report("--open", "--json", "==WARNING== --json has no effect with --open\n");
    told_of_report("--json", "--page=raw", "==WARNING== --page has no effect with --json\n");
    told_of_report("--json", "-c2", "");
    told_of_report("--folded=stack", "--metrics=m", "==WARNING== --metrics has no effect with --folded\n");
    told_of_report("--folded=stack", "-c2", "");
    told_of_report("--trace-json=out", "-c2", "==WARNING== --launch-count has no effect with --trace-json\n");
    told_of_report("--trace-json=out", "--devices=0", "==WARNING== --devices has no effect with --trace-json\n");
    static const char page[] = "==WARNING== --page has no effect with --html and --trace-json\n";
    struct outcome o = RUN("report", "--html=x", "--trace-json=y", "--page=raw", "-c2", "none");
    assert_int_equal(strncmp(o.err, page, strlen(page)), 0);
    assert_null(strstr(o.err, "--launch-count"));
    assert_exited(o, 2, "", NULL);
}

static void the_library_is_preloaded_before_others(void **state)
{
    (void)state;
    char expected[PATH_MAX + 64], link[PATH_MAX], path[PATH_MAX], bin[PATH_MAX], others[64];
    snprintf(others, sizeof others, "LD_PRELOAD=libm.so.6");
    snprintf(expected, sizeof expected, "LD_PRELOAD=%s", library);
    struct outcome o = RUN("env");
    assert_true(has_line(o.out, expected));
    assert_exited(o, 0, NULL, no_session);

    snprintf(expected, sizeof expected, "LD_PRELOAD=%s:libm.so.6", library);
    o = RUN_WITH(ENV(others), "--", "env");
    assert_true(has_line(o.out, expected));
    assert_exited(o, 0, NULL, no_session);

    /* by a link from elsewhere, found in PATH; and the library beside the command goes first */
    snprintf(bin, sizeof bin, "%s", inside("bin/libkprof.so"));
    copy_file(library, bin);
    snprintf(link, sizeof link, "%s", inside("tmp/kp"));
    snprintf(path, sizeof path, "PATH=%s:%s", tmp, getenv("PATH"));
    assert_int_equal(symlink(command, link), 0);
    snprintf(expected, sizeof expected, "LD_PRELOAD=%s", bin);
    char line[] = "kp env";
    o = finish(start((char *[]){"sh", "-c", line, NULL}, ENV(path)));
    assert_true(has_line(o.out, expected));
    assert_exited(o, 0, NULL, no_session);
    unlink(link);
    unlink(bin);
}

static void without_the_library_nothing_runs(void **state)
{
    (void)state;
    char away[PATH_MAX];
    snprintf(away, sizeof away, "%s.away", library);
    assert_int_equal(rename(library, away), 0);
    struct outcome o = RUN("echo", "ran");
    assert_int_equal(rename(away, library), 0);
    assert_exited(o, 1, "", "==ERROR== cannot find libkprof.so: it belongs next to the kprof command or in ../lib\n");
}

static void the_programs_end_is_the_commands_end(void **state)
{
    (void)state;
    assert_exited(RUN("--quiet", "sh", "-c", "echo out; echo err >&2; exit 37"), 37, "out\n", "err\n");
    assert_exited(RUN("--", "report"), 127, "", NULL); /* a program of that name */
    assert_killed(RUN("sh", "-c", "kill -KILL $$"), SIGKILL);
    assert_killed(RUN("sh", "-c", "kill -SEGV $$"), SIGSEGV);
    assert_killed(RUN("sh", "-c", "kill -TERM $$"), SIGTERM);
    signal(SIGCHLD, SIG_IGN); /* some parents leave it so */
    pid_t pid = start((char *[]){command, "sh", "-c", "exit 5", NULL}, NULL);
    signal(SIGCHLD, SIG_DFL);
    assert_exited(finish(pid), 5, "", no_session);
}

static void put_program(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "we");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* What the kernel refuses is a script for the shell, unless it is binary. */
static void files_that_cannot_be_executed_are_told_of(void **state)
{
    static const char elf[] = "\177ELFgarbage", zero[] = "\0\1\n", script[] = "echo from $1; exit 5\n",
                      lost[] = "#! /no/such/reader -x\n";
    char path[PATH_MAX], err[2 * PATH_MAX];
    (void)state;
    snprintf(path, sizeof path, "%s", inside("tmp/file"));
    const struct {
        const char *bytes;
        size_t n;
    } binary[] = {{elf, sizeof elf - 1}, {zero, sizeof zero - 1}};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
        put_program(path, binary[i].bytes, binary[i].n);
        snprintf(err, sizeof err, "==ERROR== %s: %s\n", path, strerror(ENOEXEC));
        assert_exited(RUN(path), 126, "", err);
    }
    put_program(path, script, sizeof script - 1);
    assert_exited(RUN("--quiet", path, "it"), 5, "from it\n", "");
    put_program(path, lost, sizeof lost - 1);
    snprintf(err, sizeof err, "==ERROR== %s: its interpreter /no/such/reader: %s\n", path, strerror(ENOENT));
    assert_exited(RUN(path), 127, "", err);
    unlink(path);
}

/* Waits until the program has written something. */
static void wait_for_output(void)
{
    struct stat st;
    for (int i = 0; i < 1000; i++) {
        if (!stat(inside("out"), &st) && st.st_size)
            return;
        usleep(10000);
    }
    fail_msg("the program wrote nothing");
}

static void signals_are_handed_on_once(void **state)
{
    static const struct {
        int sig;
        const char *name;
    } signals[] = {{SIGTERM, "TERM"}, {SIGINT, "INT"},   {SIGHUP, "HUP"},   {SIGQUIT, "QUIT"}, {SIGUSR1, "USR1"},
                   {SIGUSR2, "USR2"}, {SIGALRM, "ALRM"}, {SIGPIPE, "PIPE"}, {SIGXCPU, "XCPU"}, {SIGPROF, "PROF"}};
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char script[256];
        snprintf(script, sizeof script,
                 "n=0; trap 'n=$((n+1))' %s; echo ready; for i in 1 2 3 4 5 6; do sleep 0.05; done; exit $((40+n))",
                 signals[i].name);
        pid_t pid = start((char *[]){command, "sh", "-c", script, NULL}, NULL);
        wait_for_output();
        kill(pid, signals[i].sig);
        assert_exited(finish(pid), 41, "ready\n", no_session);
    }
    pid_t pid = start((char *[]){command, "sh", "-c", "echo ready; exec sleep 20", NULL}, NULL);
    wait_for_output();
    kill(pid, SIGTERM);
    assert_killed(finish(pid), SIGTERM);
}

/* Whatever ends the command ends the program: in the end its parent is gone in the same way. */
static void no_program_is_left_behind(void **state)
{
    const int signals[] = {SIGALRM, SIGPIPE, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF,  SIGIO,
                           SIGSYS,  SIGPWR,  SIGABRT, SIGSEGV, SIGRTMIN,  SIGRTMAX, SIGSTKFLT};
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pid_t pid = start((char *[]){command, "sh", "-c", "echo $$; exec sleep 20", NULL}, NULL);
        wait_for_output();
        kill(pid, signals[i]);
        struct outcome o = finish(pid);
        pid_t program = (pid_t)atol(o.out);
        assert_true(program > 0);
        assert_int_equal(kill(program, 0), -1);
        assert_killed(o, signals[i]);
    }
}

static void assert_tmp_is_empty(void)
{
    assert_int_equal(rmdir(tmp), 0); /* which only an empty folder allows */
    assert_int_equal(mkdir(tmp, 0755), 0);
}

static void a_killed_program_gets_its_report(void **state)
{
    (void)state;
    struct outcome o = RUN(self, "--session", "killed");
    assert_non_null(strstr(o.err, " was killed by signal 9 (Killed); its report up to then:\n"));
    assert_non_null(strstr(o.err, "  stream_triad(const float4 *, const float4 *, float4 *, int) (65536, 1, 1)"));
    assert_non_null(strstr(o.err, "==KPROF== 2 launches seen, 2 profiled"));
    assert_null(strstr(o.out, "KPROF"));
    assert_non_null(strstr(o.out, tmp));
    assert_killed(o, SIGKILL);
    assert_tmp_is_empty();
}

static void a_program_below_the_program_gets_its_report(void **state)
{
    (void)state;
    char script[4 * PATH_MAX];
    snprintf(script, sizeof script, "'%s' --session killed; '%s' --session complete; '%s' --session exits", self, self,
             self);
    struct outcome o = RUN("sh", "-c", script);
    const char *first = strstr(o.err, " ended without its report; here it is");
    assert_non_null(first); /* the one that was killed, and the one that left without a word */
    const char *second = strstr(first + 1, " ended without its report; here it is");
    assert_non_null(second);
    assert_null(strstr(second + 1, " ended without its report"));
    assert_exited(o, 3, NULL, NULL);
    assert_tmp_is_empty();
}

static void a_finished_program_is_left_alone(void **state)
{
    (void)state;
    struct outcome o = RUN(self, "--session", "complete");
    assert_exited(o, 3, NULL, "");
    assert_tmp_is_empty();
}

static void the_log_file_gets_the_report(void **state)
{
    (void)state;
    char variable[2 * PATH_MAX], path[PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("tmp/log"));
    snprintf(variable, sizeof variable, "KPROF_LOG_FILE=%s", path);
    FILE *f = fopen(path, "we");
    fputs("progress\n", f);
    fclose(f);
    assert_killed(RUN_WITH(ENV(variable), self, "--session", "killed"), SIGKILL);
    char *log = kp_test_read(path);
    assert_memory_equal(log, "progress\n==KPROF== Process ", strlen("progress\n==KPROF== Process "));
    assert_non_null(strstr(log, "==KPROF== 2 launches seen"));
    free(log);
    unlink(path);
    assert_tmp_is_empty();
}

static void a_program_without_cuda_is_told_of(void **state)
{
    (void)state;
    assert_exited(RUN("sh", "-c", "exit 7"), 7, "", no_session);
    struct outcome o = RUN("sh", "-c", "kill -KILL $$");
    assert_string_equal(o.err, no_session);
    assert_killed(o, SIGKILL);
    assert_exited(RUN("--quiet", "sh", "-c", "exit 7"), 7, "", "");
    /* one that ran unprofiled has said so itself, and has taken its session back */
    assert_exited(RUN(self, "--session", "removed"), 3, NULL, "");
    assert_tmp_is_empty();
}

/* A program that goes on in the background still needs its file. */
static void a_program_that_outlives_the_command_keeps_its_session(void **state)
{
    (void)state;
    char script[4 * PATH_MAX];
    snprintf(script, sizeof script,
             "('%s' --session waits & echo $! >%s/pid); while [ ! -s %s/name ] && kill -0 $(cat %s/pid); do sleep "
             "0.05; done",
             self, tmp, tmp, tmp);
    char variable[PATH_MAX];
    snprintf(variable, sizeof variable, "KP_TEST_NAME=%s/name", tmp);
    struct outcome o = RUN_WITH(ENV(variable), "sh", "-c", script);
    char *pid = kp_test_read(inside("tmp/pid")), *session = kp_test_read(inside("tmp/name")), *err = NULL;
    struct kp_store *s = NULL;
    assert_exited(o, 0, NULL, "");
    assert_int_equal(kp_store_open(session, &s, &err), 0);
    kp_store_close(s);
    kill((pid_t)atoi(pid), SIGKILL);
    unlink(session);
    *strrchr(session, '/') = '\0';
    assert_int_equal(rmdir(session), 0);
    unlink(inside("tmp/pid"));
    unlink(inside("tmp/name"));
    assert_tmp_is_empty();
    free(pid);
    free(session);
}

static void an_export_needs_no_session_file(void **state)
{
    (void)state;
    char nothing[2 * PATH_MAX], path[PATH_MAX];
    snprintf(path, sizeof path, "%s", inside("somewhere.kprof"));
    snprintf(nothing, sizeof nothing, "==KPROF== Nothing was written to %s. %s", path, nothing_more);
    struct outcome o = RUN("-o", path, "env");
    assert_null(strstr(o.out, "KPROF_SESSION_FILE"));
    assert_exited(o, 0, NULL, nothing);
    o = RUN("env");
    assert_non_null(strstr(o.out, "KPROF_SESSION_FILE"));
    assert_exited(o, 0, NULL, no_session);
    assert_tmp_is_empty();
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--session"))
        return play_program(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_prints_a_stored_session),
        cmocka_unit_test(report_of_an_unfinished_session_says_so),
        cmocka_unit_test(a_full_device_is_told_of),
        cmocka_unit_test(wrong_use_names_the_nearest_choice),
        cmocka_unit_test(options_that_ask_for_nothing),
        cmocka_unit_test(run_is_a_word_too),
        cmocka_unit_test(a_file_of_options_goes_first),
        cmocka_unit_test(rules_are_listed_without_cupti),
        cmocka_unit_test(report_puts_sessions_together),
        cmocka_unit_test(help_lists_every_option),
        cmocka_unit_test(help_of_a_command),
        cmocka_unit_test(help_of_an_answer),
        cmocka_unit_test(answers_tell_of_options_without_effect),
        cmocka_unit_test(every_flag_reaches_the_environment),
        cmocka_unit_test(lists_that_are_given_again_grow),
        cmocka_unit_test(a_value_in_vain_is_told_of),
        cmocka_unit_test(flags_without_effect_are_told_of),
        cmocka_unit_test(flags_of_pages_are_told_of_where_there_are_none),
        cmocka_unit_test(the_library_is_preloaded_before_others),
        cmocka_unit_test(without_the_library_nothing_runs),
        cmocka_unit_test(the_programs_end_is_the_commands_end),
        cmocka_unit_test(files_that_cannot_be_executed_are_told_of),
        cmocka_unit_test(signals_are_handed_on_once),
        cmocka_unit_test(no_program_is_left_behind),
        cmocka_unit_test(a_killed_program_gets_its_report),
        cmocka_unit_test(a_program_below_the_program_gets_its_report),
        cmocka_unit_test(a_finished_program_is_left_alone),
        cmocka_unit_test(the_log_file_gets_the_report),
        cmocka_unit_test(a_program_without_cuda_is_told_of),
        cmocka_unit_test(a_program_that_outlives_the_command_keeps_its_session),
        cmocka_unit_test(an_export_needs_no_session_file),
    };
    return cmocka_run_group_tests_name("kprof", tests, install, uninstall);
}
