/* What stands in the way of profiling: on a made-up machine whose files are in a folder of the test's own, and as the
 * kprof command says it of this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/doctor.h"
#include "tests/support/report_support.h"

static char folder[PATH_MAX / 4];

static const char *inside(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(inside(name), "we");
    if (!f)
        fail_msg("cannot write %s: %s", name, strerror(errno));
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int remove_folder(void **state)
{
    char line[PATH_MAX];
    (void)state;
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    return system(line);
}

/* ---- a machine on which all is well ---- */

struct machine {
    struct kp_doctor_facts facts;
    char paths[KP_DOCTOR_PATHS][PATH_MAX];
    const char *library, *glibc, *symbols_error;
};

static struct machine *machine;

static const struct {
    enum kp_doctor_path path;
    const char *name, *text; /* NULL: not there */
} files[] = {
    {KP_DOCTOR_PARAMS, "params", "EnableMSI: 1\nRmProfilingAdminOnly: 0\n"},
    {KP_DOCTOR_CAPABILITIES, "capabilities", NULL},
    {KP_DOCTOR_CONTROL, "nvidiactl", ""},
    {KP_DOCTOR_PROCESSES, "proc", NULL},
    {KP_DOCTOR_STATUS, "status", "Name:\tkprof\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"},
    {KP_DOCTOR_UID_MAP, "uid_map", "         0          0 4294967295\n"},
    {KP_DOCTOR_TCP, "tcp",
     "  sl  local_address rem_address   st tx_queue rx_queue\n"
     "   0: 0100007F:15B4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"
     "   1: 0100007F:15B3 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"},
    {KP_DOCTOR_PTRACE, "ptrace_scope", "3\n"},
    {KP_DOCTOR_DOCKER, "dockerenv", NULL},
    {KP_DOCTOR_PODMAN, "containerenv", NULL},
    {KP_DOCTOR_CGROUP, "cgroup", "0::/init.scope\n"},
    {KP_DOCTOR_KERNEL, "osrelease", "6.8.0-45-generic\n"},
    {KP_DOCTOR_TMP, "tmp", NULL},
};

