#include "collectors/facts/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/facts/gpus.h"
#include "collectors/facts/nvlink.h"

/* From compute capability 3.5 on (CUDA programming guide, technical specifications). */
enum { REGISTERS_PER_THREAD = 255 };

enum { LINE = 4096 };

struct reading {
    struct kp_result *r;
    const struct kp_driver *d;
    const struct kp_device *device;
    const struct kp_machine *machine;
    struct kp_gpus gpus;
    struct kp_nvlink nvlink;   /* read when a name first needs it */
    enum kp_reason nvlink_why; /* why reading failed */
    int rc;                    /* the first error; later calls do not change it */
};

/* A row of device_metrics.def. */
struct row {
    const char *name;
    void (*find)(struct reading *x, const struct row *row);
    int what; /* CUdevice_attribute, or enum nvlink_value */
};

/* Values of NVLink: of each device (the first three), or of each pair of devices. */
enum nvlink_value {
    PHYSICAL,
    PORTS,
    ENABLED,
    DEV0,
    DEV1,
    TYPE0,
    TYPE1,
    DIRECT,
    PEER_ACCESS,
    PEER_ATOMIC,
    SYSTEM_ACCESS,
    SYSTEM_ATOMIC,
};

/* Kinds of devices in nvlink__dev*type (Kernel Profiling Guide). */
enum { TYPE_GPU = 1, TYPE_CPU = 2 };

static void keep(struct reading *x, int rc)
{
    x->rc = x->rc ? x->rc : rc;
}

static void set_count(struct reading *x, const struct row *row, uint64_t value)
{
    keep(x, kp_result_set_count(x->r, row->name, "", value));
}

static void set_text(struct reading *x, const struct row *row, const char *value)
{
    keep(x, kp_result_set_text(x->r, row->name, "", value));
}

static void set_missing(struct reading *x, const struct row *row, enum kp_reason why)
{
    keep(x, kp_result_set_na(x->r, row->name, why));
}

static void set_if(struct reading *x, const struct row *row, bool told, uint64_t value, enum kp_reason why)
{
    if (told)
        set_count(x, row, value);
    else
        set_missing(x, row, why);
}

/* ---- the driver ---- */

static bool attribute(const struct reading *x, CUdevice_attribute a, int *value)
{
    return x->d->cuDeviceGetAttribute(value, a, x->device->device) == CUDA_SUCCESS;
}

/* Sets a driver's attribute; one that may be negative (the NUMA node of a system without NUMA) is no count. */
static void driver_attribute(struct reading *x, const struct row *row)
{
    int value = 0;
    if (!attribute(x, (CUdevice_attribute)row->what, &value))
        set_missing(x, row, KP_REASON_UNTOLD);
    else if (value < 0)
        keep(x, kp_result_set_real(x->r, row->name, "", value));
    else
        set_count(x, row, (uint64_t)value);
}

static void device_index(struct reading *x, const struct row *row)
{
    set_count(x, row, (uint64_t)x->device->device);
}

static void display_name(struct reading *x, const struct row *row)
{
    set_text(x, row, x->device->name);
}

static void total_memory(struct reading *x, const struct row *row)
{
    size_t bytes = 0;
    bool told = x->d->cuDeviceTotalMem(&bytes, x->device->device) == CUDA_SUCCESS;
    set_if(x, row, told, bytes, KP_REASON_UNTOLD);
}

static void registers_per_thread(struct reading *x, const struct row *row)
{
    set_count(x, row, REGISTERS_PER_THREAD);
}

static void schedulers(struct reading *x, const struct row *row)
{
    set_count(x, row, x->device->schedulers);
}

static void warps(struct reading *x, const struct row *row)
{
    set_count(x, row, x->device->max_warps);
}

static void warps_per_scheduler(struct reading *x, const struct row *row)
{
    set_count(x, row, x->device->max_warps / x->device->schedulers);
}

