/*
 * What is drawn of a section: its extra rows and its bodies. The sections are made up, the values are those of launches
 * on an H200 (tests/golden/h200_bodies.tsv; the memory chart and the tables of ncu show the same numbers) or odd ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/groups.h"
#include "report/define/units.h"
#include "report/options/options.h"
#include "report/pages/details.h"
#include "report/write/drawings.h"
#include "tests/support/report_support.h"

#define ROW_OF(kind, body, group, label, metric, unit, cc, source)                                                     \
    {                                                                                                                  \
        label, metric, unit, cc, KP_SRC_##source, KP_ROW_##kind, KP_BODY_##body, group                                 \
    }
#define HEADER(label, metric)            ROW_OF(HEADER, NONE, "", label, metric, "", "", COUNTER)
#define EXTRA(label, metric)             ROW_OF(EXTRA, NONE, "", label, metric, "", "", COUNTER)
#define BODY(kind, title, above)         ROW_OF(BODY, kind, above, title, "", "", "", LAUNCH)
#define ITEM(group, label, metric)       ROW_OF(ITEM, NONE, group, label, metric, "", "", COUNTER)
#define RATE(kind, group, label, metric) ROW_OF(kind, NONE, group, label, metric, "", "", COUNTER)
#define SECTION(name, rows)                                                                                            \
    {                                                                                                                  \
#rows, name, 1, "", "", rows, sizeof rows / sizeof *rows, KP_PASSES_ANY                                        \
    }

static const struct kp_display by_default, all = {.details = KP_DETAILS_ALL}, bodies = {.details = KP_DETAILS_BODY};

/* --- made-up sections --- */

#define PCT ".avg.pct_of_peak_sustained_elapsed"

static const struct kp_row throughput_rows[] = {
    HEADER("Compute (SM) Throughput", "sm__throughput" PCT),
    HEADER("Duration", "gpu__time_duration.sum"),
    HEADER("Memory Throughput", "gpu__compute_memory_throughput" PCT),
    EXTRA("Waves Per SM", "launch__waves_per_multiprocessor"),
    EXTRA("Not On This Chip", "chip__other.sum"),
    BODY(BARS_AS, "GPU Throughput", ""),
    ITEM("", "Memory [%]", "gpu__compute_memory_throughput" PCT),
    ITEM("", "Compute (SM) [%]", "sm__throughput" PCT),
    BODY(BARS, "Throughput Breakdown", "Compute"),
    ITEM("", "", "breakdown:sm__throughput" PCT),
    BODY(BARS, "Throughput Breakdown", "Memory"),
    ITEM("", "", "breakdown:gpu__compute_memory_throughput" PCT),
    BODY(BARS, "Not On This Chip", ""),
    ITEM("", "Nothing", "chip__other.sum"),
};
static const struct kp_section throughput = SECTION("Throughput", throughput_rows);

#define L2_ROW(row, source)                                                                                            \
    ITEM(row, "Requests", "lts__t_requests" source ".sum"), ITEM(row, "Sectors", "lts__t_sectors" source ".sum"),      \
        ITEM(row, "% Peak", "lts__t_sectors" source PCT),                                                              \
        ITEM(row, "Sectors/s", "lts__t_sectors" source ".sum.per_second"),                                             \
        ITEM(row, "Hits", "lts__t_sectors" source "_lookup_hit.sum"),                                                  \
        ITEM(row, "Misses to Device", "lts__t_sectors" source "_lookup_miss.sum")

static const struct kp_row table_rows[] = {
    BODY(GRID, "L2 Cache", ""),
    L2_ROW("L1/TEX Load", "_srcunit_tex_op_read"),
    L2_ROW("L1/TEX Store", "_srcunit_tex_op_write"),
    L2_ROW("L1/TEX Reduction", "_srcunit_tex_op_red"),
    L2_ROW("L1/TEX Atomic ALU", "_srcunit_tex_op_atom_dot_alu"),
    L2_ROW("L1/TEX Atomic CAS", "_srcunit_tex_op_atom_dot_cas"),
    L2_ROW("L1/TEX Total", "_srcunit_tex"),
    ITEM("ECC Total", "Sectors", "lts__t_sectors_data_ecc.sum"),
    L2_ROW("GPU Total", ""),
    ITEM("DRAM", "Bytes", "dram__bytes_read.sum"),
    ITEM("DRAM", "Bytes Of The Other Direction", "dram__bytes_write.sum"),
    ITEM("DRAM", "Rate", "dram__bytes_read.sum.per_second"),
    ITEM("Clock", "Rate", "dram__cycles_elapsed.avg.per_second"),
    ITEM("Reduction", "Atomics Only", "lts__t_sectors_srcunit_tex_op_red.sum"),
    BODY(GRID, "Device Memory", ""),
    ITEM("Load", "Bytes", "dram__bytes_read.sum"),
    ITEM("Store", "Bytes", "dram__bytes_write.sum"),
    ITEM("Zero", "Bytes", "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum"),
    BODY(TABLE, "Affinity", ""),
    ITEM("", "Name", "numa__name"),
    ITEM("", "Grid Size", "launch__grid_size"),
};
static const struct kp_section tables = SECTION("Memory Tables", table_rows);

#define SM_CLOCK   "sm__cycles_elapsed.avg.per_second"
#define SMSP_CLOCK "smsp__cycles_elapsed.avg.per_second"
#define DRAM_PEAK(group)                                                                                               \
    RATE(TRAFFIC, group, "Theoretical DRAM Bytes Accessible", "dram__bytes.sum.peak_sustained"),                       \
        RATE(TRAFFIC_CLOCK, group, "DRAM Frequency", "dram__cycles_elapsed.avg.per_second")
