/* Finding and loading CUPTI: the order of the places looked in, over a scripted dynamic loader, what is missing, and
 * what codes are explained as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"
#include "cupti/target.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* ---- a scripted loader ---- */

enum { MAX_ATTEMPTS = 128, PATH = 256 };

static struct {
    const char *present; /* the path or name that can be opened as libcupti; NULL: none */
    bool loaded;         /* ... which the program has opened already */
    const char *lacks;   /* a function that no library has */
    uint32_t version;
    char attempts[MAX_ATTEMPTS][PATH]; /* "=NAME" when only a loaded one is wanted */
    size_t n;
} dl;

static int library_cupti, library_other;

static void *script_open(const char *path, int flags)
{
    bool only_loaded = flags & RTLD_NOLOAD;
    bool is_cupti = strstr(path, "libcupti") != NULL;
    assert_true(dl.n < MAX_ATTEMPTS);
    snprintf(dl.attempts[dl.n++], PATH, "%s%s", only_loaded ? "=" : "", path);
    if (!is_cupti)
        return &library_other;
    if (!dl.present || strcmp(path, dl.present) || (only_loaded && !dl.loaded))
        return NULL;
    return &library_cupti;
}

static CUptiResult version(uint32_t *v)
{
    *v = dl.version;
    return CUPTI_SUCCESS;
}

static int function(void)
{
    return 0;
}

static void *script_sym(void *handle, const char *name)
{
    bool of_other = !strncmp(name, "cuptiCheckpoint", strlen("cuptiCheckpoint")) || !strncmp(name, "NVPW_", 5);
    if (dl.lacks && !strcmp(name, dl.lacks))
        return NULL;
    assert_ptr_equal(handle, of_other ? &library_other : &library_cupti);
    return strcmp(name, "cuptiGetVersion") ? (void *)(uintptr_t)function : (void *)(uintptr_t)version;
}

static bool script_directory(const void *address, char *dir, size_t size)
{
    assert_non_null(address);
    snprintf(dir, size, "/where/it/lies");
    return true;
}

static const struct kp_dl script = {.open = script_open, .sym = script_sym, .directory_of = script_directory};

static int reset(void **state)
{
    (void)state;
    memset(&dl, 0, sizeof(dl));
    dl.version = 130000;
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    return 0;
}

static bool attempted(const char *what)
{
    for (size_t i = 0; i < dl.n; i++)
        if (!strcmp(dl.attempts[i], what))
            return true;
    return false;
}

/* ---- where it is looked for ---- */

static void test_every_place(void **state)
{
    static const char *const expected[] = {
        "=libcupti.so.13",
        "=libcupti.so.12",
        "=libcupti.so",
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
        "/home/cuda/extras/CUPTI/lib64/libcupti.so.13",
        "/home/cuda/extras/CUPTI/lib64/libcupti.so.12",
        "/home/cuda/extras/CUPTI/lib64/libcupti.so",
        "/home/cuda/lib64/libcupti.so.13",
        "/path/cuda/lib64/libcupti.so.13",
        "/near/one/libcupti.so.13",
        "/near/two/libcupti.so.13",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
        "/usr/local/cuda/lib64/libcupti.so.13",
    };
    const char *const near[] = {"/near/one", "/near/two", NULL};
    struct kp_cupti *c;
    char *err = NULL;
    size_t at = 0;
    (void)state;
    setenv("CUDA_HOME", "/home/cuda", 1);
    setenv("CUDA_PATH", "/path/cuda", 1);
    assert_int_equal(kp_cupti_load(&script, "", near, &c, &err), -ENOENT);
    assert_null(c);
    for (size_t i = 0; i < dl.n && at < sizeof(expected) / sizeof(*expected); i++)
        at += !strcmp(dl.attempts[i], expected[at]);
    if (at < sizeof(expected) / sizeof(*expected))
        fail_msg("%s is not looked for, or not in its turn", expected[at]);
    assert_true(strstr(err, "libcupti not found") && strstr(err, "KPROF_CUPTI_DIR") && !strchr(err, '\n'));
    free(err);
}

static void loads_from(const char *dir, const char *const *near, const char *present)
{
    struct kp_cupti *c = NULL;
    char *err = NULL;
    dl.present = present;
    if (kp_cupti_load(&script, dir, near, &c, &err))
        fail_msg("%s: %s", present, err);
    assert_null(err);
    assert_true(attempted(present));
    kp_cupti_free(c);
    dl.n = 0;
}

