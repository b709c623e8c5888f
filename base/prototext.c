#include "base/prototext.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/digit.h"
#include "base/text.h"

enum { MAX_NESTING = 64 };

struct parser {
    struct kp_arena *a;
    const char *p, *line_start;
    unsigned line;
    size_t nesting;
    int rc;
    char **err;
};

/* The end of a chain of fields, for appending. */
struct chain {
    const struct kp_field **end;
};

static bool is_letter(char c)
{
    return kp_is_letter(c) || c == '_';
}

static unsigned column(const struct parser *s)
{
    return (unsigned)(s->p - s->line_start) + 1;
}

/* Keeps the first error. */
static void say_wrong_at(struct parser *s, const char *what)
{
    if (!s->rc)
        s->rc = kp_error(s->err, "%u:%u: %s", s->line, column(s), what);
}

static void *checked(struct parser *s, void *p)
{
    if (!p && !s->rc)
        s->rc = -ENOMEM;
    return p;
}

/* Skips blanks and comments. */
static void skip(struct parser *s)
{
    for (;; s->p++) {
        if (*s->p == '#')
            s->p += strcspn(s->p, "\n");
        if (*s->p == '\n') {
            s->line++;
            s->line_start = s->p + 1;
        } else if (!*s->p || !strchr(" \t\v\f\r", *s->p)) {
            return;
        }
    }
}

static bool take_token(struct parser *s, char c)
{
    skip(s);
    if (s->rc || *s->p != c)
        return false;
    s->p++;
    return true;
}

static size_t word_length(const char *p)
{
    size_t n = 0;
    if (is_letter(*p))
        while (is_letter(p[n]) || kp_is_digit(p[n]))
            n++;
    return n;
}

/* ---- strings ---- */

/* Returns -1 if `c` is no digit of the base. */
static int digit_value(char c, unsigned base)
{
    int v = kp_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    return v < (int)base ? v : -1;
}

/* Reads at most `most` digits after the escape's letter. */
static uint32_t code(struct parser *s, unsigned base, size_t most)
{
    uint32_t value = 0;
    for (; most && digit_value(*s->p, base) >= 0; most--)
        value = value * base + (uint32_t)digit_value(*s->p++, base);
    return value;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *out++ = (char)(lead[tail] | c >> 6 * tail);
    while (tail--)
        *out++ = (char)(0x80 | (c >> 6 * tail & 0x3f));
    return out;
}

/* Reads an escape; `p` points after the backslash. The result is never longer than the escape. */
static char *escape(struct parser *s, char *out)
{
    static const char from[] = "abfnrtv?\\'\"", to[] = "\a\b\f\n\r\t\v?\\'\"";
    const char *simple = *s->p ? strchr(from, *s->p) : NULL;
    uint32_t c;
    if (simple) {
        s->p++;
        *out++ = to[simple - from];
        return out;
    }
    bool unicode = *s->p == 'u' || *s->p == 'U';
    if (digit_value(*s->p, 8) >= 0) {
        c = code(s, 8, 3);
    } else if (unicode || *s->p == 'x' || *s->p == 'X') {
        size_t most = *s->p == 'u' ? 4 : *s->p == 'U' ? 8 : 2;
        const char *start = ++s->p;
        c = code(s, 16, most);
        if ((size_t)(s->p - start) < (unicode ? most : 1))
            say_wrong_at(s, "hexadecimal digit expected");
    } else {
        say_wrong_at(s, "unknown escape");
        return out;
    }
    if (!c || c > (unicode ? 0x10ffff : 0xff) || (unicode && c >= 0xd800 && c < 0xe000))
        say_wrong_at(s, "no such character");
    if (s->rc)
        return out;
    if (unicode)
        return put_utf8(out, c);
    *out++ = (char)c;
    return out;
}

/* Reads one quoted part with its closing quote. */
static char *quoted(struct parser *s, char *out)
{
    char quote = *s->p++;
    while (!s->rc && *s->p != quote) {
        if (!*s->p || *s->p == '\n') {
            say_wrong_at(s, "string without an end");
        } else if (*s->p == '\\') {
            s->p++;
            out = escape(s, out);
        } else {
            *out++ = *s->p++;
        }
    }
    s->p += !s->rc;
    return out;
}

/* Returns an upper bound for the total length of the parts that begin here. */
static size_t string_bound(struct parser s)
{
    const char *start = s.p;
    while (*s.p == '"' || *s.p == '\'') {
        char quote = *s.p++;
        while (*s.p && *s.p != quote)
            s.p += s.p[0] == '\\' && s.p[1] ? 2 : 1;
        s.p += *s.p != '\0';
        skip(&s);
    }
    return (size_t)(s.p - start);
}

static const char *string(struct parser *s)
{
    char *text = checked(s, kp_arena_alloc(s->a, string_bound(*s) + 1)), *out = text;
    while (!s->rc && (*s->p == '"' || *s->p == '\'')) {
        out = quoted(s, out);
        skip(s);
    }
    return text;
}

