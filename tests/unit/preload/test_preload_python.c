/* The walk of Python's frames, over an interpreter made of plain memory; real ones are tests/e2e/python.sh's. Each test
 * runs in a process of its own, as a process has one interpreter, looked for once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/os/symbols.h"
#include "preload/who/python.h"
#include "tests/support/end_support.h"

enum { KP_NONE = -1, OWNED_BY_C_STACK = 3 };

/* A row of the table, with the form of its line table by name. */
static const struct row {
    int minor;
    const char *lines;
    int top, cframe, code, back, at, owner, first, name, file, table, start, ascii, compact;
} rows[] = {
#define KP_PYTHON(minor, lines, ...) {minor, #lines, __VA_ARGS__},
#include "preload/who/python.def"
#undef KP_PYTHON
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* --- an interpreter --- */

/* The part of each object that the walk reads. */
struct object {
    _Alignas(8) char bytes[512];
};

static struct {
    const struct row *row;
    const char *version;
    struct object state, cframe, frame[4], code, name, file, table;
    struct object code_type, text_type, other_type;
    bool debug, ending, none;
    int looks;
} fake;

static void put_pointer(struct object *o, int offset, const void *p)
{
    memcpy(o->bytes + offset, &p, sizeof(p));
}

static void put_number(struct object *o, int offset, size_t n)
{
    memcpy(o->bytes + offset, &n, sizeof(n));
}

static void put_int(struct object *o, int offset, int32_t v)
{
    memcpy(o->bytes + offset, &v, sizeof(v));
}

static const char *fake_version(void)
{
    return fake.version;
}

static void *fake_state(void)
{
    return &fake.state;
}

static int fake_ending(void)
{
    return fake.ending;
}

static void *fake_dlsym(void *handle, const char *name)
{
    (void)handle;
    fake.looks++;
    if (fake.none)
        return NULL;
    if (!strcmp(name, "PyGILState_GetThisThreadState"))
        return (void *)(uintptr_t)fake_state;
    if (!strcmp(name, "Py_GetVersion"))
        return (void *)(uintptr_t)fake_version;
    if (!strcmp(name, "_Py_IsFinalizing"))
        return (void *)(uintptr_t)fake_ending;
    if (!strcmp(name, "PyCode_Type"))
        return &fake.code_type;
    if (!strcmp(name, "PyUnicode_Type"))
        return &fake.text_type;
    return !strcmp(name, "_Py_NegativeRefcount") && fake.debug ? &fake : NULL;
}

enum {
    ASCII = 1 << 6 | 1 << 5 | 1 << 2,
    ONE_BYTE = 1 << 5 | 1 << 2,
    TWO_BYTES = 1 << 5 | 2 << 2,
    FOUR_BYTES = 1 << 5 | 4 << 2
};

static void put_text(struct object *o, int state, const void *data, size_t length, size_t size)
{
    put_pointer(o, 8, &fake.text_type);
    put_number(o, 16, length);
    put_int(o, 32, state);
    memcpy(o->bytes + ((state & ASCII) == ASCII ? fake.row->ascii : fake.row->compact), data, size);
}

static void put_table(const void *data, size_t size)
{
    put_number(&fake.table, 16, size);
    memcpy(fake.table.bytes + 32, data, size);
}

/* The place that a frame is in: an index, or the address of the instruction. */
static void put_place(int frame, int place)
{
    const struct row *r = fake.row;
    if (r->start == KP_NONE)
        put_int(&fake.frame[frame], r->at, place);
    else
        put_pointer(&fake.frame[frame], r->at, fake.code.bytes + r->start + 2 * place);
}

static void link_frame(int frame, struct object *code, const struct object *back)
{
    put_pointer(&fake.frame[frame], fake.row->code, code);
    put_pointer(&fake.frame[frame], fake.row->back, back);
    put_place(frame, 0);
}

/* Three calls of the function "f" of "/f.py", which begins at line 10 and has no line table yet. */
static void make(const struct row *r)
{
    memset(&fake, 0, sizeof(fake));
    static char version[32];
    snprintf(version, sizeof(version), "3.%d.1 (main)", r->minor);
    fake.row = r;
    fake.version = version;
    if (r->cframe == KP_NONE) {
        put_pointer(&fake.state, r->top, &fake.frame[0]);
    } else {
        put_pointer(&fake.state, r->top, &fake.cframe);
        put_pointer(&fake.cframe, r->cframe, &fake.frame[0]);
    }
    for (int i = 0; i < 3; i++)
        link_frame(i, &fake.code, i < 2 ? &fake.frame[i + 1] : NULL);
    put_pointer(&fake.code, 8, &fake.code_type);
    put_int(&fake.code, r->first, 10);
    put_pointer(&fake.code, r->name, &fake.name);
    put_pointer(&fake.code, r->file, &fake.file);
    put_pointer(&fake.code, r->table, &fake.table);
    put_text(&fake.name, ASCII, "f", 1, 1);
    put_text(&fake.file, ASCII, "/f.py", 5, 5);
    kp_real_dlsym = fake_dlsym;
}

/* --- a process a test --- */

static void run_row(void (*test)(void), const struct row *r)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(10);
        make(r);
        test();
        kp_test_end(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status)
        fail_msg("3.%d: the test ended with %#x", r->minor, status);
}

