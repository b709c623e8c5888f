/*
 * The PTX of a function in a cubin. The compiler keeps it if it makes line tables.
 *
 * KP_VENDOR: .nv_debug_ptx_txt has the module's lines, each ended by a NUL, without those of .file and .loc. A
 * separately compiled module has a section for each of its parts, .nv_debug_ptx_txt.NUMBER. Verified with nvcc 13.0 and
 * ptxas 11.8 (tests/unit/collectors/test_collect_ptx.c).
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin_internal.h"

enum { PTX_MOST = 1 << 20 }; /* bytes of a function, like those of a source file */

/* ---- the lines of instructions ---- */

/* Sets the lines of `code` from those of `places`, which has the same instructions with files and locations. Returns
 * their section, that of the first instruction; NULL without any. */
static const char *set_lines(const struct kp_code *places, struct kp_code *code)
{
    const char *section = NULL;
    for (size_t i = 0; i < code->n_instructions; i++) {
        uint32_t at = places->instructions[i].location;
        if (!at)
            continue;
        const struct kp_location *l = &places->locations[at - 1];
        const char *file = places->files[l->file].path;
        if (!section)
            section = file;
        if (!strcmp(file, section)) /* no function comes from two parts */
            code->instructions[i].ptx = l->line;
    }
    return section;
}

/* ---- functions in the text ---- */

/* The position of a reader of PTX. Lines count from 1. */
struct scan {
    unsigned depth;  /* of braces */
    bool in_comment; /* of the kind that may have several lines */
    uint32_t begin;  /* of the last function, or its declaration; 0 = none */
    size_t begin_at; /* its place in the text */
    bool has_ended;  /* with this line */
};

/* Returns true if the word at `at` starts a function: .entry or .func. */
static bool is_function(const char *at, const char *end)
{
    static const char *const words[] = {".entry", ".func"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - at) > n && !memcmp(at, words[i], n) && memchr(" \t(", at[n], 3))
            return true;
    }
    return false;
}

/* Returns the place after a comment or quotation that starts at `at`; `at` if there is none. */
static const char *skip_quiet(struct scan *s, const char *at, const char *end)
{
    if (*at == '"') {
        const char *quote = memchr(at + 1, '"', (size_t)(end - at - 1));
        return quote ? quote + 1 : end;
    }
    if (end - at < 2 || *at != '/' || (at[1] != '/' && at[1] != '*'))
        return at;
    s->in_comment = at[1] == '*';
    return s->in_comment ? at + 2 : end;
}

static void scan_sign(struct scan *s, char sign)
{
    if (sign == '{')
        s->depth++;
    else if (sign == '}' && s->depth)
        s->has_ended = !--s->depth && s->begin;
}

/* Reads line `number`, which starts at `offset` of the text. */
static void scan_line(struct scan *s, uint32_t number, size_t offset, const char *at, const char *end)
{
    s->has_ended = false;
    while (at < end) {
        const char *next = at;
        if (s->in_comment) {
            next = memmem(at, (size_t)(end - at), "*/", 2);
            s->in_comment = !next;
            at = next ? next + 2 : end;
            continue;
        }
        next = skip_quiet(s, at, end);
        if (next > at) {
            at = next;
            continue;
        }
        if (*at == '.' && !s->depth && is_function(at, end)) {
            s->begin = number;
            s->begin_at = offset;
        }
        scan_sign(s, *at++);
    }
}

/* ---- the text that is wanted ---- */

/* Returns the length of the line at `at` of the text; the last line may lack its end. */
static size_t line_length(struct kp_bytes text, size_t at)
{
    return strnlen((const char *)text.at + at, text.size - at);
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ' && text[i] != '\t')
            return false;
    return true;
}

/* Adds the lines from `first`, which is at `at`, to `last`. `left` is the remaining room. 0, -ENOMEM, or -E2BIG. */
static int add_lines(struct kp_bytes text, size_t at, uint32_t first, uint32_t last, size_t *left, struct kp_code *code)
{
    int rc = 0;
    for (uint32_t line = first; !rc && line <= last; line++) {
        size_t len = line_length(text, at);
        if (len + 1 > *left)
            return -E2BIG;
        *left -= len + 1;
        if (!is_blank((const char *)text.at + at, len))
            rc = kp_code_add_ptx(code, line, (const char *)text.at + at, len);
        at += len + 1;
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Adds the functions that have one of the `n` lines `wanted`, which ascend. */
static int add_functions(struct kp_bytes text, const uint32_t *wanted, size_t n, struct kp_code *code)
{
    struct scan s = {0};
    size_t left = PTX_MOST, next = 0;
    uint32_t line = 1;
    int rc = 0;
    for (size_t at = 0; !rc && at < text.size && next < n && line < UINT32_MAX; line++) {
        size_t len = line_length(text, at);
        const char *begin = (const char *)text.at + at;
        scan_line(&s, line, at, begin, begin + len);
        if (s.has_ended) {
            while (next < n && wanted[next] < s.begin)
                next++;
            if (next < n && wanted[next] <= line)
                rc = add_lines(text, s.begin_at, s.begin, line, &left, code);
            s.begin = 0;
        }
        at += len + 1;
    }
    return rc;
}

static void drop_text(struct kp_code *code)
{
    for (size_t i = 0; i < code->n_ptx; i++)
        free(code->ptx[i].text);
    free(code->ptx);
    code->ptx = NULL;
    code->n_ptx = 0;
}

static int add_text(struct kp_bytes text, struct kp_code *code)
{
    uint32_t *wanted = calloc(code->n_instructions + 1, sizeof *wanted);
    size_t n = 0;
    if (!wanted)
        return -ENOMEM;
    for (size_t i = 0; i < code->n_instructions; i++)
        if (code->instructions[i].ptx)
            wanted[n++] = code->instructions[i].ptx;
    qsort(wanted, n, sizeof *wanted, by_number);
    int rc = add_functions(text, wanted, n, code);
    if (rc)
        drop_text(code);
    free(wanted);
    return rc == -ENOMEM ? rc : 0;
}

int kp_cubin_ptx(const struct kp_cubin *c, struct kp_code *code)
{
    struct kp_cubin_place place;
    struct kp_code places = {0};
    Elf64_Shdr section;
    const char *name;
    if (!code->n_instructions || kp_cubin_find(c, code->function, &place))
        return 0;
    places.instructions = calloc(code->n_instructions, sizeof *places.instructions);
    if (!places.instructions)
        return -ENOMEM;
    places.n_instructions = code->n_instructions;
    for (size_t i = 0; i < code->n_instructions; i++)
        places.instructions[i].offset = code->instructions[i].offset;
    int rc = kp_cubin_lines_of_ptx(c, &place, &places);
    if (!rc && (name = set_lines(&places, code)) && !strncmp(name, KP_PTX_SECTION, strlen(KP_PTX_SECTION)) &&
        kp_cubin_section_named(c, name, &section))
        rc = add_text(kp_cubin_bytes(c, &section), code);
    kp_code_free(&places);
    return rc;
}
