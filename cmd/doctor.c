#include "cmd/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "base/wrap.h"
#include "report/define/units.h"
#include "report/dwarf/symbols.h"

const char *const kp_doctor_paths[KP_DOCTOR_PATHS] = {
    [KP_DOCTOR_PARAMS] = "/proc/driver/nvidia/params",
    [KP_DOCTOR_CAPABILITIES] = "/proc/driver/nvidia/capabilities",
    [KP_DOCTOR_CONTROL] = "/dev/nvidiactl",
    [KP_DOCTOR_PROCESSES] = "/proc",
    [KP_DOCTOR_STATUS] = "/proc/self/status",
    [KP_DOCTOR_UID_MAP] = "/proc/self/uid_map",
    [KP_DOCTOR_TCP] = "/proc/net/tcp",
    [KP_DOCTOR_PTRACE] = "/proc/sys/kernel/yama/ptrace_scope",
    [KP_DOCTOR_DOCKER] = "/.dockerenv",
    [KP_DOCTOR_PODMAN] = "/run/.containerenv",
    [KP_DOCTOR_CGROUP] = "/proc/1/cgroup",
    [KP_DOCTOR_KERNEL] = "/proc/sys/kernel/osrelease",
    [KP_DOCTOR_TMP] = "/tmp",
};

enum {
    DRIVER_MIN = 12040, /* cuFuncGetParamInfo came with CUDA 12.4 */
    CC_MIN = 75,        /* required by CUPTI's range profiler */
    CAP_SYS_ADMIN = 21, /* linux/capability.h */
    DCGM_PORT = 5555,   /* default port of nv-hostengine */
    TCP_LISTENS = 10,   /* listening state of a socket in /proc/net/tcp */
    GLIBC_MAJOR = 2,
    GLIBC_MINOR = 17,
    PATH_SIZE = 4096 + 512,
    MEBIBYTE = 1 << 20,
    ROOM_MIN = 16,    /* MiB: less does not hold a session */
    ROOM_SHORT = 256, /* MiB: some thousand launches with all counters */
};

enum level { OK, WARN, FAIL, LEVELS };

struct doctor {
    const struct kp_sink *out;
    const struct kp_doctor_input *in;
    const char *what; /* the subject of the check */
    size_t count[LEVELS];
    int rc;
};

enum { INDENT = 20 }; /* of the message, after the level and the subject */

/* Prints a text after `head`, with further lines aligned with its start. NULL: there was no memory for it. */
static void put_text(struct doctor *d, const char *head, size_t indent, const char *text)
{
    size_t width = d->in->width > 2 * INDENT ? d->in->width : 2 * INDENT, len;
    struct kp_wrap w = {text, d->in->width ? width - indent : SIZE_MAX};
    const char *part;
    for (d->rc = d->rc || text ? d->rc : -ENOMEM; !d->rc && kp_wrap_next(&w, &part, &len); head = "") {
        char *line;
        int n = asprintf(&line, "%-*s%.*s\n", (int)indent, head, (int)len, part);
        d->rc = n < 0 ? -ENOMEM : d->out->write(d->out->arg, line, (size_t)n);
        if (n >= 0)
            free(line);
    }
}

static void say(struct doctor *d, enum level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct doctor *d, enum level level, const char *format, ...)
{
    static const char *const names[LEVELS] = {"OK", "WARN", "FAIL"};
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        kp_blank_controls(text, strlen(text)); /* paths and the environment may contain anything */
    char head[INDENT + 1];
    snprintf(head, sizeof head, "%-4s  %-12s  ", names[level], d->what);
    put_text(d, head, INDENT, text);
    d->count[level]++;
    free(text);
}

/* ---- files ---- */

static const char *path_in(const struct doctor *d, enum kp_doctor_path path)
{
    return d->in->paths[path];
}

static bool has_path(const struct doctor *d, enum kp_doctor_path path)
{
    return !access(path_in(d, path), F_OK);
}

/* Reads the number after `key` at the start of a line of a file; false if there is none. */
static bool read_number(const char *path, const char *key, int base, uint64_t *out)
{
    char line[512], *end;
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        *out = strtoull(line + strlen(key), &end, base);
        found = end > line + strlen(key);
    }
    if (f)
        fclose(f);
    return found;
}