static void test_found(void **state)
{
    const char *const near[] = {"/near/one", "/near/two", NULL};
    (void)state;
    loads_from(NULL, NULL, "libcupti.so.12");
    loads_from("", near, "/near/two/libcupti.so");
    loads_from(NULL, NULL, "/usr/local/cuda/lib64/libcupti.so.13");
    setenv("CUDA_PATH", "/path/cuda", 1);
    loads_from(NULL, near, "/path/cuda/targets/x86_64-linux/lib/libcupti.so.13");
    loads_from("/given", near, "/given/libcupti.so.13");
}

/* A copy in the process is taken before any other, and nothing is opened a second time. */
static void test_already_loaded(void **state)
{
    struct kp_cupti *c = NULL;
    char *err = NULL;
    (void)state;
    dl.present = "libcupti.so.12";
    dl.loaded = true;
    assert_int_equal(kp_cupti_load(&script, NULL, NULL, &c, &err), 0);
    assert_true(attempted("=libcupti.so.12"));
    assert_false(attempted("libcupti.so.13"));
    assert_false(attempted("libcupti.so.12"));
    kp_cupti_free(c);
}

/* A folder that the user named is the only one looked in. */
static void test_given_folder(void **state)
{
    const char *const near[] = {"/near/one", NULL};
    struct kp_cupti *c = NULL;
    char *err = NULL;
    (void)state;
    dl.present = "libcupti.so.13";
    dl.loaded = true;
    assert_int_equal(kp_cupti_load(&script, "/given", near, &c, &err), -ENOENT);
    assert_null(c);
    assert_non_null(strstr(err, "/given"));
    for (size_t i = 0; i < dl.n; i++)
        assert_memory_equal(dl.attempts[i], "/given/", 7);
    free(err);
}

/* Its helpers are opened by path from where libcupti lies, so that it finds them wherever that is. */
static void test_libraries_beside(void **state)
{
    struct kp_cupti *c = NULL;
    char *err = NULL;
    (void)state;
    dl.present = "libcupti.so.13";
    assert_int_equal(kp_cupti_load(&script, NULL, NULL, &c, &err), 0);
    assert_true(attempted("/where/it/lies/libnvperf_host.so"));
    assert_true(attempted("/where/it/lies/libnvperf_target.so"));
    assert_true(attempted("/where/it/lies/libcheckpoint.so"));
    assert_non_null(strstr(kp_cupti_path(c), "/where/it/lies/"));
    kp_cupti_free(c);
}

static bool never(void)
{
    return false;
}

/* Those of metrics take long to open: they come with the second part, and any thread may have them opened before. */
static void test_in_parts(void **state)
{
    static const char target[] = "/where/it/lies/libnvperf_target.so", host[] = "/where/it/lies/libnvperf_host.so";
    struct kp_cupti *c = NULL;
    char *err = NULL;
    (void)state;
    dl.present = "libcupti.so.13";
    assert_int_equal(kp_cupti_open(&script, NULL, NULL, &c, &err), 0);
    assert_false(attempted(target) || attempted(host));
    assert_true(attempted("/where/it/lies/libcheckpoint.so"));
    assert_null(c->NVPW_InitializeHost);
    kp_cupti_warm(c, KP_CUPTI_HOST);
    assert_true(attempted(host));
    assert_false(attempted(target));
    kp_cupti_warm(c, KP_CUPTI_TARGET);
    assert_true(attempted(target));
    assert_null(c->NVPW_InitializeHost);
    struct kp_cupti *copy = kp_cupti_copy(c, never);
    assert_non_null(copy);
    kp_cupti_complete(copy); /* leaves the other one as it is */
    assert_true(copy->NVPW_InitializeHost && !c->NVPW_InitializeHost);
    assert_string_equal(kp_cupti_path(copy), kp_cupti_path(c));
    dl.n = 0;
    kp_cupti_complete(c);
    assert_true(attempted(host) && !attempted(target));
    assert_non_null(c->NVPW_InitializeHost);
    kp_cupti_free(c);
    assert_non_null(strstr(kp_cupti_path(copy), "/where/it/lies/"));
    kp_cupti_free(copy);
}

/* ---- what it must have ---- */

static const struct entry {
    const char *name;
    int needed;
} entries[] = {
#define KP_CUPTI(library, function, needed, lost) {#function, needed},
#include "cupti/cupti_api.def"
#undef KP_CUPTI
};

