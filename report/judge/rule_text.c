/* Expands the marks in messages. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/groups.h"
#include "report/judge/rules.h"

static const char *const severity_names[] = {
    [KP_SEVERITY_OPT] = "OPT", [KP_SEVERITY_INF] = "INF", [KP_SEVERITY_WRN] = "WRN"};

const char *kp_severity_name(enum kp_severity severity)
{
    return severity_names[severity];
}

bool kp_rules_has_lines(const struct kp_result *r)
{
    static const char *const metrics[] = {"smsp__pcsamp_sample_count", "memory_l2_theoretical_sectors_global",
                                          "memory_l1_wavefronts_shared"};
    double value;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (kp_metric_number(kp_result_find(r, metrics[i]), &value))
            return true;
    return false;
}

/* Returns true if a row has values by instruction. These outnumber all others of their section, and other collectors
 * gather them. */
static bool is_by_instruction(const struct kp_row *row)
{
    return row->source == KP_SRC_PCSAMP || row->source == KP_SRC_SASS;
}

/* Returns true if the launch has most of the section's rows: a few may belong to another section, or to a later
 * version. */
static bool has_section(const struct kp_result *r, const struct kp_section *s)
{
    size_t rows = 0, found = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct kp_row *row = &s->rows[i];
        if (row->kind == KP_ROW_BODY || is_by_instruction(row) ||
            !strncmp(row->metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)) ||
            !kp_cc_matches(row->cc, r->launch.cc_major, r->launch.cc_minor))
            continue;
        rows++;
        found += kp_result_find(r, row->metric) != NULL;
    }
    return 2 * found >= rows;
}

/* Prints the smallest set first, which begins the section's list. */
static void put_section(FILE *f, const struct kp_result *r, const char *id, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, id);
    const struct kp_section *s = kp_section_find(name);
    fprintf(f, "%s", s ? s->display : name);
    if (s && !has_section(r, s))
        fprintf(f, *s->sets ? " (set %.*s)" : " (section %.*s)", (int)(*s->sets ? strcspn(s->sets, ",") : n),
                *s->sets ? s->sets : id);
}

/* Prints a number with thousands separators; returns its length. */
static size_t put_number(FILE *f, const char *digits)
{
    size_t whole = strspn(digits, "0123456789"), n = whole;
    for (size_t i = 0; i < whole; i++)
        fprintf(f, i && (whole - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    if (digits[n] == '.') {
        n += 1 + strspn(digits + n + 1, "0123456789");
        fprintf(f, "%.*s", (int)(n - whole), digits + whole);
    }
    return n;
}

/* Returns the length of a word: "FP32" and "l1tex" are no numbers. */
static size_t word_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n;
}

char *kp_message_text(const struct kp_result *r, const char *text)
{
    char *out = NULL;
    size_t size, n;
    bool lines = kp_rules_has_lines(r);
    FILE *f = open_memstream(&out, &size);
    if (!f)
        return NULL;
    for (; *text; text += n) {
        n = 1;
        if (*text == *KP_VERBATIM) {
            size_t len = strcspn(text + 1, KP_VERBATIM);
            fprintf(f, "%.*s", (int)len, text + 1);
            n = 1 + len + (text[1 + len] != '\0');
        } else if (*text == '{')
            n = lines ? 1 : strcspn(text, "}");
        else if (*text == '@') {
            n += word_length(text + 1);
            put_section(f, r, text + 1, n - 1);
        } else if (isdigit((unsigned char)*text))
            n = put_number(f, text);
        else if ((n = word_length(text)))
            fprintf(f, "%.*s", (int)n, text);
        else if (n = 1, *text != '}')
            fputc(*text, f);
    }
    if (kp_text_end(f, &out)) {
        free(out);
        return NULL;
    }
    return out;
}
