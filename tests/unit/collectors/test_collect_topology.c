/* Metrics of devices over a driver that answers what a test sets, a folder in place of sysfs, and an NVML of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/facts/launch.h"
#include "collectors/facts/topology.h"
#include "tests/support/collect_support.h"
#include "tests/support/occupancy_launches.h"
#include "tests/support/report_support.h"

/* ---- the driver ---- */

static struct {
    int devices;
    CUresult attribute_rc, memory_rc, count_rc;
    int negative; /* an attribute that is -1 */
    int bus;      /* the width of the memory bus, when not 0 */
    int confidential, confidential_rc;
} driver;

/* The attribute's own number, so that a swapped row shows. */
static CUresult device_attribute(int *value, CUdevice_attribute a, CUdevice device)
{
    assert_in_range(device, 0, driver.devices - 1);
    *value = (int)a == driver.negative ? -1 : (int)a;
    if (a == CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID)
        *value = 0x233510de;
    if (a == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH && driver.bus)
        *value = driver.bus;
    return driver.attribute_rc;
}

static CUresult device_name(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, device ? "NVIDIA H200 NVL" : "NVIDIA H200");
    return CUDA_SUCCESS;
}

static CUresult device_bus_id(char *id, int size, CUdevice device)
{
    snprintf(id, (size_t)size, "0000:%02X:00.0", 0x1a + device);
    return CUDA_SUCCESS;
}

static CUresult device_count(int *n)
{
    *n = driver.devices;
    return driver.count_rc;
}

static CUresult device_memory(size_t *bytes, CUdevice device)
{
    assert_int_equal(device, 0);
    *bytes = 150109880320;
    return driver.memory_rc;
}

static const struct kp_driver table = {
    .cuDeviceGetAttribute = device_attribute,
    .cuDeviceGetName = device_name,
    .cuDeviceGetPCIBusId = device_bus_id,
    .cuDeviceGetCount = device_count,
    .cuDeviceTotalMem = device_memory,
};

/* ---- one machine ---- */

struct subject {
    char folder[PATH_MAX / 2], sysfs[PATH_MAX], gpus[PATH_MAX];
    struct kp_driver driver;
    struct kp_device device;
    struct kp_machine machine;
    struct kp_result result;
};

static int enter(void **state)
{
    struct subject *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    memset(&driver, 0, sizeof(driver));
    driver.devices = 1;
    snprintf(s->folder, sizeof(s->folder), "%s", kp_test_folder());
    snprintf(s->sysfs, sizeof(s->sysfs), "%s/sys", s->folder);
    snprintf(s->gpus, sizeof(s->gpus), "%s/sys/gpus", s->folder);
    s->driver = table;
    s->device = kp_test_h200;
    snprintf(s->device.name, sizeof(s->device.name), "NVIDIA H200");
    s->machine = (struct kp_machine){kp_test_dl(), s->sysfs, "libnothing-of-that-name.so.1", s->gpus, "GH100"};
    *state = s;
    return 0;
}

static int leave(void **state)
{
    struct subject *s = *state;
    char command[PATH_MAX];
    snprintf(command, sizeof(command), "rm -rf '%s/sys'", s->folder);
    assert_int_equal(system(command), 0);
    kp_test_remove_folder(s->folder);
    kp_result_free(&s->result);
    free(s);
    return 0;
}

/* Puts a file into the folder that stands for sysfs. */
static void put(const struct subject *s, const char *file, const char *content)
{
    char path[2 * PATH_MAX], command[3 * PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", s->sysfs, file);
    snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\"", path);
    assert_int_equal(system(command), 0);
    kp_test_write(path, content);
}

static void measure(struct subject *s, const char *names)
{
    kp_result_free(&s->result);
    assert_int_equal(kp_device_metrics(&s->result, &s->driver, &s->device, &s->machine, names), 0);
}

static const struct kp_metric *metric(const struct subject *s, const char *name)
{
    const struct kp_metric *m = kp_result_find(&s->result, name);
    if (!m)
        fail_msg("no %s", name);
    assert_string_equal(m->unit, "");
    return m;
}

static double number(const struct subject *s, const char *name)
{
    const struct kp_metric *m = metric(s, name);
    double value = -1;
    if (!kp_metric_number(m, &value))
        fail_msg("%s is no number: %s", name, m->text);
    return value;
}

static const char *text(const struct subject *s, const char *name)
{
    const struct kp_metric *m = metric(s, name);
    if (m->kind != KP_VALUE_TEXT)
        fail_msg("%s is no text: %s", name, m->text ? m->text : "");
    return m->text;
}