static void test_missing_functions(void **state)
{
    (void)state;
    dl.present = "libcupti.so.13";
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        struct kp_cupti *c = NULL;
        char *err = NULL;
        dl.n = 0;
        dl.lacks = entries[i].name;
        int rc = kp_cupti_load(&script, NULL, NULL, &c, &err);
        if (entries[i].needed) {
            assert_int_equal(rc, -EINVAL);
            assert_null(c);
            if (!strstr(err, entries[i].name) || !strstr(err, "KPROF_CUPTI_DIR") || strchr(err, '\n'))
                fail_msg("without %s: %s", entries[i].name, err);
            free(err);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_null(err);
        assert_int_equal(kp_checkpoint_available(c), strncmp(entries[i].name, "cuptiCheckpoint", 15) != 0);
        bool counts_dropped = !strcmp(entries[i].name, "cuptiActivityGetNumDroppedRecords");
        bool activity = !strncmp(entries[i].name, "cuptiActivity", 13) && !counts_dropped;
        assert_int_equal(kp_activity_available(c), !activity);
        assert_int_equal(kp_watch_available(c), !activity && strcmp(entries[i].name, "cuptiGetTimestamp") != 0);
        kp_cupti_free(c);
    }
}

static void test_versions(void **state)
{
    static const struct {
        uint32_t number;
        const char *text;
    } rows[] = {{130000, "13.0"}, {120600, "12.6"}, {130100, "13.1"}, {131200, "13.12"}, {24, "API 24"}, {0, ""}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_cupti *c = NULL;
        char *err = NULL;
        reset(NULL);
        dl.present = "libcupti.so.13";
        dl.version = rows[i].number;
        assert_int_equal(kp_cupti_load(&script, NULL, NULL, &c, &err), 0);
        assert_string_equal(kp_cupti_version(c), rows[i].text);
        kp_cupti_free(c);
    }
    kp_cupti_free(NULL);
}

/* ---- with real files ---- */

static void test_folder_without_cupti(void **state)
{
    const char *folder = kp_test_folder();
    struct kp_cupti *c = (struct kp_cupti *)1;
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_cupti_load(kp_test_dl(), folder, NULL, &c, &err), -ENOENT);
    assert_null(c);
    assert_true(strstr(err, folder) && strstr(err, "KPROF_CUPTI_DIR"));
    free(err);
    kp_test_remove_folder(folder);
}

static void test_library_of_another_age(void **state)
{
    const char *folder = kp_test_folder();
    struct kp_cupti *c = (struct kp_cupti *)1;
    char *err = NULL;
    (void)state;
    kp_test_shared_object(folder, "libcupti.so.13",
                          "int cuptiGetVersion(unsigned *v) { *v = 18; return 0; }\n"
                          "int cuptiGetResultString(int r, const char **s) { *s = \"X\"; return 0; }\n",
                          "");
    assert_int_equal(kp_cupti_load(kp_test_dl(), folder, NULL, &c, &err), -EINVAL);
    assert_null(c);
    assert_true(strstr(err, "cuptiGetContextId") && strstr(err, folder));
    free(err);
    kp_test_remove_folder(folder);
}

static void test_the_real_one(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    (void)state;
    assert_true(strlen(kp_cupti_version(c)) >= 3);
    assert_true(kp_checkpoint_available(c));
    assert_true(kp_activity_available(c));
    char *path = strdup(kp_cupti_path(c));
    *strrchr(path, '/') = '\0';
    char *found = realpath(path, NULL), *given = realpath(getenv("KP_REAL_CUPTI"), NULL);
    assert_string_equal(found, given);
    free(path);
    free(found);
    free(given);
}

/* ---- what codes mean ---- */

static void explains(const struct kp_cupti *c, int code, const char *const *parts)
{
    char *text = kp_cupti_explain(c, "cannot enable the counters", code);
    assert_non_null(text);
    if (strncmp(text, "cannot enable the counters: ", 28) || strchr(text, '\n'))
        fail_msg("%d: %s", code, text);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("%d: no \"%s\" in: %s", code, *parts, text);
    free(text);
}

