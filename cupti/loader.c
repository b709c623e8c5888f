#include "cupti/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Of address space and of data. Opening the libraries and planning took 60 MB. */
enum { ROOM_TO_LOAD = 160 << 20, ROOM_TO_CALL = 64 << 20 };

enum library { LIB_CUPTI, LIB_CHECKPOINT, LIB_NVPERF_HOST, LIBRARIES };

/* Newest first. A driver accepts a CUPTI of its own major version or older. */
static const char *const cupti_names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

/* CUPTI's folders below a toolkit or next to other CUDA libraries. */
static const char *const below_toolkit[] = {"extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib"};

static const char *const toolkits[] = {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"};

static const struct entry {
    enum library lib;
    const char *name;
    int needed;
    size_t offset;
} entries[] = {
#define KP_CUPTI(lib, fn, needed, lost) {LIB_##lib, #fn, needed, offsetof(struct kp_cupti, fn)},
#include "cupti/cupti_api.def"
#undef KP_CUPTI
};

char *kp_cupti_text(const char *format, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        text = NULL;
    va_end(ap);
    return text;
}

static bool limited(int resource)
{
    struct rlimit limit;
    return !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

static int room_for(size_t size)
{
    if (!limited(RLIMIT_AS) && !limited(RLIMIT_DATA))
        return 0;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    munmap(p, size);
    return 0;
}

int kp_cupti_room(void)
{
    return room_for(ROOM_TO_CALL);
}

static void *open_in(const struct kp_dl *dl, const char *dir, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return NULL;
    return dl->open(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_cupti_in(const struct kp_dl *dl, const char *dir)
{
    for (size_t i = 0; dir && *dir && i < sizeof(cupti_names) / sizeof(*cupti_names); i++) {
        void *h = open_in(dl, dir, cupti_names[i]);
        if (h)
            return h;
    }
    return NULL;
}

static void *open_cupti_below(const struct kp_dl *dl, const char *root)
{
    char dir[PATH_MAX];
    for (size_t i = 0; root && *root && i < sizeof(below_toolkit) / sizeof(*below_toolkit); i++) {
        if (snprintf(dir, sizeof(dir), "%s/%s", root, below_toolkit[i]) >= (int)sizeof(dir))
            continue;
        void *h = open_cupti_in(dl, dir);
        if (h)
            return h;
    }
    return NULL;
}

/* Finds a copy that the program loaded itself: a second one would conflict with it. */
static void *find_loaded(const struct kp_dl *dl)
{
    for (size_t i = 0; i < sizeof(cupti_names) / sizeof(*cupti_names); i++) {
        void *h = dl->open(cupti_names[i], RTLD_NOW | RTLD_NOLOAD);
        if (h)
            return h;
    }
    return NULL;
}

bool kp_cupti_lies_in(const char *dir)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(cupti_names) / sizeof(*cupti_names); i++)
        if (snprintf(path, sizeof(path), "%s/%s", dir, cupti_names[i]) < (int)sizeof(path) && !access(path, R_OK))
            return true;
    return false;
}

static void *find_cupti(const struct kp_dl *dl, const char *dir, const char *const *near)
{
    void *h = NULL;
    if (dir && *dir)
        return open_cupti_in(dl, dir);
    if ((h = find_loaded(dl)))
        return h;
    for (size_t i = 0; i < sizeof(cupti_names) / sizeof(*cupti_names); i++)
        if ((h = dl->open(cupti_names[i], RTLD_NOW | RTLD_LOCAL)))
            return h;
    if ((h = open_cupti_below(dl, getenv("CUDA_HOME"))) || (h = open_cupti_below(dl, getenv("CUDA_PATH"))))
        return h;
    for (; near && *near; near++)
        if ((h = open_cupti_in(dl, *near)))
            return h;
    for (size_t i = 0; i < sizeof(toolkits) / sizeof(*toolkits); i++)
        if ((h = open_cupti_below(dl, toolkits[i])))
            return h;
    return NULL;
}

/* Opens only the copy that belongs to the libcupti in use: that of another release would not fit. Uses the bare name
 * only if the folder is unknown. */
static void *open_beside(const struct kp_dl *dl, const char *dir, const char *name)
{
    return *dir ? open_in(dl, dir, name) : dl->open(name, RTLD_NOW | RTLD_LOCAL);
}

/* Binds the functions of a library; NULL if it was not found. */
static int bind_entries(struct kp_cupti *c, enum library which, void *library, char **err)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        const struct entry *e = &entries[i];
        if (e->lib != which)
            continue;
        void *sym = library ? c->dl->sym(library, e->name) : NULL;
        if (!sym && e->needed) {
            *err = kp_cupti_text("%s has no %s: CUPTI 12.6 or newer is needed (set KPROF_CUPTI_DIR to its folder)",
                                 c->path, e->name);
            return -EINVAL;
        }
        memcpy((char *)c + e->offset, &sym, sizeof(sym));
    }
    return 0;
}

