#include "tests/support/code_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *from, size_t size)
{
    void *to = malloc(size);
    assert_non_null(to);
    return memcpy(to, from, size);
}

#define LIST(...) copy_of((__VA_ARGS__), sizeof(__VA_ARGS__))

/* "NAME ID", malloc'ed. */
static char *named(const char *name, uint64_t id)
{
    char text[64];
    snprintf(text, sizeof text, "%s %llu", name, (unsigned long long)id);
    return kp_strdup(text);
}

struct kp_stack kp_test_stack(uint64_t id)
{
    struct kp_stack s = {.id = id, .n_frames = id % 3 + 1};
    s.frames = calloc(s.n_frames, sizeof *s.frames);
    for (size_t i = 0; i < s.n_frames; i++)
        s.frames[i] = (struct kp_frame){.kind = i == 1 ? KP_FRAME_PYTHON : KP_FRAME_NATIVE,
                                        .function = i == 2 ? NULL : named("step \"\xc3\xa9\"", id + i),
                                        .file = named("/src/train.py", i),
                                        .line = i == 2 ? UINT32_MAX : (uint32_t)(id % 1000 + i),
                                        .module = named("/lib/libtrain.so", i),
                                        .offset = UINT64_MAX - id - i};
    return s;
}

struct kp_code kp_test_code(uint64_t id)
{
    struct kp_code c = {.id = id, .function = named("_Z6kernelPf", id), .crc = UINT64_MAX - id};
    c.n_files = 3;
    c.files = LIST((struct kp_source_file[]){{kp_strdup("/src/common.cuh"), kp_strdup("line 1\nline 2\n")},
                                             {kp_strdup("/src/math.cuh"), NULL},
                                             {named("/src/kernel.cu", id), kp_strdup("")}});
    c.n_locations = 4;
    c.locations = LIST((struct kp_location[]){{2, 7, 0, kp_strdup("")},
                                              {0, UINT32_MAX, 4, kp_strdup("_Z3sumf")},
                                              {1, 1, 2, kp_strdup("_Z3addff")},
                                              {2, 8, 0, NULL}});
    c.n_instructions = 4 + id % 5;
    c.instructions = calloc(c.n_instructions, sizeof *c.instructions);
    for (size_t i = 0; i < c.n_instructions; i++)
        c.instructions[i] = (struct kp_instruction){.offset = (uint32_t)(16 * i),
                                                    .location = (uint32_t)(i % 5),
                                                    .opcode = kp_strdup(i % 2 ? "FFMA" : "LDG"),
                                                    .text = i ? named("FFMA R1, R2, R3,", i) : NULL,
                                                    .ptx = (uint32_t)(i % 4 * 7),
                                                    .access_bits = i % 2 ? 0 : (uint16_t)(8u << i % 6)};
    for (uint32_t i = 0; i < id % 3 + 1; i++) {
        char *text = named("ld.global.f32 \t%f1, [%rd4]; //", id + i);
        assert_int_equal(kp_code_add_ptx(&c, 7 * (i + 1), text, SIZE_MAX), 0);
        free(text);
    }
    return c;
}

static void add_counts(struct kp_result *r, const struct kp_code *c, size_t first, size_t n)
{
    static const char *const names[] = {"inst_executed", "smsp__pcsamp_sample_count", "thread_inst_executed"};
    enum { METRICS = sizeof names / sizeof *names };
    struct kp_code_counts counts = {.code = c->id, .n_offsets = n, .n_metrics = METRICS};
    counts.offsets = calloc(n, sizeof *counts.offsets);
    counts.metrics = calloc(METRICS, sizeof *counts.metrics);
    for (size_t i = 0; i < n; i++)
        counts.offsets[i] = c->instructions[first + i].offset;
    for (size_t m = 0; m < METRICS; m++) {
        uint64_t *values = calloc(n, sizeof *values);
        for (size_t i = 0; i < n; i++)
            values[i] = i % 3 == m ? 0 : r->launch.id * 1000 + 10 * i + m;
        counts.metrics[m] = (struct kp_code_metric){kp_strdup(names[m]), values};
    }
    if (n > 1)
        counts.metrics[2].values[1] = UINT64_MAX;
    assert_int_equal(kp_result_add_counts(r, &counts), 0);
}