/* Returns the first of the words, NULL at their end, that the file contains in any letter case; NULL when none. */
static const char *find_word(const char *path, const char *const *words)
{
    char line[1024];
    const char *found = NULL;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        for (const char *const *word = words; !found && *word; word++)
            found = strcasestr(line, *word) ? *word : NULL;
    if (f)
        fclose(f);
    return found;
}

/* Returns the kind of container, NULL when none is known. */
static const char *container(const struct doctor *d)
{
    static const char *const words[] = {"kubepods", "docker", "containerd", "lxc", NULL};
    if (has_path(d, KP_DOCTOR_DOCKER))
        return "Docker";
    if (has_path(d, KP_DOCTOR_PODMAN))
        return "Podman";
    return find_word(path_in(d, KP_DOCTOR_CGROUP), words);
}

/* ---- the driver and its GPUs ---- */

static void check_driver(struct doctor *d)
{
    const struct kp_doctor_facts *f = d->in->facts;
    int major = f->driver_version / 1000, minor = f->driver_version % 1000 / 10;
    if (f->has_driver && f->driver_version >= DRIVER_MIN)
        say(d, OK, "CUDA %d.%d", major, minor);
    else if (f->has_driver)
        say(d, FAIL, "CUDA %d.%d: install a driver for CUDA %d.%d or newer", major, minor, DRIVER_MIN / 1000,
            DRIVER_MIN % 1000 / 10);
    else
        say(d, FAIL, "not found (%s): %s", f->driver_error,
            container(d) ? "start the container with the GPUs, such as docker run --gpus all"
                         : "install NVIDIA's driver, and have libcuda.so.1 in the loader's path");
}

/* Results of cuInit, by the numbers of CUresult. */
static const struct {
    int code;
    const char *text;
} init_errors[] = {
    {100, "no GPU: load the kernel module (nvidia-smi lists the GPUs it has)"},
    {101, "CUDA_VISIBLE_DEVICES names a GPU that does not exist: correct it"},
    {802, "the system is not ready: start nvidia-fabricmanager"},
    {803, "the driver's libraries and its kernel module are of different versions: reload the module, or reboot"},
    {804, "the forward compatibility libraries do not support this GPU: remove them from the loader's path"},
};

static const char *why_no_gpu(const struct doctor *d)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int code = d->in->facts->init_code;
    if (!d->in->facts->has_driver)
        return "none without a driver";
    if (visible && (!*visible || *visible == '-'))
        return "none: CUDA_VISIBLE_DEVICES hides all; unset it";
    if (!has_path(d, KP_DOCTOR_CONTROL))
        return container(d) ? "none in this container: start it with the GPUs, such as docker run --gpus all"
                            : "none: the driver has no device file; load its kernel module (modprobe nvidia)";
    if (access(path_in(d, KP_DOCTOR_CONTROL), R_OK | W_OK))
        return "the driver's device file may not be opened: add this user to the group that owns it";
    for (size_t i = 0; i < sizeof init_errors / sizeof *init_errors; i++)
        if (init_errors[i].code == code)
            return init_errors[i].text;
    return "none could be used: see what nvidia-smi and the kernel's log (dmesg) say about it";
}

static void check_gpus(struct doctor *d)
{
    const struct kp_doctor_facts *f = d->in->facts;
    size_t usable = 0;
    for (size_t i = 0; i < f->n_gpus; i++)
        usable += f->gpus[i].cc_major * 10 + f->gpus[i].cc_minor >= CC_MIN;
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct kp_doctor_gpu *gpu = &f->gpus[i];
        if (gpu->cc_major * 10 + gpu->cc_minor >= CC_MIN)
            say(d, OK, "%zu: %s, compute capability %d.%d", i, gpu->name, gpu->cc_major, gpu->cc_minor);
        else
            say(d, usable ? WARN : FAIL, "%zu: %s, compute capability %d.%d: no counters below %d.%d; use another GPU",
                i, gpu->name, gpu->cc_major, gpu->cc_minor, CC_MIN / 10, CC_MIN % 10);
    }
    if (!f->n_gpus)
        say(d, FAIL, "%s", why_no_gpu(d));
}

