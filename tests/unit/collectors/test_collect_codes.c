/* The functions of a process: an id each, read from their modules' images once, with texts where these are wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/code/codes.h"
#include "base/text.h"
#include "report/define/source.h"
#include "tests/support/code_support.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* CRCs of modules: one image under two, then none that can be read. */
enum { FIRST = 7, SECOND = 8, BROKEN = 9, NONE = 10 };

static struct {
    uint8_t image[2 << 20]; /* that of tests/data/inline.cu */
    size_t size;
    atomic_uint asked;
    struct kp_codes *codes;
    char folder[PATH_MAX / 2], before[PATH_MAX], path[4096];
} t;

static const void *cubin(uint32_t crc, size_t *size)
{
    static const char broken[] = "no ELF image";
    t.asked++;
    *size = crc == BROKEN ? sizeof(broken) : crc == NONE ? 0 : t.size;
    return crc == BROKEN ? (const void *)broken : crc == NONE ? NULL : t.image;
}

static int set_up(void **state)
{
    FILE *f = fopen(kp_test_source("tests/data/inline.sm90-cuda13.cubin"), "re");
    (void)state;
    if (!f)
        return -1;
    t.size = fread(t.image, 1, sizeof(t.image), f);
    fclose(f);
    t.asked = 0;
    t.codes = kp_codes_new(cubin, false);
    return t.codes ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    kp_codes_free(t.codes);
    return 0;
}

static void test_ids(void **state)
{
    (void)state;
    assert_int_equal(kp_codes_count(t.codes), 0);
    assert_int_equal(kp_codes_id(t.codes, FIRST, "nested"), 1);
    assert_int_equal(kp_codes_id(t.codes, FIRST, "calling"), 2);
    assert_int_equal(kp_codes_id(t.codes, SECOND, "nested"), 3);
    assert_int_equal(kp_codes_id(t.codes, FIRST, "nested"), 1);
    assert_int_equal(kp_codes_id(t.codes, SECOND, "nested"), 3);
    assert_int_equal(kp_codes_count(t.codes), 3);
    assert_int_equal(t.asked, 0); /* launches wait for it */
    kp_codes_free(NULL);
}

static void test_code(void **state)
{
    (void)state;
    uint64_t id = kp_codes_id(t.codes, FIRST, "nested");
    const struct kp_code *code = kp_codes_get(t.codes, id);
    assert_non_null(code);
    assert_int_equal(t.asked, 1);
    assert_true(code->id == id && code->crc == FIRST);
    assert_string_equal(code->function, "nested");
    assert_int_equal(code->n_instructions, 512 / 16);
    assert_true(code->n_locations > 0 && code->n_files > 0);
    assert_string_equal(code->files[code->locations[0].file].path, "/src/inline.cu");
    assert_ptr_equal(kp_codes_get(t.codes, id), code);
    assert_int_equal(t.asked, 1);
    assert_int_equal(kp_codes_id(t.codes, FIRST, "nested"), id); /* it goes by the same name */
    assert_null(kp_codes_get(t.codes, 0));
    assert_null(kp_codes_get(t.codes, id + 1));
}

static void test_code_without_an_image(void **state)
{
    static const struct {
        uint32_t crc;
        const char *function;
    } rows[] = {{NONE, "nested"}, {BROKEN, "nested"}, {FIRST, "no_such_function"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t id = kp_codes_id(t.codes, rows[i].crc, rows[i].function);
        const struct kp_code *code = kp_codes_get(t.codes, id);
        assert_non_null(code);
        assert_string_equal(code->function, rows[i].function);
        assert_true(code->id == id && code->crc == rows[i].crc);
        assert_int_equal(code->n_instructions + code->n_locations + code->n_files, 0);
        assert_ptr_equal(kp_codes_get(t.codes, id), code);
        assert_int_equal(t.asked, i + 1); /* not tried again */
    }
}

/* More than the tables begin with; what was handed out stays where it is. */
static void test_many(void **state)
{
    enum { MANY = 3000, MODULES = 3 };
    char name[32];
    (void)state;
    uint64_t first = kp_codes_id(t.codes, FIRST, "nested");
    const struct kp_code *kept = kp_codes_get(t.codes, first);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MANY; i++) {
            snprintf(name, sizeof(name), "function_%u", i / MODULES);
            assert_int_equal(kp_codes_id(t.codes, 100 + i % MODULES, name), i + 2);
        }
    assert_int_equal(kp_codes_count(t.codes), MANY + 1);
    assert_ptr_equal(kp_codes_get(t.codes, first), kept);
    assert_string_equal(kept->function, "nested");
    const struct kp_code *last = kp_codes_get(t.codes, MANY + 1);
    assert_string_equal(last->function, name);
    assert_int_equal(last->crc, 100 + (MANY - 1) % MODULES);
}