static void add_series(struct kp_result *r)
{
    const double odd[] = {0, 0.1, -1.0 / 3, NAN, INFINITY, -INFINITY, 4294967296, 5e-324, 1e300};
    struct kp_series full = {.name = kp_strdup("sm__inst_executed.sum.per_cycle_active"),
                             .unit = kp_strdup("inst/cycle"),
                             .values = copy_of(odd, sizeof odd),
                             .n_values = sizeof odd / sizeof *odd,
                             .start_ns = -12.5,
                             .interval_ns = 1000 + (double)r->launch.id};
    struct kp_series none = {.name = kp_strdup("none"), .unit = kp_strdup(""), .values = calloc(1, sizeof(double))};
    assert_int_equal(kp_result_add_series(r, &full), 0);
    assert_int_equal(kp_result_add_series(r, &none), 0);
}

void kp_test_add_counts(struct kp_result *r, uint64_t code)
{
    struct kp_code own = kp_test_code(code), called = kp_test_code(code + 1);
    add_counts(r, &own, 0, own.n_instructions);
    add_counts(r, &called, 1, 2);
    add_series(r);
    kp_code_free(&own);
    kp_code_free(&called);
}

/* What was not given comes back empty. */
static void same_text(const char *a, const char *b)
{
    assert_string_equal(a ? a : "", b ? b : "");
}

void kp_test_same_stack(const struct kp_stack *a, const struct kp_stack *b)
{
    assert_true(a->id == b->id);
    assert_int_equal(a->n_frames, b->n_frames);
    for (size_t i = 0; i < a->n_frames; i++) {
        const struct kp_frame *f = &a->frames[i], *g = &b->frames[i];
        assert_int_equal(f->kind, g->kind);
        same_text(f->function, g->function);
        same_text(f->file, g->file);
        assert_int_equal(f->line, g->line);
        same_text(f->module, g->module);
        assert_true(f->offset == g->offset);
    }
}

static void same_file(const struct kp_source_file *a, const struct kp_source_file *b)
{
    assert_string_equal(a->path, b->path);
    assert_int_equal(!a->text, !b->text);
    same_text(a->text, b->text);
}

void kp_test_same_code(const struct kp_code *a, const struct kp_code *b)
{
    assert_true(a->id == b->id && a->crc == b->crc);
    same_text(a->function, b->function);
    assert_int_equal(a->n_files, b->n_files);
    assert_int_equal(a->n_locations, b->n_locations);
    for (size_t i = 0; i < a->n_locations; i++) {
        const struct kp_location *l = &a->locations[i], *m = &b->locations[i];
        same_file(&a->files[l->file], &b->files[m->file]);
        assert_int_equal(l->line, m->line);
        assert_int_equal(l->parent, m->parent);
        same_text(l->function, m->function);
    }
    assert_int_equal(a->n_instructions, b->n_instructions);
    for (size_t i = 0; i < a->n_instructions; i++) {
        const struct kp_instruction *x = &a->instructions[i], *y = &b->instructions[i];
        assert_int_equal(x->offset, y->offset);
        assert_int_equal(x->location, y->location);
        same_text(x->opcode, y->opcode);
        same_text(x->text, y->text);
        assert_int_equal(x->ptx, y->ptx);
        assert_int_equal(x->access_bits, y->access_bits);
    }
    assert_int_equal(a->n_ptx, b->n_ptx);
    for (size_t i = 0; i < a->n_ptx; i++) {
        assert_int_equal(a->ptx[i].line, b->ptx[i].line);
        assert_string_equal(a->ptx[i].text, b->ptx[i].text);
    }
}

static void same_series(const struct kp_series *a, const struct kp_series *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->unit, b->unit);
    assert_true(a->start_ns == b->start_ns && a->interval_ns == b->interval_ns);
    assert_int_equal(a->n_values, b->n_values);
    for (size_t i = 0; i < a->n_values; i++)
        assert_true(a->values[i] == b->values[i] || (isnan(a->values[i]) && isnan(b->values[i])));
}

void kp_test_same_counts(const struct kp_result *a, const struct kp_result *b)
{
    assert_int_equal(a->n_counts, b->n_counts);
    for (size_t i = 0; i < a->n_counts; i++) {
        const struct kp_code_counts *c = &a->counts[i], *d = &b->counts[i];
        assert_true(c->code == d->code);
        assert_int_equal(c->n_offsets, d->n_offsets);
        assert_memory_equal(c->offsets, d->offsets, c->n_offsets * sizeof *c->offsets);
        assert_int_equal(c->n_metrics, d->n_metrics);
        for (size_t m = 0; m < c->n_metrics; m++) {
            assert_string_equal(c->metrics[m].name, d->metrics[m].name);
            assert_memory_equal(c->metrics[m].values, d->metrics[m].values, c->n_offsets * sizeof(uint64_t));
        }
    }
    assert_int_equal(a->n_series, b->n_series);
    for (size_t i = 0; i < a->n_series; i++)
        same_series(&a->series[i], &b->series[i]);
}
