/*
 * The neutral model: what is known of one launch and of the whole session, as plain values.
 * Everything after evaluation works on these types alone, in the profiled process and in `kprof report`.
 *
 * Ownership: every char * in a struct of this file is owned by the struct and released by its _free function.
 * Threads: no locking here; a struct belongs to whoever holds it.
 */
#ifndef KP_REPORT_MODEL_MODEL_H
#define KP_REPORT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_value_kind {
    KP_VALUE_NA = 0, /* wanted but not to be had; `text` says why */
    KP_VALUE_REAL,   /* `real` */
    KP_VALUE_COUNT,  /* `count`, an exact unsigned integer */
    KP_VALUE_TEXT,   /* `text` */
};

/* The value of one instance of a metric: of one opcode, one register count, one NUMA node. */
struct kp_instance {
    char *key; /* what it is of, as it is printed */
    double value;
};

/* ---- who made a launch ---- */

enum kp_frame_kind { KP_FRAME_NATIVE = 0, KP_FRAME_PYTHON = 1 };

/* One frame of a call stack. */
struct kp_frame {
    enum kp_frame_kind kind;
    char *function;  /* as it is shown: demangled, without arguments; "" = not known */
    char *file;      /* of its source; "" = not known */
    uint32_t line;   /* 0 = not known */
    char *module;    /* path of the executable or library; "" for Python */
    uint64_t offset; /* of the call in the module, as its file counts addresses; 0 for Python */
};

/* A call stack that at least one launch was made from; a session has each once. */
struct kp_stack {
    uint64_t id; /* from 1 on */
    struct kp_frame *frames;
    size_t n_frames; /* the innermost frame first */
};

/* ---- code ---- */

/* A file that line tables name. */
struct kp_source_file {
    char *path;
    char *text; /* embedded; NULL = not */
};

/* A place in the source. Code that was inlined has its own place and, as the parent, the one it was inlined at. */
struct kp_location {
    uint32_t file;   /* index into the files of the code */
    uint32_t line;   /* from 1 on */
    uint32_t parent; /* index + 1 into the locations; 0 = not inlined */
    char *function;  /* mangled name of the function that the place is in; "" = not known, the kernel itself */
};

struct kp_instruction {
    uint32_t offset;   /* of the function's begin, byte */
    uint32_t location; /* index + 1 into the locations; 0 = no line is known */
    char *opcode;      /* basic opcode ("FFMA", "LDG"); "" = not known */
    char *text;        /* disassembly, without the trailing semicolon; "" = there was no disassembler */
    bool spill;        /* moves a register to memory or back, as the compiler had none left; not kept in sessions */
};

/* A function of a module, as it runs on the GPU; a session has each once. */
struct kp_code {
    uint64_t id;    /* from 1 on */
    char *function; /* mangled name */
    uint64_t crc;   /* of the cubin it is in, as CUPTI computes it */
    struct kp_instruction *instructions;
    size_t n_instructions; /* by ascending offset; 0 = the module's image was not to be had */
    struct kp_location *locations;
    size_t n_locations;
    struct kp_source_file *files;
    size_t n_files;
};

/* What one metric counted at each instruction of a function, in one launch. */
struct kp_code_metric {
    char *name;       /* "inst_executed", "smsp__pcsamp_warps_issue_stalled_wait" */
    uint64_t *values; /* as many as the kp_code_counts says */
};

/* What one launch did in one function. Metrics that are 0 everywhere are left out. */
struct kp_code_counts {
    uint64_t code;     /* id of the kp_code */
    uint32_t *offsets; /* of the instructions that have values, byte, ascending: those of the code or fewer */
    size_t n_offsets;
    struct kp_code_metric *metrics; /* by name */
    size_t n_metrics;
};

/* A metric sampled while a kernel ran. The samples of one pass share start and interval. */
struct kp_series {
    char *name; /* full metric name with suffix */
    char *unit; /* base unit */
    double *values;
    size_t n_values;
    double start_ns;    /* of the first sample's end, from the begin of the kernel as seen in that pass on */
    double interval_ns; /* between two samples */
};

/* One metric of one launch. Values are in the base unit named by `unit` (byte, ns, hz, %, inst, cycle, byte/s ...). */
struct kp_metric {
    char *name;
    char *unit; /* base unit in ncu's spelling, "" when the metric has none; never NULL */
    enum kp_value_kind kind;
    double real;
    uint64_t count;
    char *text;                    /* the value (KP_VALUE_TEXT), or the reason (KP_VALUE_NA); else NULL */
    struct kp_instance *instances; /* in the order of printing; the value above is what stands for all of them */
    size_t n_instances;
};