/* Returns the sanitiser that would end this program, or NULL. KP_VENDOR: libcupti opens its libraries with
 * RTLD_DEEPBIND, by the first dlopen found. Another library may precede the sanitiser's. */
static const char *find_sanitiser(const struct kp_dl *dl)
{
    static const struct {
        const char *function, *name;
    } sanitisers[] = {
#define KP_SANITISER(function, name) {function, name},
#include "base/sanitisers.def"
#undef KP_SANITISER
    };
    static const char here;
    const void *opens = dl->same_file ? dl->sym(RTLD_DEFAULT, "dlopen") : NULL;
    if (opens && dl->same_file(opens, &here))
        opens = (const void *)(uintptr_t)dl->open; /* where our own dlopen leads */
    for (size_t i = 0; opens && i < sizeof(sanitisers) / sizeof(*sanitisers); i++) {
        const void *found = dl->sym(RTLD_DEFAULT, sanitisers[i].function);
        if (found && dl->same_file(found, opens))
            return sanitisers[i].name;
    }
    return NULL;
}

/* Checks if CUPTI would end the process, because of a sanitiser or a limit. Returns 0, or the reason not to load it. */
static int check_process(const struct kp_dl *dl, char **err)
{
    const char *sanitiser = find_sanitiser(dl);
    if (sanitiser) {
        *err = kp_cupti_text("the program is built with %s, which would end it as soon as CUPTI opens its libraries: "
                             "build it without the sanitizer to get counters",
                             sanitiser);
        return -ENOTSUP;
    }
    if (room_for(ROOM_TO_LOAD)) {
        *err = kp_cupti_text("the process's memory limit is too low for CUPTI, which would end it: raise the limit "
                             "(`ulimit -v`, `ulimit -d`) by %d MB",
                             ROOM_TO_LOAD >> 20);
        return -ENOMEM;
    }
    return 0;
}

/* Notes where the library lies, and its version. */
static void describe(struct kp_cupti *c, void *library)
{
    char where[PATH_MAX] = "";
    void *anchor = c->dl->sym(library, "cuptiGetVersion");
    c->library = library;
    if (anchor)
        c->dl->directory_of(anchor, where, sizeof(where));
    c->folder = strdup(where);
    c->path = kp_cupti_text("%s/libcupti", *where ? where : ".");
}

static void read_version(struct kp_cupti *c)
{
    uint32_t version = 0;
    if (KP_CALL(c, cuptiGetVersion, &version) == CUPTI_SUCCESS && version >= 100000)
        snprintf(c->version, sizeof(c->version), "%u.%u", version / 10000, version % 10000 / 100);
    else if (version)
        snprintf(c->version, sizeof(c->version), "API %u", version);
}