static void assert_missing(const struct subject *s, const char *name, const char *why)
{
    const struct kp_metric *m = metric(s, name);
    if (m->kind != KP_VALUE_NA || !strstr(m->text, why))
        fail_msg("%s is not n/a for \"%s\"", name, why);
}

/* ---- names ---- */

static void test_names(void **state)
{
    struct subject *s = *state;
    const char *before = "";
    for (const char *const *name = kp_device_metric_names; *name; before = *name++) {
        assert_true(strcmp(before, *name) < 0); /* they are searched by halves */
        assert_true(kp_device_is_metric(*name));
        assert_true(kp_launch_is_metric(*name));
        measure(s, *name);
        assert_int_equal(s->result.n_metrics, 1);
        assert_non_null(kp_result_find(&s->result, *name));
    }
    assert_false(kp_device_is_metric("device__attribute_warp_siz"));
    assert_false(kp_device_is_metric("device__attribute_warp_sizes"));
    assert_false(kp_device_is_metric("launch__grid_size"));
    assert_false(kp_device_is_metric(""));
}

static void test_only_what_is_asked_for(void **state)
{
    struct subject *s = *state;
    measure(s, "");
    assert_int_equal(s->result.n_metrics, 0);
    measure(s, ",sm__cycles_active.avg,device__attribute_warp_size,,launch__grid_size,device__attribute_display_name");
    assert_int_equal(s->result.n_metrics, 2);
    assert_int_equal(number(s, "device__attribute_warp_size"), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    assert_string_equal(text(s, "device__attribute_display_name"), "NVIDIA H200");
}

/* ---- attributes ---- */

static void test_attributes(void **state)
{
    static const struct {
        const char *name;
        CUdevice_attribute attribute;
    } rows[] = {
        {"device__attribute_l2_cache_size", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        {"device__attribute_max_threads_per_block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {"device__attribute_fb_bus_width", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
        {"device__attribute_limits_max_cta_per_sm", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
        {"device__attribute_max_gpu_frequency_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {"device__attribute_max_mem_frequency_khz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
        {"device__attribute_maximum_texture3d_depth_alternate", CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE},
    };
    struct subject *s = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        measure(s, rows[i].name);
        assert_int_equal(number(s, rows[i].name), rows[i].attribute);
    }
    driver.negative = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    measure(s, "device__attribute_host_numa_id");
    assert_float_equal(number(s, "device__attribute_host_numa_id"), -1, 0);
    driver.attribute_rc = CUDA_ERROR_INVALID_VALUE; /* a driver from before the attribute */
    measure(s, "device__attribute_mps_enabled,device__attribute_gpu_pci_ext_device_id");
    assert_missing(s, "device__attribute_mps_enabled", "driver");
    assert_missing(s, "device__attribute_gpu_pci_ext_device_id", "driver");
}

/* As ncu lists them for the H200. */
static void test_figures_of_the_chip(void **state)
{
    static const struct {
        const char *name;
        double value;
    } rows[] = {
        {"device__attribute_device_index", 0},
        {"device__attribute_gpu_pci_ext_device_id", 9013},
        {"device__attribute_limits_num_tpcs", 66},
        {"device__attribute_max_ipc_per_multiprocessor", 4},
        {"device__attribute_max_ipc_per_scheduler", 1},
        {"device__attribute_max_registers_per_thread", 255},
        {"device__attribute_max_warps_per_multiprocessor", 64},
        {"device__attribute_max_warps_per_scheduler", 16},
        {"device__attribute_num_schedulers_per_multiprocessor", 4},
        {"device__attribute_num_tex_per_multiprocessor", 1},
        {"device__attribute_total_memory", 150109880320},
    };
    struct subject *s = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        measure(s, rows[i].name);
        assert_float_equal(number(s, rows[i].name), rows[i].value, 0);
    }
    driver.memory_rc = CUDA_ERROR_INVALID_DEVICE;
    measure(s, "device__attribute_total_memory");
    assert_missing(s, "device__attribute_total_memory", "driver");
}

static const char chip_names[] =
    "device__attribute_architecture,device__attribute_chip,device__attribute_implementation,"
    "device__attribute_fbp_count,device__attribute_num_l2s_per_fbp,device__attribute_l2s_count,"
    "device__attribute_sass_level";

static void test_facts_of_the_chip(void **state)
{
    static const struct {
        const char *chip;
        int major, bus;
        double architecture, number, partitions, slices; /* as ncu lists them */
    } rows[] = {
        {"GH100", 9, 6144, 384, 384, 12, 96},
        {"GH100", 9, 6016, 384, 384, 12, 96}, /* an H200: a part of the last one is disabled */
        {"GH100", 9, 5120, 384, 384, 10, 80},
        {"GA104", 8, 256, 368, 372, 4, 32},
    };
    struct subject *s = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        s->machine.chip = rows[i].chip;
        s->device.cc_major = rows[i].major;
        driver.bus = rows[i].bus;
        measure(s, chip_names);
        assert_float_equal(number(s, "device__attribute_architecture"), rows[i].architecture, 0);
        assert_float_equal(number(s, "device__attribute_chip"), rows[i].number, 0);
        assert_float_equal(number(s, "device__attribute_implementation"), rows[i].number, 0);
        assert_float_equal(number(s, "device__attribute_fbp_count"), rows[i].partitions, 0);
        assert_float_equal(number(s, "device__attribute_num_l2s_per_fbp"), 8, 0);
        assert_float_equal(number(s, "device__attribute_l2s_count"), rows[i].slices, 0);
        assert_float_equal(number(s, "device__attribute_sass_level"), rows[i].major, 0);
    }
    s->machine.chip = "GB202";
    s->device.cc_major = 12;
    measure(s, chip_names);
    assert_float_equal(number(s, "device__attribute_architecture"), 0x1b0, 0);
    assert_float_equal(number(s, "device__attribute_chip"), 0x1b2, 0);
    assert_missing(s, "device__attribute_fbp_count", "chip");
    assert_missing(s, "device__attribute_num_l2s_per_fbp", "chip");
    assert_missing(s, "device__attribute_l2s_count", "chip");
    assert_missing(s, "device__attribute_sass_level", "chip");
    s->machine.chip = ""; /* CUPTI is not there */
    measure(s, chip_names);
    assert_int_equal(s->result.n_metrics, 7);
    for (size_t i = 0; i < s->result.n_metrics; i++)
        assert_missing(s, s->result.metrics[i].name, "chip");
}

/* ---- sysfs ---- */

static const char pci_names[] = "device__attribute_gpu_pci_revision_id,device__attribute_gpu_pci_ext_gpu_link_rate,"
                                "device__attribute_gpu_pci_ext_gpu_link_width";

static void test_pci(void **state)
{
    struct subject *s = *state;
    put(s, "bus/pci/devices/0000:1a:00.0/revision", "0xa1\n");
    put(s, "bus/pci/devices/0000:1a:00.0/max_link_speed", "32.0 GT/s PCIe\n");
    put(s, "bus/pci/devices/0000:1a:00.0/max_link_width", "16\n");
    measure(s, pci_names);
    assert_int_equal(number(s, "device__attribute_gpu_pci_revision_id"), 161);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gpu_link_rate"), 32000);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gpu_link_width"), 16);
    put(s, "bus/pci/devices/0000:1a:00.0/max_link_speed", "2.5 GT/s PCIe\n");
    measure(s, pci_names);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gpu_link_rate"), 2500);
    put(s, "bus/pci/devices/0000:1a:00.0/max_link_speed", "Unknown\n");
    put(s, "bus/pci/devices/0000:1a:00.0/max_link_width", "");
    measure(s, pci_names);
    assert_missing(s, "device__attribute_gpu_pci_ext_gpu_link_rate", "files");
    assert_missing(s, "device__attribute_gpu_pci_ext_gpu_link_width", "files");
}