/* ---- threads ---- */

enum { THREADS = 8, NAMES = 1000 };

static uint64_t ids[THREADS][NAMES];

static void *ask(void *arg)
{
    uint64_t *own = arg;
    size_t from = (size_t)(own - ids[0]) / NAMES * (NAMES / THREADS);
    char name[32];
    for (size_t k = 0; k < NAMES; k++) {
        size_t i = (from + k) % NAMES;
        snprintf(name, sizeof(name), "function_%zu", i);
        own[i] = kp_codes_id(t.codes, FIRST, name);
        kp_codes_get(t.codes, own[i]);
        kp_codes_get(t.codes, kp_codes_count(t.codes));
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    char name[32];
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, ids[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(kp_codes_count(t.codes), NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "function_%zu", i);
        for (size_t k = 0; k < THREADS; k++)
            assert_int_equal(ids[k][i], ids[0][i]);
        assert_string_equal(kp_codes_get(t.codes, ids[0][i])->function, name);
    }
    assert_int_equal(t.asked, NAMES); /* each image once */
}

/* ---- texts ---- */

/* An image whose source file is there, and a disassembler that notes each of its runs. */
static int set_up_texts(void **state)
{
    static const char tool[] = "#!/bin/sh\n"
                               "echo run >>\"${0%/*}/runs\"\n"
                               "printf '\\t.section\\t.text.nested,\"ax\",@progbits\\n"
                               "        /*0000*/                   LDC R1, c[0x0][0x28] ;\\n"
                               "\\t.section\\t.text.calling,\"ax\",@progbits\\n"
                               "        /*0000*/                   S2R R0, SR_TID.X ;\\n'\n";
    char file[PATH_MAX];
    if (set_up(state))
        return -1;
    kp_codes_free(t.codes);
    t.codes = kp_codes_new(cubin, true);
    snprintf(t.folder, sizeof(t.folder), "%s", kp_test_folder());
    snprintf(t.path, sizeof(t.path), "%s", getenv("PATH"));
    for (uint8_t *at = t.image; (at = memmem(at, t.size - (size_t)(at - t.image), "/src", 5));)
        memcpy(at, "./s1", 4);
    snprintf(file, sizeof(file), "%s/nvdisasm", t.folder);
    kp_test_write(file, tool);
    if (chmod(file, 0700) || !getcwd(t.before, sizeof(t.before)) || chdir(t.folder) || mkdir("s1", 0700))
        return -1;
    kp_test_write("s1/inline.cu", "the source\n");
    char paths[sizeof(t.folder) + sizeof(t.path)];
    snprintf(paths, sizeof(paths), "%s:%s", t.folder, t.path);
    return setenv("PATH", paths, 1);
}

static int tear_down_texts(void **state)
{
    setenv("PATH", t.path, 1);
    unlink("s1/inline.cu");
    rmdir("s1");
    int rc = chdir(t.before);
    kp_test_remove_folder(t.folder);
    return rc || tear_down(state);
}

static size_t runs(void)
{
    char *text = access("runs", R_OK) ? kp_strdup("") : kp_test_read("runs");
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "run")); at++)
        n++;
    free(text);
    return n;
}

static void check_texts(uint64_t id, const char *first_instruction, bool embedded)
{
    const struct kp_code *code = kp_codes_get(t.codes, id);
    bool found = false;
    const char *ptx = kp_code_ptx(code, code->instructions[0].ptx);
    assert_int_equal(ptx != NULL, embedded);
    if (ptx && strcmp(code->function, "$calling$called"))
        assert_string_equal(ptx, "{"); /* where its code begins */
    assert_string_equal(code->instructions[0].text, first_instruction);
    for (size_t i = 0; i < code->n_files; i++) {
        bool is_source = !strcmp(kp_base_name(code->files[i].path), "inline.cu");
        found |= is_source;
        if (is_source && embedded)
            assert_string_equal(code->files[i].text, "the source\n");
        else
            assert_null(code->files[i].text);
    }
    assert_true(found);
}

