#include "base/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Prefixes of entries; one with a '=' is a whole name. */
static const char *const kept[] = {
    /* kprof, CUDA and its libraries */
    "KPROF_",
    "CUDA_",
    "CUBLAS_",
    "CUBLASLT_",
    "CUDNN_",
    "NCCL_",
    "NVIDIA_VISIBLE_DEVICES=",
    "NVIDIA_TF32_OVERRIDE=",
    /* frameworks and threads */
    "PYTORCH_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TRITON_",
    "XLA_FLAGS=",
    "TF_",
    "OMP_NUM_THREADS=",
    /* how it was started */
    "LD_PRELOAD=",
    "LD_LIBRARY_PATH=",
    "RANK=",
    "LOCAL_RANK=",
    "WORLD_SIZE=",
    "OMPI_COMM_WORLD_RANK=",
    "OMPI_COMM_WORLD_SIZE=",
    "PMIX_RANK=",
    "PMI_RANK=",
    "PMI_SIZE=",
    "MV2_COMM_WORLD_RANK=",
    "PALS_RANKID=",
    "FLUX_TASK_RANK=",
    "SLURM_JOB_ID=",
    "SLURM_PROCID=",
    "SLURM_NTASKS=",
};

/* Variables by which kprof's own parts communicate. */
static const char *const left_out[] = {"KPROF_SESSION_FILE=", "KPROF_STATUS_FILE=", "KPROF_METRICS_TOLD=",
                                       "KPROF_APPLICATION=",  "KPROF_REPLAY_RUN=",  "KPROF_REPLAY_FOLDER="};

static bool begins_with(const char *entry, const char *const *beginnings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(entry, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}

static bool is_kept(const char *entry)
{
    return strchr(entry, '=') && begins_with(entry, kept, sizeof kept / sizeof *kept) &&
           !begins_with(entry, left_out, sizeof left_out / sizeof *left_out);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *kp_environment_lines(char *const *env)
{
    char *text = NULL;
    size_t n = 0, size;
    while (env[n])
        n++;
    const char **entries = malloc((n + 1) * sizeof *entries);
    FILE *to = entries ? open_memstream(&text, &size) : NULL;
    n = 0;
    for (; to && *env; env++)
        if (is_kept(*env))
            entries[n++] = *env;
    if (to)
        qsort(entries, n, sizeof *entries, compare);
    for (size_t i = 0; to && i < n; i++) {
        for (const char *c = entries[i]; *c; c++)
            fputc(*c == '\n' ? ' ' : *c, to);
        fputc('\n', to);
    }
    free(entries);
    if (to && kp_text_end(to, &text)) {
        free(text);
        text = NULL;
    }
    return text;
}

bool kp_environment_next(const char **cursor, const char **name, size_t *name_len, const char **value,
                         size_t *value_len)
{
    const char *line = *cursor;
    size_t len = line ? strcspn(line, "\n") : 0;
    if (!len)
        return false;
    *cursor = line + len + (line[len] == '\n');
    const char *sign = memchr(line, '=', len);
    *name = line;
    *name_len = sign ? (size_t)(sign - line) : len;
    *value = sign ? sign + 1 : line + len;
    *value_len = (size_t)(line + len - *value);
    return true;
}

/* The launchers' variables, the innermost launcher first. Processes that mpirun, srun and torchrun start within a
 * batch job inherit the SLURM_PROCID of the job's script. Those that torchrun starts inherit that of the torchrun on
 * their node. */
static const struct {
    const char *name, *beside; /* counts only if `beside` is set too */
} rank_variables[] = {
    {"RANK", "WORLD_SIZE"}, /* torchrun, and other launchers for torch.distributed */
    {"OMPI_COMM_WORLD_RANK", NULL}, {"PMIX_RANK", NULL},    {"PMI_RANK", NULL}, /* MPICH, Intel MPI, Cray's */
    {"MV2_COMM_WORLD_RANK", NULL},                                              /* MVAPICH2 */
    {"PALS_RANKID", NULL},                                                      /* Cray's mpiexec, for any program */
    {"FLUX_TASK_RANK", NULL},       {"SLURM_PROCID", NULL}, {"RANK", NULL},
};

/* Returns the value of a variable; NULL when it is empty or not set. */
static const char *value_in(const char *lines, const char *wanted, size_t *len)
{
    const char *name, *value = lines ? NULL : getenv(wanted);
    size_t name_len;
    *len = value ? strlen(value) : 0;
    while (!*len && kp_environment_next(&lines, &name, &name_len, &value, len))
        if (strlen(wanted) != name_len || strncmp(wanted, name, name_len) != 0)
            *len = 0;
    return *len ? value : NULL;
}

const char *kp_environment_rank(const char *lines, size_t *len)
{
    size_t of_other;
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        const char *value = value_in(lines, rank_variables[i].name, len), *beside = rank_variables[i].beside;
        if (value && (!beside || value_in(lines, beside, &of_other)))
            return value;
    }
    *len = 0;
    return NULL;
}