static const char link_names[] =
    "device__attribute_gpu_pci_ext_downstream_link_rate,device__attribute_gpu_pci_ext_downstream_link_width,"
    "device__attribute_gpu_pci_ext_gen,device__attribute_gpu_pci_ext_gpu_gen";

/* Generations count from 0. The first machine is the reference's, the second one with a port that is older. */
static void test_pci_port(void **state)
{
    struct subject *s = *state;
    char command[3 * PATH_MAX];
    put(s, "devices/pci0000:00/0000:1a:00.0/max_link_speed", "32.0 GT/s PCIe\n");
    put(s, "bus/pci/devices/readme", "");
    snprintf(command, sizeof(command), "cd '%s/bus/pci/devices' && ln -s ../../../devices/pci0000:00/0000:1a:00.0",
             s->sysfs);
    assert_int_equal(system(command), 0);
    measure(s, link_names);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_downstream_link_rate"), 0);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_downstream_link_width"), 0);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gen"), 4);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gpu_gen"), 4);
    put(s, "devices/pci0000:00/max_link_speed", "8.0 GT/s PCIe\n");
    put(s, "devices/pci0000:00/max_link_width", "8\n");
    measure(s, link_names);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_downstream_link_rate"), 8000);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_downstream_link_width"), 8);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gen"), 2);
    assert_int_equal(number(s, "device__attribute_gpu_pci_ext_gpu_gen"), 4);
    put(s, "devices/pci0000:00/0000:1a:00.0/max_link_speed", "Unknown\n");
    measure(s, link_names);
    assert_int_equal(s->result.n_metrics, 4);
    for (size_t i = 0; i < s->result.n_metrics; i++)
        assert_missing(s, s->result.metrics[i].name, "files");
}

