/* What is written to stdout while muted is gone; what is written before, after, and by others is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "preload/os/stdout_mute.h"
#include "tests/support/end_support.h"

/* Each case has a process of its own, whose stdout is a file that the test reads afterwards. */
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                         \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static int status_of(void (*program)(void), int out)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        dup2(out, STDOUT_FILENO);
        setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
        program();
        fflush(stdout);
        kp_test_end(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* *text is what the program's stdout holds; free it. */
static void run(void (*program)(void), char **text)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(status_of(program, fileno(f)), 0);
    long size = lseek(fileno(f), 0, SEEK_END);
    *text = calloc(1, (size_t)size + 1);
    assert_int_equal(pread(fileno(f), *text, (size_t)size, 0), size);
    fclose(f);
}

static void expect(void (*program)(void), const char *output)
{
    char *text = NULL;
    run(program, &text);
    assert_string_equal(text, output);
    free(text);
}

static void print_a_lot(void)
{
    puts("DROPPED");
    for (int i = 0; i < 20000; i++)
        printf("DROPPED %d\n", i);
    fwrite("DROPPED", 1, 7, stdout);
    putc('D', stdout);
}

static void mute(void)
{
    struct kp_mute m;
    kp_mute_begin(&m);
    CHECK(m.on);
    print_a_lot();
    kp_mute_end(&m);
    CHECK(!m.on);
}

/* ---- what is dropped, and what is not ---- */

static int buffering;

static void before_and_after(void)
{
    setvbuf(stdout, NULL, buffering, BUFSIZ);
    mute(); /* before anything was written */
    printf("before");
    mute();
    puts(" after");
    mute();
    mute();
    puts("end");
}

static void only_what_was_written_while_muted_is_dropped(void **state)
{
    (void)state;
    static const int kinds[] = {_IOFBF, _IOLBF, _IONBF};
    for (size_t i = 0; i < 3; i++) {
        buffering = kinds[i];
        expect(before_and_after, "before after\nend\n");
    }
}

static void past_the_stream(void)
{
    struct kp_mute m;
    printf("1 ");
    kp_mute_begin(&m);
    CHECK(write(STDOUT_FILENO, "2 ", 2) == 2);
    printf("DROPPED");
    CHECK(write(STDOUT_FILENO, "3 ", 2) == 2);
    kp_mute_end(&m);
    printf("4");
}

static void the_descriptor_is_not_touched(void **state)
{
    (void)state;
    expect(past_the_stream, "1 2 3 4");
}

static void position(void)
{
    printf("12345");
    CHECK(!fseek(stdout, 0, SEEK_END)); /* from here on the stream keeps the position itself */
    mute();
    CHECK(ftell(stdout) == 5);
    CHECK(!fseek(stdout, 0, SEEK_CUR));
    printf("678");
    CHECK(ftell(stdout) == 8);
}

static void the_position_is_kept(void **state)
{
    (void)state;
    expect(position, "12345678");
}

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void tidy(void)
{
    struct kp_mute m;
    int n = descriptors();
    errno = 77;
    kp_mute_begin(&m);
    CHECK(errno == 77);
    CHECK(m.on && m.nowhere >= 512);
    CHECK(fcntl(m.nowhere, F_GETFD) & FD_CLOEXEC);
    CHECK(descriptors() == n + 1);
    errno = 77;
    kp_mute_end(&m);
    CHECK(errno == 77);
    CHECK(descriptors() == n);
    kp_mute_end(&m); /* nothing to end */
}

static void nothing_is_left_behind(void **state)
{
    (void)state;
    expect(tidy, "");
}

/* ---- other threads ---- */

enum { LINES = 2000, PRINTERS = 3 };

static void *print_lines(void *arg)
{
    for (int i = 0; i < LINES; i++)
        printf("%d %d\n", (int)(intptr_t)arg, i);
    return NULL;
}

static void beside_printers(void)
{
    pthread_t t[PRINTERS];
    setvbuf(stdout, NULL, buffering, BUFSIZ);
    for (intptr_t i = 0; i < PRINTERS; i++)
        CHECK(!pthread_create(&t[i], NULL, print_lines, (void *)i));
    for (int i = 0; i < 50; i++) {
        struct kp_mute m;
        kp_mute_begin(&m);
        CHECK(m.on);
        for (int k = 0; k < 20; k++) {
            puts("DROPPED");
            kp_nap(0);
        }
        kp_mute_end(&m);
    }
    for (int i = 0; i < PRINTERS; i++)
        pthread_join(t[i], NULL);
}