static void run_all(void **test)
{
    for (int i = 0; i < ROWS; i++)
        run_row((void (*)(void))(uintptr_t)*test, &rows[i]);
}

/* In the child, where cmocka's own would go on with the parent's tests. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: 3.%d: %s\n", __FILE__, __LINE__, fake.row->minor, #condition);                              \
            fflush(stdout);                                                                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static struct kp_python_frame frames[KP_PYTHON_FRAMES];

static size_t walk(void)
{
    return kp_python_frames(frames, KP_PYTHON_FRAMES);
}

static bool described(const struct kp_python_frame *f, const char *function, const char *file)
{
    char *got_function, *got_file;
    if (kp_python_describe(f, &got_function, &got_file))
        return false;
    bool same = !strcmp(got_function, function) && !strcmp(got_file, file);
    free(got_function);
    free(got_file);
    return same;
}

/* --- the tests --- */

static void frames_are_found(void)
{
    put_place(0, -1);
    CHECK(walk() == 3);
    CHECK(frames[0].code == &fake.code && frames[0].line == 10);
    CHECK(described(&frames[0], "f", "/f.py"));
    CHECK(kp_python_frames(frames, 2) == 2);
    CHECK(!kp_python_why_not());
}

/* Frames of the interpreter's own, of what is no code, of a chain with a ring in it, and none at all. */
static void odd_chains_are_survived(void)
{
    const struct row *r = fake.row;
    static struct object none;
    put_pointer(&none, 8, &fake.other_type);
    link_frame(0, &none, &fake.frame[1]);
    CHECK(walk() == 2);
    link_frame(0, NULL, &fake.frame[1]);
    CHECK(walk() == 2);
    link_frame(0, &fake.code, &fake.frame[1]);
    if (r->owner != KP_NONE) {
        fake.frame[1].bytes[r->owner] = OWNED_BY_C_STACK;
        CHECK(walk() == 2);
        fake.frame[1].bytes[r->owner] = 0;
    }
    link_frame(2, &fake.code, &fake.frame[2]);
    CHECK(walk() == KP_PYTHON_FRAMES);
    link_frame(2, &none, &fake.frame[2]);
    CHECK(walk() == 2);
    put_pointer(&fake.state, r->top, NULL);
    CHECK(walk() == 0);
}

static void an_ending_interpreter_is_left_alone(void)
{
    CHECK(walk() == 3);
    fake.ending = true;
    CHECK(walk() == 0);
    CHECK(!kp_python_why_not());
}