static const char numa_names[] = "numa__cpu_affinity,numa__dev_display_name_all,numa__id_cpu,numa__id_memory";

/* The virtual machine of the reference: a node without a number is the only one there is. */
static void test_one_node(void **state)
{
    struct subject *s = *state;
    put(s, "bus/pci/devices/0000:1a:00.0/local_cpulist", "0-15\n");
    put(s, "bus/pci/devices/0000:1a:00.0/numa_node", "-1\n");
    put(s, "devices/system/node/online", "0\n");
    put(s, "devices/system/node/node0/cpulist", "0-15\n");
    measure(s, numa_names);
    assert_string_equal(text(s, "numa__cpu_affinity"), "1 (0-15)");
    assert_string_equal(text(s, "numa__dev_display_name_all"), "1 (NVIDIA H200)");
    assert_string_equal(text(s, "numa__id_cpu"), "1 (0)");
    assert_string_equal(text(s, "numa__id_memory"), "1 (0)");
}

static void test_several_nodes(void **state)
{
    struct subject *s = *state;
    driver.devices = 2;
    put(s, "bus/pci/devices/0000:1a:00.0/local_cpulist", "0-7,32-39\n");
    put(s, "bus/pci/devices/0000:1a:00.0/numa_node", "0\n");
    put(s, "bus/pci/devices/0000:1b:00.0/local_cpulist", "8-12,20-40\n");
    put(s, "bus/pci/devices/0000:1b:00.0/numa_node", "2\n");
    put(s, "devices/system/node/online", "0,2-3\n");
    put(s, "devices/system/node/node0/cpulist", "0-7,32-39\n");
    put(s, "devices/system/node/node1/cpulist", "0-100\n"); /* it is off */
    put(s, "devices/system/node/node2/cpulist", "13-19,40-47\n");
    put(s, "devices/system/node/node3/cpulist", "13-19\n");
    measure(s, numa_names);
    assert_string_equal(text(s, "numa__cpu_affinity"), "2 (0-7,32-39; 8-12,20-40)");
    assert_string_equal(text(s, "numa__dev_display_name_all"), "2 (NVIDIA H200; NVIDIA H200 NVL)");
    assert_string_equal(text(s, "numa__id_cpu"), "2 (0; 0,2)");
    assert_string_equal(text(s, "numa__id_memory"), "2 (0; 2)");
    put(s, "bus/pci/devices/0000:1b:00.0/numa_node", "-1\n"); /* of which of them */
    measure(s, numa_names);
    assert_missing(s, "numa__id_memory", "NUMA");
}

/* Two more GPUs, which CUDA_VISIBLE_DEVICES hides. */
static void test_hidden_gpus(void **state)
{
    static const char *const ids[] = {"0000:05:00.0", "0000:1a:00.0", "0000:2b:00.0"};
    struct subject *s = *state;
    for (size_t i = 0; i < 3; i++) {
        char name[128], value[64];
        snprintf(name, sizeof(name), "gpus/%s/information", ids[i]);
        snprintf(value, sizeof(value), "IRQ:   \t\t 30\nModel: \t\t NVIDIA GPU %zu\nVideo BIOS: \t Model: none\n", i);
        put(s, name, value);
        snprintf(name, sizeof(name), "bus/pci/devices/%s/local_cpulist", ids[i]);
        snprintf(value, sizeof(value), "%zu\n", i);
        put(s, name, value);
        snprintf(name, sizeof(name), "bus/pci/devices/%s/revision", ids[i]);
        snprintf(value, sizeof(value), "0xa%zu\n", i);
        put(s, name, value);
    }
    measure(s, numa_names);
    assert_string_equal(text(s, "numa__dev_display_name_all"), "3 (NVIDIA GPU 0; NVIDIA GPU 1; NVIDIA GPU 2)");
    assert_string_equal(text(s, "numa__cpu_affinity"), "3 (0; 1; 2)");
    measure(s, pci_names); /* those of the device in question */
    assert_int_equal(number(s, "device__attribute_gpu_pci_revision_id"), 0xa1);
    driver.devices = 2; /* the second one is not among the driver's folders */
    measure(s, numa_names);
    assert_string_equal(text(s, "numa__dev_display_name_all"), "2 (NVIDIA H200; NVIDIA H200 NVL)");
}