/* Two SMs per TPC, from compute capability 6.0 on. */
static void tpcs(struct reading *x, const struct row *row)
{
    set_count(x, row, x->device->sm_count / 2);
}

/* Sets 1: from compute capability 7.0 on, a scheduler issues one instruction a cycle, and an SM has one texture
 * unit. */
static void one(struct reading *x, const struct row *row)
{
    set_count(x, row, 1);
}

/* The lower half of the driver's number is the vendor. */
static void pci_device(struct reading *x, const struct row *row)
{
    int id = 0;
    bool told = attribute(x, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, &id);
    set_if(x, row, told, (uint32_t)id >> 16, KP_REASON_UNTOLD);
}

/* ---- the chip ---- */

static const struct chip {
    const char *name;
    unsigned number, partition_bits, partition_slices, ports;
} chips[] = {
#define KP_CHIP_FACTS(name, number, bits, slices, ports) {name, number, bits, slices, ports},
#include "collectors/facts/chip_facts.def"
#undef KP_CHIP_FACTS
};

static const struct chip *known_chip(const struct reading *x)
{
    for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++)
        if (!strcmp(chips[i].name, x->machine->chip))
            return &chips[i];
    return NULL;
}

/* Returns NULL if the metric is n/a. */
static const struct chip *find_chip(struct reading *x, const struct row *row)
{
    const struct chip *c = known_chip(x);
    if (!c)
        set_missing(x, row, KP_REASON_CHIP_UNTOLD);
    return c;
}

static void architecture(struct reading *x, const struct row *row)
{
    const struct chip *c = find_chip(x, row);
    if (c)
        set_count(x, row, c->number & ~0xfu);
}

static void chip(struct reading *x, const struct row *row)
{
    const struct chip *c = find_chip(x, row);
    if (c)
        set_count(x, row, c->number);
}

/* Sets the partitions of the memory bus, multiplied by `times`; n/a if the chip's number is unknown. One of which a
 * part is disabled counts, as in ncu: an H200 with a bus of 6,016 bits has 12 of 512. */
static void of_partitions(struct reading *x, const struct row *row, const struct chip *c, unsigned times)
{
    int bits = 0;
    if (!attribute(x, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bits))
        set_missing(x, row, KP_REASON_UNTOLD);
    else if (!c->partition_bits || bits <= 0)
        set_missing(x, row, KP_REASON_CHIP_UNTOLD);
    else
        set_count(x, row, ((unsigned)bits + c->partition_bits - 1) / c->partition_bits * times);
}

static void frame_buffer_partitions(struct reading *x, const struct row *row)
{
    const struct chip *c = find_chip(x, row);
    if (c)
        of_partitions(x, row, c, 1);
}

static void l2_slices(struct reading *x, const struct row *row)
{
    const struct chip *c = find_chip(x, row);
    if (c)
        of_partitions(x, row, c, c->partition_slices);
}

static void l2_slices_of_partition(struct reading *x, const struct row *row)
{
    const struct chip *c = find_chip(x, row);
    if (c)
        set_if(x, row, c->partition_slices, c->partition_slices, KP_REASON_CHIP_UNTOLD);
}

/* From ncu's raw pages: 8 for compute capability 8.6, 9 for 9.0. */
static void sass_level(struct reading *x, const struct row *row)
{
    int major = x->device->cc_major;
    set_if(x, row, major == 8 || major == 9, (uint64_t)major, KP_REASON_CHIP_UNTOLD);
}

/* ---- the kernel's files ---- */