#define DRAM_DONE(group) RATE(TRAFFIC, group, "DRAM Bandwidth", "dram__bytes.sum.per_second")
#define WORK_PEAK(group, op)                                                                                           \
    RATE(WORK, group, "Theoretical " op " Operations", "derived__sm__sass_thread_inst_executed_op_" op "_pred_on_x2"), \
        RATE(WORK_CLOCK, group, "SM Frequency", SM_CLOCK)
#define WORK_DONE(group, add, mul, fma)                                                                                \
    RATE(WORK, group, "Predicated-On " add " Per Cycle",                                                               \
         "smsp__sass_thread_inst_executed_op_" add "_pred_on.sum.per_cycle_elapsed"),                                  \
        RATE(WORK, group, "Predicated-On " mul " Per Cycle",                                                           \
             "smsp__sass_thread_inst_executed_op_" mul "_pred_on.sum.per_cycle_elapsed"),                              \
        RATE(WORK, group, "Predicated-On " fma " Operations Per Cycle",                                                \
             "derived__smsp__sass_thread_inst_executed_op_" fma "_pred_on_x2"),                                        \
        RATE(WORK_CLOCK, group, "SM Frequency", SMSP_CLOCK)
#define TENSOR(path, label)                                                                                            \
    RATE(WORK, "DRAM Roofline (" label ")", "Theoretical Tensor Operations",                                           \
         "sm__ops_path_tensor_" path ".sum.peak_sustained"),                                                           \
        RATE(WORK_CLOCK, "DRAM Roofline (" label ")", "SM Frequency", SM_CLOCK),                                       \
        DRAM_PEAK("DRAM Roofline (" label ")"),                                                                        \
        RATE(WORK, "@DRAM Achieved Value (" label ")", "Tensor Operations Per Cycle",                                  \
             "sm__ops_path_tensor_" path ".sum.per_cycle_elapsed"),                                                    \
        RATE(WORK_CLOCK, "@DRAM Achieved Value (" label ")", "SM Frequency", SM_CLOCK),                                \
        DRAM_DONE("@DRAM Achieved Value (" label ")")

static const struct kp_row roofline_rows[] = {
    BODY(ROOFLINE, "Floating Point Operations Roofline", ""),
    WORK_PEAK("Single Precision Roofline", "ffma"),
    DRAM_PEAK("Single Precision Roofline"),
    WORK_PEAK("Double Precision Roofline", "dfma"),
    DRAM_PEAK("Double Precision Roofline"),
    WORK_DONE("@Single Precision Achieved Value", "fadd", "fmul", "ffma"),
    DRAM_DONE("@Single Precision Achieved Value"),
    WORK_DONE("@Double Precision Achieved Value", "dadd", "dmul", "dfma"),
    DRAM_DONE("@Double Precision Achieved Value"),
    BODY(ROOFLINE, "Tensor Core Operations Roofline", ""),
    TENSOR("op_bgmma_src_int1", "Op:bgmma Src:int1"),
    TENSOR("op_bmma_src_int1", "Op:bmma Src:int1"),
    TENSOR("op_hmma_src_fp16_dst_fp16_sparsity_off", "Op:hmma Src:fp16 Dst:fp16 Sparsity:off"),
    TENSOR("op_hmma_src_fp16_dst_fp32_sparsity_off", "Op:hmma Src:fp16 Dst:fp32 Sparsity:off"),
    TENSOR("src_fp16", "Src:fp16"),
    TENSOR("src_fp64", "Src:fp64"),
    TENSOR("src_int1", "Src:int1"),
    TENSOR("src_int8", "Src:int8"),
};
static const struct kp_section rooflines = SECTION("Rooflines", roofline_rows);

static const struct kp_row curve_rows[] = {
    BODY(CURVE, "Impact of Varying Register Count Per Thread", ""),
    ITEM("", "# Warps Per Register Count", "launch__occupancy_per_register_count"),
    ITEM("", "Half Of Them", "made__half"),
    ITEM("", "Registers Per Thread", "launch__registers_per_thread"),
    ITEM("", "Achieved", "sm__warps_active.avg.per_cycle_active"),
    BODY(CURVE, "By Name", ""),
    ITEM("", "Rate", "made__by_name"),
    BODY(CURVE, "Without Points", ""),
    ITEM("", "Block Size", "launch__block_size"),
};
static const struct kp_section curves = SECTION("Occupancy", curve_rows);

#define FLOW(group, label, metric)                                                                                     \
    ITEM(group, label, metric ".sum"), ITEM(group, label " %", metric ".sum.pct_of_peak_sustained_elapsed"),           \
        ITEM(group, label "/s", metric ".sum.per_second")

static const struct kp_row chart_rows[] = {
    BODY(CHART, "Memory Chart", ""),
    ITEM("kernel", "Elapsed Cycles", "smsp__cycles_elapsed.sum"),
    ITEM("kernel>global", "Global Load Instructions", "smsp__sass_inst_executed_op_global_ld.sum"),
    ITEM("kernel>global", "Global Store Instructions", "smsp__sass_inst_executed_op_global_st.sum"),
    ITEM("kernel>local", "Local Load Instructions", "smsp__sass_inst_executed_op_local_ld.sum"),
    FLOW("kernel>shared", "Shared Instructions", "smsp__sass_inst_executed_op_shared"),
    ITEM("kernel>shared", "Shared Load Instructions", "smsp__sass_inst_executed_op_shared_ld.sum"),
    FLOW("global>l1", "Global Load Requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld"),
    FLOW("global>l1", "Global Store Requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st"),
    FLOW("local>l1", "Local Load Requests", "l1tex__t_requests_pipe_lsu_mem_local_op_ld"),
    ITEM("shared", "Shared Wavefronts %",
         "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"),
    ITEM("l1", "L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"),
    ITEM("l2", "L2 Hit Rate", "lts__t_sector_hit_rate.pct"),
    FLOW("l1>l2", "L1 To L2 Bytes", "l1tex__m_l1tex2xbar_write_bytes"),
    FLOW("l2>l1", "L2 To L1 Bytes", "l1tex__m_xbar2l1tex_read_bytes"),
    ITEM("l2>l1", "L2 To L1 Read Sectors", "lts__t_sectors_srcunit_tex_op_read.sum"),
    FLOW("l1>dsmem", "L1 To DSMEM Bytes", "l1tex__m_l1tex2xbar_write_bytes_mem_dshared"),
    FLOW("fabric", "L2 Fabric Sectors", "lts__t_sectors_srcunit_ltcfabric"),
    FLOW("dram>l2", "DRAM To L2 Bytes", "dram__bytes_read"),
    FLOW("l2>dram", "L2 To DRAM Bytes", "dram__bytes_write"),
    FLOW("system>l2", "System To L2 Read Sectors", "lts__t_sectors_srcunit_tex_aperture_sysmem_op_read_lookup_miss"),
    ITEM("gcc", "GCC Hit Rate", "gcc__average_cache_request_hit_rate.pct"),
};
static const struct kp_section chart = SECTION("Memory Chart", chart_rows);

