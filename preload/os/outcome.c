#include "preload/os/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/os/kept_environment.h"
#include "preload/os/quiet.h"

static struct {
    char *file; /* NULL: nobody waits for the outcome */
    pid_t pid;  /* of the reporting process; 0: not yet */
    bool strict;
    atomic_uint_fast64_t failures;
} outcome;

/* Opens the file for each line: a program may close descriptors that it does not know. The command makes and removes
 * the file; lines that several processes append do not mix. A zero ends each, as a path may contain a line break. */
static void tell(const char *word, const char *rest)
{
    char *line = NULL;
    int saved = errno;
    if (!outcome.file || outcome.pid != getpid())
        return;
    int n = asprintf(&line, "%d %s%s%s", (int)outcome.pid, word, *rest ? " " : "", rest);
    struct kp_quiet q = kp_quiet_begin();
    int fd = n > 0 ? open(outcome.file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd >= 0) {
        if (write(fd, line, (size_t)n + 1) != n + 1)
            errno = saved; /* there is no other way to report it */
        close(fd);
    }
    kp_quiet_end(&q);
    if (n > 0)
        free(line);
    errno = saved;
}

void kp_outcome_open(void)
{
    const char *file = kp_kept_option("KPROF_STATUS_FILE");
    outcome.file = file && *file ? strdup(file) : NULL;
    outcome.pid = getpid();
    tell("started", "");
}

bool kp_outcome_is_awaited(void)
{
    return outcome.file && outcome.pid == getpid();
}

void kp_outcome_strict(bool strict)
{
    outcome.strict = strict;
}

void kp_outcome_failed(enum kp_failure kind)
{
    if (!(atomic_fetch_or(&outcome.failures, kp_failure_bit(kind)) & kp_failure_bit(kind)))
        tell("failed", kp_failure_rows[kind].name);
}

void kp_outcome_runs(size_t runs)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", runs);
    tell("runs", text);
}

void kp_outcome_stored(const char *path)
{
    tell("stored", path);
}

void kp_outcome_reached(void)
{
    tell("reached", "");
}

void kp_outcome_left(void)
{
    tell("left", "");
}

/* Makes the last line: without the command nothing can change the exit status, so the line names the status that the
 * command would return. */
static char *strict_line(uint64_t seen, uint64_t matched)
{
    kp_failure_set set = atomic_load(&outcome.failures);
    if (!set)
        set = kp_failure_bit(!seen ? KP_FAILURE_NO_LAUNCH : KP_FAILURE_NO_MATCH) * (kp_failure_set)!matched;
    char *failures = set ? kp_failure_line(set) : NULL, *line = NULL;
    if (failures && asprintf(&line, "strict: %s; under the kprof command the exit status would be %d", failures,
                             kp_failure_rows[kp_failure_first(set)].status) < 0)
        line = NULL;
    free(failures);
    return line;
}

char *kp_outcome_ended(uint64_t seen, uint64_t matched)
{
    char counts[64];
    snprintf(counts, sizeof(counts), "%" PRIu64 " %" PRIu64, seen, matched);
    tell("ended", counts);
    return outcome.strict && !outcome.file && outcome.pid == getpid() ? strict_line(seen, matched) : NULL;
}