int kp_cupti_open(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err)
{
    struct kp_cupti *c = calloc(1, sizeof(*c));
    *out = NULL;
    *err = NULL;
    if (!c)
        return -ENOMEM;
    c->dl = dl;
    int rc = check_process(dl, err);
    if (rc)
        goto out;
    void *library = find_cupti(dl, dir, near);
    if (!library) {
        *err = dir && *dir
                   ? kp_cupti_text("libcupti not found in %s, the only folder searched (cupti-dir): name one that "
                                   "has it, or unset cupti-dir (KPROF_CUPTI_DIR)",
                                   dir)
                   : kp_cupti_text("libcupti not found: install the CUDA toolkit's CUPTI (or `pip install "
                                   "nvidia-cuda-cupti`) and set KPROF_CUPTI_DIR or LD_LIBRARY_PATH to its folder");
        rc = -ENOENT;
        goto out;
    }
    describe(c, library);
    rc = c->folder ? bind_entries(c, LIB_CUPTI, library, err) : -ENOMEM;
    if (!rc)
        rc = bind_entries(c, LIB_CHECKPOINT, open_beside(dl, c->folder, "libcheckpoint.so"), err);
    if (rc)
        goto out;
    read_version(c);
    *out = c;
    c = NULL;
out:
    kp_cupti_free(c);
    return rc;
}

/* KP_VENDOR: libcupti opens these two by bare name. Opened here by path first, they are found wherever they are. */
static const char metrics_target[] = "libnvperf_target.so", metrics_host[] = "libnvperf_host.so";

void kp_cupti_warm(const struct kp_cupti *c, enum kp_cupti_part part)
{
    open_beside(c->dl, c->folder, part == KP_CUPTI_TARGET ? metrics_target : metrics_host);
}

void kp_cupti_complete(struct kp_cupti *c)
{
    char *none = NULL;
    bind_entries(c, LIB_NVPERF_HOST, open_beside(c->dl, c->folder, metrics_host), &none); /* none of these is needed */
}

struct kp_cupti *kp_cupti_copy(const struct kp_cupti *c, bool (*goes_on)(void))
{
    struct kp_cupti *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *c;
    copy->goes_on = goes_on;
    copy->path = c->path ? strdup(c->path) : NULL;
    copy->folder = strdup(c->folder);
    if (copy->path && copy->folder)
        return copy;
    kp_cupti_free(copy);
    return NULL;
}

int kp_cupti_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err)
{
    int rc = kp_cupti_open(dl, dir, near, out, err);
    if (rc)
        return rc;
    kp_cupti_warm(*out, KP_CUPTI_TARGET);
    kp_cupti_complete(*out);
    return 0;
}

void kp_cupti_free(struct kp_cupti *c)
{
    if (c) {
        free(c->folder);
        free(c->path);
    }
    free(c);
}

const char *kp_cupti_version(const struct kp_cupti *c)
{
    return c->version;
}

const char *kp_cupti_path(const struct kp_cupti *c)
{
    return c->path;
}

void *kp_cupti_find(const struct kp_cupti *c, const char *function)
{
    return c->dl->sym(c->library, function);
}

bool kp_cupti_owns(const struct kp_cupti *c, const void *function)
{
    return c->dl->same_file && c->dl->same_file((const void *)(uintptr_t)c->cuptiGetVersion, function);
}