static const struct kp_section *const every_section[] = {&throughput, &tables, &rooflines, &curves, &chart};

enum { N_SECTIONS = sizeof every_section / sizeof *every_section };

/* --- drawing --- */

static void draw(struct kp_test_text *t, const struct kp_display *d, const struct kp_section *s,
                 const struct kp_session *session, const struct kp_result *r)
{
    struct kp_sink sink = kp_test_sink(t);
    struct kp_out o = {.sink = &sink, .display = d};
    struct kp_view view = {.session = session, .result = r};
    assert_int_equal(kp_test_section(&o, s, &view, true), 0);
    assert_int_equal(o.rc, 0);
}

/* Which of the recorded launches. */
enum { STREAM, FP64, CONFLICT, WMMA, LAUNCHES };

static struct kp_recording recording(void)
{
    struct kp_recording r = kp_test_recording_of("tests/golden/h200_bodies.tsv");
    assert_int_equal(r.n, LAUNCHES);
    return r;
}

static void compare(struct kp_test_text *t, const char *golden)
{
    kp_test_golden(t->text ? t->text : "", golden);
    free(t->text);
    *t = (struct kp_test_text){0};
}

/* The device of the launches is the second one, and not the one that the first line is of. */
static void add_devices(struct kp_session *s, const char *breakdowns)
{
    s->devices = calloc(2, sizeof *s->devices);
    s->n_devices = 2;
    for (int i = 0; i < 2; i++)
        s->devices[i] = (struct kp_device_info){.ordinal = 1 - i,
                                                .name = kp_strdup("NVIDIA H200"),
                                                .chip = kp_strdup("GH100"),
                                                .pci_bus_id = kp_strdup(""),
                                                .breakdowns = kp_strdup(i ? breakdowns : "")};
}

static const char breakdowns[] =
    "sm__throughput" PCT "_triple\tsm__inst_executed" PCT "\n"
    "sm__throughput" PCT "\tidc__request_cycles_active" PCT ",sm__inst_executed" PCT ",sm__pipe_fp64_cycles_active" PCT
    ",sm__inst_executed_pipe_tex" PCT ",sm__inst_executed_pipe_ipa" PCT ",sm__not_collected" PCT ",sm__issue_active" PCT
    "\n"
    "gpu__compute_memory_throughput" PCT "\tdram__cycles_active" PCT ",fbpa__dram_sectors" PCT
    ",l1tex__m_l1tex2xbar_req_cycles_active" PCT ",lts__d_sectors_fill_sysmem" PCT ",lts__t_sectors" PCT "\n";

static void details_say_how_much_is_printed(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_test_text t = {0};
    add_devices(&r.session, breakdowns);
    draw(&t, &by_default, &throughput, &r.session, &r.results[FP64]);
    draw(&t, &all, &throughput, &r.session, &r.results[FP64]);
    draw(&t, &bodies, &throughput, &r.session, &r.results[FP64]);
    draw(&t, &by_default, &tables, &r.session, &r.results[FP64]); /* which has no table before its bodies */
    compare(&t, "tests/golden/bodies_details.txt");
    kp_test_recording_free(&r);
}

static void set_instances(struct kp_result *r, const char *name, const char *const *keys, const double *values,
                          size_t n)
{
    assert_int_equal(kp_result_set_instances(r, name, keys, values, n), 0);
}

static const struct kp_row odd_bars_rows[] = {
    BODY(BARS, "Mixed", "of all kinds"),
    ITEM("", "Over", "m__over"),
    ITEM("", "Unknown", "m__na"),
    ITEM("", "Small", "m__small"),
    ITEM("", "As Small", "m__a_small"),
    ITEM("", "Thousands", "m__thousands"),
    ITEM("", "Bytes", "m__bytes"),
    ITEM("", "Name", "m__name"),
    ITEM("", "Negative", "m__negative"),
    ITEM("", "Fifty", "m__fifty"),
    BODY(BARS, "Instructions by Opcode", ""),
    ITEM("", "Opcodes", "m__opcodes"),
    BODY(BARS_AS, "In Order", ""),
    ITEM("", "Opcodes", "m__opcodes"),
    BODY(BARS, "Nothing Known", ""),
    ITEM("", "Unknown", "m__na"),
};
static const struct kp_section odd_bars = SECTION("Odd Bars", odd_bars_rows);

static void add_odd_bars(struct kp_result *r)
{
    static const char *const opcodes[] = {"FFMA", "LDG", "IADD3", "EXIT"};
    static const double counts[] = {5000, 128, 12000, 64};
    kp_result_set_real(r, "m__over", "%", 182.63);
    kp_result_set_why(r, "m__na", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"it cannot be combined"));
    kp_result_set_real(r, "m__small", "%", 0.002);
    kp_result_set_real(r, "m__a_small", "%", 0.001); /* looks the same, and has the lesser name */
    kp_result_set_real(r, "m__thousands", "inst", 11678.49);
    kp_result_set_count(r, "m__bytes", "byte", 1234567);
    kp_result_set_text(r, "m__name", "", "PolicySpread");
    kp_result_set_real(r, "m__negative", "", -3.5);
    kp_result_set_real(r, "m__fifty", "%", 50);
    kp_result_set_count(r, "m__opcodes", "inst", 17192);
    set_instances(r, "m__opcodes", opcodes, counts, 4);
}

