#include "base/regex.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"
#include "base/room.h"
#include "base/text.h"

enum {
    MAX_STEPS = 2048,
    MAX_NESTING = 100,
    MAX_REPEATED = 32767, /* POSIX's RE_DUP_MAX in glibc */
    N_BYTES = 256,
};

/* Kinds of steps. Those from OP_SPLIT on match no character. */
enum op {
    OP_BYTE,
    OP_ANY,
    OP_SET,
    OP_SPLIT, /* continues at the next step and at `to` */
    OP_JUMP,  /* continues at `to` */
    OP_BEGIN,
    OP_END,
    OP_EDGE, /* between a word character and another one */
    OP_NO_EDGE,
    OP_WORD_BEGIN,
    OP_WORD_END,
    OP_MATCH,
};

struct step {
    uint8_t op;
    unsigned char byte;
    int16_t to; /* of OP_SPLIT and OP_JUMP: relative to this step, so that steps can be moved and copied; of OP_SET: its
                   index */
};

struct set {
    uint32_t bits[N_BYTES / 32];
};

struct kp_regex {
    struct step steps[MAX_STEPS];
    int n_steps;
    struct set *sets;
    int n_sets;
};

/* ---- sets of bytes ---- */

static bool has(const struct set *s, unsigned char byte)
{
    return s->bits[byte / 32] >> byte % 32 & 1;
}

static void add(struct set *s, unsigned char byte)
{
    s->bits[byte / 32] |= UINT32_C(1) << byte % 32;
}

static void invert(struct set *s)
{
    for (int i = 0; i < N_BYTES / 32; i++)
        s->bits[i] = ~s->bits[i];
}

/* Returns true if `c` is in a range of the locale "C", whatever the program's locale. */
static bool in_range(int c, int from, int to)
{
    return c >= from && c <= to;
}

static bool is_upper(int c)
{
    return in_range(c, 'A', 'Z');
}

static bool is_lower(int c)
{
    return in_range(c, 'a', 'z');
}

static bool is_alpha(int c)
{
    return is_upper(c) || is_lower(c);
}

static bool is_alnum(int c)
{
    return is_alpha(c) || kp_is_digit(c);
}

static bool is_word(int c)
{
    return is_alnum(c) || c == '_';
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static bool is_space(int c)
{
    return c == ' ' || in_range(c, '\t', '\r');
}

static bool is_graph(int c)
{
    return in_range(c, '!', '~');
}

static bool is_print(int c)
{
    return in_range(c, ' ', '~');
}

static bool is_punct(int c)
{
    return is_graph(c) && !is_alnum(c);
}

static bool is_cntrl(int c)
{
    return in_range(c, 1, 31) || c == 127;
}

static bool is_xdigit(int c)
{
    return kp_is_digit(c) || in_range(c, 'a', 'f') || in_range(c, 'A', 'F');
}

static const struct class
{
    const char *name;
    bool (*has)(int c);
} classes[] = {
    {"alnum", is_alnum},    {"alpha", is_alpha}, {"blank", is_blank}, {"cntrl", is_cntrl},
    {"digit", kp_is_digit}, {"graph", is_graph}, {"lower", is_lower}, {"print", is_print},
    {"punct", is_punct},    {"space", is_space}, {"upper", is_upper}, {"xdigit", is_xdigit},
};

static void add_class(struct set *s, bool (*of)(int c))
{
    for (int c = 0; c < N_BYTES; c++)
        if (of(c))
            add(s, (unsigned char)c);
}

/* ---- compiling ---- */

/* A pair of parentheses, or the whole expression. */
struct group {
    int begin;  /* its first step */
    int branch; /* of the last alternative */
    int ends; /* the jump at the end of the previous alternative, or -1; jumps are chained by `to` until the group ends
               */
};

struct compiler {
    struct kp_regex *r;
    const char *at;
    struct group groups[MAX_NESTING + 1];
    int depth;
    int item;        /* the first step of the item that a repetition would repeat, or -1 */
    const char *why; /* why the expression is bad */
};

static const char too_large[] = "it is too large";

static bool refuse(struct compiler *c, const char *why)
{
    c->why = why;
    return false;
}

/* Makes room for `n` more steps at `place`. */
static bool insert(struct compiler *c, int place, int n)
{
    struct kp_regex *r = c->r;
    if (n > MAX_STEPS - 1 - r->n_steps) /* one is reserved for OP_MATCH */
        return refuse(c, too_large);
    memmove(&r->steps[place + n], &r->steps[place], (size_t)(r->n_steps - place) * sizeof *r->steps);
    r->n_steps += n;
    return true;
}

static bool emit_op(struct compiler *c, enum op op, unsigned char byte, int to)
{
    if (!insert(c, c->r->n_steps, 1))
        return false;
    c->r->steps[c->r->n_steps - 1] = (struct step){(uint8_t)op, byte, (int16_t)to};
    return true;
}

/* Inserts a step before those from `place` on. */
static bool emit_before(struct compiler *c, int place, enum op op, int to)
{
    if (!insert(c, place, 1))
        return false;
    c->r->steps[place] = (struct step){(uint8_t)op, 0, (int16_t)to};
    return true;
}

static bool emit_item(struct compiler *c, enum op op, unsigned char byte, int to)
{
    c->item = c->r->n_steps;
    return emit_op(c, op, byte, to);
}

static bool emit_set(struct compiler *c, const struct set *s)
{
    struct kp_regex *r = c->r;
    if (r->n_sets == MAX_STEPS)
        return refuse(c, too_large);
    if (!KP_ROOM(r->sets, (size_t)r->n_sets))
        return refuse(c, NULL);
    r->sets[r->n_sets] = *s;
    return emit_item(c, OP_SET, 0, r->n_sets++);
}

static bool emit_class(struct compiler *c, bool (*of)(int c), bool inverted)
{
    struct set s = {{0}};
    add_class(&s, of);
    if (inverted)
        invert(&s);
    return emit_set(c, &s);
}

/* ---- bracket expressions ---- */

/* Reads the name at `[:`, `[.` or `[=`, and moves past it. */
static bool named(struct compiler *c, const char **name, size_t *len)
{
    char kind = c->at[1];
    *name = c->at + 2;
    const char *end = *name;
    while (*end && !(end[0] == kind && end[1] == ']'))
        end++;
    if (!*end)
        return refuse(c, "a '[' is not closed");
    *len = (size_t)(end - *name);
    c->at = end + 2;
    return true;
}

static bool take_class(struct compiler *c, struct set *s)
{
    const char *name;
    size_t len;
    if (!named(c, &name, &len))
        return false;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) == len && !memcmp(classes[i].name, name, len)) {
            add_class(s, classes[i].has);
            return true;
        }
    }
    return refuse(c, "it names an unknown class; classes are written like [[:alpha:]]");
}

