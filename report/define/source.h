/*
 * A launch's values by instruction, joined with its code: instructions, their source lines, and the lines that stand
 * out.
 *
 * Threads: one at a time for each cache and the data loaded from it.
 */
#ifndef KP_REPORT_DEFINE_SOURCE_H
#define KP_REPORT_DEFINE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

/* ---- names ---- */

#define KP_INST_EXECUTED "inst_executed"
#define KP_THREADS_ON    "thread_inst_executed_true"
#define KP_SECTORS       "memory_l2_theoretical_sectors_global"
#define KP_SECTORS_LOCAL "memory_l2_theoretical_sectors_local"
#define KP_WAVEFRONTS    "memory_l1_wavefronts_shared"
#define KP_IDEAL         "_ideal" /* suffix of the two that have an ideal */
#define KP_SAMPLE_COUNT  "smsp__pcsamp_sample_count"

#define KP_STALL_PREFIX       "smsp__pcsamp_warps_issue_stalled_"
#define KP_STALL_LABEL_PREFIX "stall_" /* prefix of all labels */

/* A row of stalls.def. */
struct kp_stall_reason {
    const char *metric; /* of all its samples */
    const char *state, *label;
};

enum {
#define KP_STALL_REASON(reason, state, label, unit, cc) KP_STALL_##reason,
#include "report/define/stalls.def"
    KP_STALL_REASONS
};

extern const struct kp_stall_reason kp_stall_reasons[KP_STALL_REASONS];

/* ---- code and source text that pages need repeatedly ---- */

struct kp_code_cache;
/* Makes a cache. `lookup` may be NULL: then there is no code. `folders` (a comma list, NULL = none) are searched for
 * source files that have moved. Both must outlive the cache. NULL without memory. */
struct kp_code_cache *kp_codecache_new(const struct kp_lookup *lookup, const char *folders);
void kp_codecache_free(struct kp_code_cache *c);
/* Returns the text of line `line` (from 1 on) of file `file` of the code, not terminated. NULL when the file is
 * neither embedded nor found, or is shorter. Valid as long as the cache, or until the next kp_source_load from it. */
const char *kp_codecache_line(struct kp_code_cache *c, const struct kp_code *code, uint32_t file, uint32_t line,
                              size_t *len);
/* Returns true if the file's text is embedded or was found. */
bool kp_codecache_has_file(struct kp_code_cache *c, const struct kp_code *code, uint32_t file);

/* Embeds the text of the files of `c` that have none yet and can be read; files over 1 MiB stay without. Returns 0
 * or -ENOMEM. */
int kp_source_embed(struct kp_code *c);

/* ---- a launch ---- */

/* Values summed over instructions. */
enum kp_source_value {
    KP_AT_SAMPLES,
    KP_AT_INSTRUCTIONS,
    KP_AT_DIVERGENT,
    KP_AT_SECTORS,
    KP_AT_SECTORS_IDEAL,
    KP_AT_SECTORS_EXCESS, /* traffic of an instruction beyond its ideal */
    KP_AT_WAVEFRONTS,
    KP_AT_WAVEFRONTS_IDEAL,
    KP_AT_WAVEFRONTS_EXCESS,
    KP_AT_VALUES,
};

struct kp_source_sums {
    uint64_t v[KP_AT_VALUES];
    uint64_t stalls[KP_STALL_REASONS]; /* samples by reason */
};

/* An instruction of the code, or one that has values although the code lacks it. */
struct kp_source_instruction {
    uint32_t function; /* index into those of the kp_source */
    uint32_t offset;
    const struct kp_instruction *code;  /* NULL = not known */
    const struct kp_location *location; /* NULL = no line is known */
    size_t line;                        /* index into the lines */
    size_t at;                          /* of its values in the counts; SIZE_MAX = none */
};

struct kp_source_function {
    const struct kp_code_counts *counts;
    const struct kp_code *code; /* NULL = not available */
    size_t first, end;          /* of its instructions, by offset */
    /* the counted values that sums are made of; NULL = 0 everywhere */
    const uint64_t *values[KP_AT_VALUES], *stalls[KP_STALL_REASONS];
};