static void test_codes_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(KP_CUPTI_OK, CUPTI_SUCCESS);
    assert_int_equal(KP_CUPTI_NO_PERMISSION, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    assert_int_equal(KP_CUPTI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
}

/* Names the setting, its value here, and each way out. */
static void test_explain_permission(void **state)
{
    const char *const parts[] = {"ERR_NVGPUCTRPERM",
                                 "RmProfilingAdminOnly is ",
                                 "root",
                                 "CAP_SYS_ADMIN",
                                 "--cap-add=SYS_ADMIN",
                                 "NVreg_RestrictProfilingToAdminUsers=0",
                                 "/etc/modprobe.d/",
                                 NULL};
    (void)state;
    explains(NULL, KP_CUPTI_NO_PERMISSION, parts);
}

/* Says that another process may be counting where the code can mean it, and only for what begins to count. */
static void test_explain_begin(void **state)
{
    static const struct {
        int code;
        bool hints;
    } cases[] = {{CUPTI_ERROR_INVALID_PARAMETER, true},
                 {CUPTI_ERROR_UNKNOWN, true},
                 {CUPTI_ERROR_OUT_OF_MEMORY, false},
                 {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, false},
                 {-ENOMEM, false}};
    const struct kp_cupti *c = kp_test_real_cupti();
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *plain = kp_cupti_explain(c, "cannot enable the counters", cases[i].code);
        char *begin = kp_cupti_explain_begin(c, "cannot enable the counters", cases[i].code);
        assert_non_null(plain);
        assert_non_null(begin);
        assert_memory_equal(begin, plain, strlen(plain));
        assert_int_equal(!!strstr(begin, "another process may be counting on this GPU"), cases[i].hints);
        assert_null(strstr(plain, "another process"));
        assert_null(strchr(begin, '\n'));
        free(plain);
        free(begin);
    }
}

static void test_explain_with_the_real_names(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    (void)state;
    explains(c, CUPTI_ERROR_HARDWARE_BUSY,
             (const char *const[]){"CUPTI_ERROR_HARDWARE_BUSY", "dcgmi profile --pause", NULL});
    explains(c, CUPTI_ERROR_OUT_OF_MEMORY, (const char *const[]){"CUPTI_ERROR_OUT_OF_MEMORY", "device memory", NULL});
    explains(c, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, (const char *const[]){"MIG", NULL});
    explains(c, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, (const char *const[]){"hypervisor", NULL});
    explains(c, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, (const char *const[]){"confidential", NULL});
    explains(c, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, (const char *const[]){"WSL", NULL});
    explains(c, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, (const char *const[]){"another tool", NULL});
    explains(c, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, (const char *const[]){"run the program without", NULL});
    explains(c, CUPTI_ERROR_NOT_INITIALIZED,
             (const char *const[]){"`kprof doctor`", "CUPTI_ERROR_NOT_INITIALIZED", NULL});
    explains(c, CUPTI_ERROR_NOT_SUPPORTED, (const char *const[]){"CUPTI_ERROR_NOT_SUPPORTED", "`kprof doctor`", NULL});
    explains(c, CUPTI_ERROR_DISABLED, (const char *const[]){"without it", NULL});
    explains(c, CUPTI_ERROR_HARDWARE, (const char *const[]){"dmesg", NULL});
    explains(c, CUPTI_ERROR_INVALID_KIND, (const char *const[]){"CUPTI_ERROR_INVALID_KIND", "21", NULL});
    explains(c, 98765, (const char *const[]){"98765", NULL});
}

static void test_explain_without_cupti(void **state)
{
    (void)state;
    explains(NULL, 27, (const char *const[]){"27", NULL});
    explains(NULL, -ENOMEM, (const char *const[]){"memory", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_place, reset),
        cmocka_unit_test_setup(test_found, reset),
        cmocka_unit_test_setup(test_already_loaded, reset),
        cmocka_unit_test_setup(test_given_folder, reset),
        cmocka_unit_test_setup(test_libraries_beside, reset),
        cmocka_unit_test_setup(test_in_parts, reset),
        cmocka_unit_test_setup(test_missing_functions, reset),
        cmocka_unit_test_setup(test_versions, reset),
        cmocka_unit_test(test_folder_without_cupti),
        cmocka_unit_test(test_library_of_another_age),
        cmocka_unit_test(test_the_real_one),
        cmocka_unit_test(test_codes_of_the_header),
        cmocka_unit_test(test_explain_permission),
        cmocka_unit_test(test_explain_begin),
        cmocka_unit_test(test_explain_with_the_real_names),
        cmocka_unit_test(test_explain_without_cupti),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