enum kp_nvtx_kind { KP_NVTX_PUSH_POP = 0, KP_NVTX_START_END = 1 };

/* An NVTX range that was open when a launch was made. */
struct kp_nvtx_range {
    enum kp_nvtx_kind kind;
    char *domain;    /* "" is the default one */
    char *name;      /* its message */
    char *category;  /* name, else number; "" = none */
    char *payload;   /* the number; "" = none */
    uint64_t thread; /* the operating system's id of the one that opened it */
};

/* What NVTX tells of a launch; all 0 when it was not asked for. */
struct kp_nvtx {
    struct kp_nvtx_range *ranges; /* of each thread's stack the outermost first; then the start-end ranges by age */
    size_t n_ranges;
    uint64_t thread;                 /* the launching one */
    char *thread_name, *stream_name; /* as NVTX names them; "" or NULL = it does not */
};

enum kp_workload_kind { KP_WORKLOAD_KERNEL = 0, KP_WORKLOAD_GRAPH = 1 };

/* Who and where: the header line of a launch. */
struct kp_launch_info {
    uint64_t id;      /* 0-based, in launch order over all launches profiled or reported */
    uint64_t ordinal; /* 0-based, in launch order over all launches seen */
    enum kp_workload_kind kind;
    char *mangled;   /* symbol as the driver names it; for a graph a description */
    char *demangled; /* full signature in ncu's style */
    uint32_t grid[3], block[3];
    uint64_t context_id, stream_id;
    int device; /* CUDA ordinal */
    int cc_major, cc_minor;
    char *chip;         /* CUPTI's chip name, e.g. "GH100"; "" when unknown */
    uint32_t passes;    /* replay passes run; 0 when no counters were collected */
    double profiler_ns; /* wall time that profiling this launch took */
    char *note;         /* why counters are missing, or NULL when all went well */
    char *reason;       /* short reason key of a launch reported without counters ("" = profiled) */
    struct kp_nvtx nvtx;
    uint64_t stack; /* id of the kp_stack it was made from; 0 = not asked for */
};

/* One launch and its metrics; `metrics` is kept sorted by name, names are unique. */
struct kp_result {
    struct kp_launch_info launch;
    struct kp_metric *metrics;
    size_t n_metrics, cap_metrics;
    struct kp_code_counts *counts; /* the kernel's own function first */
    size_t n_counts;
    struct kp_series *series;
    size_t n_series;
    bool lossy; /* there was no memory for a metric or its instances */
};

/* One line of the closing account: `count` launches were skipped for `reason`. */
struct kp_skip {
    char *reason;
    uint64_t count;
};

/* Skip reasons that the account has advice for. Any other text may be used as well, and is printed as it is. */
#define KP_SKIP_PROFILER     "outside cudaProfilerStart and Stop"
#define KP_SKIP_DELAY        "before delay was over"
#define KP_SKIP_DURATION     "after duration was over"
#define KP_SKIP_BEFORE_MATCH "before launch-skip-before-match was reached"
#define KP_SKIP_DEVICES      "not selected by devices"
#define KP_SKIP_KERNEL_NAME  "not selected by kernel-name"
#define KP_SKIP_KERNEL_ID    "not selected by kernel-id"
#define KP_SKIP_NVTX         "not selected by nvtx-include and nvtx-exclude"
#define KP_SKIP_LAUNCH_SKIP  "before launch-skip was reached"
#define KP_SKIP_LAUNCH_COUNT "after launch-count was reached"
#define KP_SKIP_NO_COUNTERS  "reported without counters"

/* Whether the user's choice of launches is the reason. */
bool kp_skip_is_choice(const char *reason);

/* Others that more than one place gives. */
#define KP_SKIP_CAPTURE "made while a stream was being captured"
#define KP_SKIP_BUSY    "another thread was in a driver call that did not end"

/* What was seen but not selected, a kernel or an NVTX range, for the reader whose filter matched nothing. */
struct kp_kernel_count {
    char *name;
    uint64_t count;
};

/* One device the process launched on, or would have if the filter had taken it. */
struct kp_device_info {
    int ordinal;
    char *name, *chip, *pci_bus_id;
    int cc_major, cc_minor;
    uint32_t sm_count;
    /* What throughputs are made of on this chip: a line for each, the metric, a tab and its constituents separated by
     * commas, all with their suffixes; "" when none was asked for. */
    char *breakdowns;
};

