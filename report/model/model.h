/*
 * The neutral model: the facts of one launch and of the whole session as plain values. Everything after evaluation uses
 * only these types, in the profiled process and in `kprof report`.
 *
 * Ownership: a struct owns every char * in it, and its _free function releases them.
 * Threads: no locking here; a struct belongs to its holder.
 */
#ifndef KP_REPORT_MODEL_MODEL_H
#define KP_REPORT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/reasons.h"

enum kp_value_kind {
    KP_VALUE_NA = 0, /* wanted but unavailable; `reason` and `text` say why */
    KP_VALUE_REAL,   /* `real` */
    KP_VALUE_COUNT,  /* `count`, an exact unsigned integer */
    KP_VALUE_TEXT,   /* `text` */
};

/* The value of one instance of a metric: of one opcode, one register count, one NUMA node. */
struct kp_instance {
    char *key; /* the opcode, count or node in its printed form */
    double value;
};

/* ---- who made a launch ---- */

enum kp_frame_kind { KP_FRAME_NATIVE = 0, KP_FRAME_PYTHON = 1 };

/* One frame of a call stack. */
struct kp_frame {
    enum kp_frame_kind kind;
    char *function;  /* as shown: demangled, without arguments; "" = not known */
    char *file;      /* of its source; "" = not known */
    uint32_t line;   /* 0 = not known */
    char *module;    /* path of the executable or library; "" for Python */
    uint64_t offset; /* of the call in the module, in the file's addresses; 0 for Python */
};

/* A call stack that made at least one launch; a session has each once. */
struct kp_stack {
    uint64_t id; /* from 1 on */
    struct kp_frame *frames;
    size_t n_frames; /* the innermost frame first */
};

/* ---- code ---- */

/* A file that line tables name. */
struct kp_source_file {
    char *path;
    char *text; /* embedded; NULL = none */
};

/* A place in the source. Inlined code has its own place; the parent is the place of the call. */
struct kp_location {
    uint32_t file;   /* index into the files of the code */
    uint32_t line;   /* from 1 on */
    uint32_t parent; /* index + 1 into the locations; 0 = not inlined */
    char *function;  /* mangled name of the enclosing function; "" = not known, the kernel itself */
};

struct kp_instruction {
    uint32_t offset;      /* of the function's start, in bytes */
    uint32_t location;    /* index + 1 into the locations; 0 = no line is known */
    char *opcode;         /* basic opcode ("FFMA", "LDG"); "" = not known */
    char *text;           /* disassembly, without the trailing semicolon; "" = no disassembler */
    uint16_t access_bits; /* of memory, that a thread accesses; 0 = none, or not known */
    bool spill;           /* moves a register to memory or back, for lack of registers; not kept in sessions */
    uint32_t ptx;         /* line of the PTX; 0 = not known */
};

/* A line of the PTX that a function was assembled from. */
struct kp_ptx_line {
    uint32_t line; /* from 1 on, in the PTX of its module */
    char *text;
};

/* A function of a module in its form on the GPU; a session has each once. */
struct kp_code {
    uint64_t id;    /* from 1 on */
    char *function; /* mangled name */
    uint64_t crc;   /* of its cubin, computed by CUPTI */
    struct kp_instruction *instructions;
    size_t n_instructions; /* by ascending offset; 0 = the module's image was unavailable */
    struct kp_location *locations;
    size_t n_locations;
    struct kp_source_file *files;
    size_t n_files;
    struct kp_ptx_line *ptx; /* by ascending line, without empty ones; an instruction may name one that is not here */
    size_t n_ptx;
};

/* The counts of one metric at each instruction of a function, in one launch. */
struct kp_code_metric {
    char *name;       /* "inst_executed", "smsp__pcsamp_warps_issue_stalled_wait" */
    uint64_t *values; /* as many as the kp_code_counts has offsets */
};

/* The counts of one launch in one function. Metrics that are 0 everywhere are left out. */
struct kp_code_counts {
    uint64_t code;     /* id of the kp_code */
    uint32_t *offsets; /* of the instructions that have values, in bytes, ascending: those of the code or fewer */
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
    double start_ns;    /* end of the first sample, since the start of the kernel in that pass */
    double interval_ns; /* between two samples */
};