/* ---- numbers and words ---- */

/* Counts the characters of a number: decimal, octal, hexadecimal or floating. */
static size_t number_length(const char *p)
{
    size_t n = 0;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        for (n = 2; digit_value(p[n], 16) >= 0; n++)
            ;
        return n > 2 ? n : 1;
    }
    while (kp_is_digit(p[n]))
        n++;
    size_t whole = n;
    n += p[n] == '.';
    while (kp_is_digit(p[n]))
        n++;
    if (!whole && n < 2)
        return 0;
    if (p[n] == 'e' || p[n] == 'E') {
        size_t sign = p[n + 1] == '+' || p[n + 1] == '-';
        if (kp_is_digit(p[n + 1 + sign]))
            for (n += 1 + sign; kp_is_digit(p[n]); n++)
                ;
    }
    return n + (p[n] == 'f' || p[n] == 'F');
}

/* Reads a number or a word, with its sign. */
static const char *literal(struct parser *s, enum kp_field_kind *kind)
{
    bool negative = take_token(s, '-');
    skip(s);
    size_t n = word_length(s->p);
    *kind = n ? KP_FIELD_WORD : KP_FIELD_NUMBER;
    if (!n)
        n = number_length(s->p);
    if (!n || (*kind == KP_FIELD_NUMBER && is_letter(s->p[n]))) {
        s->p += n;
        say_wrong_at(s, n ? "number that ends in letters" : "value expected");
    }
    if (s->rc)
        return NULL;
    char *text = checked(s, kp_arena_alloc(s->a, n + 2));
    if (text) {
        *text = '-';
        memcpy(text + negative, s->p, n);
    }
    s->p += n;
    return text;
}

/* ---- fields ---- */

static const struct kp_field *fields(struct parser *s, char end);

/* Adds one value of field `like` to the chain. */
static void value(struct parser *s, const struct kp_field *like, bool colon, struct chain *chain)
{
    struct kp_field *f = checked(s, kp_arena_alloc(s->a, sizeof *f));
    if (!f)
        return;
    *f = *like;
    f->text = "";
    if (take_token(s, '{')) {
        f->first = fields(s, '}');
    } else if (take_token(s, '<')) {
        f->first = fields(s, '>');
    } else if (!colon) {
        say_wrong_at(s, "':' or '{' expected");
    } else if (*s->p == '"' || *s->p == '\'') {
        f->kind = KP_FIELD_STRING;
        f->text = string(s);
    } else {
        f->text = literal(s, &f->kind);
    }
    *chain->end = f;
    chain->end = &f->next;
}

static void list(struct parser *s, const struct kp_field *like, bool colon, struct chain *chain)
{
    if (take_token(s, ']'))
        return;
    do
        value(s, like, colon, chain);
    while (take_token(s, ','));
    if (!take_token(s, ']'))
        say_wrong_at(s, "',' or ']' expected");
}

/* Reads a plain name, or one of an extension or a type in brackets. */
static const char *field_name(struct parser *s)
{
    size_t n = word_length(s->p);
    if (*s->p == '[') {
        n = 1 + strcspn(s->p + 1, "]\n");
        n = s->p[n] == ']' ? n + 1 : 0;
    }
    if (!n)
        say_wrong_at(s, "name of a field expected");
    char *name = n ? checked(s, kp_arena_text(s->a, s->p, n)) : NULL;
    s->p += n;
    return name;
}

static void field(struct parser *s, struct chain *chain)
{
    struct kp_field f = {.line = s->line, .column = column(s)};
    f.name = field_name(s);
    bool colon = take_token(s, ':');
    if (s->rc)
        return;
    if (take_token(s, '['))
        list(s, &f, colon, chain);
    else
        value(s, &f, colon, chain);
    if (!take_token(s, ','))
        take_token(s, ';');
}

/* Reads all fields up to and including `end`. */
static const struct kp_field *fields(struct parser *s, char end)
{
    const struct kp_field *first = NULL;
    struct chain chain = {&first};
    if (s->nesting == MAX_NESTING)
        say_wrong_at(s, "messages are nested too deeply");
    s->nesting++;
    for (skip(s); !s->rc && *s->p && *s->p != end; skip(s))
        field(s, &chain);
    s->nesting--;
    if (!s->rc && *s->p != end)
        say_wrong_at(s, end == '>' ? "'>' expected" : "'}' expected");
    s->p += !s->rc && end;
    return first;
}

int kp_prototext_parse(struct kp_arena *a, const char *text, const struct kp_field **out, char **err)
{
    struct parser s = {.a = a, .p = text, .line_start = text, .line = 1, .err = err};
    *out = NULL;
    *err = NULL;
    struct kp_field *root = checked(&s, kp_arena_alloc(a, sizeof *root));
    if (!root)
        return s.rc;
    *root = (struct kp_field){.name = "", .text = "", .line = 1, .column = 1};
    root->first = fields(&s, '\0');
    if (!s.rc)
        *out = root;
    return s.rc;
}