static void bars_are_sorted_by_what_is_printed(void **state)
{
    (void)state;
    struct kp_session session = {0};
    struct kp_result r = {0};
    struct kp_test_text t = {0};
    struct kp_display values = all;
    values.instances = KP_INSTANCES_VALUES;
    add_odd_bars(&r);
    draw(&t, &all, &odd_bars, &session, &r);
    draw(&t, &values, &odd_bars, &session, &r);
    compare(&t, "tests/golden/bodies_bars.txt");
    kp_result_free(&r);
}

static void grids_have_rows_and_columns(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_test_text t = {0};
    struct kp_display base = all;
    base.base_units = true;
    kp_result_set_text(&r.results[CONFLICT], "numa__name", "", "NVIDIA H200");
    kp_result_set_why(&r.results[CONFLICT], "lts__t_sectors_data_ecc.sum",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"the unit is shared"));
    draw(&t, &all, &tables, &r.session, &r.results[CONFLICT]);
    draw(&t, &base, &tables, &r.session, &r.results[CONFLICT]);
    compare(&t, "tests/golden/bodies_grid.txt");
    kp_test_recording_free(&r);
}

static void rooflines_are_drawn_where_work_was_done(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_test_text t = {0};
    for (int i = 0; i < LAUNCHES; i++)
        draw(&t, &all, &rooflines, &r.session, &r.results[i]);
    compare(&t, "tests/golden/bodies_roofline.txt");
    kp_test_recording_free(&r);
}

static void an_incomplete_roofline_says_what_is_not_known(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_result *fp64 = &r.results[FP64];
    struct kp_test_text t = {0};
    kp_result_set_why(fp64, "dram__cycles_elapsed.avg.per_second",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"the clock was lost"));
    draw(&t, &all, &rooflines, &r.session, fp64); /* no roof has its traffic */
    kp_result_set_real(fp64, "dram__cycles_elapsed.avg.per_second", "hz", 3.2e9);
    kp_result_set_real(fp64, "dram__bytes.sum.per_second", "byte/s", 0);
    draw(&t, &all, &rooflines, &r.session, fp64); /* all in the caches */
    compare(&t, "tests/golden/bodies_roofline_incomplete.txt");
    kp_test_recording_free(&r);
}

/* Formula of the registers' curve for 256 threads: 64 registers of 256 fit a warp, and so on. */
static void add_curves(struct kp_result *r)
{
    static const char *const names[] = {"low", "middle", "high"};
    static const double rates[] = {1, 2.5, 2};
    double warps[257], half[257];
    for (int i = 0; i < 257; i++) {
        int per_warp = (32 * i + 255) / 256 * 256;
        int blocks = per_warp ? 4 * (16384 / per_warp) / 8 : 8;
        warps[i] = 8 * (blocks < 8 ? blocks : 8);
        half[i] = warps[i] / 2;
    }
    kp_result_set_count(r, "launch__occupancy_per_register_count", "warp", 5504);
    set_instances(r, "launch__occupancy_per_register_count", NULL, warps, 257);
    kp_result_set_count(r, "made__half", "", 2752);
    set_instances(r, "made__half", NULL, half, 257);
    kp_result_set_real(r, "made__by_name", "byte/s", 5.5e9);
    double scaled[] = {rates[0] * 1e9, rates[1] * 1e9, rates[2] * 1e9};
    set_instances(r, "made__by_name", names, scaled, 3);
}

static void curves_have_steps_and_a_mark(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_test_text t = {0};
    struct kp_display details = bodies;
    details.instances = KP_INSTANCES_DETAILS;
    add_curves(&r.results[STREAM]);
    draw(&t, &all, &curves, &r.session, &r.results[STREAM]);
    draw(&t, &details, &curves, &r.session, &r.results[STREAM]);
    kp_result_set_count(&r.results[STREAM], "launch__registers_per_thread", "register/thread", 300); /* off the axis */
    draw(&t, &all, &curves, &r.session, &r.results[STREAM]);
    compare(&t, "tests/golden/bodies_curve.txt");
    kp_test_recording_free(&r);
}

static void the_chart_has_boxes_and_links(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    struct kp_test_text t = {0};
    struct kp_display names = all, base = all;
    names.naming = KP_NAMING_BOTH;
    base.base_units = true;
    draw(&t, &all, &chart, &r.session, &r.results[CONFLICT]);
    /* no room for the unit, none for the number */
    kp_result_set_count(&r.results[CONFLICT], "smsp__sass_inst_executed_op_local_ld.sum", "inst", 12345678901);
    kp_result_set_count(&r.results[CONFLICT], "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum", "", 123456789012345);
    draw(&t, &names, &chart, &r.session, &r.results[CONFLICT]);
    draw(&t, &base, &chart, &r.session, &r.results[CONFLICT]);
    compare(&t, "tests/golden/bodies_chart.txt");
    kp_test_recording_free(&r);
}

/* --- which rows --- */

