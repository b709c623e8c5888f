#include "cmd/run_outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

/* Processes that have started but not ended. */
struct running {
    long *pids;
    size_t n;
};

static int add(struct running *r, long pid)
{
    if (!KP_ROOM(r->pids, r->n))
        return -ENOMEM;
    r->pids[r->n++] = pid;
    return 0;
}

static void take_out(struct running *r, long pid)
{
    for (size_t i = r->n; i--;)
        if (r->pids[i] == pid) {
            r->pids[i] = r->pids[--r->n];
            return;
        }
}

static int add_stored(struct kp_run_outcome *out, const char *path)
{
    char *copy = strdup(path), *again = strdup(path);
    if (!KP_ROOM(out->all_stored, out->n_stored) || !copy || !again) {
        free(copy);
        free(again);
        return -ENOMEM;
    }
    out->all_stored[out->n_stored++] = copy;
    free(out->stored);
    out->stored = again;
    return 0;
}

void kp_run_outcome_free(struct kp_run_outcome *o)
{
    for (size_t i = 0; i < o->n_stored; i++)
        free(o->all_stored[i]);
    free(o->all_stored);
    free(o->stored);
    o->all_stored = NULL;
    o->stored = NULL;
    o->n_stored = 0;
}

static int read_line(char *line, struct kp_run_outcome *out, struct running *r)
{
    char *word = strchr(line, ' '), *end = line + strlen(line);
    long pid = strtol(line, NULL, 10);
    if (!word || pid <= 0)
        return 0;
    *word++ = '\0';
    char *rest = strchr(word, ' ');
    if (rest)
        *rest++ = '\0';
    rest = rest ? rest : end;
    if (!strcmp(word, "started")) {
        out->started = true;
        return add(r, pid);
    }
    if (!strcmp(word, "reached")) {
        out->reached = true;
        return add(r, pid);
    }
    if (!strcmp(word, "left")) {
        out->left = true;
        take_out(r, pid);
    } else if (!strcmp(word, "failed")) {
        enum kp_failure f = kp_failure_find(rest);
        out->failures |= f < KP_FAILURES ? kp_failure_bit(f) : 0;
    } else if (!strcmp(word, "stored")) {
        return add_stored(out, rest);
    } else if (!strcmp(word, "runs")) {
        uint64_t runs = strtoull(rest, NULL, 10);
        out->runs = runs > out->runs ? runs : out->runs;
    } else if (!strcmp(word, "ended")) {
        uint64_t seen = 0, matched = 0;
        if (sscanf(rest, "%" SCNu64 " %" SCNu64, &seen, &matched) == 2) {
            out->seen += seen;
            out->matched += matched;
        }
        take_out(r, pid);
    }
    return 0;
}

/* Reads the file; r->pids is to be freed, whatever is returned. */
static int read_file(const char *path, struct kp_run_outcome *out, struct running *r)
{
    char *line = NULL;
    size_t size = 0;
    int rc = 0;
    *out = (struct kp_run_outcome){0};
    FILE *f = fopen(path, "re");
    if (!f)
        return -errno;
    while (!rc && getdelim(&line, &size, '\0', f) > 0)
        rc = read_line(line, out, r);
    fclose(f);
    free(line);
    return rc;
}

int kp_run_outcome_read(const char *path, struct kp_run_outcome *out)
{
    struct running r = {0};
    int rc = read_file(path, out, &r);
    for (size_t i = 0; i < r.n && !out->reached; i++)
        out->unfinished += kill((pid_t)r.pids[i], 0) && errno == ESRCH; /* otherwise it outlives the program */
    free(r.pids);
    return rc;
}

bool kp_run_outcome_end(const char *path, pid_t program)
{
    struct kp_run_outcome out;
    struct running r = {0};
    bool reached = !read_file(path, &out, &r) && out.reached;
    for (size_t i = 0; reached && i < r.n; i++)
        kill((pid_t)r.pids[i], SIGKILL);
    if (reached)
        kill(program, SIGKILL);
    kp_run_outcome_free(&out);
    free(r.pids);
    return reached;
}
