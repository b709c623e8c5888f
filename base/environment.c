#include "base/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Whole names, because a prefix would also keep tokens that others name with it. Everybody who gets a session, or a
 * file made of it, can read the values. */
static const char *const kept[] = {
    /* CUDA: the driver and the runtime */
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_CACHE_PATH",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_DISABLE_JIT",
    "CUDA_AUTO_BOOST",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "CUDA_GRAPHS_USE_NODE_PRIORITY",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
    "CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_INJECTION64_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_CLIENT_PRIORITY",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    /* CUDA's libraries */
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLASLT_WORKSPACE_SIZE",
    "CUBLASLT_HEURISTICS_CACHE_CAPACITY",
    "CUDNN_LOGLEVEL_DBG",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_BUFFSIZE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_CGA_CLUSTER_SIZE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_USE_CUDA_MEMCPY",
    "NCCL_SHM_DISABLE",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_SOCKET_IFNAME",
    "NCCL_CROSS_NIC",
    "NCCL_PXN_DISABLE",
    "NCCL_DMABUF_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_MNNVL_ENABLE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_LAUNCH_MODE",
    "NCCL_GRAPH_MIXING_SUPPORT",
    "NCCL_GRAPH_REGISTER",
    "NCCL_CHECK_POINTERS",
    "NCCL_TOPO_FILE",
    "NCCL_TUNER_PLUGIN",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NVSHMEM_SYMMETRIC_SIZE",
    "NVSHMEM_DISABLE_P2P",
    /* frameworks */
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDA_ARCH_LIST",
    "TORCH_COMPILE_DISABLE",
    "TORCH_LOGS",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_BENCHMARK_KERNEL",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING",
    "TORCHINDUCTOR_CUDAGRAPHS",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
    "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS",
    "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_CACHE_DIR",
    "TRITON_DEBUG",
    "TRITON_DEFAULT_FP_FUSION",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_INTERPRET",
    "TRITON_KERNEL_DUMP",
    "TRITON_PRINT_AUTOTUNING",
    "TRITON_PTXAS_PATH",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_X64",
    "JAX_PLATFORMS",
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_CUDNN_DETERMINISTIC",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_COUNT",
    "TF_GPU_THREAD_MODE",
    "TF_XLA_FLAGS",
    /* threads, and how it was started */
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
};

/* Variables of this prefix are kprof's own options. */
static const char own[] = "KPROF_";

/* Variables by which kprof's own parts communicate. */
static const char *const left_out[] = {"KPROF_SESSION_FILE", "KPROF_STATUS_FILE", "KPROF_METRICS_TOLD",
                                       "KPROF_APPLICATION",  "KPROF_REPLAY_RUN",  "KPROF_REPLAY_FOLDER"};

static bool has_name(const char *entry, size_t len, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(entry, names[i], len) && !names[i][len])
            return true;
    return false;
}

static bool is_kept(const char *entry)
{
    size_t len = strcspn(entry, "=");
    return entry[len] &&
           (!strncmp(entry, own, sizeof own - 1) || has_name(entry, len, kept, sizeof kept / sizeof *kept)) &&
           !has_name(entry, len, left_out, sizeof left_out / sizeof *left_out);
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