static const struct kp_row choice_rows[] = {
    ROW_OF(HEADER, NONE, "", "Two Names", "a__old", "", "", COUNTER),
    ROW_OF(HEADER, NONE, "", "Two Names", "a__new", "", "", COUNTER),
    ROW_OF(HEADER, NONE, "", "Other Chip", "a__other", "", "120", COUNTER),
    ROW_OF(HEADER, NONE, "", "Nowhere", "a__nowhere", "", "", COUNTER),
    ROW_OF(EXTRA, NONE, "", "Two Names", "a__extra", "", "", COUNTER), /* another place: another kind */
    ROW_OF(EXTRA, NONE, "", "Lost", "a__lost", "", "", COUNTER),
    ROW_OF(EXTRA, NONE, "", "Told Above", "a__told", "", "", COUNTER),
    BODY(TABLE, "Body", ""),
    ROW_OF(ITEM, NONE, "", "Two Names", "a__lost", "", "", COUNTER),
    ROW_OF(ITEM, NONE, "", "Two Names", "a__new", "", "", COUNTER),
    ROW_OF(ITEM, NONE, "group", "Two Names", "a__extra", "", "", COUNTER), /* another group */
    ROW_OF(ITEM, NONE, "", "Nowhere", "a__nowhere", "", "", COUNTER),
    BODY(TABLE, "Told Above", ""),
    ROW_OF(ITEM, NONE, "", "Told Above", "a__told", "", "", COUNTER),
    BODY(GRID, "Lost", ""),
    ROW_OF(ITEM, NONE, "Row", "Lost", "a__lost", "", "", COUNTER),
};
static const struct kp_section choice = SECTION("Choice", choice_rows);

static void the_first_row_of_a_place_that_has_a_value_is_shown(void **state)
{
    (void)state;
    struct kp_session session = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    struct kp_test_text t = {0};
    r.launch.note = kp_strdup("not replayed");
    kp_result_set_count(&r, "a__new", "inst", 1);
    kp_result_set_count(&r, "a__other", "inst", 2);
    kp_result_set_count(&r, "a__extra", "inst", 3);
    kp_result_set_why(&r, "a__lost", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"was lost"));
    kp_result_set_why(&r, "a__told", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not replayed"));
    draw(&t, &all, &choice, &session, &r);
    compare(&t, "tests/golden/bodies_rows.txt");
    kp_result_free(&r);
}

/* --- print options --- */

static void add_instances(struct kp_result *r)
{
    static const char *const keys[] = {"device 0", "device 1", "device 2"};
    static const double bytes[] = {1500000, 0.5, 250};
    kp_result_set_real(r, "gpu__time_duration.sum", "ns", 1234567);
    kp_result_set_real(r, "sm__throughput" PCT, "%", 12.5);
    kp_result_set_real(r, "gpu__compute_memory_throughput" PCT, "byte", 1500250.5);
    set_instances(r, "gpu__compute_memory_throughput" PCT, keys, bytes, 3);
}

static void options_say_how_values_are_printed(void **state)
{
    static const struct kp_display displays[] = {
        {.naming = KP_NAMING_NAME},
        {.naming = KP_NAMING_BOTH, .base_units = true},
        {.instances = KP_INSTANCES_VALUES},
        {.instances = KP_INSTANCES_DETAILS, .base_units = true},
        {.details = KP_DETAILS_BODY, .naming = KP_NAMING_BOTH, .base_units = true},
    };
    (void)state;
    struct kp_session session = {0};
    struct kp_result r = {0};
    struct kp_test_text t = {0};
    add_instances(&r);
    for (size_t i = 0; i < sizeof displays / sizeof *displays; i++)
        draw(&t, &displays[i], &throughput, &session, &r);
    struct kp_display grid = {.details = KP_DETAILS_BODY, .naming = KP_NAMING_BOTH};
    kp_result_set_count(&r, "dram__bytes_read.sum", "byte", 2500);
    draw(&t, &grid, &tables, &session, &r);
    compare(&t, "tests/golden/bodies_display.txt");
    kp_result_free(&r);
}