/* Reads a character, also as [.x.] or [=x=]; is_one: it may begin or end a range. */
static bool take_element(struct compiler *c, unsigned char *byte, bool *is_one)
{
    const char *name;
    size_t len;
    *is_one = true;
    if (c->at[0] == '[' && (c->at[1] == '.' || c->at[1] == '=')) {
        *is_one = c->at[1] == '.';
        if (!named(c, &name, &len))
            return false;
        *byte = (unsigned char)*name;
        return len == 1 || refuse(c, "it names a collating element of more than one byte");
    }
    if (!*c->at)
        return refuse(c, "a '[' is not closed");
    *byte = (unsigned char)*c->at++;
    return true;
}

static bool take_range(struct compiler *c, struct set *s)
{
    unsigned char from, to;
    bool begins, ends;
    if (!take_element(c, &from, &begins))
        return false;
    to = from;
    if (c->at[0] == '-' && c->at[1] && c->at[1] != ']') {
        c->at++;
        bool is_class = c->at[0] == '[' && c->at[1] == ':';
        if (!is_class && !take_element(c, &to, &ends))
            return false;
        if (is_class || !begins || !ends || from > to)
            return refuse(c, "the end of a range comes before its start");
    }
    for (int b = from; b <= to; b++)
        add(s, (unsigned char)b);
    return true;
}

static bool take_bracket(struct compiler *c)
{
    struct set s = {{0}};
    bool inverted = c->at[1] == '^', first = true;
    c->at += 1 + inverted;
    for (; *c->at != ']' || first; first = false) {
        bool taken = c->at[0] == '[' && c->at[1] == ':' ? take_class(c, &s) : take_range(c, &s);
        if (!taken)
            return false;
    }
    c->at++;
    if (inverted)
        invert(&s);
    return emit_set(c, &s);
}

/* ---- repetitions ---- */

/* Adds `n` copies after the item of `size` steps. */
static bool copy_item(struct compiler *c, int item, int size, int n)
{
    struct step *steps = c->r->steps;
    for (int i = 0; i < n; i++) {
        int end = c->r->n_steps;
        if (!insert(c, end, size))
            return false;
        memcpy(&steps[end], &steps[item], (size_t)size * sizeof *steps);
    }
    return true;
}