static void test_no_files(void **state)
{
    struct subject *s = *state;
    measure(s, numa_names);
    assert_missing(s, "numa__cpu_affinity", "files");
    assert_missing(s, "numa__id_cpu", "files");
    assert_missing(s, "numa__id_memory", "files");
    assert_string_equal(text(s, "numa__dev_display_name_all"), "1 (NVIDIA H200)");
    measure(s, pci_names);
    assert_missing(s, "device__attribute_gpu_pci_revision_id", "files");
    put(s, "bus/pci/devices/0000:1a:00.0/local_cpulist", "0-15\n"); /* a kernel without NUMA */
    measure(s, numa_names);
    assert_string_equal(text(s, "numa__cpu_affinity"), "1 (0-15)");
    assert_missing(s, "numa__id_cpu", "NUMA");
}

/* A driver that does not count its devices: those up to the one in question are there. */
static void test_devices_uncounted(void **state)
{
    struct subject *s = *state;
    driver.count_rc = CUDA_ERROR_NOT_INITIALIZED;
    measure(s, "nvlink__dev_display_name_all");
    assert_string_equal(text(s, "nvlink__dev_display_name_all"), "1 (NVIDIA H200)");
    s->driver.cuDeviceGetCount = NULL;
    s->device.device = 1;
    driver.devices = 2;
    measure(s, "nvlink__dev_display_name_all,device__attribute_device_index");
    assert_string_equal(text(s, "nvlink__dev_display_name_all"), "2 (NVIDIA H200; NVIDIA H200 NVL)");
    assert_int_equal(number(s, "device__attribute_device_index"), 1);
    s->driver.cuDeviceGetCount = device_count; /* too few */
    driver.count_rc = CUDA_SUCCESS;
    driver.devices = 1;
    measure(s, "nvlink__dev_display_name_all");
    assert_string_equal(text(s, "nvlink__dev_display_name_all"), "2 (NVIDIA H200; NVIDIA H200 NVL)");
}

/* ---- NVML ---- */

/* The remote end of each link by device: '.' none, '-' not up, 'S' a switch, 'C' a CPU, '0' … a device. */
static const char nvml_source[] =
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "static const char *const links[] = {LINKS};\n"
    "static int started;\n"
    "struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };\n"
    "int nvmlInit_v2(void) { started += INIT == 0; return INIT; }\n"
    "int nvmlShutdown(void) { FILE *f = fopen(LOG, \"a\"); fprintf(f, \"%d\", --started); fclose(f); return 0; }\n"
    "int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const char **device) {\n"
    "    unsigned domain, bus; char rest[32];\n"
    "    if (!started || sscanf(id, \"%x:%x:%31s\", &domain, &bus, rest) != 3 || domain || strcmp(rest, \"00.0\")) "
    "return 2;\n"
    "    if (bus < 0x1a || bus - 0x1a >= sizeof(links) / sizeof(*links)) return 6;\n"
    "    *device = links[bus - 0x1a]; return 0; }\n"
    "int nvmlDeviceGetVirtualizationMode(const char *d, int *mode) { *mode = MODE; return MODE < 0 ? 3 : 0; }\n"
    "static char end(const char *d, unsigned link) { return link < strlen(d) ? d[link] : '.'; }\n"
    "int nvmlDeviceGetNvLinkState(const char *d, unsigned link, int *up) {\n"
    "    *up = end(d, link) != '-'; return end(d, link) == '.' ? 2 : 0; }\n"
    "int nvmlDeviceGetNvLinkRemoteDeviceType(const char *d, unsigned link, int *type) {\n"
    "    *type = end(d, link) == 'S' ? 2 : end(d, link) == 'C' ? 1 : 0; return 0; }\n"
    "int nvmlDeviceGetNvLinkRemotePciInfo_v2(const char *d, unsigned link, struct pci *p) {\n"
    "    memset(p, 0xff, sizeof(*p));\n"
    "    snprintf(p->bus_id, sizeof(p->bus_id), \"00000000:%02X:00.0\", 0x1a + end(d, link) - '0'); return 0; }\n"
    "int nvmlDeviceGetNvLinkCapability(const char *d, unsigned link, int c, unsigned *yes) {\n"
    "    *yes = CAPABILITIES >> c & 1; return 0; }\n"
    "int nvmlSystemGetConfComputeState(unsigned state[3]) { state[1] = CONFIDENTIAL; return CONFIDENTIAL_RC; }\n";

