#include "collectors/code/disassemble.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/descriptor.h"
#include "base/room.h"
#include "base/text.h"
#include "collectors/code/cubin_internal.h"

extern char **environ;

#define TOOL  "nvdisasm"
#define LABEL ".L" /* prefix of its labels */

/* ---- finding it ---- */

/* Returns the program in the first `len` characters of `folder`, followed by `below`, if it exists. */
static char *program_in(const char *folder, size_t len, const char *below)
{
    char *path;
    if (asprintf(&path, "%.*s%s/" TOOL, (int)len, folder, below) < 0)
        return NULL;
    if (len && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *kp_disassembler_find(void)
{
    static const char standard[] = "/usr/local/cuda";
    const char *path = getenv("PATH"), *home = getenv("CUDA_HOME");
    char *found = NULL;
    while (path && *path && !found) {
        size_t len = strcspn(path, ":");
        found = program_in(path, len, "");
        path += len + (path[len] == ':');
    }
    if (!found && home)
        found = program_in(home, strlen(home), "/bin");
    return found ? found : program_in(standard, strlen(standard), "/bin");
}

/* ---- running it ---- */

/* The child's descriptor of the image; ours are higher. */
enum { IMAGE_FD = 3 };

struct child {
    int tool;   /* its handle; -1 = none */
    int output; /* its standard output, or -1 */
    struct timespec deadline;
};

/* Puts the image into an unnamed file, for the child alone. Returns the descriptor, or negative errno. */
static int image_file(const void *image, size_t size)
{
    int fd = kp_descriptor_memory("cubin");
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, (const char *)image + done, size - done, (off_t)done);
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            close(fd);
            return -error;
        }
        done += (size_t)n;
    }
    return fd;
}

/* Copies the environment without the variables that would preload us into the tool. The strings still belong to the
 * environment. */
static char **child_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ && environ[n])
        n++;
    char **list = calloc(n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
            list[kept++] = environ[i];
    }
    return list;
}

/* Data for the child until the tool starts. */
struct launch {
    const char *tool;
    char **arguments, **environment, *stack; /* for starting the tool */
    int image, output, null;
    pid_t pid; /* out: the tool's; -1 = failed */
    int error; /* out: why the tool did not start */
};

/* Runs in the child, in the parent's memory, while the parent waits, so it makes only system calls. The tool must not
 * inherit the program's signal settings. */
static int become_tool(void *arg)
{
    struct launch *l = arg;
    /* The kernel's structure, all zero: SIG_DFL, no flags, an empty mask. Bypasses sigaction(): the one of a sanitiser
     * or another preloaded library may keep a table, which here would be the program's. */
    const uint64_t by_default[4] = {0};
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        syscall(SYS_rt_sigaction, s, by_default, NULL, _NSIG / 8); /* signals that cannot be reset have no handler */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(l->null, STDIN_FILENO) >= 0 && dup2(l->output, STDOUT_FILENO) >= 0 && dup2(l->null, STDERR_FILENO) >= 0 &&
        dup2(l->image, IMAGE_FD) >= 0)
        syscall(SYS_execve, l->tool, l->arguments, l->environment); /* past our own wrapper, like the exit */
    l->error = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

/* Runs in a child that starts the tool and exits, so that the tool is not a child of the program. */
static int start_tool(void *arg)
{
    struct launch *l = arg;
    l->pid = clone(become_tool, l->stack, CLONE_VM | CLONE_VFORK, l);
    if (l->pid < 0)
        l->error = errno;
    syscall(SYS_exit_group, 0);
    return 0;
}

/* Starts the tool through a child in between. A direct child would send SIGCHLD to the program, whose handlers and
 * waits for any child would see it. The child in between sends no signal; posix_spawn has no way to request that. */
static int spawn(const char *tool, char *functions, int image, int output, int *tool_handle)
{
    enum { STACK = 64 << 10 };
    char path[32];
    char name[] = TOOL, print_code[] = "-c", only[] = "-fun";
    char *arguments[] = {name, print_code, only, functions, path, NULL};
    struct launch l = {.tool = tool, .arguments = arguments, .image = image, .output = output};
    sigset_t all, before;
    int rc = -ENOMEM;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", IMAGE_FD);
    l.environment = child_environment();
    char *stack = aligned_alloc(64, 2 * STACK);
    l.stack = stack + STACK;
    l.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (l.null >= 0)
        l.null = kp_descriptor_raise(l.null);
    if (!l.environment || !stack || l.null < 0)
        goto out;
    /* Blocks the program's handlers in the child, which shares the program's memory. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t between = clone(start_tool, stack + 2 * STACK, CLONE_VM | CLONE_VFORK, &l);
    rc = between < 0 ? -errno : -l.error;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (between > 0 && waitpid(between, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    /* Gets a handle, because the number may be reused once the tool has ended. Linux before 5.3 has none. */
    *tool_handle = rc ? -1 : (int)syscall(SYS_pidfd_open, l.pid, 0);
out:
    if (l.null >= 0)
        close(l.null);
    free(stack);
    free(l.environment);
    return rc;
}

