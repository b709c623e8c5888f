/* LINK: -lcuda -lpthread -ldl */
/* Four launches, two by two, and between them what the first argument names: what programs do to themselves, and
 * processes that they start. Other arguments: a file or folder of the program's own. */
#include "linked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static struct session session;
static CUdeviceptr values;
static const char *self, *own;
static int signals;

static void launch_two(void)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = 8;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
    MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
}

static int exit_code_of(pid_t pid)
{
    int status = -1;

    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void nothing(void)
{
}

/* Children that look driver functions up, allocate, print and end in several ways, with a window open in the parent. */
static void forks(void)
{
    int right = 1;

    fflush(stdout);
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (!pid) {
            void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *block = malloc(100000);
            int found = handle && block && dlsym(handle, "cuMemFree_v2");
            free(block);
            if (i % 2)
                exit(found ? 5 : 6);
            _exit(found ? 5 : 6);
        }
        right &= exit_code_of(pid) == 5;
    }
    report("forked children", right);
}

/* The child shares our memory until it is another program, or has ended. */
static int vforked(const char *program)
{
    pid_t pid = vfork();

    if (!pid) {
        if (program)
            execl(program, program, "child", (char *)NULL);
        _exit(9);
    }
    return exit_code_of(pid);
}

static void vforks(void)
{
    int right = 1;

    for (int i = 0; i < 20; i++)
        right &= vforked(self) == 7 && vforked(NULL) == 9;
    report("vforked children", right);
}

static void spawns(void)
{
    char *argv[] = {(char *)self, (char *)"child", NULL};
    int right = 1;

    for (int i = 0; i < 20; i++) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t all;
        pid_t pid = -1;
        sigfillset(&all);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 5, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addclose(&actions, 5);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setsigmask(&attributes, &all);
        right &= !posix_spawn(&pid, self, &actions, &attributes, argv, environ) && exit_code_of(pid) == 7;
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    report("spawned children", right);
}

static void pipes(void)
{
    char command[PATH_MAX + 16], line[64] = "";
    FILE *child;

    snprintf(command, sizeof(command), "'%s' says", self);
    child = popen(command, "r");
    if (child && fgets(line, sizeof(line), child))
        line[strcspn(line, "\n")] = '\0';
    printf("the child says: %s\n", line);
    report_number("pclose", child ? pclose(child) : -1, 0);
    report_number("system", system("exit 3"), 3 << 8);
}

/* All descriptors but those of the standard streams go, and files of our own take the numbers. */
static void close_rest(void)
{
    int fd, right = 1;

    report_number("close_range", syscall(SYS_close_range, 3u, ~0u, 0u), 0);
    for (int i = 3; i < 40; i++) {
        fd = open(own, O_WRONLY | O_CREAT | O_APPEND, 0600);
        right &= fd == i;
    }
    right &= write(3, "mine\n", 5) == 5;
    report("files of our own", right);
}

/* Which descriptors a program sees that started without standard streams; told in a file, as there is no stdout. */
static void numbers(void)
{
    char line[64];
    int fd[4];

    for (int i = 0; i < 4; i++)
        fd[i] = open(own, O_WRONLY | O_CREAT | O_APPEND, 0600);
    snprintf(line, sizeof(line), "%d %d %d %d\n", fd[0], fd[1], fd[2], fd[3]);
    if (write(fd[3], line, strlen(line)) < 0)
        program_wrong = 1;
    fputs("an error of ours\n", stderr);
    puts("a line of ours");
}

static void root(void)
{
    report_number("chroot", chroot(own), 0);
    report_number("chdir", chdir("/"), 0);
}

/* As a daemon that gives its rights up. */
static void drop(void)
{
    report_number("setgid", setgid(65534), 0);
    report_number("setuid", setuid(65534), 0);
}

static void gone(void)
{
    char folder[] = "/tmp/p_process.XXXXXX";

    report("a folder", mkdtemp(folder) && !chdir(folder) && !rmdir(folder));
    report("no current folder", !getcwd(folder, sizeof(folder)) && errno == ENOENT);
}

static void count_signal(int number)
{
    signals += number == SIGXFSZ;
}

/* A file of our own that is larger than the limit of the shell that started us: one signal for each attempt. */
static void too_large(void)
{
    static char block[1 << 20];
    int fd = open(own, O_WRONLY | O_CREAT | O_TRUNC, 0600), refused = 0;

    signal(SIGXFSZ, count_signal);
    for (int i = 0; i < 8; i++)
        refused += write(fd, block, sizeof(block)) < 0 && errno == EFBIG;
    report_number("refused writes", refused, signals);
    report("a limit", refused > 0);
    close(fd);
}

/* The end of a program whose next write would be one too many. */
static void too_large_kills(void)
{
    static char block[1 << 20];
    int fd = open(own, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    fflush(stdout);
    for (int i = 0; i < 8; i++)
        if (write(fd, block, sizeof(block)) < 0)
            puts("not killed");
}

/* A library with a CUDA of its own in a namespace of its own. */
static void namespaces(void)
{
    char path[PATH_MAX], *folder;
    int (*run)(void) = NULL;
    void *handle;

    snprintf(path, sizeof(path), "%s", self);
    folder = dirname(path);
    if (chdir(folder))
        puts("no folder");
    handle = dlmopen(LM_ID_NEWLM, "./cuda_plugin", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        printf("dlmopen: %s\n", dlerror());
    else
        *(void **)&run = dlsym(handle, "run");
    fflush(stdout); /* the namespace has a C library of its own, with another buffer */
    report_number("in another namespace", run ? run() : -1, 0);
}

static const struct {
    const char *name;
    void (*before)(void), (*between)(void);
} cases[] = {
    {"none", nothing, nothing},
    {"forks", nothing, forks},
    {"vforks", nothing, vforks},
    {"spawns", nothing, spawns},
    {"pipes", nothing, pipes},
    {"close_rest", nothing, close_rest},
    {"close_rest_first", close_rest, nothing},
    {"numbers", numbers, nothing},
    {"root", nothing, root},
    {"root_first", root, nothing},
    {"drop", nothing, drop},
    {"drop_first", drop, nothing},
    {"gone", nothing, gone},
    {"gone_first", gone, nothing},
    {"too_large", nothing, too_large},
    {"too_large_kills", nothing, too_large_kills},
    {"namespaces", nothing, namespaces},
    {"namespaces_first", namespaces, nothing},
};

static int run_case(size_t i)
{
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (const int[8]){0}, 8);
    launch_two();
    cases[i].between();
    launch_two();
    report_number("increments", sum_ints(&linked, values, 8), 4 * 8);
    close_session(&linked, &session);
    return program_wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "none";

    self = argv[0];
    own = argc > 2 ? argv[2] : "/dev/null";
    if (!strcmp(what, "child"))
        return 7;
    if (!strcmp(what, "says")) {
        puts("a word");
        return 0;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, what)) {
            cases[i].before();
            return run_case(i);
        }
    printf("no such case: %s\n", what);
    return 2;
}