static int make_machine(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    machine = calloc(1, sizeof *machine);
    assert_non_null(machine);
    assert_int_equal(sizeof files / sizeof *files, KP_DOCTOR_PATHS);
    for (size_t i = 0; i < KP_DOCTOR_PATHS; i++) {
        snprintf(machine->paths[files[i].path], PATH_MAX, "%s", inside(files[i].name));
        if (files[i].text)
            write_file(files[i].name, files[i].text);
    }
    static const char *const folders[] = {"proc", "proc/77",      "proc/self",         "cupti",
                                          "tmp",  "capabilities", "capabilities/gpu0", "capabilities/gpu0/mig"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(inside(folders[i]), 0755), 0);
    write_file("proc/77/comm", "bash\n");
    write_file("proc/self/comm", "nv-hostengine\n"); /* no process of its own */
    write_file("cupti/libnvperf_host.so", "");
    write_file("cupti/libnvperf_target.so", "");
    write_file("cupti/libcheckpoint.so", "");
    struct kp_doctor_facts *f = &machine->facts;
    f->has_driver = true;
    f->driver_version = 13000;
    f->n_gpus = 2;
    f->gpus[0] = (struct kp_doctor_gpu){"NVIDIA H200", 9, 0};
    f->gpus[1] = (struct kp_doctor_gpu){"Quadro RTX 4000", 7, 5};
    strcpy(f->cupti_version, "13.0");
    snprintf(f->cupti_folder, sizeof f->cupti_folder, "%s", inside("cupti"));
    machine->library = "/opt/kprof/lib/libkprof.so";
    machine->glibc = "2.17";
    static const char *const variables[] = {
        "ASAN_OPTIONS", "TSAN_OPTIONS",          "MSAN_OPTIONS",          "TMPDIR",
        "LD_PRELOAD",   "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "CUDA_VISIBLE_DEVICES"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

static int remove_machine(void **state)
{
    free(machine);
    return remove_folder(state);
}

/* With the folder's name, which is random, as ROOT, and what is free in it as SPACE. */
static char *look(size_t *faults)
{
    const char *paths[KP_DOCTOR_PATHS];
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    for (size_t i = 0; i < KP_DOCTOR_PATHS; i++)
        paths[i] = machine->paths[i];
    struct kp_doctor_input input = {&machine->facts,        paths, machine->library, machine->glibc,
                                    machine->symbols_error, 0};
    assert_int_equal(kp_doctor(&out, &input, faults), 0);
    for (char *p; (p = strstr(t.text, folder));) {
        memcpy(p, "ROOT", 4);
        memmove(p + 4, p + strlen(folder), strlen(p + strlen(folder)) + 1);
    }
    char *free_space = strstr(t.text, "TMPDIR        "), *end = free_space ? strstr(free_space, " free in") : NULL;
    if (end) {
        free_space += strlen("TMPDIR        ");
        memmove(free_space + 5, end, strlen(end) + 1);
        memcpy(free_space, "SPACE", 5);
    }
    return t.text;
}

/* One line is as it should be; and so is the verdict that follows from `faults`. */
static void assert_line(const char *line, size_t expected)
{
    size_t faults;
    char *text = look(&faults), *found = strstr(text, line);
    if (!found || (found > text && found[-1] != '\n') || faults != expected)
        fail_msg("no line '%s', or not %zu faults but %zu, in\n%s", line, expected, faults, text);
    const char *verdict = expected ? "\nkprof cannot profile here: " : "\nkprof can profile here";
    assert_non_null(strstr(text, verdict));
    free(text);
}

static void all_is_well(void **state)
{
    (void)state;
    size_t faults;
    char *text = look(&faults);
    assert_int_equal(faults, 0);
    kp_test_golden(text, "tests/golden/doctor_well.txt");
    free(text);
}

/* Without a driver, CUPTI and library, in a container. */
static void nothing_is_there(void **state)
{
    (void)state;
    size_t faults;
    machine->facts = (struct kp_doctor_facts){.driver_error = "libcuda.so.1: no such file",
                                              .cupti_error = "libcupti not found: install it"};
    machine->library = NULL;
    write_file("dockerenv", "");
    unlink(inside("params"));
    char *text = look(&faults);
    assert_int_equal(faults, 4);
    kp_test_golden(text, "tests/golden/doctor_nothing.txt");
    free(text);
    unlink(inside("dockerenv"));
    assert_line("FAIL  driver        not found (libcuda.so.1: no such file): install NVIDIA's driver", 4);
}

static void the_library_and_glibc(void **state)
{
    (void)state;
    machine->glibc = "2.5";
    assert_line("FAIL  glibc         2.5: programs need glibc 2.17 or newer\n", 1);
    machine->symbols_error = "libdw.so.1: no such file";
    assert_line("WARN  call stacks   have no files and lines (libdw.so.1: no such file): install libdw, in the package "
                "libdw1 or elfutils-libs\n",
                1);
    machine->glibc = "3.0";
    assert_line("OK    glibc         3.0\n", 0);
    machine->library = NULL;
    assert_line("FAIL  libkprof.so   not found: it belongs beside the kprof command or in ../lib", 1);
}

static void drivers(void **state)
{
    (void)state;
    machine->facts.driver_version = 13020;
    assert_line("OK    driver        CUDA 13.2\n", 0);
    strcpy(machine->facts.cupti_version, "12.9");
    machine->facts.driver_version = 12040;
    assert_line("OK    driver        CUDA 12.4\n", 0);
    machine->facts.driver_version = 12030;
    assert_line("FAIL  driver        CUDA 12.3: install a driver of CUDA 12.4 or newer\n", 1);
}

static void gpus(void **state)
{
    (void)state;
    machine->facts.gpus[1].cc_minor = 0;
    assert_line("WARN  GPU           1: Quadro RTX 4000, compute capability 7.0: no counters below 7.5", 0);
    machine->facts.gpus[0].cc_major = 6;
    assert_line("FAIL  GPU           0: NVIDIA H200, compute capability 6.0: no counters below 7.5", 2);
    machine->facts.n_gpus = 0;
    machine->facts.init_code = 100;
    assert_line("FAIL  GPU           no GPU: load the kernel module", 1);
    machine->facts.init_code = 802;
    assert_line("FAIL  GPU           the system is not ready: start nvidia-fabricmanager\n", 1);
    machine->facts.init_code = 999;
    assert_line("FAIL  GPU           none could be used: see what nvidia-smi", 1);
    unlink(inside("nvidiactl"));
    assert_line("FAIL  GPU           none: the driver has no device file", 1);
    write_file("containerenv", "");
    assert_line("FAIL  GPU           none in this container: start it with the GPUs", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_line("FAIL  GPU           none: CUDA_VISIBLE_DEVICES hides all; unset it\n", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_line("FAIL  GPU           none in this container", 1);
}

static void the_cupti(void **state)
{
    (void)state;
    strcpy(machine->facts.cupti_version, "12.9");
    assert_line("OK    CUPTI         12.9 in ROOT/cupti\n", 0);
    machine->facts.driver_version = 12080;
    strcpy(machine->facts.cupti_version, "13.0");
    assert_line("FAIL  CUPTI         13.0 in ROOT/cupti is newer than the driver (CUDA 12): set KPROF_CUPTI_DIR", 1);
    machine->facts.driver_version = 13000;
    unlink(inside("cupti/libcheckpoint.so"));
    assert_line("FAIL  libraries     libcheckpoint.so is not in ROOT/cupti: launches cannot be replayed", 1);
    unlink(inside("cupti/libnvperf_host.so"));
    assert_line("FAIL  libraries     libnvperf_host.so is not in ROOT/cupti: no counter", 2);
    *machine->facts.cupti_version = '\0';
    strcpy(machine->facts.cupti_error, "libcupti not found: install it");
    assert_line("FAIL  CUPTI         libcupti not found: install it\n", 1);
    assert_line("WARN  libraries     not looked for, as there is no CUPTI\n", 1);
}

static void permission(void **state)
{
    static const char admin[] = "CapEff:\t0000000000200000\n", others[] = "CapEff:\t000001ffffdfffff\n";
    (void)state;
    write_file("params", "RmProfilingAdminOnly: 1\n");
    assert_line(
        "FAIL  permission    only administrators may read counters (RmProfilingAdminOnly is 1), and this process "
        "is none: run as root or with CAP_SYS_ADMIN, or put `options nvidia",
        1);
    write_file("status", others);
    assert_line("FAIL  permission    only administrators", 1);
    write_file("cgroup", "0::/kubepods.slice/x\n");
    assert_line(
        "FAIL  permission    only administrators may read counters (RmProfilingAdminOnly is 1), and this process "
        "is none: run as root in a container with --cap-add=SYS_ADMIN, or",
        1);
    write_file("status", admin);
    assert_line("OK    permission    this process may read counters (CAP_SYS_ADMIN)\n", 0);
    write_file("uid_map", "         0       1000          1\n"); /* a user namespace, as rootless containers have */
    assert_line("FAIL  permission    only administrators", 1);
    unlink(inside("params"));
    assert_line("WARN  permission    the driver does not say", 0);
    write_file("uid_map", "         0          0 4294967295\n");
    assert_line("OK    permission    this process may", 0);
}

static void instances(void **state)
{
    (void)state;
    assert_line("OK    MIG           no instances\n", 0);
    assert_int_equal(mkdir(inside("capabilities/gpu0/mig/gi1"), 0755), 0);
    assert_line("WARN  MIG           GPU instances are in use", 0);
    assert_int_equal(rmdir(inside("capabilities/gpu0/mig/gi1")), 0);
    strcpy(machine->facts.gpus[0].name, "NVIDIA H200 MIG 1g.18gb");
    assert_line("WARN  MIG           GPU instances are in use", 0);
}

static void others_that_use_the_counters(void **state)
{
    (void)state;
    write_file("proc/77/comm", "nv-hostengine\n");
    assert_line("WARN  processes     process 77 (nv-hostengine): DCGM runs", 0);
    write_file("proc/77/comm", "nvidia-cuda-mps\n");
    assert_line("WARN  processes     process 77 (nvidia-cuda-mps): MPS runs", 0);
    write_file("proc/77/comm", "ncurses\n");
    assert_line("OK    processes     neither DCGM nor another profiler is seen\n", 0);
    write_file("tcp", "  sl  local_address\n   0: 00000000:15B3 00000000:0000 0A 00000000:00000000 00:00000000\n");
    assert_line("WARN  processes     port 5555 is open, as DCGM has it: DCGM runs and may hold the counters", 0);
    setenv("CUDA_INJECTION64_PATH", "/opt/nsight/libinject.so", 1);
    assert_line("WARN  environment   CUDA_INJECTION64_PATH=/opt/nsight/libinject.so: this tool", 0);
    unsetenv("CUDA_INJECTION64_PATH");
    setenv("NVTX_INJECTION64_PATH", "/x", 1);
    assert_line("WARN  environment   NVTX_INJECTION64_PATH=/x: ", 0);
    unsetenv("NVTX_INJECTION64_PATH");
    setenv("LD_PRELOAD", "libasan.so", 1);
    assert_line("WARN  environment   LD_PRELOAD=libasan.so: is loaded too", 0);
    unsetenv("LD_PRELOAD");
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    assert_line("WARN  environment   ASAN_OPTIONS=detect_leaks=0: a program built with AddressSanitizer", 0);
    unsetenv("ASAN_OPTIONS");
}

static void the_system(void **state)
{
    (void)state;
    write_file("osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    assert_line("WARN  WSL           this is WSL", 0);
    unlink(inside("ptrace_scope"));
    assert_line("OK    ptrace        does not matter: ", 0);
    write_file("cgroup", "12:pids:/docker/123\n");
    assert_line("OK    container     yes (docker)", 0);
    write_file("containerenv", "");
    assert_line("OK    container     yes (Podman)", 0);
    write_file("dockerenv", "");
    assert_line("OK    container     yes (Docker)", 0);
}

static void room_for_sessions(void **state)
{
    (void)state;
    setenv("TMPDIR", inside("cupti"), 1);
    assert_line("OK    TMPDIR        SPACE free in ROOT/cupti\n", 0);
    setenv("TMPDIR", inside("nowhere"), 1);
    assert_line("FAIL  TMPDIR        ROOT/nowhere: No such file or directory; set TMPDIR to a folder", 1);
    setenv("TMPDIR", "/proc", 1); /* has no room for anything */
    if (!access("/proc", W_OK | X_OK))
        assert_line("FAIL  TMPDIR        SPACE free in /proc", 1);
    unsetenv("TMPDIR");
    assert_line("OK    TMPDIR        SPACE free in ROOT/tmp\n", 0);
}

static int refuse(void *arg, const char *text, size_t len)
{
    (void)arg;
    (void)text;
    (void)len;
    return -ENOSPC;
}

static void what_the_sink_returns_is_returned(void **state)
{
    (void)state;
    struct kp_sink out = {refuse, NULL};
    size_t faults;
    struct kp_doctor_input input = {&machine->facts, kp_doctor_paths, NULL, "2.30", NULL, 0};
    assert_int_equal(kp_doctor(&out, &input, &faults), -ENOSPC);
}

static void lines_fit_and_are_broken_below_what_is_said(void **state)
{
    (void)state;
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    size_t faults;
    struct kp_doctor_input input = {&machine->facts, kp_doctor_paths, NULL, "2.30", NULL, 60};
    assert_int_equal(kp_doctor(&out, &input, &faults), 0);
    bool broken = false;
    for (char *line = strtok(t.text, "\n"); line; line = strtok(NULL, "\n")) {
        assert_in_range(strlen(line), 1, 60);
        broken |= !strncmp(line, "                    ", 20) && line[20] != ' ';
    }
    assert_true(broken);
    free(t.text);
}

/* ---- the command ---- */

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    return 0;
}

/* Runs `kprof arguments` over the fake driver and CUPTI, or, with neither, without any. */
static int run(bool fake, const char *arguments, char **out, char **err)
{
    char line[8 * PATH_MAX], libraries[PATH_MAX];
    snprintf(libraries, sizeof libraries, "%s", fake ? kp_test_build("fake") : folder);
    snprintf(line, sizeof line,
             "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" LD_LIBRARY_PATH='%s' '%s' %s --cupti-dir '%s' >'%s/out' "
             "2>'%s/err'",
             libraries, kp_test_build("kprof"), arguments, libraries, folder, folder);
    int status = system(line);
    *out = kp_test_read(inside("out"));
    *err = kp_test_read(inside("err"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_command_looks_at_this_machine(void **state)
{
    char *out, *err, line[2 * PATH_MAX];
    (void)state;
    int status = run(true, "doctor", &out, &err);
    assert_string_equal(err, "");
    assert_non_null(strstr(out, "OK    driver        CUDA 1"));
    assert_non_null(strstr(out, "OK    GPU           0: "));
    snprintf(line, sizeof line, " in %s\n", kp_test_build("fake"));
    assert_non_null(strstr(out, line));
    snprintf(line, sizeof line, "OK    libkprof.so   %s\n", kp_test_build("libkprof.so"));
    assert_non_null(strstr(out, line));
    assert_int_equal(status, strstr(out, "FAIL  ") ? 1 : 0);
    assert_non_null(strstr(out, status ? "\nkprof cannot profile here" : "\nkprof can profile here"));
    free(out);
    free(err);

    status = run(false, "doctor", &out, &err);
    assert_int_equal(status, 1);
    assert_string_equal(err, "");
    snprintf(line, sizeof line, "FAIL  CUPTI         libcupti not found in %s, the only folder searched", folder);
    assert_non_null(strstr(out, line));
    assert_non_null(strstr(out, "\nkprof cannot profile here"));
    free(out);
    free(err);

    assert_int_equal(run(true, "doctor twice", &out, &err), 2);
    assert_non_null(strstr(err, "==ERROR== kprof doctor takes no 'twice'"));
    free(out);
    free(err);
}

int main(void)
{
#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(all_is_well),
        ON_A_MACHINE(nothing_is_there),
        ON_A_MACHINE(the_library_and_glibc),
        ON_A_MACHINE(drivers),
        ON_A_MACHINE(gpus),
        ON_A_MACHINE(the_cupti),
        ON_A_MACHINE(permission),
        ON_A_MACHINE(instances),
        ON_A_MACHINE(others_that_use_the_counters),
        ON_A_MACHINE(the_system),
        ON_A_MACHINE(room_for_sessions),
        ON_A_MACHINE(what_the_sink_returns_is_returned),
        ON_A_MACHINE(lines_fit_and_are_broken_below_what_is_said),
        cmocka_unit_test_setup_teardown(the_command_looks_at_this_machine, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