struct nvml {
    const char *links; /* C strings, separated by commas */
    int init, mode, capabilities;
    const char *hide; /* a function that it does not have, or NULL */
};

static int n_libraries; /* one that is loaded stays: each gets a name of its own */

static void give_nvml(struct subject *s, const struct nvml *n)
{
    static char path[PATH_MAX];
    char name[32], source[8192], hide[64] = "";
    if (n->hide)
        snprintf(hide, sizeof(hide), "#define %s no_such_function\n", n->hide);
    snprintf(name, sizeof(name), "nvml%d.so", n_libraries++);
    snprintf(source, sizeof(source),
             "%s#define LINKS %s\n#define INIT %d\n#define MODE %d\n#define CAPABILITIES %d\n#define CONFIDENTIAL %d\n"
             "#define CONFIDENTIAL_RC %d\n#define LOG \"%s/log\"\n%s",
             hide, n->links, n->init, n->mode, n->capabilities, driver.confidential, driver.confidential_rc, s->folder,
             nvml_source);
    snprintf(path, sizeof(path), "%s", kp_test_shared_object(s->folder, name, source, ""));
    s->machine.nvml = path;
}

static const char nvlink_names[] =
    "launch__uses_vgpu,nvlink__bandwidth,nvlink__count_logical,nvlink__count_physical,nvlink__destination_ports,"
    "nvlink__dev0Id,nvlink__dev0type,nvlink__dev1Id,nvlink__dev1type,nvlink__enabled_mask,nvlink__is_direct_link,"
    "nvlink__is_nvswitch_connected,nvlink__max_count,nvlink__peer_access,nvlink__peer_atomic,nvlink__source_ports,"
    "nvlink__system_access,nvlink__system_atomic";

/* Each metric of the list that starts with nvlink__, but the number of ports, is 0: as ncu has it without links. */
static void assert_no_links(const struct subject *s)
{
    for (size_t i = 0; i < s->result.n_metrics; i++) {
        const char *name = s->result.metrics[i].name;
        if (!strncmp(name, "nvlink__", strlen("nvlink__")) && strcmp(name, "nvlink__max_count") && number(s, name))
            fail_msg("%s is not 0", name);
    }
    assert_int_equal(s->result.n_metrics, 18);
}

static void test_no_links(void **state)
{
    struct subject *s = *state;
    give_nvml(s, &(struct nvml){"\"------------------\"", 0, 1, 0, NULL});
    measure(s, nvlink_names);
    assert_no_links(s);
    assert_int_equal(number(s, "nvlink__max_count"), 18);
    assert_int_equal(number(s, "launch__uses_vgpu"), 0); /* a device passed through is none */
    char log[PATH_MAX];
    snprintf(log, sizeof(log), "%s/log", s->folder);
    char *told = kp_test_read(log);
    assert_string_equal(told, "0"); /* started and let go, once */
    free(told);
    give_nvml(s, &(struct nvml){"\"\"", 0, 2, 0, NULL});
    s->machine.chip = "GB202";
    measure(s, nvlink_names);
    assert_no_links(s);
    assert_missing(s, "nvlink__max_count", "NVML");
    assert_int_equal(number(s, "launch__uses_vgpu"), 1);
    s->machine.chip = "GH100"; /* whose ports are known without NVML */
    measure(s, nvlink_names);
    assert_int_equal(number(s, "nvlink__max_count"), 18);
    give_nvml(s, &(struct nvml){"\"\"", 0, -1, 0, NULL});
    measure(s, nvlink_names);
    assert_missing(s, "launch__uses_vgpu", "NVML");
}