/* Reads the first line of a file below the machine's sysfs, without its end. */
static bool read_line(const struct reading *x, char line[LINE], const char *format, ...)
{
    char below[PATH_MAX / 2], path[PATH_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(below, sizeof(below), format, ap);
    va_end(ap);
    snprintf(path, sizeof(path), "%s/%s", x->machine->sysfs, below);
    FILE *f = fopen(path, "re");
    bool got = f && fgets(line, LINE, f);
    if (f)
        fclose(f);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

/* Reads a line from the kernel's folder of a GPU. */
static bool read_of_gpu(const struct reading *x, size_t gpu, const char *name, char line[LINE])
{
    const char *id = x->gpus.all[gpu].id;
    return *id && read_line(x, line, "bus/pci/devices/%s/%s", id, name);
}

static void pci_number(struct reading *x, const struct row *row, const char *file, int base)
{
    char line[LINE];
    bool told = read_of_gpu(x, x->gpus.own, file, line) && isdigit((unsigned char)*line);
    set_if(x, row, told, told ? strtoul(line, NULL, base) : 0, KP_REASON_PCI_UNTOLD);
}

static void pci_revision(struct reading *x, const struct row *row)
{
    pci_number(x, row, "revision", 16);
}

static void pci_link_width(struct reading *x, const struct row *row)
{
    pci_number(x, row, "max_link_width", 10);
}

/* Returns megatransfers per second: "32.0 GT/s PCIe" is 32000. 0 if the file is missing or does not say. */
static unsigned long rate_of(const struct reading *x, const char *file)
{
    char line[LINE];
    unsigned long whole = 0, tenths = 0;
    bool told = read_of_gpu(x, x->gpus.own, file, line) && sscanf(line, "%lu.%1lu", &whole, &tenths) >= 1;
    return told ? 1000 * whole + 100 * tenths : 0;
}

static void pci_link_rate(struct reading *x, const struct row *row)
{
    unsigned long rate = rate_of(x, "max_link_speed");
    set_if(x, row, rate, rate, KP_REASON_PCI_UNTOLD);
}

/* The parent of a device's folder is the folder of its port. A virtual machine may have no port; ncu prints 0 then. */
static const char port_rate[] = "../max_link_speed";
static const char port_width[] = "../max_link_width";

static void of_port(struct reading *x, const struct row *row, unsigned long value)
{
    set_if(x, row, rate_of(x, "max_link_speed"), value, KP_REASON_PCI_UNTOLD);
}

static void pci_port_rate(struct reading *x, const struct row *row)
{
    of_port(x, row, rate_of(x, port_rate));
}

static void pci_port_width(struct reading *x, const struct row *row)
{
    char line[LINE];
    of_port(x, row, read_of_gpu(x, x->gpus.own, port_width, line) ? strtoul(line, NULL, 10) : 0);
}

/* Returns the generation, counted from 0 as in NVIDIA's driver (NV2080_CTRL_BUS_INFO_PCIE_LINK_CAP_GEN). */
static void generation(struct reading *x, const struct row *row, unsigned long rate)
{
    static const unsigned long rates[] = {2500, 5000, 8000, 16000, 32000, 64000};
    size_t i = 0, n = sizeof(rates) / sizeof(*rates);
    while (i < n && rates[i] != rate)
        i++;
    set_if(x, row, i < n, i, KP_REASON_PCI_UNTOLD);
}

static void pci_generation_of_gpu(struct reading *x, const struct row *row)
{
    generation(x, row, rate_of(x, "max_link_speed"));
}

/* Sets the generation that both ends of the link support. */
static void pci_generation(struct reading *x, const struct row *row)
{
    unsigned long gpu = rate_of(x, "max_link_speed"), port = rate_of(x, port_rate);
    generation(x, row, port && port < gpu ? port : gpu);
}

/* ---- lists over the GPUs ---- */

/* Writes a GPU's element of a list; false when unknown. */
typedef bool (*element)(const struct reading *x, size_t gpu, char line[LINE]);

static void list(struct reading *x, const struct row *row, element get, enum kp_reason why)
{
    char *all = NULL, line[LINE];
    size_t size = 0;
    bool told = true;
    FILE *to = open_memstream(&all, &size);
    if (!to) {
        keep(x, -ENOMEM);
        return;
    }
    fprintf(to, "%zu (", x->gpus.n);
    for (size_t i = 0; told && i < x->gpus.n; i++) {
        told = get(x, i, line);
        fprintf(to, "%s%s", i ? "; " : "", told ? line : "");
    }
    fputc(')', to);
    if (kp_text_end(to, &all))
        keep(x, -ENOMEM);
    else if (told)
        set_text(x, row, all);
    else
        set_missing(x, row, why);
    free(all);
}

static bool name_of(const struct reading *x, size_t gpu, char line[LINE])
{
    strcpy(line, x->gpus.all[gpu].name);
    return *line;
}

static void all_names(struct reading *x, const struct row *row)
{
    list(x, row, name_of, KP_REASON_UNTOLD);
}

static bool cpus_of(const struct reading *x, size_t gpu, char line[LINE])
{
    return read_of_gpu(x, gpu, "local_cpulist", line);
}

static void cpu_affinity(struct reading *x, const struct row *row)
{
    list(x, row, cpus_of, KP_REASON_PCI_UNTOLD);
}

/* Reads the next range of a list like "0-3,8,10-11"; false at its end. */
static bool next_range(const char **at, unsigned long *from, unsigned long *to)
{
    char *end;
    while (**at == ',')
        ++*at;
    if (!isdigit((unsigned char)**at))
        return false;
    *from = *to = strtoul(*at, &end, 10);
    if (*end == '-')
        *to = strtoul(end + 1, &end, 10);
    *at = end;
    return true;
}

static bool overlap(const char *a, const char *b)
{
    unsigned long from_a, to_a, from_b, to_b;
    while (next_range(&a, &from_a, &to_a))
        for (const char *at = b; next_range(&at, &from_b, &to_b);)
            if (from_a <= to_b && from_b <= to_a)
                return true;
    return false;
}

/* Writes the nodes of the GPU's CPUs, "0" or "0,1". */
static bool nodes_of_cpus(const struct reading *x, size_t gpu, char line[LINE])
{
    char online[LINE], cpus[LINE], of_node[LINE];
    unsigned long from, to;
    size_t len = 0;
    if (!cpus_of(x, gpu, cpus) || !read_line(x, online, "devices/system/node/online"))
        return false;
    for (const char *at = online; next_range(&at, &from, &to);)
        for (unsigned long node = from; node <= to && len < LINE - 32; node++)
            if (read_line(x, of_node, "devices/system/node/node%lu/cpulist", node) && overlap(cpus, of_node))
                len += (size_t)snprintf(line + len, LINE - len, "%s%lu", len ? "," : "", node);
    return len > 0;
}

static void numa_of_cpus(struct reading *x, const struct row *row)
{
    list(x, row, nodes_of_cpus, KP_REASON_NUMA_UNTOLD);
}

/* Writes the memory's node; on a machine with one node a GPU may have none: -1. */
static bool node_of_memory(const struct reading *x, size_t gpu, char line[LINE])
{
    if (!read_of_gpu(x, gpu, "numa_node", line))
        return false;
    if (*line != '-')
        return true;
    return read_line(x, line, "devices/system/node/online") && !strpbrk(line, "-,");
}

static void numa_of_memory(struct reading *x, const struct row *row)
{
    list(x, row, node_of_memory, KP_REASON_NUMA_UNTOLD);
}

/* ---- NVML ---- */

static int ask_nvml(struct reading *x)
{
    const char **ids = calloc(x->gpus.n, sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < x->gpus.n; i++)
        ids[i] = x->gpus.all[i].id;
    int rc = kp_nvlink_read(x->machine->dl, x->machine->nvml, ids, x->gpus.n, &x->nvlink, &x->nvlink_why);
    free(ids);
    return rc;
}

/* Reads NVLink when a metric first needs it; sets the metric to n/a if that fails. */
static bool nvlink_known(struct reading *x, const struct row *row)
{
    if (!x->nvlink.n_devices && !x->nvlink_why && ask_nvml(x) == -ENOMEM)
        keep(x, -ENOMEM);
    if (x->nvlink_why)
        set_missing(x, row, x->nvlink_why);
    return x->nvlink.n_devices;
}

static void vgpu(struct reading *x, const struct row *row)
{
    if (!nvlink_known(x, row))
        return;
    int mode = x->nvlink.devices[x->gpus.own].mode;
    set_if(x, row, mode >= 0, mode == KP_NVML_VGPU, KP_REASON_NVML_UNTOLD);
}

/* Sets the mode's name; other modes have no known names. */
static void confidential_computing(struct reading *x, const struct row *row)
{
    if (!nvlink_known(x, row))
        return;
    if (x->nvlink.confidential)
        set_missing(x, row, x->nvlink.confidential < 0 ? KP_REASON_NVML_UNTOLD : KP_REASON_CONFIDENTIAL);
    else
        set_text(x, row, "No-CC");
}

/* Sets the sum of `n` values, which become the instances. */
static void sum(struct reading *x, const struct row *row, uint32_t (*of)(const struct kp_nvlink *l, size_t i, int what),
                size_t n)
{
    double *values = malloc((n + 1) * sizeof(*values)), total = 0;
    if (!values) {
        keep(x, -ENOMEM);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = of(&x->nvlink, i, row->what);
        total += values[i];
    }
    set_count(x, row, (uint64_t)total);
    keep(x, kp_result_set_instances(x->r, row->name, NULL, values, n));
    free(values);
}

static uint32_t of_device(const struct kp_nvlink *l, size_t i, int what)
{
    const struct kp_nvlink_device *d = &l->devices[i];
    return what == ENABLED ? d->enabled : (uint32_t)__builtin_popcount(what == PORTS ? d->ports : d->enabled);
}

/* NVML tells nothing of links where the machine has none; the chip has its ports there, too. */
static void nvlink_device(struct reading *x, const struct row *row)
{
    if (!nvlink_known(x, row))
        return;
    const struct chip *c = known_chip(x);
    if (row->what == PORTS && !x->nvlink.devices[x->gpus.own].ports)
        set_if(x, row, c && c->ports, c ? c->ports : 0, KP_REASON_NVML_UNTOLD);
    else
        sum(x, row, of_device, x->nvlink.n_devices);
}

static uint32_t of_pair(const struct kp_nvlink *l, size_t i, int what)
{
    const struct kp_nvlink_pair *p = &l->pairs[i];
    bool cpu = p->dev1 == KP_NVLINK_CPU;
    switch (what) {
    case DEV0:
        return (uint32_t)p->dev0;
    case DEV1:
        return cpu ? 0 : (uint32_t)p->dev1;
    case TYPE0:
        return TYPE_GPU;
    case TYPE1:
        return cpu ? TYPE_CPU : TYPE_GPU;
    case DIRECT:
        return p->direct;
    case PEER_ACCESS:
        return p->peer_access;
    case PEER_ATOMIC:
        return p->peer_atomic;
    case SYSTEM_ACCESS:
        return p->system_access;
    default:
        return p->system_atomic;
    }
}

static void nvlink_pair(struct reading *x, const struct row *row)
{
    if (nvlink_known(x, row))
        sum(x, row, of_pair, x->nvlink.n_pairs);
}

static void nvlink_pairs(struct reading *x, const struct row *row)
{
    if (nvlink_known(x, row))
        set_count(x, row, x->nvlink.n_pairs);
}

static void nvswitch(struct reading *x, const struct row *row)
{
    if (nvlink_known(x, row))
        set_count(x, row, x->nvlink.nvswitch);
}

static void nvlink_bandwidth(struct reading *x, const struct row *row)
{
    if (nvlink_known(x, row))
        set_if(x, row, !x->nvlink.n_pairs, 0, KP_REASON_LINK_SPEED);
}

static void write_ports(FILE *to, uint32_t ports)
{
    for (int port = 0, n = 0; port < 32; port++)
        if (ports >> port & 1)
            fprintf(to, "%s%d", n++ ? "," : "", port);
}

static void nvlink_ports(struct reading *x, const struct row *row)
{
    char *all = NULL;
    size_t size = 0;
    if (!nvlink_known(x, row))
        return;
    if (!x->nvlink.n_pairs) {
        set_count(x, row, 0);
        return;
    }
    FILE *to = open_memstream(&all, &size);
    if (to)
        fprintf(to, "%zu (", x->nvlink.n_pairs);
    for (size_t i = 0; to && i < x->nvlink.n_pairs; i++) {
        fputs(i ? "; " : "", to);
        write_ports(to, row->what == DEV0 ? x->nvlink.pairs[i].ports0 : x->nvlink.pairs[i].ports1);
    }
    if (to)
        fputc(')', to);
    if (!to || kp_text_end(to, &all))
        keep(x, -ENOMEM);
    else
        set_text(x, row, all);
    free(all);
}

/* ---- the table ---- */

const char *const kp_device_metric_names[] = {
#define KP_DEVICE_ATTRIBUTE(name, attribute) name,
#define KP_DEVICE_METRIC(name, find, what)   name,
#include "collectors/facts/device_metrics.def"
#undef KP_DEVICE_METRIC
#undef KP_DEVICE_ATTRIBUTE
    NULL,
};

static const struct row rows[] = {
#define KP_DEVICE_ATTRIBUTE(name, attribute) {name, driver_attribute, CU_DEVICE_ATTRIBUTE_##attribute},
#define KP_DEVICE_METRIC(name, find, what)   {name, find, what},
#include "collectors/facts/device_metrics.def"
#undef KP_DEVICE_METRIC
#undef KP_DEVICE_ATTRIBUTE
};

struct word {
    const char *text;
    size_t len;
};

static int compare(const void *key, const void *item)
{
    const struct word *w = key;
    const char *name = ((const struct row *)item)->name;
    int order = strncmp(w->text, name, w->len);
    return order ? order : -(name[w->len] != '\0');
}

static const struct row *find_row(struct word w)
{
    return bsearch(&w, rows, sizeof(rows) / sizeof(*rows), sizeof(*rows), compare);
}

bool kp_device_is_metric(const char *name)
{
    return find_row((struct word){name, strlen(name)});
}

int kp_device_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_machine *machine, const char *names)
{
    struct reading x = {.r = r, .d = d, .device = device, .machine = machine};
    x.rc = kp_gpus_list(d, device, machine->gpus, &x.gpus);
    while (!x.rc && *names) {
        struct word w = {names, strcspn(names, ",")};
        const struct row *row = w.len ? find_row(w) : NULL;
        if (row)
            row->find(&x, row);
        names += w.len + (names[w.len] == ',');
    }
    kp_nvlink_free(&x.nvlink);
    kp_gpus_free(&x.gpus);
    return x.rc;
}

static void print_attribute(FILE *f, const struct kp_metric *m)
{
    if (m->kind == KP_VALUE_COUNT)
        fprintf(f, "%s\t%" PRIu64 "\n", m->name, m->count);
    else
        fprintf(f, "%s\t%s\n", m->name, m->kind == KP_VALUE_TEXT ? m->text : "");
}

char *kp_device_attributes(const struct kp_driver *d, const struct kp_device *device, const struct kp_machine *machine)
{
    struct kp_result r = {.metrics = NULL};
    struct reading x = {.r = &r, .d = d, .device = device, .machine = machine};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    x.rc = f ? kp_gpus_list(d, device, machine->gpus, &x.gpus) : -ENOMEM;
    for (size_t i = 0; !x.rc && i < sizeof(rows) / sizeof(*rows); i++)
        rows[i].find(&x, &rows[i]);
    for (size_t i = 0; !x.rc && i < r.n_metrics; i++)
        print_attribute(f, &r.metrics[i]);
    if (f && kp_text_end(f, &text) && !x.rc)
        x.rc = -ENOMEM;
    kp_result_free(&r);
    kp_nvlink_free(&x.nvlink);
    kp_gpus_free(&x.gpus);
    if (x.rc)
        free(text);
    return x.rc ? NULL : text;
}