static void assert_all_lines(const char *text)
{
    int next[PRINTERS] = {0}, who, number, used;
    for (; sscanf(text, "%d %d\n%n", &who, &number, &used) == 2; text += used) {
        assert_in_range(who, 0, PRINTERS - 1);
        assert_int_equal(number, next[who]++);
    }
    assert_string_equal(text, "");
    for (int i = 0; i < PRINTERS; i++)
        assert_int_equal(next[i], LINES);
}

static void what_other_threads_print_comes_later(void **state)
{
    (void)state;
    static const int kinds[] = {_IOFBF, _IOLBF, _IONBF};
    for (size_t i = 0; i < 3; i++) {
        char *text = NULL;
        buffering = kinds[i];
        run(beside_printers, &text);
        assert_all_lines(text);
        free(text);
    }
}

static atomic_int holds, let_go;

static void *hold(void *arg)
{
    (void)arg;
    flockfile(stdout);
    atomic_store(&holds, 1);
    while (!atomic_load(&let_go))
        kp_nap(0);
    funlockfile(stdout);
    return NULL;
}

/* A thread that keeps the stream may itself be waiting for us. */
static void held_by_another(void)
{
    struct kp_mute m;
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, hold, NULL));
    while (!atomic_load(&holds))
        kp_nap(0);
    long start = kp_now_ms();
    kp_mute_begin(&m);
    long took = kp_now_ms() - start;
    CHECK(!m.on);
    CHECK(took >= 900 && took < 5000);
    atomic_store(&let_go, 1);
    pthread_join(t, NULL);
    printf("kept");
    kp_mute_end(&m);
    CHECK(!ftrylockfile(stdout));
    funlockfile(stdout);
}

static void a_stream_that_is_held_is_left_alone(void **state)
{
    (void)state;
    expect(held_by_another, "kept");
}

static void *try_lock(void *free_to_take)
{
    *(bool *)free_to_take = !ftrylockfile(stdout);
    if (*(bool *)free_to_take)
        funlockfile(stdout);
    return NULL;
}

static bool others_can_lock(void)
{
    pthread_t t;
    bool yes = false;
    CHECK(!pthread_create(&t, NULL, try_lock, &yes));
    pthread_join(t, NULL);
    return yes;
}

static void lock_is_balanced(void)
{
    struct kp_mute m;
    flockfile(stdout);
    kp_mute_begin(&m);
    CHECK(m.on); /* what this thread holds is no obstacle */
    kp_mute_end(&m);
    CHECK(!others_can_lock());
    funlockfile(stdout);
    CHECK(others_can_lock());
    kp_mute_begin(&m);
    CHECK(!others_can_lock());
    kp_mute_end(&m);
    CHECK(others_can_lock());
}

static void the_lock_is_given_back(void **state)
{
    (void)state;
    expect(lock_is_balanced, "");
}

static void *fork_and_print(void *arg)
{
    (void)arg;
    pid_t child = fork();
    if (!child) {
        kp_mute_forked();
        printf("child ");
        fflush(stdout);
        kp_mute_forked(); /* and only once */
        kp_test_end(descriptors());
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == descriptors() - 1); /* without the one to nowhere */
    return NULL;
}

static void forks_while_muted(void)
{
    struct kp_mute m;
    pthread_t t;
    printf("before ");
    kp_mute_begin(&m);
    printf("DROPPED"); /* still in the buffer when the child is made */
    CHECK(!pthread_create(&t, NULL, fork_and_print, NULL));
    pthread_join(t, NULL);
    printf("DROPPED");
    kp_mute_end(&m);
    printf("after");
    kp_mute_forked(); /* nothing is muted */
}

static void a_child_forked_meanwhile_can_print(void **state)
{
    (void)state;
    expect(forks_while_muted, "before child after");
}

/* ---- streams that are not as usual ---- */