static void every_print_option_reaches_the_display(void **state)
{
    static const struct {
        const char *env;
        struct kp_display display;
    } cases[] = {
        {"KPROF_QUIET=on", {0}},
        {"KPROF_PRINT_DETAILS=header", {0}},
        {"KPROF_PRINT_DETAILS=body", {.details = KP_DETAILS_BODY}},
        {"KPROF_PRINT_DETAILS=all", {.details = KP_DETAILS_ALL}},
        {"KPROF_PRINT_METRIC_NAME=name", {.naming = KP_NAMING_NAME}},
        {"KPROF_PRINT_METRIC_NAME=label-name", {.naming = KP_NAMING_BOTH}},
        {"KPROF_PRINT_UNITS=base", {.base_units = true}},
        {"KPROF_PRINT_METRIC_INSTANCES=values", {.instances = KP_INSTANCES_VALUES}},
        {"KPROF_PRINT_METRIC_INSTANCES=details", {.instances = KP_INSTANCES_DETAILS}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_options o;
        char *env[] = {(char *)cases[i].env, NULL}, *err = NULL;
        const struct kp_display *want = &cases[i].display;
        assert_int_equal(kp_options_from_env(&o, env, &err), 0);
        struct kp_display d = kp_display_of(&o);
        assert_int_equal(d.details, want->details);
        assert_int_equal(d.naming, want->naming);
        assert_int_equal(d.base_units, want->base_units);
        assert_int_equal(d.instances, want->instances);
        assert_false(d.choose);
        kp_options_free(&o);
    }
}

static void a_launch_is_printed_as_the_display_chooses(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    struct kp_display d = {.choose = true, .sections = "Occupancy", .metrics = "regex:^sm__cycles,launch__grid_size"};
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    d = (struct kp_display){.choose = true, .metrics = KP_BREAKDOWN "sm__throughput" PCT ",gpu__time_duration.sum"};
    add_devices(&r.session, "sm__throughput" PCT "\tlts__cycles_active.avg,sm__cycles_active.avg,sm__missing.avg\n");
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    d.metrics = KP_BREAKDOWN "sm__throughput,gpu__time_duration,nothing__known";
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    kp_result_set_count(&r.results[0], "dram__bytes_read.sum", "byte", 2500);
    d.metrics = "group:memory__dram_table";
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    d.metrics = ""; /* none of it was collected */
    d.sections = "SchedulerStats";
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    compare(&t, "tests/golden/bodies_chosen.txt");
    kp_test_recording_free(&r);
}

/* --- bodies of the built-in sections --- */

static void draw_section(struct kp_test_text *t, const struct kp_display *d, const char *id, const struct kp_result *r)
{
    char name[64];
    struct kp_session asked = {.sections = name};
    snprintf(name, sizeof name, "%s", id);
    draw(t, d, kp_section_find(id), &asked, r);
}

/* What a metric has no unit for is drawn beside what it is compared with, and only drawn. */
static void drawings_have_units_that_metrics_lack(void **state)
{
    static const char path[] = "sm__ops_path_tensor_src_fp16";
    (void)state;
    struct kp_test_text t = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    char name[128];
    kp_result_set_real(&r, "smsp__warps_active.avg.peak_sustained", "warp", 16);
    kp_result_set_real(&r, "smsp__issue_active.avg.per_cycle_active", "", 0.5);
    draw_section(&t, &all, "SchedulerStats", &r);
    snprintf(name, sizeof name, "%s.sum.per_second", path);
    kp_result_set_real(&r, name, "", 2.5e12);
    snprintf(name, sizeof name, "%s.sum.peak_sustained_elapsed.per_second", path);
    kp_result_set_real(&r, name, "", 1067823581625441.75);
    draw_section(&t, &bodies, "SpeedOfLight_HierarchicalTensorRooflineChart", &r);
    compare(&t, "tests/golden/bodies_drawn_units.txt");
    kp_result_free(&r);
}

/* A peak is no work, and a long list of what did nothing is only counted. */
static void rows_of_nothing_are_folded(void **state)
{
    static const char *const suffixes[] = {".sum", ".sum.peak_sustained"};
    (void)state;
    const struct kp_section *s = kp_section_find("SpeedOfLight_HierarchicalTensorRooflineChart");
    struct kp_test_text t = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    for (size_t i = 0; i < s->n_rows; i++)
        for (size_t k = 0; k < 2; k++) {
            const char *end = strstr(s->rows[i].metric, suffixes[k]);
            if (end && !strcmp(end, suffixes[k]) && s->rows[i].kind == KP_ROW_ITEM)
                kp_result_set_real(&r, s->rows[i].metric, "", k);
        }
    draw_section(&t, &bodies, s->id, &r);
    assert_non_null(strstr(t.text, "    No operations: 28 rows\n"));
    assert_null(strstr(t.text, "Peak/Cycle"));
    free(t.text);
    t = (struct kp_test_text){0};
    kp_result_set_real(&r, "sm__ops_path_tensor_src_fp64.sum", "", 5);
    draw_section(&t, &bodies, s->id, &r);
    assert_non_null(strstr(t.text, "    No operations: 27 other rows\n"));
    assert_non_null(strstr(t.text, "    Src:fp64"));
    free(t.text);
    kp_result_free(&r);
}

static void a_machine_without_nvlink_is_told_in_a_sentence(void **state)
{
    static const char sentence[] = "    Section: NVLink Topology\n"
                                   "    No NVLink connects the devices that the process sees.\n\n"
                                   "    Section: NVLink Tables\n"
                                   "    No NVLink connects the devices that the process sees.\n\n";
    static const struct kp_display named = {.choose = true, .sections = "Nvlink_Topology,Nvlink_Tables"},
                                   of_set = {.choose = true, .set = "nvlink"};
    (void)state;
    struct kp_test_text t = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    kp_result_set_real(&r, "nvlink__count_logical", "", 0);
    kp_result_set_real(&r, "nvlink__bandwidth", "", 0);
    for (int known = 0; known < 2; known++) {
        draw_section(&t, &all, "Nvlink_Topology", &r);
        draw_section(&t, &all, "Nvlink_Tables", &r);
        assert_string_equal(t.text, sentence);
        free(t.text);
        t = (struct kp_test_text){0};
        draw_section(&t, &named, "Nvlink_Topology", &r);
        draw_section(&t, &named, "Nvlink_Tables", &r);
        draw_section(&t, &of_set, "Nvlink_Tables", &r);
        assert_string_equal(t.text, sentence);
        free(t.text);
        t = (struct kp_test_text){0};
        kp_result_set_real(&r, "nvlink__count_physical", "", 0);
    }
    kp_result_set_real(&r, "nvlink__count_physical", "", 18);
    draw_section(&t, &all, "Nvlink_Topology", &r);
    assert_non_null(strstr(t.text, "Physical Links"));
    free(t.text);
    kp_result_free(&r);
}

/* By its name, not by its set. */
static void a_named_section_of_charts_says_how_to_see_them(void **state)
{
    static const char told[] = "    Section: GPU Speed Of Light Roofline Chart\n"
                               "    only charts and tables: --print-details all\n";
    static const struct {
        struct kp_display d;
        const char *set, *sections; /* of the session */
        bool told;
    } cases[] = {
        {{.choose = true, .sections = "SpeedOfLight_RooflineChart"}, "", "", true},
        {{.choose = true, .set = "roofline"}, "", "", false},
        {{.choose = true, .sections = "Occupancy"}, "", "", false},
        {{.choose = true, .sections = "SpeedOfLight_RooflineChart", .details = KP_DETAILS_ALL}, "", "", false},
        {{.details = KP_DETAILS_HEADER}, "", "SpeedOfLight_RooflineChart,Occupancy", true},
        {{.details = KP_DETAILS_HEADER}, "detailed", "SpeedOfLight_RooflineChart,Occupancy", false},
    };
    struct kp_recording r = kp_test_recording_of("tests/golden/h200_bodies.tsv");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_test_text t = {0};
        struct kp_sink sink = kp_test_sink(&t);
        struct kp_session s = {
            .set = (char *)cases[i].set, .sections = (char *)cases[i].sections, .metrics = (char *)""};
        assert_int_equal(kp_test_launch(&sink, &cases[i].d, &s, &r.results[0]), 0);
        if (!strstr(t.text, told) == cases[i].told)
            fail_msg("%zu:\n%s", i, t.text);
        free(t.text);
    }
    kp_test_recording_free(&r);
}

