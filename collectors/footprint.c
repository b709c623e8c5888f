#include "collectors/footprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Left free on the device for the program's own needs while a window is open, and of the host's memory. */
static const uint64_t device_margin = 256ull << 20;
enum { HOST_PERCENT = 80 };

static uint64_t read_number(const char *root, const char *path, uint64_t otherwise)
{
    char full[512];
    uint64_t value = otherwise;
    snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *f = fopen(full, "re");
    if (!f)
        return otherwise;
    if (fscanf(f, "%" SCNu64, &value) != 1) /* "max" where there is no limit */
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

bool kp_footprint_fits(const struct kp_driver *d, char **why)
{
    size_t available_here = 0, total = 0;
    *why = NULL;
    if (d->cuMemGetInfo(&available_here, &total) != CUDA_SUCCESS)
        return true; /* the save itself will tell */
    uint64_t used = total - available_here;
    uint64_t room = available_here > device_margin ? available_here - device_margin : 0;
    if (used <= room)
        return true;
    uint64_t host = kp_footprint_host("") / 100 * HOST_PERCENT;
    if (used - room <= host)
        return true;
    if (asprintf(why,
                 "%.1f GB of device memory in use fit neither into the %.1f GB left of it nor into the %.1f GB of host "
                 "memory that can be had: launches cannot be replayed (set `quick` does without)",
                 (double)used / 1e9, (double)available_here / 1e9, (double)host / 1e9) < 0)
        *why = NULL;
    return false;
}