/* The unit of values: usually a line; an instruction if no instruction of the launch has a line; all instructions of a
 * function without lines if only other instructions have lines. */
struct kp_source_line {
    size_t hottest; /* its instruction with the most samples, or else executions */
    size_t sites;   /* places that inlined it */
    struct kp_source_sums sums;
};

struct kp_source_map {
    struct kp_code_cache *cache;
    struct kp_source_function *functions;
    size_t n_functions;
    struct kp_source_instruction *instructions;
    size_t n_instructions;
    struct kp_source_line *lines; /* the hottest first: by samples, by instructions executed, by place */
    size_t n_lines;
    struct kp_source_sums all;
    bool has_code, has_lines; /* of any of its functions */
    bool has_samples;         /* any */
};

/* Joins the counts of `r` with its code. *out needs no freeing if the launch has no values by instruction. `r` and
 * `cache` must outlive *out. Returns 0 or -ENOMEM. */
int kp_source_load(const struct kp_result *r, struct kp_code_cache *cache, struct kp_source_map *out);
void kp_source_free(struct kp_source_map *s);

/* Computes the sums of one instruction. */
void kp_source_sums_of(const struct kp_source_map *s, const struct kp_source_instruction *i,
                       struct kp_source_sums *out);
/* Computes the sums of each line of the function's PTX, followed by that of instructions without such a line. `out` has
 * room for one more than the code has lines. */
void kp_source_sums_of_ptx(const struct kp_source_map *s, const struct kp_source_function *f,
                           struct kp_source_sums *out);
/* Returns the reason with the most samples, or NULL. */
const struct kp_stall_reason *kp_source_main_stall(const struct kp_source_sums *sums);

/* Names a place: "file.cu:42", without folders; "mma.hpp:99, inlined at file.cu:42" with the outermost call that
 * inlines it. Without a line: "kernel+0x1a0", or "kernel". malloc'ed; NULL without memory. */
char *kp_source_place(const struct kp_source_map *s, const struct kp_source_line *line);
/* Returns the call that inlined the location; NULL for a location that is not inlined. Repeated calls walk outwards.
 * Locations come from files and are not trusted: *steps, 0 at first, ends a circle. */
const struct kp_location *kp_location_parent(const struct kp_code *c, const struct kp_location *l, unsigned *steps);
/* Returns the path of the location's file, "" when it has none. Valid as long as `c`. */
const char *kp_location_path(const struct kp_code *c, const struct kp_location *l);
/* Replaces characters that move a terminal's cursor: paths and texts of a session are not trusted. */
void kp_make_printable(char *text);

/* ---- which line has most of something ---- */

/* Quantities whose hottest line advice points to; source.c says which counts each includes. */
enum kp_hot {
    KP_HOT_SAMPLES,
    KP_HOT_GLOBAL,
    KP_HOT_global_ld,
    KP_HOT_global_st,
    KP_HOT_LOCAL,
    KP_HOT_local_ld,
    KP_HOT_local_st,
    KP_HOT_SHARED,
    KP_HOT_shared_ld,
    KP_HOT_shared_st,
    KP_HOT_IDLE_THREADS,
    KP_HOT_FP64,
    KP_HOT_SINGLE32,
    KP_HOT_SINGLE64,
    KP_HOTS
};

/* Returns the line with the most of `hot`. *share receives its part of the total, 0 to 1, and *what the words for the
 * quantity. NULL if the total is 0, or without memory. */
const struct kp_source_line *kp_source_hottest(const struct kp_source_map *s, enum kp_hot hot, double *share,
                                               const char **what);
/* Does the same for the samples of one reason, by its state (see stalls.def). */
const struct kp_source_line *kp_source_hottest_stall(const struct kp_source_map *s, const char *state, double *share,
                                                     const char **what);

/* The identifier of the section that the page source needs. */
extern const char kp_source_section[];

#endif