/* Facts of the run, for the process line, the account and the session page. Times are UTC seconds or ns as named. */
struct kp_session {
    uint64_t pid;
    char *exe;     /* absolute path of the executable */
    char *cmdline; /* arguments joined by blanks, shell-quoted */
    char *host;
    char *kprof_version;
    int64_t start_unix_ns, end_unix_ns; /* end 0: the program was killed, or still runs */
    int driver_version;                 /* as cuDriverGetVersion: 13000 */
    char *cupti_version;                /* "13.0.85"-like; "" unknown */
    char *set, *sections, *metrics;     /* as asked for: comma lists; "" when not given */
    char *section_folder;               /* ditto; "" */
    char *cache_control, *clock_control;
    char *environment; /* see environment.h; "" or, of an older session, NULL */
    uint64_t launches_seen, launches_profiled;
    uint64_t passes;
    double profiling_ns; /* wall time kprof took from the program, all told */
    struct kp_skip *skips;
    size_t n_skips;
    struct kp_kernel_count *kernels; /* may stay empty; only printed when nothing was profiled */
    size_t n_kernels;
    struct kp_kernel_count *ranges; /* ditto for nvtx-include: the NVTX ranges that were opened, as it takes them */
    size_t n_ranges;
    struct kp_device_info *devices;
    size_t n_devices;
    bool complete; /* the program ended and everything was written */
};

/* Sets metric `name` in `r`, replacing an earlier value of that name. `unit` may be NULL for "". Returns 0, or
 * -ENOMEM with `r` as it was. */
int kp_result_set_real(struct kp_result *r, const char *name, const char *unit, double value);
int kp_result_set_count(struct kp_result *r, const char *name, const char *unit, uint64_t value);
int kp_result_set_text(struct kp_result *r, const char *name, const char *unit, const char *value);
/* Gives metric `name`, which must have been set, its instances: keys[i] and values[i], copied; `keys` may be NULL for
 * the numbers from 0 on. 0, -ENOENT without such a metric, or -ENOMEM; the metric is then as it was. Setting the metric
 * anew takes its instances away. */
int kp_result_set_instances(struct kp_result *r, const char *name, const char *const *keys, const double *values,
                            size_t n);
/* The metric is wanted but could not be read; `why` is one short clause for the reader. */
int kp_result_set_na(struct kp_result *r, const char *name, const char *why);

/* The metric `name`, or NULL. The pointer is valid until the next _set or _free of `r`. */
const struct kp_metric *kp_result_find(const struct kp_result *r, const char *name);

/* Numeric value of `m` (REAL or COUNT) in *out; returns false for others and for NULL. */
bool kp_metric_number(const struct kp_metric *m, double *out);

void kp_result_free(struct kp_result *r); /* frees what `r` owns and zeroes it, not `r` itself */
void kp_session_free(struct kp_session *s);

/* Adds `n` to the skip line `reason`. Returns 0 or -ENOMEM. */
int kp_session_add_skip(struct kp_session *s, const char *reason, uint64_t n);

/* Counts `n` launches of a kernel that was not selected. Returns 0 or -ENOMEM. */
int kp_session_add_kernel(struct kp_session *s, const char *name, uint64_t n);
/* Counts `n` openings of an NVTX range. Returns 0 or -ENOMEM. */
int kp_session_add_range(struct kp_session *s, const char *expression, uint64_t n);

/* Frees what they own and zero them, not themselves. */
void kp_stack_free(struct kp_stack *s);
void kp_code_free(struct kp_code *c);
void kp_code_counts_free(struct kp_code_counts *s);
void kp_series_free(struct kp_series *s);

/* Appends to `r`, which takes over what `counts` or `series` owns. Returns 0, or -ENOMEM with both as they were. */
int kp_result_add_counts(struct kp_result *r, struct kp_code_counts *counts);
int kp_result_add_series(struct kp_result *r, struct kp_series *series);
/* The series of metric `name`, or NULL. Valid until the next kp_result_add_series or _free of `r`. */
const struct kp_series *kp_result_find_series(const struct kp_result *r, const char *name);
/* The values of source metric `name`; NULL when it is 0 everywhere, or was not collected. */
const uint64_t *kp_code_counts_find(const struct kp_code_counts *s, const char *name);
/* The instruction at `offset`, or NULL. */
const struct kp_instruction *kp_code_at(const struct kp_code *c, uint32_t offset);

/* Adds a copy of `r`. Returns 0, or -ENOMEM with `n` as it was. */
int kp_nvtx_add(struct kp_nvtx *n, const struct kp_nvtx_range *r);
void kp_nvtx_free(struct kp_nvtx *n); /* frees what `n` owns and zeroes it */

/* strdup that maps NULL to "" and returns NULL only without memory. */
char *kp_strdup(const char *s);

#endif