static void lines_are_read(void)
{
    /* Lines 10, 12, 11, of places 0 to 1, 2 to 3, 4 to 5; the last form has also a long entry and one of no line. */
    static const uint8_t lnotab[] = {2, 2, 2, (uint8_t)-1};
    static const uint8_t linetable[] = {4, 0, 4, 2, 4, (uint8_t)-1, 4, (uint8_t)-128};
    static const uint8_t locations[] = {
        0x80 | 10 << 3 | 1, 0, 0, 0x80 | 12 << 3 | 1, 0, 0, 0x80 | 14 << 3 | 1, 3, 0, 0, 0, 0x80 | 15 << 3 | 1};
    bool last_has_no_line = strcmp(fake.row->lines, "lnotab");
    if (!strcmp(fake.row->lines, "lnotab"))
        put_table(lnotab, sizeof(lnotab));
    else if (!strcmp(fake.row->lines, "linetable"))
        put_table(linetable, sizeof(linetable));
    else
        put_table(locations, sizeof(locations));
    static const uint32_t want[] = {10, 10, 12, 12, 11, 11};
    for (int again = 0; again < 2; again++)
        for (int place = 0; place < 6; place++) {
            put_place(0, place);
            CHECK(walk() == 3 && frames[0].line == want[place]);
        }
    put_place(0, 6);
    CHECK(walk() == 3 && frames[0].line == (last_has_no_line ? 0 : 11));
    put_place(0, 100); /* past the end of the table */
    CHECK(walk() == 3 && frames[0].line == (last_has_no_line ? 0 : 11));
}

/* Other code at the address of code that has gone is not taken for it. */
static void recycled_code_is_read_anew(void)
{
    if (strcmp(fake.row->lines, "locations"))
        return;
    for (int i = 0; i < 40; i++) {
        uint8_t table[] = {0x80 | 13 << 3 | 7, (uint8_t)(2 * (i % 20)), 0x80 | 7};
        put_table(table, sizeof(table));
        CHECK(walk() == 3 && frames[0].line == 10 + (uint32_t)(i % 20));
    }
    put_int(&fake.code, fake.row->first, 500);
    CHECK(walk() == 3 && frames[0].line == 519);
    put_number(&fake.table, 16, 1);
    CHECK(walk() == 3 && frames[0].line == 500);
}

/* Numbers of several bytes, and one that the table cuts off. */
static void long_steps_are_read(void)
{
    static const uint8_t steps[] = {0x80 | 13 << 3, 64 | (2 * 1000 & 63),      64 | (2 * 1000 >> 6 & 63), 0,
                                    0x80 | 13 << 3, 64 | ((2 * 1005 | 1) & 63)};
    if (strcmp(fake.row->lines, "locations"))
        return;
    put_table(steps, sizeof(steps));
    CHECK(walk() == 3 && frames[0].line == 1010);
    put_place(0, 1);
    CHECK(walk() == 3); /* some line, and nothing read past the end */
}

static void impossible_tables_are_not_read(void)
{
    put_number(&fake.table, 16, SIZE_MAX);
    CHECK(walk() == 3 && frames[0].line == 0);
    put_number(&fake.table, 16, (size_t)1 << 40);
    CHECK(walk() == 3 && frames[0].line == 0);
    put_pointer(&fake.code, fake.row->table, NULL);
    CHECK(walk() == 3 && frames[0].line == 0);
}

static void texts_become_utf8(void)
{
    static const uint16_t two[] = {0x3bb, 'x', 0x4e2d, 0xdcff};
    static const uint32_t four[] = {0x1f600, 'y'};
    CHECK(walk() == 3);
    put_text(&fake.name, ONE_BYTE, "\xe9t\xe9", 3, 3);
    put_text(&fake.file, TWO_BYTES, two, 4, sizeof(two));
    CHECK(described(&frames[0], "\xc3\xa9t\xc3\xa9", "\xce\xbbx\xe4\xb8\xad\xef\xbf\xbd"));
    put_text(&fake.file, FOUR_BYTES, four, 2, sizeof(four));
    CHECK(described(&frames[0], "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x98\x80y"));
}