/* Repeats the item at least `least` and at most `most` times; most < 0: without limit. */
static bool repeat(struct compiler *c, int least, int most)
{
    int item = c->item, size = c->r->n_steps - item;
    if (!most) {
        c->r->n_steps = item;
        return true;
    }
    if (!size)
        return true;       /* an empty item stays empty */
    if (most < 0 && least) /* x{2,}: x x, and again from the last x on */
        return copy_item(c, item, size, least - 1) && emit_op(c, OP_SPLIT, 0, -size);
    if (!least && !emit_before(c, item, OP_SPLIT, size + 1 + (most < 0)))
        return false;
    if (most < 0)
        return emit_op(c, OP_JUMP, 0, -size - 1);
    if (least)
        return copy_item(c, item, size, least - 1) &&
               (most == least || (emit_item(c, OP_SPLIT, 0, size + 1) && copy_item(c, item, size, 1) &&
                                  copy_item(c, c->item, size + 1, most - least - 1)));
    return copy_item(c, item, size + 1, most - 1);
}

static bool take_number(struct compiler *c, int *number)
{
    const char *digit = c->at;
    *number = 0;
    for (; kp_is_digit((unsigned char)*c->at); c->at++)
        *number = *number > MAX_REPEATED ? *number : *number * 10 + (*c->at - '0');
    return c->at > digit;
}

static bool take_count(struct compiler *c, int *least, int *most)
{
    c->at++;
    bool has_least = take_number(c, least);
    *most = *least;
    if (*c->at == ',') {
        c->at++;
        bool has_most = take_number(c, most);
        if (!has_most)
            *most = -1;
        has_least |= has_most;
    }
    if (!has_least || *c->at != '}' || (*most >= 0 && *most < *least))
        return refuse(c, "a '{' does not begin a count such as {2}, {2,} or {2,5}");
    c->at++;
    return *most <= MAX_REPEATED && *least <= MAX_REPEATED ? true : refuse(c, too_large);
}

static bool take_repetition(struct compiler *c)
{
    int least = *c->at == '+', most = *c->at == '?' ? 1 : -1, item = c->item;
    if (item < 0)
        return refuse(c, "it repeats nothing");
    if (*c->at != '{')
        c->at++;
    else if (!take_count(c, &least, &most))
        return false;
    if (!repeat(c, least, most))
        return false;
    c->item = item; /* it may be repeated again */
    return true;
}

/* ---- groups ---- */

static void begin_group(struct compiler *c)
{
    int place = c->r->n_steps;
    c->groups[c->depth] = (struct group){place, place, -1};
    c->item = -1;
}

static bool open_group(struct compiler *c)
{
    if (c->depth == MAX_NESTING)
        return refuse(c, "its parentheses are nested too deeply");
    c->depth++;
    begin_group(c);
    c->at++;
    return true;
}

/* Makes the alternative so far one of two: a split before it, and after it a jump over the next one. */
static bool take_bar(struct compiler *c)
{
    struct group *g = &c->groups[c->depth];
    int size = c->r->n_steps - g->branch;
    if (!emit_before(c, g->branch, OP_SPLIT, size + 2) || !emit_op(c, OP_JUMP, 0, g->ends))
        return false;
    g->ends = c->r->n_steps - 1;
    g->branch = c->r->n_steps;
    c->item = -1;
    c->at++;
    return true;
}

static void end_group(struct compiler *c)
{
    const struct group *g = &c->groups[c->depth];
    for (int jump = g->ends, before; jump >= 0; jump = before) {
        before = c->r->steps[jump].to;
        c->r->steps[jump].to = (int16_t)(c->r->n_steps - jump);
    }
    c->item = g->begin;
}

static bool close_group(struct compiler *c)
{
    end_group(c);
    c->depth--;
    c->at++;
    return true;
}

/* ---- all of it ---- */

/* Adds a step that matches no character, and that cannot be repeated. */
static bool take_place(struct compiler *c, enum op op)
{
    bool taken = emit_op(c, op, 0, 0);
    c->item = -1;
    return taken;
}

static bool take_escape(struct compiler *c)
{
    static const struct {
        char letter;
        enum op op;
    } places[] = {{'b', OP_EDGE},     {'B', OP_NO_EDGE}, {'<', OP_WORD_BEGIN},
                  {'>', OP_WORD_END}, {'`', OP_BEGIN},   {'\'', OP_END}};
    char letter = c->at[1];
    if (!letter)
        return refuse(c, "it ends in a backslash");
    c->at += 2;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (letter == places[i].letter)
            return take_place(c, places[i].op);
    if (letter == 'w' || letter == 'W')
        return emit_class(c, is_word, letter == 'W');
    if (letter == 's' || letter == 'S')
        return emit_class(c, is_space, letter == 'S');
    if (kp_is_digit(letter) && letter != '0')
        return refuse(c, "back-references such as \\1 are not supported because they can run forever");
    return emit_item(c, OP_BYTE, (unsigned char)letter, 0);
}