static void closed_descriptor(void)
{
    struct kp_mute m;
    int copy = dup(STDOUT_FILENO);
    printf("kept");
    close(STDOUT_FILENO);
    kp_mute_begin(&m); /* cannot write what is there: leaves it */
    CHECK(!m.on);
    kp_mute_end(&m);
    CHECK(dup2(copy, STDOUT_FILENO) == STDOUT_FILENO);
    CHECK(!fflush(stdout) && !ferror(stdout));
    close(STDOUT_FILENO);
    mute(); /* nothing is there */
    dup2(copy, STDOUT_FILENO);
    printf(" end");
}

static void no_stream(void)
{
    struct kp_mute m;
    FILE *before = stdout;
    stdout = NULL;
    kp_mute_begin(&m);
    CHECK(!m.on);
    kp_mute_end(&m);
    stdout = before;
    printf("end");
}

static void stream_in_memory(void)
{
    struct kp_mute m;
    FILE *before = stdout;
    char *text = NULL;
    size_t size = 0;
    stdout = open_memstream(&text, &size);
    printf("one ");
    kp_mute_begin(&m);
    CHECK(!m.on);
    printf("two");
    kp_mute_end(&m);
    fclose(stdout);
    stdout = before;
    printf("%s", text);
    free(text);
}

static void another_stream_meanwhile(void)
{
    struct kp_mute m;
    FILE *before = stdout;
    kp_mute_begin(&m);
    stdout = stderr;
    kp_mute_end(&m);
    stdout = before;
    CHECK(others_can_lock());
    printf("end");
}

static void own_locking(void)
{
    struct kp_mute m;
    __fsetlocking(stdout, FSETLOCKING_BYCALLER);
    kp_mute_begin(&m);
    CHECK(!m.on);
    printf("kept");
    kp_mute_end(&m);
}

static void no_descriptor_left(void)
{
    struct kp_mute m;
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 0;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    kp_mute_begin(&m);
    CHECK(!m.on);
    printf("kept");
    kp_mute_end(&m);
    CHECK(others_can_lock());
}

static void few_descriptors(void)
{
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    printf("kept ");
    mute();
    printf("end");
}

static void streams_that_are_not_as_usual(void **state)
{
    (void)state;
    expect(closed_descriptor, "kept end");
    expect(no_stream, "end");
    expect(stream_in_memory, "one two");
    expect(another_stream_meanwhile, "end");
    expect(own_locking, "kept");
    expect(no_descriptor_left, "kept");
    expect(few_descriptors, "kept end");
}

/* ---- readers that are not as usual ---- */

static int make_pipe(int *in)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *in = ends[0];
    return ends[1];
}

/* The program's own write is what ends it, as it would have. */
static void without_a_reader(void)
{
    struct kp_mute m;
    signal(SIGPIPE, SIG_DFL);
    printf("nobody reads this");
    kp_mute_begin(&m);
    CHECK(!m.on);
    kp_mute_end(&m);
    CHECK(__fpending(stdout) > 0 && !ferror(stdout));
    fflush(stdout);
    CHECK(false);
}

static void with_a_full_pipe(void)
{
    struct kp_mute m;
    static const char block[4096];
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDOUT_FILENO, block, sizeof(block)) > 0)
        ;
    fcntl(STDOUT_FILENO, F_SETFL, flags);
    printf("waits");
    long start = kp_now_ms();
    kp_mute_begin(&m);
    CHECK(!m.on);
    CHECK(kp_now_ms() - start < 5000);
    kp_mute_end(&m);
    CHECK(__fpending(stdout) == 5);
    __fpurge(stdout);
}

static void readers_that_are_not_as_usual(void **state)
{
    (void)state;
    int in, out = make_pipe(&in);
    assert_int_equal(status_of(with_a_full_pipe, out), 0);
    close(in);
    int status = status_of(without_a_reader, out);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    close(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_written_while_muted_is_dropped),
        cmocka_unit_test(the_descriptor_is_not_touched),
        cmocka_unit_test(the_position_is_kept),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(what_other_threads_print_comes_later),
        cmocka_unit_test(a_stream_that_is_held_is_left_alone),
        cmocka_unit_test(the_lock_is_given_back),
        cmocka_unit_test(a_child_forked_meanwhile_can_print),
        cmocka_unit_test(streams_that_are_not_as_usual),
        cmocka_unit_test(readers_that_are_not_as_usual),
    };
    return cmocka_run_group_tests_name("preload/mute", tests, NULL, NULL);
}