static void test_confidential_computing(void **state)
{
    static const char name[] = "device__attribute_confidential_computing_mode";
    static const struct nvml library = {"\"\"", 0, 0, 0, NULL},
                             old = {"\"\"", 0, 0, 0, "nvmlSystemGetConfComputeState"};
    struct subject *s = *state;
    give_nvml(s, &library);
    measure(s, name);
    assert_string_equal(text(s, name), "No-CC");
    driver.confidential_rc = 3; /* not supported */
    give_nvml(s, &library);
    measure(s, name);
    assert_string_equal(text(s, name), "No-CC");
    driver.confidential_rc = 999;
    give_nvml(s, &library);
    measure(s, name);
    assert_missing(s, name, "NVML");
    driver.confidential_rc = 0;
    driver.confidential = 1;
    give_nvml(s, &library);
    measure(s, name);
    assert_missing(s, name, "confidential");
    give_nvml(s, &old);
    measure(s, name);
    assert_missing(s, name, "NVML");
}

static void assert_instances(const struct subject *s, const char *name, const double *values, size_t n)
{
    const struct kp_metric *m = metric(s, name);
    double sum = 0;
    if (m->n_instances != n)
        fail_msg("%s has %zu instances, not %zu", name, m->n_instances, n);
    for (size_t i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%zu", i);
        assert_string_equal(m->instances[i].key, key);
        if (m->instances[i].value != values[i])
            fail_msg("%s of %s is %g, not %g", name, key, m->instances[i].value, values[i]);
        sum += values[i];
    }
    assert_float_equal(number(s, name), sum, 0);
}