static bool take_one(struct compiler *c)
{
    switch (*c->at) {
    case '(':
        return open_group(c);
    case ')':
        if (c->depth)
            return close_group(c);
        break;
    case '|':
        return take_bar(c);
    case '*':
    case '+':
    case '?':
    case '{':
        return take_repetition(c);
    case '[':
        return take_bracket(c);
    case '\\':
        return take_escape(c);
    case '^':
    case '$':
        return take_place(c, *c->at++ == '^' ? OP_BEGIN : OP_END);
    case '.':
        c->at++;
        return emit_item(c, OP_ANY, 0, 0);
    }
    return emit_item(c, OP_BYTE, (unsigned char)*c->at++, 0);
}

static bool compile(struct compiler *c, bool whole)
{
    begin_group(c);
    while (*c->at)
        if (!take_one(c))
            return false;
    if (c->depth)
        return refuse(c, "a '(' is not closed");
    end_group(c);
    if (whole && !(emit_before(c, 0, OP_BEGIN, 0) && emit_op(c, OP_END, 0, 0)))
        return false;
    c->r->steps[c->r->n_steps++] = (struct step){.op = OP_MATCH};
    return true;
}

int kp_regex_new(const char *expr, bool whole, struct kp_regex **out, char **err)
{
    *out = NULL;
    *err = NULL;
    struct compiler c = {.r = calloc(1, sizeof *c.r), .at = expr};
    if (!c.r)
        return -ENOMEM;
    int rc = 0;
    if (!compile(&c, whole))
        rc = c.why ? kp_error(err, "bad expression '%.60s%s': %s", expr, strlen(expr) > 60 ? "..." : "", c.why)
                   : -ENOMEM;
    if (rc)
        kp_regex_free(c.r);
    else
        *out = c.r;
    return rc;
}

void kp_regex_free(struct kp_regex *r)
{
    if (!r)
        return;
    free(r->sets);
    free(r);
}

/* ---- matching ---- */

/* The steps that the text so far may have reached, each once. */
struct states {
    uint16_t steps[MAX_STEPS];
    int n;
    uint32_t seen[MAX_STEPS / 32];
};

static void reach(struct states *s, int step)
{
    uint32_t bit = UINT32_C(1) << step % 32, *seen = &s->seen[step / 32];
    if (*seen & bit)
        return;
    *seen |= bit;
    s->steps[s->n++] = (uint16_t)step;
}

static void forget(struct states *s)
{
    s->n = 0;
    memset(s->seen, 0, sizeof s->seen);
}

/* Returns true if a step that matches no character allows this place; 0 stands for both ends of the text. */
static bool lets_pass(enum op op, unsigned char before, unsigned char after)
{
    bool was = is_word(before), is = is_word(after);
    switch (op) {
    case OP_BEGIN:
        return !before;
    case OP_END:
        return !after;
    case OP_EDGE:
        return was != is;
    case OP_NO_EDGE:
        return was == is;
    case OP_WORD_BEGIN:
        return !was && is;
    case OP_WORD_END:
        return was && !is;
    default:
        return true;
    }
}

static bool takes(const struct kp_regex *r, const struct step *s, unsigned char byte)
{
    return s->op == OP_ANY || (s->op == OP_BYTE && s->byte == byte) || (s->op == OP_SET && has(&r->sets[s->to], byte));
}

/* Follows steps that match no character, then notes in `next` those that match `after`. True: the expression
 * matches. */
static bool advance(const struct kp_regex *r, struct states *now, struct states *next, unsigned char before,
                    unsigned char after)
{
    for (int i = 0; i < now->n; i++) { /* `now` grows meanwhile */
        int at = now->steps[i];
        const struct step *s = &r->steps[at];
        if (s->op == OP_MATCH)
            return true;
        if (s->op < OP_SPLIT) {
            if (after && takes(r, s, after))
                reach(next, at + 1);
            continue;
        }
        if (s->op == OP_SPLIT || s->op == OP_JUMP)
            reach(now, at + s->to);
        if (s->op != OP_JUMP && lets_pass((enum op)s->op, before, after))
            reach(now, at + 1);
    }
    return false;
}

bool kp_regex_match(const struct kp_regex *r, const char *text)
{
    struct states both[2], *now = &both[0], *next = &both[1];
    unsigned char before = 0;
    forget(now);
    for (const char *at = text;; at++) {
        unsigned char after = (unsigned char)*at;
        forget(next);
        reach(now, 0); /* a match may begin anywhere */
        if (advance(r, now, next, before, after))
            return true;
        if (!after)
            return false;
        struct states *swap = now;
        now = next;
        next = swap;
        before = after;
    }
}