/* A row whose conditions do not hold is not shown, nor a section. */
static void a_section_of_another_chip_is_not_shown(void **state)
{
    static const struct kp_row rows[] = {HEADER("Seen", "seen.sum")};
    static const struct kp_section other = {"Other", "Other", 1, "", "80-89", rows, 1, KP_PASSES_ANY};
    (void)state;
    struct kp_test_text t = {0};
    struct kp_session none = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    kp_result_set_real(&r, "seen.sum", "", 1);
    draw(&t, &all, &other, &none, &r);
    assert_null(t.text);
    r.launch.cc_major = 8;
    draw(&t, &all, &other, &none, &r);
    assert_non_null(strstr(t.text, "Seen"));
    free(t.text);
    kp_result_free(&r);
}

/* A name that leaves no room beside it stands above its value in a table: whoever searches for it finds it whole. Texts
 * give way before that. */
static void a_long_name_of_a_table_is_whole(void **state)
{
    static const char name[] = "l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_redas" PCT,
                      beside[] = "dram__a_name_that_"
                                 "fits_beside_numbers_of_which_none_is_very_long_and_beside_a_text.sum";
    (void)state;
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_display d = {.width = KP_LINE_WIDTH};
    struct kp_out o = {.sink = &sink, .display = &d};
    struct kp_result r = {.launch = {.cc_major = 9}};
    struct kp_lines lines = {0};
    kp_result_set_real(&r, beside, "byte/block", 1);
    kp_result_set_real(&r, name, "%", 87.5);
    kp_result_set_text(&r, "text", "", "a text of several words that is longer than a number");
    for (size_t i = 0; i < r.n_metrics; i++) {
        const char *own = r.metrics[i].name;
        assert_int_equal(
            kp_lines_add(&lines, &(struct kp_line){KP_ROW_HEADER, "", own, own, &r.metrics[i], NULL, NULL}), 0);
    }
    kp_table_print(&o, &lines);
    assert_non_null(strstr(t.text, beside));
    char *own = strstr(t.text, name), *value = own ? strstr(own, "87.5") : NULL;
    assert_non_null(own);
    assert_non_null(value);
    for (const char *line = t.text; *line; line = strchr(line, '\n') + 1)
        assert_true(strcspn(line, "\n") <= KP_LINE_WIDTH);
    free(t.text);
    t = (struct kp_test_text){0};
    d.width = 0; /* a file: a row is one line */
    kp_table_print(&o, &lines);
    own = strstr(t.text, name);
    assert_non_null(own);
    assert_true(strstr(own, "87.5") < strchr(own, '\n'));
    assert_non_null(strstr(t.text, " a text of several words that is longer than a number\n"));
    kp_lines_free(&lines);
    kp_result_free(&r);
    free(t.text);
}

/* A name that leaves no room beside it stands above its bar, and takes none from the others. */
static void a_long_name_leaves_the_bars(void **state)
{
    static const char name[] =
        "sm__memory_throughput_internal_activity_of_a_name_that_goes_on_and_on_and_on_to_the_end_of_the_line" PCT;
    static const struct kp_row rows[] = {BODY(BARS, "Bars", ""), ITEM("", "a", "sm__short" PCT), ITEM("", "b", name)};
    static const struct kp_section bars = SECTION("Bars", rows);
    (void)state;
    struct kp_test_text t = {0};
    struct kp_session none = {0};
    struct kp_result r = {.launch = {.cc_major = 9}};
    struct kp_display names = {.details = KP_DETAILS_BODY, .naming = KP_NAMING_NAME};
    kp_result_set_real(&r, "sm__short" PCT, "%", 50);
    kp_result_set_real(&r, name, "%", 100);
    draw(&t, &names, &bars, &none, &r);
    compare(&t, "tests/golden/bodies_long_names.txt");
    kp_result_free(&r);
}

/* A session whose section files are gone. */
static void what_is_not_known_any_more_is_left_out(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text known = {0}, t = {0};
    struct kp_sink out = kp_test_sink(&t), known_out = kp_test_sink(&known);
    struct kp_display d = {.choose = true, .set = "of-files", .sections = "Mine,Occupancy,Others,LaunchStats"};
    assert_int_equal(kp_test_launch(&out, &d, &r.session, &r.results[0]), 0);
    d = (struct kp_display){.choose = true, .sections = "Occupancy,LaunchStats"};
    assert_int_equal(kp_test_launch(&known_out, &d, &r.session, &r.results[0]), 0);
    assert_string_equal(t.text, known.text);
    free(t.text);
    free(known.text);
    kp_test_recording_free(&r);
}

/* --- whatever the values are --- */

static double odd_value(unsigned pick)
{
    static const double values[] = {
        0,
        -0.0,
        1,
        -1,
        NAN,
        INFINITY,
        -INFINITY,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        5e-324,
        1e-300,
        0.004,
        99.999,
        100,
        182.63,
        1e15,
        1e18,
        9007199254740993.0,
        1e100,
        -1e9,
    };
    return values[pick % (sizeof values / sizeof *values)];
}

static unsigned next(unsigned *seed)
{
    return (*seed = *seed * 1664525 + 1013904223) >> 8;
}