/* One metric of one launch. Values are in the base unit named by `unit` (byte, ns, hz, %, inst, cycle, byte/s ...). */
struct kp_metric {
    char *name;
    char *unit; /* base unit in ncu's spelling, "" when the metric has none; never NULL */
    enum kp_value_kind kind;
    double real;
    uint64_t count;
    enum kp_reason reason;         /* of KP_VALUE_NA; KP_REASON_NONE = one that this version does not know */
    char *text;                    /* the value (KP_VALUE_TEXT), or the reason in words (KP_VALUE_NA); else NULL */
    struct kp_instance *instances; /* in the order of printing; the metric's value summarises them */
    size_t n_instances;
    uint32_t counted; /* of rotation: the value is the mean of so many launches; 0 = of this launch alone */
    double deviation; /* their standard deviation; 0 with less than two */
};

enum kp_nvtx_kind { KP_NVTX_PUSH_POP = 0, KP_NVTX_START_END = 1 };

/* An NVTX range that was open when a launch was made. */
struct kp_nvtx_range {
    enum kp_nvtx_kind kind;
    char *domain;    /* "" is the default one */
    char *name;      /* its message */
    char *category;  /* name, else number; "" = none */
    char *payload;   /* the number; "" = none */
    uint64_t thread; /* operating system's id of the thread that opened it */
};

/* The NVTX state at a launch; all 0 when not asked for. */
struct kp_nvtx {
    struct kp_nvtx_range *ranges; /* by thread, the outermost first; then the start-end ranges by age */
    size_t n_ranges;
    uint64_t thread;                 /* the launching one */
    char *thread_name, *stream_name; /* as given to NVTX; "" or NULL = not named */
};

enum kp_workload_kind { KP_WORKLOAD_KERNEL = 0, KP_WORKLOAD_GRAPH = 1, KP_WORKLOAD_RANGE = 2 };

/* The header line of a launch: its names, place and time. */
struct kp_launch_info {
    uint64_t id;      /* 0-based, in launch order over all launches profiled or reported */
    uint64_t ordinal; /* 0-based, in launch order over all launches */
    enum kp_workload_kind kind;
    char *mangled;   /* symbol as the driver names it; for a graph a description, for a range its name */
    char *demangled; /* full signature in ncu's style */
    uint32_t grid[3], block[3];
    uint64_t context_id, stream_id;
    int device; /* CUDA ordinal */
    int cc_major, cc_minor;
    char *chip;            /* CUPTI's chip name, e.g. "GH100"; "" when unknown */
    uint32_t passes;       /* replay passes run; 0 when no counters were collected */
    double profiler_ns;    /* wall time that profiling this launch took */
    char *note;            /* why counters are missing, or which launches of the kernel it is; or NULL */
    enum kp_reason reason; /* of the note, if it is one */
    struct kp_nvtx nvtx;
    uint64_t stack;              /* id of its kp_stack; 0 = not asked for */
    uint32_t graph_number, node; /* of a graph's kernel: which graph, from 1, and which node, from 0; else 0 */
    uint64_t launches;           /* of a range that was just counted: the launches in it; not stored */
    /* Of rotation; else all 0. */
    uint64_t alike;                  /* launches of the kernel and shape, which this one stands for */
    uint64_t counted;                /* those that were counted, each for one group of counters */
    uint32_t groups, groups_counted; /* groups of counters, and those that were counted */
    /* Also where a budget lets launches pass: those of the kernel and shape that activity records have timed, and how
     * long these took together, ns; 0 = there were no records. */
    uint64_t recorded;
    double recorded_ns;
};

/* A way of launching a kernel that kprof tried in place of the program's own, for a profile series. */
struct kp_variant {
    char *name; /* what was varied: "block=128 shared=16K" */
    struct kp_result
        *of; /* its metrics; of the launch only grid, block, passes, and as `note` why nothing was counted */
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
    struct kp_variant *variants; /* in the order they were tried in */
    size_t n_variants;
    bool lossy; /* memory ran out for a metric or its instances */
};

/* One line of the closing account: `count` launches were skipped for this reason. */
struct kp_skip {
    struct kp_why why;
    uint64_t count;
};

/* Returns true if a reason comes from the user's choice of launches. */
bool kp_skip_is_choice(enum kp_reason reason);

/* A kernel or NVTX range that was seen but not selected, for a reader whose filter matched nothing. */
struct kp_kernel_count {
    char *name;
    uint64_t count;
};

/* Finds an entry of a list of counts by its name: a hash table with open addressing. */
struct kp_count_index {
    size_t *slots; /* by the hash of the name: place in the list + 1, 0 = free; at most half are taken */
    size_t room;   /* a power of 2, or 0 */
    size_t n;      /* entries that it knows */
};