static int start(struct child *c, const char *tool, char *functions, const void *image, size_t size, unsigned limit_ms)
{
    int ends[2] = {-1, -1}, file = image_file(image, size), rc = file < 0 ? file : 0;
    if (!rc && pipe2(ends, O_CLOEXEC))
        rc = -errno;
    if (!rc) {
        ends[0] = kp_descriptor_raise(ends[0]);
        ends[1] = kp_descriptor_raise(ends[1]);
        rc = ends[0] < 0 || ends[1] < 0 ? -EMFILE : 0;
    }
    if (!rc)
        rc = spawn(tool, functions, file, ends[1], &c->tool);
    if (ends[1] >= 0)
        close(ends[1]);
    if (file >= 0)
        close(file);
    if (rc && ends[0] >= 0)
        close(ends[0]);
    c->output = rc ? -1 : ends[0];
    clock_gettime(CLOCK_MONOTONIC, &c->deadline);
    c->deadline.tv_sec += limit_ms / 1000;
    c->deadline.tv_nsec += (long)(limit_ms % 1000) * 1000000;
    return rc;
}

/* Returns milliseconds until the deadline, 0 after it. */
static int time_left(const struct child *c)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ms = (int64_t)(c->deadline.tv_sec - now.tv_sec) * 1000 + (c->deadline.tv_nsec - now.tv_nsec) / 1000000;
    return ms > 0 ? (int)ms : 0;
}

/* Reads the next output; 0 at its end, after an error, or after the time limit. */
static size_t next_output(const struct child *c, char *buffer, size_t size)
{
    for (;;) {
        struct pollfd p = {.fd = c->output, .events = POLLIN};
        int ready = poll(&p, 1, time_left(c));
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = ready > 0 ? read(c->output, buffer, size) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        return n > 0 ? (size_t)n : 0;
    }
}

/* Ends the tool, whose output has been read or is not needed. Without a handle the tool ends when it writes into the
 * closed pipe. */
static void finish(struct child *c)
{
    close(c->output);
    if (c->tool < 0)
        return;
    syscall(SYS_pidfd_send_signal, c->tool, SIGKILL, NULL, 0);
    close(c->tool);
}

/* ---- parsing the output ---- */

struct target {
    struct kp_code *code;
    struct kp_cubin_place place;
    const char *section; /* name */
};

/* A name for a place in the code; printed branches use it. */
struct label {
    const char *name;
    uint64_t offset; /* in the section, in bytes */
};

struct reader {
    struct target *targets;
    size_t n_targets;
    struct kp_arena names;
    struct label *labels;
    size_t n_labels;
    size_t n_placed;    /* the remaining ones are for the next instruction */
    char section[4096]; /* name of the section being printed; "" if too long */
    size_t n_filled;
    int rc;
};

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static struct kp_instruction *instruction_at(const struct target *t, const char *section, uint64_t offset)
{
    if (strcmp(t->section, section) != 0 || offset < t->place.begin || offset - t->place.begin > UINT32_MAX)
        return NULL;
    /* The codes and their instructions belong to the caller, so the cast is safe. */
    return (struct kp_instruction *)kp_code_at(t->code, (uint32_t)(offset - t->place.begin));
}

static void take_label(struct reader *r, const char *name, size_t len)
{
    const char *copy = KP_ROOM(r->labels, r->n_labels) ? kp_arena_text(&r->names, name, len) : NULL;
    if (copy)
        r->labels[r->n_labels++].name = copy;
    else
        r->rc = -ENOMEM;
}

/* Stores an instruction's text: several functions may share a section, and so an instruction. */
static void take_instruction(struct reader *r, uint64_t offset, const char *text, size_t len)
{
    for (size_t i = 0; i < r->n_targets; i++) {
        struct kp_instruction *to = instruction_at(&r->targets[i], r->section, offset);
        char *copy = to ? strndup(text, len) : NULL;
        if (to && !copy)
            r->rc = -ENOMEM;
        if (!copy)
            continue;
        free(to->text);
        to->text = copy;
        r->n_filled++;
    }
}

static void take_section(struct reader *r, const char *name)
{
    size_t len = strcspn(name, ",");
    if (len >= sizeof(r->section))
        len = 0;
    memcpy(r->section, name, len);
    r->section[len] = 0;
}

