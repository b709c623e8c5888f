#include "report/model/launch_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digit.h"
#include "base/text.h"
#include "base/width.h"
#include "report/model/nvtx_expr.h"

const char kp_range_nameless[] = "(no name)";

const char *kp_launch_kind(const struct kp_launch_info *l)
{
    bool is_kind = l->groups && l->note && !strncmp(l->note, KP_KIND_NOTE, strlen(KP_KIND_NOTE));
    return is_kind ? l->note : "";
}

char *kp_launch_which(const struct kp_launch_info *l)
{
    const char *kind = kp_launch_kind(l);
    char *which = strdup(*kind ? kind + strlen(KP_KIND_NOTE) : "");
    char *numbers = which ? strstr(which, KP_KIND_NUMBERS) : NULL;
    if (numbers) {
        char *rest = numbers + strlen(KP_KIND_NUMBERS);
        memmove(numbers, rest, strlen(rest) + 1);
    }
    return which;
}

const char *kp_launch_name(const struct kp_launch_info *l)
{
    return l->demangled && *l->demangled ? l->demangled : l->mangled && *l->mangled ? l->mangled : "?";
}

/* Returns NULL if the thread has no range. */
static const struct kp_nvtx_range *innermost(const struct kp_nvtx *n)
{
    const struct kp_nvtx_range *last = NULL;
    for (size_t i = 0; i < n->n_ranges; i++)
        if (n->ranges[i].kind == KP_NVTX_PUSH_POP && n->ranges[i].thread == n->thread)
            last = &n->ranges[i];
    return last && *last->name ? last : NULL;
}

const struct kp_nvtx_range *kp_nvtx_innermost(const struct kp_nvtx *n)
{
    const struct kp_nvtx_range *own = innermost(n);
    return own || !n->n_ranges ? own : &n->ranges[n->n_ranges - 1];
}

int kp_launch_range_name(const struct kp_launch_info *l, char **out)
{
    const struct kp_nvtx_range *range = innermost(&l->nvtx);
    *out = NULL;
    if (!range)
        return 0;
    if (asprintf(out, "%s/%s", range->name, kp_launch_name(l)) < 0) {
        *out = NULL;
        return -ENOMEM;
    }
    kp_blank_controls(*out, strlen(range->name));
    return 0;
}

size_t kp_launch_range_length(const struct kp_launch_info *l)
{
    const struct kp_nvtx_range *range = innermost(&l->nvtx);
    const char *name = kp_launch_name(l);
    size_t n = 0;
    while (range && range->name[n] && (kp_text_is_control(range->name[n]) ? ' ' : range->name[n]) == name[n])
        n++;
    return range && !range->name[n] && name[n] == '/' ? n + 1 : 0;
}

size_t kp_range_cut(const char *name, size_t range, size_t most, char *out)
{
    static const char cut[] = ".../";
    bool fits = kp_width_of(name, range) <= most;
    const char *mark = fits ? "" : cut;
    size_t kept = fits ? range : kp_width_fit(name, range, most - strlen(cut));
    memcpy(out, name, kept);
    memcpy(out + kept, mark, strlen(mark));
    return kept + strlen(mark);
}

/* --- names that fit --- */

/* Returns the end of the bracket at `at`; brackets of other kinds inside count, "->" does not. */
static const char *behind_bracket(const char *at)
{
    int depth = 0;
    const char *c = at;
    for (; *c; c++) {
        if (strchr("<([{", *c))
            depth++;
        else if (strchr(">)]}", *c) && (*c != '>' || c == at || c[-1] != '-') && !--depth)
            return c + 1;
    }
    return c;
}

/* Writes the qualified name; `to` has room for all of `from`. */
static void write_qualified(const char *from, char *to)
{
    char *start = to;
    while (*from) {
        const char *behind = strchr("<(", *from) ? behind_bracket(from) : NULL;
        if (!behind) {
            *to++ = *from;
            /* text before a blank is the return type */
            to = *from++ == ' ' ? start : to;
        } else if ((to == start || to[-1] == ':') && !strncmp(behind, "::", 2)) {
            from = behind + 2; /* an anonymous namespace */
        } else if (*from == '<') {
            from = behind;
        } else {
            break; /* parameters begin */
        }
    }
    *to = '\0';
}

/* Returns the part after the last "::". */
static const char *without_namespaces(const char *name)
{
    const char *last = name;
    for (const char *c = name; (c = strstr(c, "::")); c += 2)
        last = c + 2;
    return last;
}

char *kp_trace_name(const char *demangled, size_t width)
{
    static const char cut[] = "...";
    char *name = malloc(strlen(demangled) + 1);
    if (!name)
        return NULL;
    write_qualified(demangled, name);
    if (!*name)
        strcpy(name, demangled);
    if (kp_width(name) > width) {
        const char *base = without_namespaces(name);
        memmove(name, base, strlen(base) + 1);
    }
    if (kp_width(name) > width) /* what is cut off has as many bytes as columns, or more */
        strcpy(name + kp_width_fit(name, strlen(name), width - strlen(cut)), cut);
    return name;
}