/* A device that the process launched on, or would have without the filter. */
struct kp_device_info {
    int ordinal;
    char *name, *chip, *pci_bus_id;
    int cc_major, cc_minor;
    uint32_t sm_count;
    /* Constituents of throughputs on this chip. Each line has the metric, a tab and its constituents separated by
     * commas, all with suffixes; "" when not asked for. Then come lines of the device's attributes and what the
     * machine reports about it (collectors/facts/device_metrics.def): each has the metric, a tab, and its value as
     * printed, empty for n/a. */
    char *breakdowns;
};
/* Returns true if a line of the breakdowns is one of an attribute. */
bool kp_is_device_attribute(const char *line);

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
    char *replay;      /* how launches were counted, if not by kernel replay: "application, 9 runs"; "" or NULL */
    uint64_t launches_seen, launches_profiled;
    uint64_t passes;
    double profiling_ns; /* wall time that kprof took from the program in total */
    struct kp_skip *skips;
    size_t n_skips;
    struct kp_kernel_count *kernels; /* may stay empty; only printed when nothing was profiled */
    size_t n_kernels;
    struct kp_kernel_count *ranges; /* likewise for nvtx-include: opened NVTX ranges, written as filter expressions */
    size_t n_ranges;
    struct kp_kernel_count *lacking; /* kernels that lack results or parts of them, as a budget ended; of how many
                                        shapes: 0 = not known */
    size_t n_lacking;
    struct kp_count_index kernel_index, range_index, lacking_index; /* of kp_session_add_kernel and its like */
    struct kp_device_info *devices;
    size_t n_devices;
    bool complete;             /* the program ended and everything was written */
    bool timeline;             /* a timeline was recorded */
    bool rotated;              /* entries of a rotation are among the launches */
    uint64_t timeline_dropped; /* activities that found no room */
};

/* Sets metric `name` in `r`, replacing an earlier value of that name. `unit` may be NULL for "". Returns 0, or
 * -ENOMEM with `r` as it was. */
int kp_result_set_real(struct kp_result *r, const char *name, const char *unit, double value);
int kp_result_set_count(struct kp_result *r, const char *name, const char *unit, uint64_t value);
int kp_result_set_text(struct kp_result *r, const char *name, const char *unit, const char *value);
/* Sets the instances of metric `name`, which must be set: copies of keys[i] and values[i]. NULL `keys` stands for
 * the numbers from 0 on. Returns 0, -ENOENT without such a metric, or -ENOMEM; after errors the metric is as before.
 * Setting the metric again removes its instances. */
int kp_result_set_instances(struct kp_result *r, const char *name, const char *const *keys, const double *values,
                            size_t n);
/* Sets a device's attributes as metrics of `r`: counts, texts, or n/a. 0 or -ENOMEM. */
int kp_session_read_attributes(const struct kp_device_info *d, struct kp_result *r);
/* Marks a wanted metric as unreadable for that reason. */
int kp_result_set_na(struct kp_result *r, const char *name, enum kp_reason reason);
int kp_result_set_why(struct kp_result *r, const char *name, struct kp_why why);
/* Returns the reason of a metric that is n/a. It refers to the metric. */
struct kp_why kp_metric_why(const struct kp_metric *m);
/* Sets the note and its reason, in place of earlier ones. */
void kp_launch_set_note(struct kp_launch_info *l, struct kp_why why);

/* Adds the value of a further launch to a metric that rotation counts: value, `counted` and `deviation` are then those
 * of all. Sets the metric if it has no value yet. 0, or -ENOMEM with `r` as it was. */
int kp_result_add_value(struct kp_result *r, const char *name, const char *unit, double value);
/* A mean over launches, and their standard deviation. */
struct kp_mean {
    uint32_t counted; /* launches, 1 or more */
    double mean, deviation;
};
/* Does the same with the mean of further launches; the result equals adding each by itself. */
int kp_result_add_mean(struct kp_result *r, const char *name, const char *unit, const struct kp_mean *of);
/* Sets over how many launches metric `name`, which must be set, is a mean, and their standard deviation. 0 or -ENOENT.
 */
int kp_result_set_spread(struct kp_result *r, const char *name, uint32_t counted, double deviation);
/* Computes half the width of the 95 % interval around a mean: another mean of as many launches falls into it. By
 * Student's t with both means' spread, t * deviation * sqrt(2 / counted). False with less than three launches. */
bool kp_metric_interval(const struct kp_metric *m, double *half);
/* Returns Student's t for an interval of 95 %; `degrees` of freedom are 1 or more. */
double kp_students_t(uint64_t degrees);
/* Removes the metrics that are means. */
void kp_result_drop_means(struct kp_result *r);
/* Moves from `from` each metric that `r` lacks, or that is n/a in `r` but has a value in `from`. Returns 0 or -ENOMEM,
 * with both as far as it got. */