/* Of the ids that are asked for, each module with one run of the disassembler. */
static void test_prepare(void **state)
{
    (void)state;
    uint64_t first = kp_codes_id(t.codes, FIRST, "nested");
    kp_codes_id(t.codes, SECOND, "nested");
    kp_codes_id(t.codes, NONE, "nested");
    kp_codes_id(t.codes, FIRST, "calling");
    uint64_t last = kp_codes_id(t.codes, FIRST, "$calling$called");
    kp_codes_prepare(t.codes, first, first);
    assert_int_equal(runs(), 0);
    kp_codes_prepare(t.codes, first, last);
    assert_int_equal(runs(), 2);
    check_texts(first, "LDC R1, c[0x0][0x28]", true);
    check_texts(first + 1, "LDC R1, c[0x0][0x28]", true);
    check_texts(first + 3, "S2R R0, SR_TID.X", true);
    check_texts(last, "", false);
    assert_int_equal(kp_codes_get(t.codes, first + 2)->n_instructions, 0);
    kp_codes_prepare(t.codes, last, last + 1);
    assert_int_equal(runs(), 3);
    check_texts(last, "", true);
    kp_codes_prepare(t.codes, last + 1, last + 10); /* there is none */
    assert_int_equal(runs(), 3);
}

/* 1 MiB of PTX for each of many functions, of which 64 MiB are kept. */
static void test_much_ptx(void **state)
{
    enum { MOST = 64, MORE = 3, LONG = (1 << 20) - 200 };
    static char text[1 << 20];
    size_t size = 43; /* the function begins in line 44 */
    (void)state;
    setenv("PATH", t.path, 1);
    size += (size_t)sprintf(text + size, ".entry nested() {") + 1;
    memset(text + size, '/', LONG);
    size += LONG + 1;
    memset(text + size, 0, 44);
    size += 44 + (size_t)sprintf(text + size + 44, "}") + 1; /* it ends in line 90 */
    kp_test_set_ptx(t.image, &t.size, text, size);
    for (uint32_t i = 0; i < MOST + MORE; i++)
        assert_int_equal(kp_codes_id(t.codes, 100 + i, "nested"), i + 1);
    kp_codes_prepare(t.codes, 1, MOST + MORE + 1);
    size_t with = 0;
    for (uint32_t i = 0; i < MOST + MORE; i++)
        with += kp_codes_get(t.codes, i + 1)->n_ptx > 0;
    assert_int_equal(with, MOST + 1); /* the last one goes beyond the limit */
}

static void test_prepare_nothing(void **state)
{
    (void)state;
    kp_codes_free(t.codes);
    t.codes = kp_codes_new(cubin, false);
    uint64_t id = kp_codes_id(t.codes, FIRST, "nested");
    kp_codes_prepare(t.codes, id, id + 1);
    assert_int_equal(t.asked + runs(), 0);
    check_texts(id, "", false);
}

/* Copies, texts and all, that outlive what they are of. */
static void test_lookup(void **state)
{
    struct kp_code copy, no_image, again;
    struct kp_stack stack;
    (void)state;
    uint64_t id = kp_codes_id(t.codes, FIRST, "nested"), other = kp_codes_id(t.codes, NONE, "nothing");
    kp_codes_prepare(t.codes, id, id + 1);
    struct kp_lookup l = kp_codes_lookup(t.codes);
    assert_int_equal(kp_lookup_code(&l, id, &copy), 0);
    assert_int_equal(kp_lookup_code(&l, id, &again), 0);
    assert_int_equal(kp_lookup_code(&l, other, &no_image), 0);
    kp_test_same_code(&copy, kp_codes_get(t.codes, id));
    kp_test_same_code(&no_image, kp_codes_get(t.codes, other));
    assert_int_equal(kp_lookup_stack(&l, 1, &stack), -ENOENT);
    assert_int_equal(l.code(l.arg, 0, &(struct kp_code){0}), -ENOENT);
    assert_int_equal(kp_lookup_code(&l, other + 1, &(struct kp_code){0}), -ENOENT);
    kp_codes_free(t.codes);
    t.codes = NULL;
    assert_string_equal(copy.instructions[0].text, "LDC R1, c[0x0][0x28]");
    kp_test_same_code(&copy, &again);
    kp_code_free(&copy);
    kp_code_free(&again);
    kp_code_free(&no_image);
}

#define ON_IMAGE(test)   cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define WITH_TEXTS(test) cmocka_unit_test_setup_teardown(test, set_up_texts, tear_down_texts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_IMAGE(test_ids),
        ON_IMAGE(test_code),
        ON_IMAGE(test_code_without_an_image),
        ON_IMAGE(test_many),
        ON_IMAGE(test_threads),
        WITH_TEXTS(test_prepare),
        WITH_TEXTS(test_prepare_nothing),
        WITH_TEXTS(test_much_ptx),
        WITH_TEXTS(test_lookup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
