/* Finding functions in the loaded objects of a process, with small objects made for the purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/os/elf.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

static char folder[PATH_MAX];

static void *load(const char *name, const char *source, const char *flags)
{
    char *with_path = NULL;
    assert_true(asprintf(&with_path, "-O0 -L'%s' -Wl,--no-as-needed -Wl,-rpath,'%s' %s", folder, folder, flags) > 0);
    void *handle = dlopen(kp_test_shared_object(folder, name, source, with_path), RTLD_NOW | RTLD_LOCAL);
    free(with_path);
    if (!handle)
        fail_msg("%s", dlerror());
    return handle;
}

static int answer(void *f)
{
    assert_non_null(f);
    return ((int (*)(void))(uintptr_t)f)();
}

static void *symbol(void *handle, const char *name)
{
    void *s = dlsym(handle, name);
    if (!s)
        fail_msg("%s", dlerror());
    return s;
}

/* Two libraries with the same function, each needed by a caller of its own, one of them at second hand. */
static struct {
    void *one, *two, *caller_one, *caller_two, *between, *caller_far, *alone;
} objects;

static int load_objects(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s", kp_test_folder());
    objects.one = load("libkpone.so", "int kp_twin(void) { return 1; } int kp_only_one(void) { return 11; }", "");
    objects.two = load("libkptwo.so", "int kp_twin(void) { return 2; } int kp_only_two(void) { return 22; }", "");
    objects.caller_one = load("libkpcaller1.so", "int kp_caller_one(void) { return 0; }", "-lkpone");
    objects.caller_two = load("libkpcaller2.so", "int kp_caller_two(void) { return 0; }", "-lkptwo");
    objects.between = load("libkpbetween.so", "int kp_between(void) { return 5; }", "-lkptwo");
    objects.caller_far = load("libkpcaller3.so", "int kp_caller_far(void) { return 0; }", "-lkpbetween");
    objects.alone = load("libkpalone.so", "int kp_caller_alone(void) { return 0; } int kp_variable = 1;", "");
    return 0;
}

static int remove_objects(void **state)
{
    (void)state;
    kp_test_remove_folder(folder);
    return 0;
}

/* ---- by name ---- */

static void test_libc(void **state)
{
    static const char *const names[] = {"malloc", "dlsym", "dlvsym", "dlopen", "_exit", "fopen", "getenv"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        void *expected = dlsym(RTLD_DEFAULT, names[i]);
        if (kp_elf_find(NULL, names[i]) != expected)
            fail_msg("%s is not where the linker has it", names[i]);
    }
    assert_non_null(kp_elf_find("libc.so", "getpid"));
    assert_int_equal(answer(kp_elf_find("libc.so.6", "getpid")), answer(dlsym(RTLD_DEFAULT, "getpid")));
    assert_null(kp_elf_find("libc.so", "kp_twin"));
    assert_null(kp_elf_find(NULL, "kp_no_such_function"));
    assert_null(kp_elf_find("libkpnosuch.so", "getpid"));
}

/* The first look-up of all finds the same. */
static void test_bootstrap(void **state)
{
    static const char *const names[] = {"dlsym", "dlvsym", "dlopen", "getpid", "kp_twin", "kp_only_two"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_non_null(kp_elf_bootstrap(names[i]));
        assert_ptr_equal(kp_elf_bootstrap(names[i]), kp_elf_find(NULL, names[i]));
    }
    assert_null(kp_elf_bootstrap("kp_no_such_function"));
    assert_null(kp_elf_bootstrap("kp_variable"));
}

static void test_by_soname(void **state)
{
    (void)state;
    assert_int_equal(answer(kp_elf_find("libkpone.so", "kp_twin")), 1);
    assert_int_equal(answer(kp_elf_find("libkptwo", "kp_twin")), 2); /* how the name begins is enough */
    assert_int_equal(answer(kp_elf_find(NULL, "kp_twin")), 1);       /* load order */
    assert_int_equal(answer(kp_elf_find(NULL, "kp_only_two")), 22);
    assert_null(kp_elf_find("libkpone.so", "kp_only_two"));
}

/* A file whose soname says something else is found by either. */
static void test_file_name_and_soname(void **state)
{
    (void)state;
    void *odd = load("libkpfile.so", "int kp_odd(void) { return 7; }", "-Wl,-soname,libkpsoname.so.3");
    assert_int_equal(answer(kp_elf_find("libkpfile.so", "kp_odd")), 7);
    assert_int_equal(answer(kp_elf_find("libkpsoname.so", "kp_odd")), 7);
    dlclose(odd);
    assert_null(kp_elf_find("libkpfile.so", "kp_odd"));
}

/* This test is "this library" here: what it puts in front of libc's function is not found. */
__attribute__((visibility("default"))) long a64l(const char *text)
{
    (void)text;
    return -1;
}