/* Counts instances: folders gi0, gi1 … below gpuN/mig. */
static size_t count_instances(const char *capabilities, const char *gpu)
{
    char path[PATH_SIZE];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s/mig", capabilities, gpu);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += !strncmp(e->d_name, "gi", 2);
    if (dir)
        closedir(dir);
    return n;
}

static void check_mig(struct doctor *d)
{
    const struct kp_doctor_facts *f = d->in->facts;
    const char *capabilities = path_in(d, KP_DOCTOR_CAPABILITIES);
    DIR *dir = opendir(capabilities);
    size_t instances = 0;
    bool named = false;
    for (struct dirent *e; dir && (e = readdir(dir));)
        instances += strncmp(e->d_name, "gpu", 3) ? 0 : count_instances(capabilities, e->d_name);
    if (dir)
        closedir(dir);
    for (size_t i = 0; i < f->n_gpus; i++)
        named |= strstr(f->gpus[i].name, " MIG ") != NULL;
    if (instances || named)
        say(d, WARN,
            "GPU instances are in use: counters of units that instances share are n/a; to get them, turn MIG off "
            "(nvidia-smi -mig 0)");
    else
        say(d, OK, "no instances");
}

/* ---- CUPTI ---- */

static void check_cupti(struct doctor *d)
{
    const struct kp_doctor_facts *f = d->in->facts;
    int major = atoi(f->cupti_version), driver = f->driver_version / 1000;
    if (!*f->cupti_version)
        say(d, FAIL, "%s", f->cupti_error);
    else if (driver && isdigit((unsigned char)*f->cupti_version) && major > driver)
        say(d, FAIL,
            "%s in %s is newer than the driver (CUDA %d): set KPROF_CUPTI_DIR to a CUPTI of CUDA %d, or update the "
            "driver",
            f->cupti_version, f->cupti_folder, driver, driver);
    else
        say(d, OK, "%s in %s", f->cupti_version, f->cupti_folder);
}

/* Libraries that must be in CUPTI's folder. */
static const struct {
    const char *name;
    enum level without;
    const char *remedy;
} libraries[] = {
    {"libnvperf_host.so", FAIL, "no counter can be read without it"},
    {"libnvperf_target.so", FAIL, "no counter can be read without it"},
    {"libcheckpoint.so", FAIL, "launches cannot be replayed without it; only the set quick works"},
};

static void check_libraries(struct doctor *d)
{
    const char *folder = d->in->facts->cupti_folder;
    char path[PATH_SIZE];
    size_t missing = 0;
    if (!*d->in->facts->cupti_version) {
        say(d, WARN, "not checked because CUPTI is missing");
        return;
    }
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, libraries[i].name);
        if (!access(path, R_OK))
            continue;
        missing++;
        say(d, libraries[i].without,
            "%s is not in %s: %s; install all of CUPTI, or set KPROF_CUPTI_DIR to a folder that has it",
            libraries[i].name, folder, libraries[i].remedy);
    }
    if (!missing)
        say(d, OK, "libnvperf and libcheckpoint are next to CUPTI");
}

/* ---- permission ---- */

/* Returns true if the process is privileged. Capabilities count only in the driver's user namespace: the first one,
 * which maps all users to themselves. */
static bool is_admin(const struct doctor *d)
{
    uint64_t effective = 0, first = 1, count = UINT32_MAX;
    if (!read_number(path_in(d, KP_DOCTOR_STATUS), "CapEff:", 16, &effective))
        return false;
    FILE *f = fopen(path_in(d, KP_DOCTOR_UID_MAP), "re");
    if (f) {
        if (fscanf(f, "%*u %" SCNu64 " %" SCNu64, &first, &count) != 2)
            first = 0;
        fclose(f);
    } else {
        first = 0;
    }
    return effective >> CAP_SYS_ADMIN & 1 && !first && count == UINT32_MAX;
}

static void check_permission(struct doctor *d)
{
    uint64_t restricted = 0;
    bool known = read_number(path_in(d, KP_DOCTOR_PARAMS), "RmProfilingAdminOnly:", 10, &restricted);
    if (known && !restricted)
        say(d, OK, "all users may read counters (RmProfilingAdminOnly is 0)");
    else if (is_admin(d))
        say(d, OK, "this process may read counters (CAP_SYS_ADMIN)");
    else if (!known)
        say(d, WARN,
            "the driver does not say who may read counters, and this process lacks CAP_SYS_ADMIN: if they are refused, "
            "run as root");
    else
        say(d, FAIL,
            "only administrators may read counters (RmProfilingAdminOnly is 1), and this process has no such rights: "
            "run as root%s, "
            "or put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d%s and reload "
            "the driver",
            container(d) ? " in a container with --cap-add=SYS_ADMIN" : " or with CAP_SYS_ADMIN",
            container(d) ? " of the host" : "");
}