int kp_result_take(struct kp_result *r, struct kp_result *from);
/* Copies header and metrics into *out, but not what was counted by instruction, nor series and variants. 0, or -ENOMEM
 * with *out empty. */
int kp_result_copy(const struct kp_result *r, struct kp_result *out);
/* Sets a copy of every metric of `from` in `r`. 0 or -ENOMEM. */
int kp_result_set_all(struct kp_result *r, const struct kp_result *from);
/* Removes metric `name`, if `r` has it. */
void kp_result_remove(struct kp_result *r, const char *name);

/* Returns the metric `name`, or NULL. The pointer is valid until the next _set or _free of `r`. */
const struct kp_metric *kp_result_find(const struct kp_result *r, const char *name);

/* Returns the numeric value of `m` (REAL or COUNT) in *out; false for others and for NULL. */
bool kp_metric_number(const struct kp_metric *m, double *out);
/* Reads how long the launch ran on the GPU, in ns. False if unknown: without the metric, or if it is no time (in an
 * edited file). */
bool kp_result_duration(const struct kp_result *r, double *ns);

/* Returns how many launches an entry stands for: those of its kernel and shape if rotation counted it, or if others
 * passed within a budget; else 1. */
uint64_t kp_launch_weight(const struct kp_launch_info *l);
/* Reads how long these ran on the GPU on average, in ns. Launches that passed count with the times of their activity
 * records; without records, with the measured launches' time. False if neither is known. */
bool kp_result_mean_duration(const struct kp_result *r, double *ns);

void kp_result_free(struct kp_result *r); /* frees what `r` owns and zeroes it, not `r` itself */
void kp_session_free(struct kp_session *s);

/* Adds `n` to the skip line of that reason. Returns 0 or -ENOMEM. */
int kp_session_add_skip(struct kp_session *s, struct kp_why why, uint64_t n);

/* Counts `n` launches of a kernel that was not selected. Returns 0 or -ENOMEM. */
int kp_session_add_kernel(struct kp_session *s, const char *name, uint64_t n);
/* Counts `n` openings of an NVTX range. Returns 0 or -ENOMEM. */
int kp_session_add_range(struct kp_session *s, const char *expression, uint64_t n);

/* Notes `n` shapes of a kernel that lack results, or parts of them. Returns 0 or -ENOMEM. */
int kp_session_add_lacking(struct kp_session *s, const char *name, uint64_t n);
/* Returns the option with which a further run measures just these kernels, the first 20 of them, as a shell takes it;
 * malloc'ed. NULL: none lacks anything, or memory is short. */
char *kp_session_further(const struct kp_session *s);

/* Free what the structs own and zero them, but not the structs themselves. */
void kp_frames_free(struct kp_stack *s);
void kp_code_free(struct kp_code *c);
void kp_code_counts_free(struct kp_code_counts *s);
void kp_series_free(struct kp_series *s);

/* Append to `r`, which then owns the data of `counts` or `series`. Return 0, or -ENOMEM with both as they were. */
int kp_result_add_counts(struct kp_result *r, struct kp_code_counts *counts);
int kp_result_add_series(struct kp_result *r, struct kp_series *series);
/* Appends a variant of that name (copied), without metrics. NULL without memory. Valid until the next one. */
struct kp_variant *kp_result_add_variant(struct kp_result *r, const char *name);
/* Returns the series of metric `name`, or NULL. Valid until the next kp_result_add_series or _free of `r`. */
const struct kp_series *kp_result_find_series(const struct kp_result *r, const char *name);
/* Returns the values of source metric `name`; NULL when they are 0 everywhere, or not collected. */
const uint64_t *kp_code_counts_find(const struct kp_code_counts *s, const char *name);
/* Returns the instruction at `offset`, or NULL. */
const struct kp_instruction *kp_code_at(const struct kp_code *c, uint32_t offset);
/* Adds a line of PTX after the others, with a copy of the text. 0, or -ENOMEM with the code as it was. */
int kp_code_add_ptx(struct kp_code *c, uint32_t line, const char *text, size_t len);
/* Returns the text of a line of the PTX; NULL if the code lacks it. */
const char *kp_code_ptx(const struct kp_code *c, uint32_t line);

/* Adds a copy of `r`. Returns 0, or -ENOMEM with `n` as it was. */
int kp_nvtx_add(struct kp_nvtx *n, const struct kp_nvtx_range *r);
void kp_nvtx_free(struct kp_nvtx *n); /* frees what `n` owns and zeroes it */

/* Copies like strdup, but NULL as ""; returns NULL only without memory. */
char *kp_strdup(const char *s);

#endif