static void test_itself_is_not_searched(void **state)
{
    void *own = (void *)(uintptr_t)a64l, *found = kp_elf_find(NULL, "a64l");
    (void)state;
    assert_non_null(found);
    assert_ptr_not_equal(found, own);
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "a64l"), own); /* which is what the linker would find */
    assert_ptr_equal(kp_elf_bootstrap("a64l"), found);
    assert_ptr_equal(kp_elf_find_for(symbol(objects.alone, "kp_caller_alone"), "a64l"), found);
    assert_true(kp_elf_is_own(own));
    assert_false(kp_elf_is_own(found));
    assert_false(kp_elf_is_own(symbol(objects.one, "kp_twin")));
}

static void test_variables_are_no_functions(void **state)
{
    (void)state;
    assert_null(kp_elf_find("libkpalone.so", "kp_variable"));
    assert_null(kp_elf_find("libkpcaller1.so", "kp_twin")); /* needed, not defined */
}

/* Of several versions the one that a new program would bind to, as dlsym gives it. */
static void test_versions(void **state)
{
    char *script = NULL, *flags = NULL;
    (void)state;
    assert_true(asprintf(&script, "%s/versions.map", folder) > 0);
    assert_true(asprintf(&flags, "-Wl,--version-script='%s'", script) > 0);
    kp_test_write(script, "V1 { global: kp_versioned; local: *; };\nV2 { global: kp_versioned; } V1;\n");
    void *versioned = load("libkpversions.so",
                           "__attribute__((used)) int old_one(void) { return 1; }\n"
                           "__attribute__((used)) int new_one(void) { return 2; }\n"
                           "__asm__(\".symver old_one, kp_versioned@V1\");\n"
                           "__asm__(\".symver new_one, kp_versioned@@V2\");\n",
                           flags);
    assert_int_equal(answer(dlvsym(versioned, "kp_versioned", "V1")), 1);
    assert_int_equal(answer(kp_elf_find("libkpversions.so", "kp_versioned")), 2);
    dlclose(versioned);
    free(script);
    free(flags);
}

/* Tables of either kind. */
static void test_hash_styles(void **state)
{
    static const struct {
        const char *name, *flag;
    } styles[] = {{"libkpsysv.so", "-Wl,--hash-style=sysv"}, {"libkpgnu.so", "-Wl,--hash-style=gnu"}};
    char source[16384] = "", name[32], last[32];
    (void)state;
    for (int i = 0; i < 200; i++)
        sprintf(source + strlen(source), "int kp_many_%d(void) { return %d; }\n", i, i);
    for (size_t s = 0; s < sizeof(styles) / sizeof(*styles); s++) {
        void *many = load(styles[s].name, source, styles[s].flag);
        for (int i = 0; i < 200; i++) {
            snprintf(name, sizeof(name), "kp_many_%d", i);
            assert_int_equal(answer(kp_elf_find(styles[s].name, name)), i);
            snprintf(last, sizeof(last), "kp_many_%d_", i);
            assert_null(kp_elf_find(styles[s].name, last));
        }
        dlclose(many);
    }
}

/* ---- for a caller ---- */

static void test_for_a_caller(void **state)
{
    (void)state;
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.caller_one, "kp_caller_one"), "kp_twin")), 1);
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.caller_two, "kp_caller_two"), "kp_twin")), 2);
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.caller_far, "kp_caller_far"), "kp_twin")), 2);
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.caller_far, "kp_caller_far"), "kp_between")), 5);
}

/* What a caller does not need, and a caller in no object, finds the first of all. */
static void test_for_a_caller_that_needs_none(void **state)
{
    int here;
    (void)state;
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.alone, "kp_caller_alone"), "kp_twin")), 1);
    assert_int_equal(answer(kp_elf_find_for(symbol(objects.caller_one, "kp_caller_one"), "kp_only_two")), 22);
    assert_int_equal(answer(kp_elf_find_for(&here, "kp_twin")), 1);
    assert_int_equal(answer(kp_elf_find_for((void *)(uintptr_t)test_libc, "kp_twin")), 1);
    assert_null(kp_elf_find_for(symbol(objects.caller_one, "kp_caller_one"), "kp_no_such_function"));
}

/* ---- folders ---- */

static void test_folders(void **state)
{
    char dir[PATH_MAX] = "", tight[4];
    (void)state;
    assert_true(kp_elf_directory_of(symbol(objects.two, "kp_twin"), dir, sizeof(dir)));
    assert_string_equal(dir, folder);
    dir[0] = '\0';
    assert_true(kp_elf_directory("libkpalone", dir, sizeof(dir)));
    assert_string_equal(dir, folder);
    assert_false(kp_elf_directory("libkpnosuch", dir, sizeof(dir)));
    assert_false(kp_elf_directory_of(dir, tight, sizeof(tight)));
    assert_false(kp_elf_directory_of(symbol(objects.two, "kp_twin"), tight, sizeof(tight)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libc),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_by_soname),
        cmocka_unit_test(test_file_name_and_soname),
        cmocka_unit_test(test_itself_is_not_searched),
        cmocka_unit_test(test_variables_are_no_functions),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_hash_styles),
        cmocka_unit_test(test_for_a_caller),
        cmocka_unit_test(test_for_a_caller_that_needs_none),
        cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests(tests, load_objects, remove_objects);
}