/* Parses one of .section<tab>NAME,"ax",... .LABEL: /<star>OFFSET<star>/<blanks>INSTRUCTION ; after blanks. */
static void take_line(struct reader *r, const char *line)
{
    static const char section[] = ".section", open[] = "/*", close_mark[] = "*/", blanks[] = " \t";
    char *after;
    line += strspn(line, blanks);
    if (has_prefix(line, section))
        take_section(r, line + strlen(section) + strspn(line + strlen(section), blanks));
    else if (has_prefix(line, LABEL) && strchr(line, ':'))
        take_label(r, line, strcspn(line, ":"));
    if (!has_prefix(line, open))
        return;
    uint64_t offset = strtoull(line + strlen(open), &after, 16);
    if (!has_prefix(after, close_mark))
        return;
    after += strlen(close_mark);
    after += strspn(after, blanks);
    size_t len = strcspn(after, ";");
    while (len && strchr(blanks, after[len - 1]))
        len--;
    while (r->n_placed < r->n_labels)
        r->labels[r->n_placed++].offset = offset;
    if (len)
        take_instruction(r, offset, after, len);
}

/* Passes each whole line to `r`. Drops a line longer than `size`, which is none of interest. */
static void read_listing(const struct child *c, struct reader *r, char *buffer, size_t size)
{
    size_t held = 0, n;
    bool dropping = false;
    while (r->rc == 0 && (n = next_output(c, buffer + held, size - 1 - held)) > 0) {
        char *line = buffer, *newline;
        held += n;
        while ((newline = memchr(line, '\n', held))) {
            *newline = 0;
            if (!dropping)
                take_line(r, line);
            dropping = false;
            held -= (size_t)(newline + 1 - line);
            line = newline + 1;
        }
        if (held == size - 1) {
            dropping = true;
            held = 0;
        }
        memmove(buffer, line, held);
    }
}

/* ---- labels ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Replaces `(.L_x_1) by 0x90, because labels are not kept. 0 or -ENOMEM. */
static int resolve(const struct reader *r, const struct target *t, struct kp_instruction *i)
{
    static const char open[] = "`(";
    char *begin = strstr(i->text, open), *end = begin ? strchr(begin, ')') : NULL, *text;
    if (!end || !has_prefix(begin + strlen(open), LABEL))
        return 0;
    *end = 0;
    struct label key = {.name = begin + strlen(open)};
    const struct label *l = r->n_placed ? bsearch(&key, r->labels, r->n_placed, sizeof(key), by_name) : NULL;
    *end = ')';
    if (!l || l->offset < t->place.begin)
        return 0;
    if (asprintf(&text, "%.*s0x%" PRIx64 "%s", (int)(begin - i->text), i->text, l->offset - t->place.begin, end + 1) <
        0)
        return -ENOMEM;
    free(i->text);
    i->text = text;
    return 0;
}

static int resolve_all(struct reader *r)
{
    int rc = r->rc;
    if (r->n_placed)
        qsort(r->labels, r->n_placed, sizeof(*r->labels), by_name);
    for (size_t i = 0; !rc && i < r->n_targets; i++) {
        const struct kp_code *code = r->targets[i].code;
        for (size_t k = 0; !rc && k < code->n_instructions; k++)
            rc = resolve(r, &r->targets[i], &code->instructions[k]);
    }
    return rc;
}

/* ---- all of it ---- */

/* Finds the place of each function, and their symbols for the tool, separated by commas. */
static int find_targets(const struct kp_cubin *c, struct kp_code *const *codes, size_t n, struct reader *r,
                        char **functions)
{
    size_t size;
    FILE *list = open_memstream(functions, &size);
    r->targets = calloc(n + 1, sizeof(*r->targets));
    int rc = list && r->targets ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        struct target *t = &r->targets[r->n_targets];
        Elf64_Shdr section;
        if (kp_cubin_find(c, codes[i]->function, &t->place) || !kp_cubin_section(c, t->place.section, &section))
            continue;
        t->code = codes[i];
        t->section = kp_cubin_section_name(c, &section);
        if (t->section)
            fprintf(list, "%s%u", r->n_targets++ ? "," : "", t->place.symbol);
    }
    if (list && kp_text_end(list, functions))
        rc = -ENOMEM;
    return rc || r->n_targets ? rc : -ENOENT;
}

int kp_disassemble(const char *tool, const void *image, size_t size, struct kp_code *const *codes, size_t n,
                   unsigned limit_ms)
{
    enum { LINES_SIZE = 1 << 16 };
    struct kp_cubin *cubin;
    struct reader *r = calloc(1, sizeof(*r));
    char *functions = NULL, *lines = malloc(LINES_SIZE);
    struct child child;
    int rc = kp_cubin_open(image, size, &cubin);
    if (!rc && (!r || !lines))
        rc = -ENOMEM;
    if (!rc)
        rc = find_targets(cubin, codes, n, r, &functions);
    if (!rc)
        rc = start(&child, tool, functions, image, size, limit_ms);
    if (!rc) {
        read_listing(&child, r, lines, LINES_SIZE);
        finish(&child);
        rc = resolve_all(r);
        if (!rc && r->n_filled == 0)
            rc = -ENODATA;
    }
    kp_cubin_close(cubin);
    free(functions);
    free(lines);
    if (r) {
        kp_arena_free(&r->names);
        free(r->labels);
        free(r->targets);
    }
    free(r);
    return rc;
}
