#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prototext.h"

/* The fields as name=kind:text, messages in braces. */
static void print(FILE *f, const struct kp_field *message)
{
    for (const struct kp_field *c = message->first; c; c = c->next) {
        fprintf(f, "%s%s=", c == message->first ? "" : " ", c->name);
        if (c->kind == KP_FIELD_MESSAGE) {
            fputc('{', f);
            print(f, c);
            fputc('}', f);
        } else {
            fprintf(f, "%c:%s", "msnw"[c->kind], c -> text);
        }
    }
}

static void assert_reads(const char *text, const char *expected)
{
    struct kp_arena a = {0};
    const struct kp_field *root;
    char *err, *printed = NULL;
    size_t size;
    int rc = kp_prototext_parse(&a, text, &root, &err);
    if (rc)
        fail_msg("%s: %s", text, err ? err : "(no message)");
    FILE *f = open_memstream(&printed, &size);
    print(f, root);
    fclose(f);
    assert_string_equal(printed, expected);
    free(printed);
    kp_arena_free(&a);
}

static void fields(void **state)
{
    (void)state;
    assert_reads("", "");
    assert_reads(" # nothing but a comment", "");
    assert_reads("A: 1 B: 2", "A=n:1 B=n:2");
    assert_reads("A:1,B:2;C:x", "A=n:1 B=n:2 C=w:x");
    assert_reads("A {}", "A={}");
    assert_reads("A: { B: 1 }", "A={B=n:1}");
    assert_reads("A < B: 1 C { D: two } > E: 3", "A={B=n:1 C={D=w:two}} E=n:3");
    assert_reads("A{B{C:1}}A{}", "A={B={C=n:1}} A={}");
    assert_reads("A:[1, 2,x]", "A=n:1 A=n:2 A=w:x");
    assert_reads("A: [] B: 1", "B=n:1");
    assert_reads("A [{B:1}, <C:2>]", "A={B=n:1} A={C=n:2}");
    assert_reads("[a.b.ext]: 1 [x.com/T] { y: 2 }", "[a.b.ext]=n:1 [x.com/T]={y=n:2}");
    assert_reads("A # one\n: # two\n1 # three\n# four\nB: 2", "A=n:1 B=n:2");
    assert_reads("A:\r\n\t1\v\f", "A=n:1");
    assert_reads("# no line end", "");
}

static void numbers_and_words(void **state)
{
    (void)state;
    assert_reads("A: -1 B: - 2 C: -\n# x\n3", "A=n:-1 B=n:-2 C=n:-3");
    assert_reads("A: 0x1F B: 017 C: 1.5 D: 1. E: .5 F: 1e9 G: 2.5E-3 H: 10f I: 1.5F",
                 "A=n:0x1F B=n:017 C=n:1.5 D=n:1. E=n:.5 F=n:1e9 G=n:2.5E-3 H=n:10f I=n:1.5F");
    assert_reads("A: true B: -inf C: CC_90 D: _x1", "A=w:true B=w:-inf C=w:CC_90 D=w:_x1");
    assert_reads("A: 10[b]: 2", "A=n:10 [b]=n:2");
}