static void what_is_no_text_is_empty(void)
{
    CHECK(walk() == 3);
    put_text(&fake.name, ASCII & ~(1 << 5), "f", 1, 1); /* not compact */
    put_text(&fake.file, 1 << 5 | 3 << 2, "f", 1, 1);   /* three bytes a character */
    CHECK(described(&frames[0], "", ""));
    put_text(&fake.name, ASCII, "f", SIZE_MAX, 1);
    put_pointer(&fake.file, 8, &fake.other_type);
    CHECK(described(&frames[0], "", ""));
    put_pointer(&fake.code, fake.row->name, NULL);
    CHECK(described(&frames[0], "", ""));
    put_pointer(&fake.code, 8, &fake.other_type);
    CHECK(described(&frames[0], "", ""));
}

static bool refused(const char *version, const char *word)
{
    fake.version = version;
    return walk() == 0 && kp_python_why_not() && strstr(kp_python_why_not(), word);
}

static void unknown_version(void)
{
    CHECK(refused("3.99.1 (main)", "version"));
}

static void next_major_version(void)
{
    char version[32];
    snprintf(version, sizeof(version), "4.%d.1 (main)", fake.row->minor);
    CHECK(refused(version, "version"));
}

static void beta_version(void)
{
    char version[32];
    snprintf(version, sizeof(version), "3.%d.0b1 (main)", fake.row->minor);
    CHECK(refused(version, "version"));
}

static void release_candidate(void)
{
    char version[32];
    snprintf(version, sizeof(version), "3.%d.0rc2 (main)", fake.row->minor);
    fake.version = version;
    CHECK(walk() == 3);
}

static void no_version(void)
{
    CHECK(refused("PyPy", "version"));
}

static void free_threaded_build(void)
{
    char version[64];
    snprintf(version, sizeof(version), "3.%d.0 experimental free-threading build (main)", fake.row->minor);
    CHECK(refused(version, "free-threaded"));
}

static void debug_build(void)
{
    fake.debug = true;
    CHECK(refused(fake.version, "debug"));
    CHECK(described(&(struct kp_python_frame){.code = &fake.code}, "", ""));
}

/* Without Python the walk looks ever more seldom, and sees one that is loaded late. */
static void python_may_come_late(void)
{
    fake.none = true;
    CHECK(walk() == 0 && !kp_python_why_not() && fake.looks > 0);
    int a_look = fake.looks;
    for (int i = 1; i < 1000; i++)
        CHECK(walk() == 0);
    CHECK(fake.looks <= 10 * a_look);
    fake.none = false;
    size_t n = 0;
    for (int i = 0; i < 1000 && !n; i++)
        n = walk();
    CHECK(n == 3);
}

static void before_the_symbols_are_known(void)
{
    kp_real_dlsym = NULL;
    CHECK(walk() == 0);
    kp_real_dlsym = fake_dlsym;
    CHECK(walk() == 3);
}

#define ROW_TEST(f)                                                                                                    \
    {                                                                                                                  \
#f, run_all, NULL, NULL, (void *)(uintptr_t)(f)                                                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW_TEST(frames_are_found),
        ROW_TEST(odd_chains_are_survived),
        ROW_TEST(an_ending_interpreter_is_left_alone),
        ROW_TEST(lines_are_read),
        ROW_TEST(recycled_code_is_read_anew),
        ROW_TEST(long_steps_are_read),
        ROW_TEST(impossible_tables_are_not_read),
        ROW_TEST(texts_become_utf8),
        ROW_TEST(what_is_no_text_is_empty),
        ROW_TEST(unknown_version),
        ROW_TEST(next_major_version),
        ROW_TEST(beta_version),
        ROW_TEST(release_candidate),
        ROW_TEST(no_version),
        ROW_TEST(free_threaded_build),
        ROW_TEST(debug_build),
        ROW_TEST(python_may_come_late),
        ROW_TEST(before_the_symbols_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
