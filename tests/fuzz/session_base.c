#include "tests/fuzz/session_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/sections.h"
#include "report/store/store.h"
#include "tests/fuzz/fuzz.h"

/* Of the code of each function, so that a session is read and shown in a few milliseconds. */
enum { LAUNCHES = 2, INSTRUCTIONS = 6, LOCATIONS = 5, PTX_LINES = 2, CODE_METRICS = 4, METRICS = 12 };

static char empty[] = "", domain[] = "loader", name[] = "step 1", category[] = "2", payload[] = "3.5";
static char function[] = "main", file[] = "/src/main.c", module[] = "/bin/program", python[] = "/src/train.py";

struct writing {
    struct kp_store *from, *to;
    int whole;
    unsigned launches;
};

static void done(int rc, char **err)
{
    if (rc)
        fprintf(stderr, "fuzz: %s\n", err && *err ? *err : "(no message)");
    kp_fuzz_require(!rc, "the session to start from cannot be made");
    if (err)
        free(*err);
}

static void cut_code(struct kp_code *c)
{
    while (c->n_instructions > INSTRUCTIONS) {
        struct kp_instruction *i = &c->instructions[--c->n_instructions];
        free(i->opcode);
        free(i->text);
    }
    while (c->n_locations > LOCATIONS)
        free(c->locations[--c->n_locations].function);
    for (size_t i = 0; i < c->n_locations; i++)
        if (c->locations[i].parent > c->n_locations)
            c->locations[i].parent = 0;
    for (size_t i = 0; i < c->n_instructions; i++) {
        if (c->instructions[i].location > c->n_locations)
            c->instructions[i].location = (uint32_t)c->n_locations;
        c->instructions[i].ptx = (uint32_t)i / 2 + 1;
    }
    for (uint32_t line = c->n_ptx ? UINT32_MAX : 1; line <= PTX_LINES; line++)
        kp_fuzz_require(!kp_code_add_ptx(c, line, "add.s64 \t%rd4, %rd2, %rd3;", SIZE_MAX), "no memory");
}

static void put_codes(struct writing *w, struct kp_result *r)
{
    for (size_t i = 0; i < r->n_counts; i++) {
        struct kp_code_counts *counts = &r->counts[i];
        struct kp_code code;
        char *err = NULL;
        if (counts->n_offsets > INSTRUCTIONS)
            counts->n_offsets = INSTRUCTIONS;
        while (counts->n_metrics > CODE_METRICS) {
            struct kp_code_metric *m = &counts->metrics[--counts->n_metrics];
            free(m->name);
            free(m->values);
        }
        done(kp_store_get_code(w->from, counts->code, &code, &err), &err);
        cut_code(&code);
        done(kp_store_put_code(w->to, &code, &err), &err);
        kp_code_free(&code);
    }
}

static void put_stack(struct writing *w, uint64_t id)
{
    struct kp_frame frames[] = {{KP_FRAME_PYTHON, function, python, 12, empty, 0},
                                {KP_FRAME_NATIVE, function, file, 3, module, 4096}};
    struct kp_stack stack = {id, frames, 2};
    char *err = NULL;
    done(kp_store_put_stack(w->to, &stack, &err), &err);
}

static void add_ranges(struct kp_nvtx *n)
{
    const struct kp_nvtx_range ranges[] = {{KP_NVTX_PUSH_POP, empty, name, category, payload, 7},
                                           {KP_NVTX_PUSH_POP, domain, name, empty, empty, 7},
                                           {KP_NVTX_START_END, empty, name, empty, empty, 8}};
    n->thread = 7;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        done(kp_nvtx_add(n, &ranges[i]), NULL);
}

static void add_series(struct kp_result *r, const char *metric)
{
    struct kp_series series = {.name = strdup(metric), .unit = strdup("%"), .start_ns = 10, .interval_ns = 1000};
    series.values = calloc(4, sizeof *series.values);
    series.n_values = 4;
    for (size_t i = 0; i < series.n_values; i++)
        series.values[i] = (double)(i * 25);
    done(kp_result_add_series(r, &series), NULL);
}

static void add_row(struct kp_result *r, const struct kp_section *s, const struct kp_row *row)
{
    static const char *const keys[] = {"0", "16", "32"};
    static const double values[] = {1, 2.5, 100};
    if (!*row->metric || kp_result_find(r, row->metric))
        return;
    double value = (double)(kp_hash(row->metric, strlen(row->metric), 0) % 10000) / 100;
    done(kp_result_set_real(r, row->metric, kp_row_unit(row), value), NULL);
    if (s->rows[0].body == KP_BODY_CURVE || row->source == KP_SRC_SASS)
        done(kp_result_set_instances(r, row->metric, keys, values, sizeof keys / sizeof *keys), NULL);
    if (row->source == KP_SRC_PM && r->n_series < 4)
        add_series(r, row->metric);
}

static void add_all_rows(struct kp_result *r)
{
    size_t n;
    const struct kp_section *sections = kp_sections_builtin(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sections[i].n_rows; k++)
            add_row(r, &sections[i], &sections[i].rows[k]);
}

static void cut_metrics(struct kp_result *r)
{
    while (r->n_metrics > METRICS) {
        struct kp_metric *m = &r->metrics[--r->n_metrics];
        free(m->instances);
        free(m->name);
        free(m->unit);
        free(m->text);
    }
}

static int one_launch(struct kp_result *r, void *arg)
{
    struct writing *w = arg;
    char *err = NULL;
    put_codes(w, r);
    put_stack(w, w->launches + 1);
    r->launch.stack = w->launches + 1;
    add_ranges(&r->launch.nvtx);
    cut_metrics(r);
    if (w->whole && !w->launches)
        add_all_rows(r);
    else
        add_series(r, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
    done(kp_store_put_result(w->to, r, &err), &err);
    return ++w->launches == LAUNCHES;
}

static void put_session(struct writing *w)
{
    struct kp_session s;
    char *err = NULL;
    done(kp_store_get_session(w->from, &s, &err), &err);
    done(kp_session_add_skip(&s, kp_why_of(KP_REASON_KERNEL_NAME, NULL), 3), NULL);
    done(kp_session_add_kernel(&s, "other<float>(int)", 3), NULL);
    done(kp_session_add_range(&s, "loader@step/", 2), NULL);
    free(s.environment);
    s.environment = strdup("RANK=1\nWORLD_SIZE=2\n");
    free(s.metrics);
    s.metrics = strdup(w->whole ? "regex:^dram,breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
                                : "smsp__inst_executed.sum,nothing");
    free(s.set);
    s.set = strdup(w->whole ? "full" : "");
    done(kp_store_put_session(w->to, &s, &err), &err);
    kp_session_free(&s);
}

void kp_fuzz_write_session(const char *path, int whole)
{
    struct writing w = {.whole = whole};
    char *err = NULL;
    done(kp_store_open("tests/data/h200-source.kprof", &w.from, &err), &err);
    done(kp_store_create(path, true, &w.to, &err), &err);
    done(kp_store_begin(w.to, &err), &err);
    put_session(&w);
    kp_fuzz_require(kp_store_each_result(w.from, one_launch, &w, &err) == 1,
                    "the recorded session has too few launches");
    done(kp_store_commit(w.to, &err), &err);
    kp_store_close(w.from);
    kp_store_close(w.to);
}