/* --- ranges that group launches --- */

char *kp_range_title(const struct kp_nvtx_range *r)
{
    struct kp_nvtx_range named = *r;
    if (!*r->name)
        named.name = (char *)kp_range_nameless;
    char *title = kp_nvtx_expression(&named);
    if (title)
        kp_blank_controls(title, strlen(title));
    return title;
}

bool kp_range_is_new(const struct kp_nvtx *n, size_t i)
{
    const struct kp_nvtx_range *r = &n->ranges[i];
    for (const struct kp_nvtx_range *before = n->ranges; before < r; before++)
        if (before->kind == r->kind && !strcmp(before->domain, r->domain) && !strcmp(before->name, r->name))
            return false;
    return true;
}

/* Classifies the same in every locale. Bytes of other scripts are letters. */
static bool is_letter(char c)
{
    return kp_is_letter(c) || (unsigned char)c >= 0x80;
}

/* Words before a number that grows with the program. seq and id are those of PyTorch's emit_nvtx. */
static const char *const counters[] = {"step",       "iter",  "iteration", "epoch", "batch", "minibatch",
                                       "microbatch", "frame", "seq",       "id",    "it",    "i"};

static bool is_counter(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (strlen(counters[i]) == len && !strncasecmp(counters[i], word, len))
            return true;
    return false;
}

/* Returns true if the digits from `at` to `end` count steps. */
static bool counts_steps(const char *name, const char *at, const char *end)
{
    const char *last = at;
    if (is_letter(*end))
        return false;
    while (last > name && !is_letter(last[-1]) && !kp_is_digit(last[-1]))
        last--;
    const char *word = last;
    while (word > name && is_letter(word[-1]))
        word--;
    if (is_counter(word, (size_t)(last - word)))
        return true;
    bool apart = at == name || (last < at && (last == name || is_letter(last[-1])));
    return apart && !end[strspn(end, ")]}> \t\r\n")];
}

size_t kp_range_next(const char *name, const char **at, char out[2])
{
    const char *c = *at;
    size_t digits = c == name || !kp_is_digit(c[-1]) ? strspn(c, "0123456789") : 0;
    if (digits && counts_steps(name, c, c + digits)) {
        *at += digits;
        *out = KP_RANGE_NUMBER;
        return 1;
    }
    ++*at;
    bool escaped = *c == KP_RANGE_NUMBER || *c == KP_RANGE_ESCAPE;
    *out = KP_RANGE_ESCAPE;
    out[escaped] = *c;
    return 1 + escaped;
}

char *kp_range_without_numbers(const char *name)
{
    char *text = malloc(2 * strlen(name) + 1), *to = text;
    for (const char *at = name; text && *at;)
        to += kp_range_next(name, &at, to);
    if (text)
        *to = '\0';
    return text;
}

bool kp_range_has_number(const char *text)
{
    while (*text && *text != KP_RANGE_NUMBER)
        text += *text == KP_RANGE_ESCAPE && text[1] ? 2 : 1;
    return *text;
}

static bool is_word(char c)
{
    return kp_is_letter(c) || kp_is_digit(c) || c == '_';
}

/* Returns the length of the qualifiers that a name begins with: "at::native::"; of "<unnamed>::" ncu drops the first
 * character alone. */
static size_t qualifiers(const char *text)
{
    size_t n = 0, word;
    while ((word = 0, is_word(text[n]))) {
        while (is_word(text[n + word]))
            word++;
        if (strncmp(text + n + word, "::", 2))
            break;
        n += word + 2;
    }
    return n + (n && !strncmp(text + n, "<unnamed>::", 11));
}

/* Returns the length of a type in parentheses before a constant: "(unsigned long)" of "(unsigned long)2". */
static size_t cast(const char *text)
{
    size_t n = 1;
    if (*text != '(')
        return 0;
    while (is_word(text[n]) || text[n] == ' ')
        n++;
    bool is_constant = kp_is_digit(text[n + 1]) || (text[n + 1] == '-' && kp_is_digit(text[n + 2]));
    return n > 1 && text[n] == ')' && is_constant ? n + 1 : 0;
}

char *kp_launch_plain_name(const char *name)
{
    char *out = kp_strdup(name), *to = out;
    bool begins = true; /* a word, which may be a qualifier */
    while (out && *name) {
        size_t drop = begins && is_word(*name) ? qualifiers(name) : cast(name);
        name += drop;
        begins = !is_word(*name);
        if (*name)
            *to++ = *name++;
    }
    if (out)
        *to = '\0';
    return out;
}