/* ---- other users of the counters ---- */

/* Names cut to 15 characters, like the kernel's. */
static const struct {
    const char *process, *text;
} rivals[] = {
    {"nv-hostengine", "DCGM runs and may hold the counters: `dcgmi profile --pause`, and --resume afterwards"},
    {"dcgm-exporter", "DCGM runs and may hold the counters: `dcgmi profile --pause`, and --resume afterwards"},
    {"ncu", "Nsight Compute is running and holds the counters: wait until it ends"},
    {"nsys", "Nsight Systems is running and may hold the counters: wait until it ends"},
    {"nvidia-cuda-mps",
     "MPS is running: counters of a GPU include all its clients; to stop it, `echo quit | nvidia-cuda-mps-control`"},
};

/* Reads the name of process `pid`; "" if it is gone. */
static void name_of_process(const struct doctor *d, const char *pid, char name[32])
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s/comm", path_in(d, KP_DOCTOR_PROCESSES), pid);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(name, 32, f))
        *name = '\0';
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = '\0';
}

/* Returns true if DCGM's default port has a listener; that process may be in another container, or on the host. */
static bool port_is_open(const struct doctor *d)
{
    char line[512];
    unsigned port, state;
    bool open = false;
    FILE *f = fopen(path_in(d, KP_DOCTOR_TCP), "re");
    while (f && !open && fgets(line, sizeof line, f))
        open = sscanf(line, " %*u: %*x:%x %*x:%*x %x", &port, &state) == 2 && port == DCGM_PORT && state == TCP_LISTENS;
    if (f)
        fclose(f);
    return open;
}

static void check_rivals(struct doctor *d)
{
    DIR *dir = opendir(path_in(d, KP_DOCTOR_PROCESSES));
    size_t found = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char name[32];
        if (!isdigit((unsigned char)*e->d_name))
            continue;
        name_of_process(d, e->d_name, name);
        for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++)
            if (!strcmp(rivals[i].process, name)) {
                say(d, WARN, "process %s (%s): %s", e->d_name, name, rivals[i].text);
                found++;
            }
    }
    if (dir)
        closedir(dir);
    if (!found && port_is_open(d))
        say(d, WARN, "port %d, DCGM's, is open: %s", DCGM_PORT, rivals[0].text);
    else if (!found)
        say(d, OK, "neither DCGM nor another profiler is running");
}

static const struct {
    const char *name, *text;
} variables[] = {
    {"CUDA_INJECTION64_PATH", "this tool is loaded into every CUDA program and may use CUPTI: unset it"},
    {"NVTX_INJECTION64_PATH", "this tool receives the program's NVTX ranges: unset it"},
    {"LD_PRELOAD", "is loaded, too: if a program fails under kprof, try it without"},
    {"ASAN_OPTIONS", "a program built with AddressSanitizer gets no counters: CUPTI would make it abort"},
    {"TSAN_OPTIONS", "a program built with ThreadSanitizer gets no counters: CUPTI would make it abort"},
    {"MSAN_OPTIONS", "a program built with MemorySanitizer runs unprofiled"},
};

static void check_variables(struct doctor *d)
{
    size_t found = 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i].name);
        if (!value || !*value)
            continue;
        say(d, WARN, "%s=%s: %s", variables[i].name, value, variables[i].text);
        found++;
    }
    if (!found)
        say(d, OK, "no other tool is injected");
}

/* ---- the system ---- */

static void check_ptrace(struct doctor *d)
{
    uint64_t scope;
    if (read_number(path_in(d, KP_DOCTOR_PTRACE), "", 10, &scope))
        say(d, OK, "ptrace_scope is %" PRIu64 ", which does not matter: kprof does not attach to processes", scope);
    else
        say(d, OK, "does not matter: kprof does not attach to processes");
}

