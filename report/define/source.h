/*
 * What a launch did at each instruction, put together with the code: instructions, the source lines they come from, and
 * which of those stand out.
 *
 * Threads: one at a time for each cache and what was loaded from it.
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
#define KP_IDEAL         "_ideal" /* behind the two that have it */
#define KP_SAMPLE_COUNT  "smsp__pcsamp_sample_count"

#define KP_STALL_PREFIX       "smsp__pcsamp_warps_issue_stalled_"
#define KP_STALL_LABEL_PREFIX "stall_" /* which all labels have */

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

/* ---- code and source text that pages ask for again and again ---- */

struct kp_code_cache;
/* `lookup` may be NULL: then there is no code. `folders` (a comma list, NULL = none) is where source files are looked
 * for that are not at their path; both must outlive the cache. NULL without memory. */
struct kp_code_cache *kp_code_cache_new(const struct kp_lookup *lookup, const char *folders);
void kp_code_cache_free(struct kp_code_cache *c);
/* The text of line `line` (from 1 on) of file `file` of the code, not terminated; NULL when there is none: neither
 * embedded nor found, or shorter. Valid as long as the cache, or the next kp_source_load from it. */
const char *kp_code_cache_line(struct kp_code_cache *c, const struct kp_code *code, uint32_t file, uint32_t line,
                               size_t *len);
/* Whether the file's text is at hand. */
bool kp_code_cache_has_file(struct kp_code_cache *c, const struct kp_code *code, uint32_t file);

/* Gives the files of `c` that can be read, and that have no text yet, their texts; longer ones than 1 MiB stay without.
 * 0 or -ENOMEM. */
int kp_code_embed(struct kp_code *c);

/* ---- a launch ---- */

/* Sums of instructions. */
enum kp_source_value {
    KP_AT_SAMPLES,
    KP_AT_INSTRUCTIONS,
    KP_AT_DIVERGENT,
    KP_AT_SECTORS,
    KP_AT_SECTORS_IDEAL,
    KP_AT_SECTORS_EXCESS, /* what an instruction moved beyond its ideal */
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
    size_t at;                          /* of its values in the counts; SIZE_MAX = it has none */
};

struct kp_source_function {
    const struct kp_code_counts *counts;
    const struct kp_code *code; /* NULL = not at hand */
    size_t first, end;          /* of its instructions, by offset */
    /* the counted values that sums are made of; NULL = 0 everywhere */
    const uint64_t *values[KP_AT_VALUES], *stalls[KP_STALL_REASONS];
};

/* What is told apart: a line; where no instruction of the launch has a line, an instruction; where others have one, all
 * instructions of a function that have none. */
struct kp_source_line {
    size_t hottest; /* the instruction of it that was sampled, or else executed, most */
    size_t sites;   /* places that it was inlined at */
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

/* Nothing of *out needs freeing where the launch has no values by instruction; `r` and `cache` must outlive the rest. 0
 * or -ENOMEM. */
int kp_source_load(const struct kp_result *r, struct kp_code_cache *cache, struct kp_source_map *out);
void kp_source_free(struct kp_source_map *s);

/* The sums of one instruction. */
void kp_source_sums_of(const struct kp_source_map *s, const struct kp_source_instruction *i,
                       struct kp_source_sums *out);
/* The reason with the most samples, or NULL. */
const struct kp_stall_reason *kp_source_main_stall(const struct kp_source_sums *sums);

/* Where a place is: "file.cu:42", without folders, and the outermost call that it is inlined at: "mma.hpp:99, inlined
 * at file.cu:42"; or, without a line, "kernel+0x1a0"; or "kernel". malloc'ed; NULL without memory. */
char *kp_source_place(const struct kp_source_map *s, const struct kp_source_line *line);
/* The place of the call where the location is inlined, and of the call of that, and so on; NULL for one that is not
 * inlined. Locations of files are not trusted: *steps, 0 at first, ends a circle. */
const struct kp_location *kp_location_parent(const struct kp_code *c, const struct kp_location *l, unsigned *steps);
/* The path of the location's file, "" when it has none. Valid as long as `c`. */
const char *kp_location_path(const struct kp_code *c, const struct kp_location *l);
/* Replaces what would move a terminal's cursor, as paths and texts of a session are not trusted. */
void kp_make_printable(char *text);
/* What follows the last slash. */
const char *kp_base_name(const char *path);

/* ---- which line has most of something ---- */

/* Where advice points to: see source.c for what each counts. */
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

/* The line with the most of it. *share receives its part of all, 0 to 1, and *what the words for what that is of. NULL
 * where there is none of it, or without memory. */
const struct kp_source_line *kp_source_hottest(const struct kp_source_map *s, enum kp_hot hot, double *share,
                                               const char **what);
/* The same for the samples of one reason, by its state (see stalls.def). */
const struct kp_source_line *kp_source_hottest_stall(const struct kp_source_map *s, const char *state, double *share,
                                                     const char **what);

/* The identifier of the section that the page source needs. */
extern const char kp_source_section[];

#endif
