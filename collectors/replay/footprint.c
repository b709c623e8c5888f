#include "collectors/replay/footprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Memory left free while a window is open, for the program, the profiler and the cache flush. On the device: at least
 * the first value; on larger devices, whose profiler needs more, a share of the device up to the second. Also of the
 * host's memory. */
static const uint64_t least_margin = 256ull << 20, most_margin = 4ull << 30;
enum { DEVICE_SHARE = 64, HOST_PERCENT = 80 };

uint64_t kp_footprint_margin(uint64_t total)
{
    uint64_t share = total / DEVICE_SHARE;
    return share < least_margin ? least_margin : share > most_margin ? most_margin : share;
}

static uint64_t read_number(const char *root, const char *path, uint64_t otherwise)
{
    char full[512];
    uint64_t value = otherwise;
    snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *f = fopen(full, "re");
    if (!f)
        return otherwise;
    if (fscanf(f, "%" SCNu64, &value) != 1) /* "max" means no limit */
        value = otherwise;
    fclose(f);
    return value;
}

static uint64_t available(const char *root)
{
    char full[512], line[256];
    uint64_t kib = 0;
    snprintf(full, sizeof(full), "%s/proc/meminfo", root);
    FILE *f = fopen(full, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib << 10;
}

uint64_t kp_footprint_host(const char *root)
{
    static const struct {
        const char *limit, *used;
    } groups[] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
    };
    uint64_t left = available(root);
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
        uint64_t limit = read_number(root, groups[i].limit, UINT64_MAX);
        uint64_t used = read_number(root, groups[i].used, 0);
        uint64_t of_group = limit > used ? limit - used : 0;
        if (of_group < left)
            left = of_group;
    }
    return left;
}

uint64_t kp_footprint_host_share(void)
{
    return kp_footprint_host("") / 100 * HOST_PERCENT;
}

/* Measured with 50 to 87 GB that went to the host, H100 and H200: 0.53 to 0.72 s per gigabyte. */
static const double seconds_a_byte = 0.6e-9;

/* Returns true if saving is as fast as required when that much of it goes to the host's memory. */
static bool is_quick(uint64_t used, uint64_t on_host, uint64_t most_ns, struct kp_why *why)
{
    double seconds = (double)on_host * seconds_a_byte;
    if (!most_ns || seconds * 1e9 <= (double)most_ns)
        return true;
    char *text;
    text = kp_asprintf(
        "saving the %.1f GB of device memory in use would take about %.0f s per window, because %.1f GB of it do "
        "not fit into the rest of the device: launches are not replayed (save-time, KPROF_SAVE_TIME, allows more "
        "than %.3g s)",
        (double)used / 1e9, seconds, (double)on_host / 1e9, (double)most_ns / 1e9);
    *why = kp_why_of(KP_REASON_SAVE_TOO_SLOW, text);
    return false;
}

bool kp_footprint_fits(const struct kp_driver *d, uint64_t most_ns, struct kp_why *why)
{
    size_t available_here = 0, total = 0;
    *why = kp_why_of(KP_REASON_NONE, NULL);
    if (d->cuMemGetInfo(&available_here, &total) != CUDA_SUCCESS)
        return true; /* let the save itself report it */
    uint64_t used = total - available_here;
    uint64_t margin = kp_footprint_margin(total);
    uint64_t room = available_here > margin ? available_here - margin : 0;
    if (used <= room)
        return true;
    uint64_t host = kp_footprint_host_share();
    if (used - room <= host)
        return is_quick(used, used - room, most_ns, why);
    char *text;
    text = kp_asprintf(
        "%.1f GB of device memory in use fit neither into the %.1f GB left of it nor into the %.1f GB of host "
        "memory available: launches cannot be replayed (set `quick` works without replay)",
        (double)used / 1e9, (double)available_here / 1e9, (double)host / 1e9);
    *why = kp_why_of(KP_REASON_SAVE_TOO_LARGE, text);
    return false;
}

bool kp_footprint_reserve(const struct kp_driver *d, CUdevice device, CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    size_t available_here = 0, total = 0, unit = 0;
    if (!d->cuMemCreate || !d->cuMemRelease || !d->cuMemGetAllocationGranularity ||
        d->cuMemGetInfo(&available_here, &total) != CUDA_SUCCESS)
        return false;
    size_t margin = kp_footprint_margin(total);
    if (total - available_here + margin <= available_here || margin > available_here)
        return false;
    if (d->cuMemGetAllocationGranularity(&unit, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || !unit)
        return false;
    return d->cuMemCreate(out, margin / unit * unit, &what, 0) == CUDA_SUCCESS;
}