#define ASSERT_INSTANCES(s, name, ...)                                                                                 \
    assert_instances(s, name, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* Device 0: links 0 and 2 to device 1, link 1 down, link 3 to a CPU. Device 1: links 0 and 1 to device 0. */
static void test_direct_links(void **state)
{
    struct subject *s = *state;
    driver.devices = 2;
    give_nvml(s, &(struct nvml){"\"1-1C\", \"00\"", 0, 0, 1 << 0 | 1 << 3, NULL});
    measure(s, nvlink_names);
    ASSERT_INSTANCES(s, "nvlink__count_physical", 3, 2);
    ASSERT_INSTANCES(s, "nvlink__enabled_mask", 13, 3);
    ASSERT_INSTANCES(s, "nvlink__max_count", 4, 2);
    assert_int_equal(number(s, "nvlink__count_logical"), 2);
    ASSERT_INSTANCES(s, "nvlink__dev0Id", 0, 0);
    ASSERT_INSTANCES(s, "nvlink__dev0type", 1, 1);
    ASSERT_INSTANCES(s, "nvlink__dev1Id", 0, 1);
    ASSERT_INSTANCES(s, "nvlink__dev1type", 2, 1);
    ASSERT_INSTANCES(s, "nvlink__is_direct_link", 1, 1);
    ASSERT_INSTANCES(s, "nvlink__peer_access", 1, 1);
    ASSERT_INSTANCES(s, "nvlink__peer_atomic", 0, 0);
    ASSERT_INSTANCES(s, "nvlink__system_access", 0, 0);
    ASSERT_INSTANCES(s, "nvlink__system_atomic", 1, 1);
    assert_string_equal(text(s, "nvlink__source_ports"), "2 (3; 0,2)");
    assert_string_equal(text(s, "nvlink__destination_ports"), "2 (; 0,1)");
    assert_int_equal(number(s, "nvlink__is_nvswitch_connected"), 0);
    assert_missing(s, "nvlink__bandwidth", "NVML");
}

/* Three devices at a switch: each pair is joined, through it. A fourth is not. */
static void test_switch(void **state)
{
    struct subject *s = *state;
    driver.devices = 4;
    give_nvml(s, &(struct nvml){"\"SS\", \"SS\", \"-S\", \"-\"", 0, 0, 1 << 1, NULL});
    measure(s, nvlink_names);
    assert_int_equal(number(s, "nvlink__is_nvswitch_connected"), 1);
    assert_int_equal(number(s, "nvlink__count_logical"), 3);
    ASSERT_INSTANCES(s, "nvlink__count_physical", 2, 2, 1, 0);
    ASSERT_INSTANCES(s, "nvlink__dev0Id", 0, 0, 1);
    ASSERT_INSTANCES(s, "nvlink__dev1Id", 1, 2, 2);
    ASSERT_INSTANCES(s, "nvlink__is_direct_link", 0, 0, 0);
    ASSERT_INSTANCES(s, "nvlink__system_access", 1, 1, 1);
    ASSERT_INSTANCES(s, "nvlink__peer_atomic", 0, 0, 0);
    ASSERT_INSTANCES(s, "nvlink__peer_access", 0, 0, 0);
    assert_string_equal(text(s, "nvlink__destination_ports"), "3 (0,1; 1; 1)");
    driver.devices = 1; /* the others are hidden: a switch, and nobody behind it */
    measure(s, nvlink_names);
    assert_int_equal(number(s, "nvlink__is_nvswitch_connected"), 1);
    assert_int_equal(number(s, "nvlink__count_logical"), 0);
    assert_int_equal(number(s, "nvlink__count_physical"), 2);
}

static int asked;

static void *count_and_refuse(const char *path, int flags)
{
    (void)flags;
    assert_string_equal(path, KP_NVML);
    asked++;
    return NULL;
}

static void test_nvml_is_asked_once(void **state)
{
    struct subject *s = *state;
    struct kp_dl dl = {.open = count_and_refuse};
    s->machine = (struct kp_machine){&dl, s->sysfs, KP_NVML, s->gpus, ""};
    measure(s, nvlink_names);
    assert_int_equal(asked, 1);
}

static void test_without_nvml(void **state)
{
    struct subject *s = *state;
    measure(s, nvlink_names);
    assert_int_equal(s->result.n_metrics, 18);
    for (size_t i = 0; i < s->result.n_metrics; i++)
        assert_missing(s, s->result.metrics[i].name, "was not found");
    give_nvml(s, &(struct nvml){"\"\"", 999, 0, 0, NULL});
    measure(s, nvlink_names);
    assert_missing(s, "nvlink__peer_access", "does not start");
    give_nvml(s, &(struct nvml){"\"\"", 0, 0, 0, "nvmlDeviceGetNvLinkRemoteDeviceType"});
    measure(s, nvlink_names);
    assert_missing(s, "nvlink__peer_access", "too old");
    measure(s, "nvlink__dev_display_name_all"); /* which needs none */
    assert_string_equal(text(s, "nvlink__dev_display_name_all"), "1 (NVIDIA H200)");
}

static void *no_library(const char *path, int flags)
{
    (void)flags;
    fail_msg("%s is loaded for nothing", path);
    return NULL;
}

static void test_nvml_only_when_asked(void **state)
{
    struct subject *s = *state;
    struct kp_dl dl = {.open = no_library};
    s->machine.dl = &dl;
    measure(s, "device__attribute_warp_size,numa__id_cpu,nvlink__dev_display_name_all,device__attribute_total_memory");
    assert_int_equal(s->result.n_metrics, 4);
}

/* ---- copies ---- */

static void test_copy(void **state)
{
    struct subject *s = *state;
    struct kp_result to = {0};
    driver.negative = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    give_nvml(s, &(struct nvml){"\"S\"", 0, 0, 0, NULL});
    measure(s, "device__attribute_display_name,device__attribute_warp_size,device__attribute_host_numa_id,"
               "numa__id_cpu,nvlink__count_physical");
    assert_int_equal(kp_result_set_real(&to, "sm__cycles_active.avg", "cycle", 1.5), 0);
    assert_int_equal(kp_result_set_all(&to, &s->result), 0);
    assert_int_equal(kp_result_set_all(&to, &s->result), 0); /* again is the same */
    kp_result_free(&s->result);
    s->result = to;
    assert_int_equal(to.n_metrics, 6);
    assert_string_equal(text(s, "device__attribute_display_name"), "NVIDIA H200");
    assert_int_equal(number(s, "device__attribute_warp_size"), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    assert_float_equal(number(s, "device__attribute_host_numa_id"), -1, 0);
    assert_missing(s, "numa__id_cpu", "files");
    ASSERT_INSTANCES(s, "nvlink__count_physical", 1);
}

#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(test_names),
        ON_A_MACHINE(test_only_what_is_asked_for),
        ON_A_MACHINE(test_attributes),
        ON_A_MACHINE(test_figures_of_the_chip),
        ON_A_MACHINE(test_facts_of_the_chip),
        ON_A_MACHINE(test_pci),
        ON_A_MACHINE(test_pci_port),
        ON_A_MACHINE(test_one_node),
        ON_A_MACHINE(test_several_nodes),
        ON_A_MACHINE(test_hidden_gpus),
        ON_A_MACHINE(test_no_files),
        ON_A_MACHINE(test_devices_uncounted),
        ON_A_MACHINE(test_no_links),
        ON_A_MACHINE(test_confidential_computing),
        ON_A_MACHINE(test_direct_links),
        ON_A_MACHINE(test_switch),
        ON_A_MACHINE(test_nvml_is_asked_once),
        ON_A_MACHINE(test_without_nvml),
        ON_A_MACHINE(test_nvml_only_when_asked),
        ON_A_MACHINE(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