static void set_odd(struct kp_result *r, const char *name, unsigned *seed)
{
    static const char *const units[] = {"", "%", "byte", "byte/s", "hz", "ns", "sector/s", "inst", "register/thread"};
    static const char *const keys[] = {"-1", "0", "7", "nan", "1e308", "", "a key of some length, with blanks", "9"};
    const char *unit = units[next(seed) % (sizeof units / sizeof *units)];
    double values[8];
    for (size_t i = 0; i < 8; i++)
        values[i] = odd_value(next(seed));
    switch (next(seed) % 8) {
    case 0: /* the launch lacks it */
        return;
    case 1:
        kp_result_set_why(r, name, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"odd"));
        return;
    case 2:
        kp_result_set_text(r, name, unit, "some text of more than thirty characters, in words");
        return;
    case 3:
        kp_result_set_count(r, name, unit, UINT64_MAX >> next(seed) % 64);
        break;
    default:
        kp_result_set_real(r, name, unit, values[0]);
    }
    if (next(seed) % 3 == 0)
        set_instances(r, name, next(seed) % 2 ? keys : NULL, values, 1 + next(seed) % 8);
}

static void assert_clean(const char *text)
{
    for (const char *c = text; *c; c++)
        assert_true(*c == '\n' || isprint((unsigned char)*c));
    const char *blank = strstr(text, " \n"); /* no blanks at the end of a line */
    if (blank)
        fail_msg("a blank ends a line: %.*s", 300, blank > text + 200 ? blank - 200 : text);
}

static void no_value_breaks_a_body(void **state)
{
    (void)state;
    struct kp_session session = {0};
    add_devices(&session, breakdowns);
    for (unsigned round = 0; round < 400; round++) {
        struct kp_result r = {.launch = {.cc_major = 9}};
        struct kp_test_text t = {0};
        unsigned seed = round;
        struct kp_display d = {
            .details = KP_DETAILS_ALL, .naming = round % 3, .base_units = round % 2, .instances = round / 3 % 3};
        for (size_t i = 0; i < N_SECTIONS; i++) {
            for (size_t j = 0; j < every_section[i]->n_rows; j++)
                if (*every_section[i]->rows[j].metric)
                    set_odd(&r, every_section[i]->rows[j].metric, &seed);
            draw(&t, &d, every_section[i], &session, &r);
        }
        set_odd(&r, "m__opcodes", &seed);
        draw(&t, &d, &odd_bars, &session, &r);
        assert_clean(t.text ? t.text : "");
        free(t.text);
        kp_result_free(&r);
    }
    kp_session_free(&session);
}

/* Whatever the body, the numbers of its rows are in the text; a roofline has what is computed of them. */
static void every_value_can_be_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SECTIONS; i++) {
        const struct kp_section *s = every_section[i];
        struct kp_session session = {0};
        struct kp_result r = {.launch = {.cc_major = 9}};
        struct kp_test_text t = {0};
        if (s == &rooflines)
            continue;
        for (size_t j = 0; j < s->n_rows; j++)
            if (*s->rows[j].metric && strncmp(s->rows[j].metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)))
                kp_result_set_count(&r, s->rows[j].metric, "", 1001 + 7 * j);
        draw(&t, &all, s, &session, &r);
        for (size_t j = 0; j < r.n_metrics; j++) {
            char number[KP_NUMBER_MAX];
            kp_format_count(r.metrics[j].count, number);
            if (!strstr(t.text, number))
                fail_msg("%s: %s of %s is not printed", s->display, number, r.metrics[j].name);
        }
        free(t.text);
        kp_result_free(&r);
    }
}

static int fills_up(void *arg, const char *text, size_t len)
{
    size_t *room = arg;
    (void)text;
    if (*room < len)
        return -ENOSPC;
    *room -= len;
    return 0;
}

static void a_sink_that_fails_in_a_body_ends_it(void **state)
{
    (void)state;
    struct kp_recording r = recording();
    add_curves(&r.results[STREAM]);
    for (size_t i = 0; i < N_SECTIONS; i++)
        for (size_t bytes = 0; bytes < 4000; bytes += 97) {
            size_t room = bytes;
            struct kp_sink sink = {fills_up, &room};
            struct kp_out o = {.sink = &sink, .display = &all};
            struct kp_view view = {.session = &r.session, .result = &r.results[STREAM]};
            assert_int_equal(kp_test_section(&o, every_section[i], &view, true), 0);
            assert_true(o.rc == -ENOSPC || (o.rc == 0 && bytes > 500));
        }
    kp_test_recording_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(details_say_how_much_is_printed),
        cmocka_unit_test(bars_are_sorted_by_what_is_printed),
        cmocka_unit_test(grids_have_rows_and_columns),
        cmocka_unit_test(rooflines_are_drawn_where_work_was_done),
        cmocka_unit_test(an_incomplete_roofline_says_what_is_not_known),
        cmocka_unit_test(curves_have_steps_and_a_mark),
        cmocka_unit_test(the_chart_has_boxes_and_links),
        cmocka_unit_test(the_first_row_of_a_place_that_has_a_value_is_shown),
        cmocka_unit_test(options_say_how_values_are_printed),
        cmocka_unit_test(every_print_option_reaches_the_display),
        cmocka_unit_test(a_launch_is_printed_as_the_display_chooses),
        cmocka_unit_test(drawings_have_units_that_metrics_lack),
        cmocka_unit_test(rows_of_nothing_are_folded),
        cmocka_unit_test(a_machine_without_nvlink_is_told_in_a_sentence),
        cmocka_unit_test(a_named_section_of_charts_says_how_to_see_them),
        cmocka_unit_test(a_section_of_another_chip_is_not_shown),
        cmocka_unit_test(a_long_name_of_a_table_is_whole),
        cmocka_unit_test(a_long_name_leaves_the_bars),
        cmocka_unit_test(what_is_not_known_any_more_is_left_out),
        cmocka_unit_test(no_value_breaks_a_body),
        cmocka_unit_test(every_value_can_be_read),
        cmocka_unit_test(a_sink_that_fails_in_a_body_ends_it),
    };
    return cmocka_run_group_tests_name("report/bodies", tests, NULL, NULL);
}
