/* The table of reasons: keys are unique and stable in form, texts are clauses, and what varies follows the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "report/model/reasons.h"

enum { KEY_MOST = 40, TEXT_MOST = 180, ADVICE_MOST = 340 };

/* Lower-case words and numbers, joined by single dashes. */
static bool is_key(const char *key)
{
    size_t len = strlen(key);
    return len && len <= KEY_MOST && strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && *key != '-' &&
           key[len - 1] != '-' && !strstr(key, "--");
}

/* Returns true if it begins with a word in capitals, such as CUPTI. */
static bool begins_with_acronym(const char *text)
{
    return text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'A' && text[1] <= 'Z';
}

/* One clause, for a line of a message, a file of lines and fields, and a row of Markdown. */
static bool is_clause_of(const char *text, size_t most)
{
    size_t len = strlen(text);
    return len && len <= most && !strpbrk(text, "\t\n\"|") && !strchr(".;, ", text[len - 1]) && *text != ' ' &&
           !strstr(text, "  ") && (begins_with_acronym(text) || !(*text >= 'A' && *text <= 'Z'));
}

static bool is_clause(const char *text)
{
    return is_clause_of(text, TEXT_MOST);
}

static void keys_are_unique(void **state)
{
    (void)state;
    for (unsigned i = 1; i < KP_REASONS; i++) {
        const struct kp_reason_row *row = kp_reason_row((enum kp_reason)i);
        if (!is_key(row->key))
            fail_msg("%s has the key '%s'", row->id, row->key);
        if (kp_reason_find(row->key) != (enum kp_reason)i)
            fail_msg("two reasons have the key '%s'", row->key);
    }
    assert_false(is_key("") || is_key("Key") || is_key("a--b") || is_key("-a") || is_key("a-") || is_key("a b"));
}

static void texts_are_clauses(void **state)
{
    (void)state;
    for (unsigned i = 1; i < KP_REASONS; i++) {
        const struct kp_reason_row *row = kp_reason_row((enum kp_reason)i);
        if (!is_clause(row->text))
            fail_msg("%s has the text '%s'", row->id, row->text);
        for (unsigned k = 1; k < i; k++)
            if (!strcmp(row->text, kp_reason_text((enum kp_reason)k)))
                fail_msg("%s and %s have one text", row->id, kp_reason_row((enum kp_reason)k)->id);
        if ((*row->advice && !is_clause_of(row->advice, ADVICE_MOST)) || (*row->why && !is_clause(row->why)))
            fail_msg("%s has the advice '%s' and the ground '%s'", row->id, row->advice, row->why);
    }
    assert_false(is_clause("") || is_clause("It ends") || is_clause("it ends.") || is_clause("two  blanks") ||
                 is_clause("a | b") || is_clause("two\nlines"));
    assert_true(is_clause("CUPTI refuses it"));
}

static void unknown_keys_are_no_reason(void **state)
{
    (void)state;
    assert_int_equal(kp_reason_find("nonesuch"), KP_REASON_NONE);
    assert_int_equal(kp_reason_find(""), KP_REASON_NONE);
    assert_int_equal(kp_reason_find(NULL), KP_REASON_NONE);
    assert_string_equal(kp_reason_key(KP_REASON_NONE), "");
    assert_string_equal(kp_reason_text((enum kp_reason)KP_REASONS), "");
}

static void what_varies_follows_the_text(void **state)
{
    (void)state;
    struct kp_why none = {KP_REASON_NONE, NULL}, plain = kp_why_of(KP_REASON_NOT_STARTED, NULL);
    struct kp_why why = kp_why_make(KP_REASON_NOT_STARTED, "code %d", 7), copy = kp_why_copy(why);
    assert_null(kp_why_text(&none));
    assert_string_equal(kp_why_text(&plain), "cannot start the counters");
    assert_string_equal(kp_why_text(&why), "cannot start the counters: code 7");
    kp_why_free(&why);
    assert_true(!why.reason && !kp_why_text(&why));
    assert_int_equal(copy.reason, KP_REASON_NOT_STARTED);
    assert_string_equal(kp_why_text(&copy), "cannot start the counters: code 7");
    kp_why_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_unique),
        cmocka_unit_test(texts_are_clauses),
        cmocka_unit_test(unknown_keys_are_no_reason),
        cmocka_unit_test(what_varies_follows_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