static void check_container(struct doctor *d)
{
    const char *kind = container(d);
    if (kind)
        say(d, OK, "yes (%s): it needs the GPUs and, for counters, what the line on permission says", kind);
    else
        say(d, OK, "none was found");
}

static void check_wsl(struct doctor *d)
{
    static const char *const words[] = {"microsoft", NULL};
    if (find_word(path_in(d, KP_DOCTOR_KERNEL), words))
        say(d, WARN,
            "this is WSL: in the developer settings of the NVIDIA Control Panel of Windows, allow all users to access "
            "the GPU performance counters; some drivers offer none here");
    else
        say(d, OK, "no");
}

static void check_space(struct doctor *d)
{
    const char *folder = getenv("TMPDIR");
    struct statvfs s;
    char room[KP_NUMBER_MAX + KP_UNIT_MAX];
    folder = folder && *folder ? folder : path_in(d, KP_DOCTOR_TMP);
    if (access(folder, W_OK | X_OK) || statvfs(folder, &s)) {
        say(d, FAIL, "%s: %s; set TMPDIR to a folder for the sessions of running programs", folder, strerror(errno));
        return;
    }
    double bytes = (double)s.f_bavail * (double)s.f_frsize;
    kp_format_quantity(bytes, "byte", false, room);
    if (bytes >= (double)ROOM_SHORT * MEBIBYTE)
        say(d, OK, "%s free in %s", room, folder);
    else
        say(d, bytes >= (double)ROOM_MIN * MEBIBYTE ? WARN : FAIL,
            "only %s free in %s for the sessions of running programs: set TMPDIR to another folder", room, folder);
}

static void check_library(struct doctor *d)
{
    if (d->in->library)
        say(d, OK, "%s", d->in->library);
    else
        say(d, FAIL, "not found: it belongs next to the kprof command or in ../lib; reinstall kprof");
}

static void check_symbols(struct doctor *d)
{
    if (!d->in->library)
        return;
    if (d->in->symbols_error)
        say(d, WARN, "have no files and lines (%s): install libdw, in the package libdw1 or elfutils-libs",
            d->in->symbols_error);
    else
        say(d, OK, "%s can be loaded", KP_SYMBOLS_LIBRARY);
}

static void check_glibc(struct doctor *d)
{
    int major = 0, minor = 0;
    if (sscanf(d->in->glibc_version, "%d.%d", &major, &minor) == 2 &&
        (major > GLIBC_MAJOR || (major == GLIBC_MAJOR && minor >= GLIBC_MINOR)))
        say(d, OK, "%s", d->in->glibc_version);
    else
        say(d, FAIL, "%s: programs need glibc %d.%d or newer", d->in->glibc_version, GLIBC_MAJOR, GLIBC_MINOR);
}

static const struct {
    const char *what;
    void (*look)(struct doctor *d);
} checks[] = {
    {"libkprof.so", check_library},
    {"call stacks", check_symbols},
    {"glibc", check_glibc},
    {"driver", check_driver},
    {"GPU", check_gpus},
    {"CUPTI", check_cupti},
    {"libraries", check_libraries},
    {"permission", check_permission},
    {"MIG", check_mig},
    {"processes", check_rivals},
    {"environment", check_variables},
    {"container", check_container},
    {"WSL", check_wsl},
    {"ptrace", check_ptrace},
    {"TMPDIR", check_space},
};

static void print_verdict(struct doctor *d)
{
    char *text = NULL;
    size_t faults = d->count[FAIL], warnings = d->count[WARN];
    int n;
    if (faults)
        n = asprintf(&text, "Profiling will not work here: fix the lines marked FAIL (%zu), starting with the first.",
                     faults);
    else if (warnings)
        n = asprintf(&text, "Profiling will work here; see the lines marked WARN (%zu) if something is missing.",
                     warnings);
    else
        n = asprintf(&text, "Profiling will work here.");
    text = n < 0 ? NULL : text;
    put_text(d, "", 0, "");
    put_text(d, "", 0, text);
    free(text);
}

int kp_doctor(const struct kp_sink *out, const struct kp_doctor_input *input, size_t *faults)
{
    struct doctor d = {.out = out, .in = input};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        d.what = checks[i].what;
        checks[i].look(&d);
    }
    print_verdict(&d);
    *faults = d.count[FAIL];
    return d.rc;
}