/* Returns 1 if the driver reserves counters for administrators, else 0; -1 if unknown. */
static int admin_only(void)
{
    char line[256];
    int value = -1;
    FILE *f = fopen("/proc/driver/nvidia/params", "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "RmProfilingAdminOnly: %d", &value) == 1)
            break;
    fclose(f);
    return value;
}

static char *explain_permission(const char *what)
{
    int restricted = admin_only();
    return kp_cupti_text(
        "%s: no permission for GPU performance counters (ERR_NVGPUCTRPERM; RmProfilingAdminOnly is %s). Run as root or "
        "with CAP_SYS_ADMIN (container: --cap-add=SYS_ADMIN), or let all users profile: put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and reload the driver",
        what,
        restricted < 0 ? "unknown"
        : restricted   ? "1"
                       : "0");
}

/* Codes with a known remedy. */
static const struct remedy {
    int code;
    const char *text;
} remedies[] = {
    {CUPTI_ERROR_HARDWARE_BUSY, "the counters are held by another tool; end other profilers, or pause DCGM with "
                                "`dcgmi profile --pause`"},
    {CUPTI_ERROR_NOT_INITIALIZED,
     "CUPTI cannot connect to the driver; `kprof doctor` shows whether their versions match, "
     "and cupti-dir (KPROF_CUPTI_DIR) selects another CUPTI"},
    {CUPTI_ERROR_API_NOT_IMPLEMENTED, "this CUPTI or its driver lacks the function; `kprof doctor` shows the versions, "
                                      "and newer ones may have it"},
    {CUPTI_ERROR_NOT_SUPPORTED, "this device or driver does not offer it; `kprof doctor` shows what profiling needs"},
    {CUPTI_ERROR_DISABLED, "another profiler or debugger holds CUPTI; run the program without it"},
    {CUPTI_ERROR_HARDWARE, "the device's counters failed; look for driver errors (Xid) in `dmesg`, and try "
                           "again after resetting the device"},
    {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED,
     "the device is too new for CUPTI's old profiler, which the program or another tool uses; run without that"},
    {CUPTI_ERROR_OUT_OF_MEMORY, "out of memory; free device memory or select fewer launches or metrics"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "this virtual GPU does not offer performance counters"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the hypervisor has not enabled profiling for this virtual GPU"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "confidential computing is on: counters are not available"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "counters are not available on this MIG instance"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "this WSL driver does not offer performance counters"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "this device does not offer performance counters"},
    {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "SLI is on: counters are not available"},
    {CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, "the program itself uses CUPTI's old profiler; run it without that"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
     "another tool in this process holds CUPTI; run the program without it"},
    {CUPTI_ERROR_INVALID_CHIP_NAME, "this CUPTI does not know the chip; a newer CUPTI may"},
    {CUPTI_ERROR_INVALID_DEVICE, "the device is not supported (compute capability 7.5 or newer is needed)"},
};

/* Codes that a driver gives, in addition to CUPTI_ERROR_HARDWARE_BUSY, while another process counts on the device. They
 * have other meanings, too. Seen with driver 580 and CUPTI 13.0: the first for counters, the second for sampling. */
static const int busy_codes[] = {CUPTI_ERROR_INVALID_PARAMETER, CUPTI_ERROR_UNKNOWN};

static atomic_bool denied;

bool kp_cupti_denied(void)
{
    return atomic_load(&denied);
}

static atomic_bool lost;

void kp_cupti_lose(void)
{
    atomic_store(&lost, true);
}

void kp_cupti_forget_loss(void)
{
    atomic_store(&lost, false);
}

bool kp_cupti_refuses(enum kp_cupti_function f)
{
    static const bool called_when_lost[KP_CUPTI_FUNCTIONS] = {
#define KP_CUPTI(lib, fn, needed, lost) lost,
#include "cupti/cupti_api.def"
#undef KP_CUPTI
    };
    return atomic_load(&lost) && !called_when_lost[f];
}

char *kp_cupti_explain(const struct kp_cupti *c, const char *what, int code)
{
    const char *name = NULL;
    char unknown[40];
    if (code == KP_CUPTI_LOST)
        return kp_cupti_text("%s: CUPTI could not end its sampling and counts nothing more in this process; another "
                             "process may have counted on this GPU: end it, or run this program after it",
                             what);
    if (code < 0)
        return kp_cupti_text("%s: %s", what, strerror(-code));
    if (code == KP_CUPTI_NO_PERMISSION) {
        atomic_store(&denied, true);
        return explain_permission(what);
    }
    if (!c || KP_CALL(c, cuptiGetResultString, (CUptiResult)code, &name) != CUPTI_SUCCESS || !name)
        name = NULL;
    snprintf(unknown, sizeof(unknown), "CUPTI error %d", code);
    for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
        if (remedies[i].code == code)
            return kp_cupti_text("%s: %s (%s)", what, remedies[i].text, name ? name : unknown);
    return kp_cupti_text("%s: %s (%d)", what, name ? name : "unknown CUPTI error", code);
}

char *kp_cupti_explain_begin(const struct kp_cupti *c, const char *what, int code)
{
    char *text = kp_cupti_explain(c, what, code);
    bool busy = false;
    for (size_t i = 0; i < sizeof(busy_codes) / sizeof(*busy_codes); i++)
        busy |= busy_codes[i] == code;
    if (!text || !busy)
        return text;
    char *longer = kp_cupti_text("%s; another process may be counting on this GPU (a profiled run, DCGM), and only one "
                                 "can at a time: end it, or run this program after it",
                                 text);
    free(text);
    return longer;
}