static void strings(void **state)
{
    (void)state;
    assert_reads("A: \"x y\" B: 'it is \"so\"'", "A=s:x y B=s:it is \"so\"");
    assert_reads("A: \"one \" 'two' \n # between\n \"three\"\"\" B: ''", "A=s:one twothree B=s:");
    assert_reads("A: \"# no comment\"", "A=s:# no comment");
    assert_reads("A: '\\a\\b\\f\\n\\r\\t\\v\\?\\\\\\'\\\"'", "A=s:\a\b\f\n\r\t\v?\\'\"");
    assert_reads("A: '\\101\\1012\\7x\\x41\\x4\\x41g'", "A=s:AA2\7xA\4Ag");
    assert_reads("A: '\\u00e9\\u20AC\\U0001F600'", "A=s:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_reads("A: ['x' 'y', \"z\"]", "A=s:xy A=s:z");
    assert_reads("A: '\xc3\xa4\x80'", "A=s:\xc3\xa4\x80"); /* bytes are not looked into */
}

static void positions(void **state)
{
    struct kp_arena a = {0};
    const struct kp_field *root;
    char *err;
    (void)state;
    assert_int_equal(kp_prototext_parse(&a, "A: 1 B: 'x\\n'\n\n\tC {\n  D: 2 }", &root, &err), 0);
    assert_int_equal(root->line, 1);
    assert_int_equal(root->column, 1);
    const struct kp_field *b = root->first->next, *c = b->next, *d = c->first;
    assert_int_equal(b->line, 1);
    assert_int_equal(b->column, 6);
    assert_int_equal(c->line, 3);
    assert_int_equal(c->column, 2);
    assert_int_equal(d->line, 4);
    assert_int_equal(d->column, 3);
    assert_null(d->first);
    assert_string_equal(c->text, "");
    kp_arena_free(&a);
}

static void errors(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"A", "1:2: ':' or '{' expected"},
        {"A 1", "1:3: ':' or '{' expected"},
        {"A [1]", "1:4: ':' or '{' expected"},
        {"A: ", "1:4: value expected"},
        {"A: }", "1:4: value expected"},
        {"A: -'x'", "1:5: value expected"},
        {"A: [1, ]", "1:8: value expected"},
        {"A: [1 2]", "1:7: ',' or ']' expected"},
        {"A: [[1]]", "1:5: value expected"},
        {"A: 10b", "1:6: number that ends in letters"},
        {"A: 1e", "1:5: number that ends in letters"},
        {"A: 0x", "1:5: number that ends in letters"},
        {"A {\n B: 1\n", "3:1: '}' expected"},
        {"A < B: 1 }", "1:10: name of a field expected"},
        {"A < B: 1", "1:9: '>' expected"},
        {"A: 1 }", "1:6: name of a field expected"},
        {"A: 1,, B: 2", "1:6: name of a field expected"},
        {"1: 2", "1:1: name of a field expected"},
        {"[a: 2", "1:1: name of a field expected"},
        {"A: 'x\ny'", "1:6: string without an end"},
        {"A: \"x", "1:6: string without an end"},
        {"A: 'x\\", "1:7: unknown escape"},
        {"A: '\\q'", "1:6: unknown escape"},
        {"A: '\\xg'", "1:7: hexadecimal digit expected"},
        {"A: '\\u12'", "1:9: hexadecimal digit expected"},
        {"A: '\\0'", "1:7: no such character"},
        {"A: '\\400'", "1:9: no such character"},
        {"A: '\\U00110000'", "1:15: no such character"},
        {"A: '\\ud800'", "1:11: no such character"},
        {"A: 1 \x01", "1:6: name of a field expected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_arena a = {0};
        const struct kp_field *root = (const struct kp_field *)1;
        char *err = NULL;
        assert_int_equal(kp_prototext_parse(&a, rows[i].text, &root, &err), -EINVAL);
        assert_null(root);
        assert_string_equal(err, rows[i].message);
        free(err);
        kp_arena_free(&a);
    }
}

static int nested(const char *open, const char *close, size_t depth)
{
    struct kp_arena a = {0};
    const struct kp_field *root;
    char *text = calloc(depth * (strlen(open) + strlen(close)) + 1, 1), *end = text, *err;
    for (size_t i = 0; i < depth; i++)
        end = stpcpy(end, open);
    for (size_t i = 0; i < depth; i++)
        end = stpcpy(end, close);
    int rc = kp_prototext_parse(&a, text, &root, &err);
    if (rc)
        assert_non_null(strstr(err, ": messages are nested too deeply"));
    free(err);
    free(text);
    kp_arena_free(&a);
    return rc;
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(nested("A {", "}", 63), 0);
    assert_int_equal(nested("A {", "}", 64), -EINVAL);
    assert_int_equal(nested("A: [ <", "> ]", 1000000), -EINVAL);
    assert_int_equal(nested("A { }", "", 200000), 0); /* long is not deep */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),  cmocka_unit_test(numbers_and_words),
        cmocka_unit_test(strings), cmocka_unit_test(positions),
        cmocka_unit_test(errors),  cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests_name("report/prototext", tests, NULL, NULL);
}
