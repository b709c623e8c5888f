/* Kernel names in NVIDIA's spelling, straight from the mangled name (Itanium C++ ABI, section 5.1). Demangling
 * libraries do not suit: they write GNU style, and substitute template parameters (NVIDIA's tools leave `T1`). They
 * also drop the return type of functions that enclose a local type, which NVIDIA's tools print.
 *
 * The text is written while the name is read, without a tree. A substitution is kept as its place in the mangled name,
 * and is read again from there. Some parts come earlier in the text than in the name: return types, the ends of
 * function and array types. They are moved into place or read twice.
 *
 * Every reader receives the place where its construct starts and returns the place after it. After a failure they all
 * return the end of the name, so that every loop ends. */
#include "base/demangle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"

#ifndef KP_DEMANGLE_STEPS
#define KP_DEMANGLE_STEPS (1 << 20) /* the fuzz harness defines a lower one: it prefers slow names */
#endif

enum {
    /* Longer texts help nobody; substitutions can make them exponential in the length of the name. */
    TEXT_MAX = 64 << 10,
    /* Constructs read: bounds the time for names with much structure and little text (about 20 ms). */
    STEPS_MAX = KP_DEMANGLE_STEPS,
    /* Nested constructs: real names stay below 200. With this limit 48 KiB of stack suffice for any name; a launching
     * thread may have little. */
    DEPTH_MAX = 320,
    SUBS_MAX = 1 << 14,
};

/* The meaning of `S_`, `S0_` …: a type when `end` is NULL, else the part of a name from `start` to `end`. */
struct sub {
    const char *start, *end;
};

struct demangler {
    char *text;
    size_t len, cap;
    struct sub *subs;
    size_t n_subs, cap_subs;
    const char *end;
    unsigned steps, depth;
    unsigned mute;      /* > 0: read only, write nothing */
    unsigned replay;    /* > 0: already read once, so its substitutions are known */
    bool in_conversion; /* in the type of a conversion operator */
    bool names_only;    /* without template arguments and without the signature around a local name */
    int err;            /* first failure: -ENOMEM, -E2BIG (over a limit), -EINVAL (no name, or an unknown construct) */
};

/* Passes facts from the reader of a name to the reader of the function's type. */
struct name_info {
    bool template_id;              /* ends with template arguments: then the return type is part of the name … */
    bool no_return;                /* … except for constructors, destructors and conversions */
    const char *quals, *quals_end; /* `const` and the like of the member function */
    const char *ref;               /* its `&` or `&&` */
};

static const char *read_type(struct demangler *d, const char *s);
static const char *read_left(struct demangler *d, const char *s);
static void write_right(struct demangler *d, const char *s);
static const char *read_name(struct demangler *d, const char *s, struct name_info *info);
static const char *read_prefix(struct demangler *d, const char *s, const char *stop, struct name_info *info);
static const char *read_encoding(struct demangler *d, const char *s, bool signature);
static const char *read_expression(struct demangler *d, const char *s);
static const char *read_template_args(struct demangler *d, const char *s);

/* ---- text ---- */

static const char *fail(struct demangler *d, int err)
{
    if (!d->err) {
        d->err = err;
    }
    return d->end;
}

static void *grow(struct demangler *d, void *array, size_t *cap, size_t need, size_t size)
{
    size_t n = *cap ? *cap : 64;
    while (n < need) {
        n *= 2;
    }
    void *larger = realloc(array, n * size);
    if (!larger) {
        fail(d, -ENOMEM);
        return NULL;
    }
    *cap = n;
    return larger;
}

static void emit_n(struct demangler *d, const char *s, size_t n)
{
    if (d->err || d->mute) {
        return;
    }
    if (n >= TEXT_MAX - d->len) {
        fail(d, -E2BIG);
        return;
    }
    if (d->len + n + 1 > d->cap) {
        char *text = grow(d, d->text, &d->cap, d->len + n + 1, 1);
        if (!text) {
            return;
        }
        d->text = text;
    }
    memcpy(d->text + d->len, s, n);
    d->len += n;
    d->text[d->len] = '\0';
}

static void emit(struct demangler *d, const char *s)
{
    emit_n(d, s, strlen(s));
}

static void emit_number(struct demangler *d, const char *before, unsigned long number, const char *after)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%lu", number);
    emit(d, before);
    emit(d, digits);
    emit(d, after);
}

static void emit_space(struct demangler *d)
{
    if (d->len && d->text[d->len - 1] != ' ') {
        emit(d, " ");
    }
}

static void reverse(char *s, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        char c = s[i];
        s[i] = s[n - 1 - i];
        s[n - 1 - i] = c;
    }
}

/* Moves the text written since `second` in front of the text written since `first`. */
static void swap_texts(struct demangler *d, size_t first, size_t second)
{
    if (d->err || d->mute) {
        return;
    }
    reverse(d->text + first, second - first);
    reverse(d->text + second, d->len - second);
    reverse(d->text + first, d->len - first);
}

/* ---- common parts ---- */

/* Begins every recursive reader, so that no name can exhaust the stack or the time. */
static bool enter(struct demangler *d)
{
    if (++d->steps > STEPS_MAX || d->depth >= DEPTH_MAX) {
        fail(d, -E2BIG);
    }
    if (d->err) {
        return false;
    }
    d->depth++;
    return true;
}

static void leave(struct demangler *d)
{
    d->depth--;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *expect(struct demangler *d, const char *s, char c)
{
    return *s == c ? s + 1 : fail(d, -EINVAL);
}

static const char *read_number(struct demangler *d, const char *s, unsigned long *number)
{
    unsigned long n = 0;
    if (!kp_is_digit(*s)) {
        return fail(d, -EINVAL);
    }
    for (; kp_is_digit(*s); s++) {
        if (n > 100000000) {
            return fail(d, -EINVAL);
        }
        n = n * 10 + (unsigned long)(*s - '0');
    }
    *number = n;
    return s;
}

/* Reads `_` as 0, `0_` as 1, `1_` as 2: the numbering of template parameters, lambdas and unnamed types. */
static const char *read_index(struct demangler *d, const char *s, unsigned long *index)
{
    *index = 0;
    if (kp_is_digit(*s)) {
        s = read_number(d, s, index);
        ++*index;
    }
    return expect(d, s, '_');
}

static void add_sub(struct demangler *d, const char *start, const char *end)
{
    if (d->err || d->replay) {
        return;
    }
    if (d->n_subs >= SUBS_MAX) {
        fail(d, -E2BIG);
        return;
    }
    if (d->n_subs == d->cap_subs) {
        struct sub *subs = grow(d, d->subs, &d->cap_subs, d->n_subs + 1, sizeof *subs);
        if (!subs) {
            return;
        }
        d->subs = subs;
    }
    d->subs[d->n_subs++] = (struct sub){start, end};
}

/* Finds `S_`, `S0_`, `S1A_` … in the table. Returns the place after it; NULL if it is unknown. */
static const char *find_sub(const struct demangler *d, const char *s, struct sub *sub)
{
    size_t n = 0;
    if (*s++ != 'S') {
        return NULL;
    }
    if (*s != '_') {
        for (; kp_is_digit(*s) || (*s >= 'A' && *s <= 'Z'); s++) {
            n = n * 36 + (size_t)(kp_is_digit(*s) ? *s - '0' : *s - 'A' + 10);
            if (n > SUBS_MAX) {
                return NULL;
            }
        }
        n++;
    }
    if (*s != '_' || n >= d->n_subs) {
        return NULL;
    }
    *sub = d->subs[n];
    return s + 1;
}

/* Finds the last component of a qualified name, without template arguments: `f` of `a::<unnamed>::f<int>`. */
static void last_component(const char *text, size_t n, size_t *start, size_t *length)
{
    size_t from = 0, to = n;
    unsigned nested = 0;
    for (size_t i = 0; i < n; i++) {
        if (!nested && text[i] == ':' && i + 1 < n && text[i + 1] == ':') {
            from = ++i + 1;
            to = n;
        } else if (strchr("<([", text[i])) {
            to = !nested && text[i] == '<' && to == n ? i : to;
            nested++;
        } else if (strchr(">)]", text[i]) && nested) {
            nested--;
        }
    }
    *start = from;
    *length = to - from;
}

/* ---- names ---- */

struct operator_row {
    char code[3];
    const char *text;
    unsigned operands; /* in an expression, written around or before the operator; 0: has its own reader */
};

static const struct operator_row operators[] = {
    {"aN", "&=", 2},       {"aS", "=", 2},      {"aa", "&&", 2},      {"ad", "&", 1},  {"an", "&", 2},
    {"aw", "co_await", 1}, {"cl", "()", 0},     {"cm", ",", 2},       {"co", "~", 1},  {"dV", "/=", 2},
    {"da", "delete[]", 0}, {"de", "*", 1},      {"dl", "delete", 0},  {"ds", ".*", 2}, {"dv", "/", 2},
    {"eO", "^=", 2},       {"eo", "^", 2},      {"eq", "==", 2},      {"ge", ">=", 2}, {"gt", ">", 2},
    {"ix", "[]", 0},       {"lS", "<<=", 2},    {"le", "<=", 2},      {"ls", "<<", 2}, {"lt", "<", 2},
    {"mI", "-=", 2},       {"mL", "*=", 2},     {"mi", "-", 2},       {"ml", "*", 2},  {"mm", "--", 1},
    {"na", "new[]", 0},    {"ne", "!=", 2},     {"ng", "-", 1},       {"nt", "!", 1},  {"nw", "new", 0},
    {"nx", "noexcept", 1}, {"oR", "|=", 2},     {"oo", "||", 2},      {"or", "|", 2},  {"pL", "+=", 2},
    {"pl", "+", 2},        {"pm", "->*", 2},    {"pp", "++", 1},      {"ps", "+", 1},  {"pt", "->", 0},
    {"qu", "?", 0},        {"rM", "%=", 2},     {"rS", ">>=", 2},     {"rm", "%", 2},  {"rs", ">>", 2},
    {"ss", "<=>", 2},      {"sz", "sizeof", 1}, {"az", "alignof", 1},
};

static const struct operator_row *find_operator(const char *s)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (starts(s, operators[i].code)) {
            return &operators[i];
        }
    }
    return NULL;
}

static const char *read_source_name(struct demangler *d, const char *s)
{
    static const char unnamed_space[] = "_GLOBAL_"; /* followed by one separator, N and more text of the compiler */
    unsigned long n = 0;
    s = read_number(d, s, &n);
    if (!n || n > (unsigned long)(d->end - s)) {
        return fail(d, -EINVAL);
    }
    if (n > sizeof unnamed_space && starts(s, unnamed_space) && strchr("._$", s[8]) && s[9] == 'N') {
        emit(d, "<unnamed>");
    } else {
        emit_n(d, s, n);
    }
    return s + n;
}

/* Reads types up to the end of the list; a single `v` is the empty list. */
static const char *read_parameters(struct demangler *d, const char *s)
{
    const char *separator = "";
    emit(d, "(");
    if (*s == 'v') {
        s++;
    } else {
        while (*s && !strchr("E.", *s) && !(strchr("RO", *s) && s[1] == 'E')) {
            emit(d, separator);
            separator = ", ";
            s = read_type(d, s);
        }
    }
    emit(d, ")");
    return s;
}

static const char *read_closure(struct demangler *d, const char *s)
{
    unsigned long index;
    if (starts(s, "Ul")) {
        emit(d, "[lambda");
        d->mute += d->names_only;
        s = expect(d, read_parameters(d, s + 2), 'E');
        d->mute -= d->names_only;
    } else {
        emit(d, "[unnamed type");
        s += 2;
    }
    s = read_index(d, s, &index);
    emit_number(d, " (instance ", index + 1, ")]");
    return s;
}

static const char *read_operator_name(struct demangler *d, const char *s, struct name_info *info)
{
    const struct operator_row *op = find_operator(s);
    emit(d, "operator ");
    if (starts(s, "cv")) {
        bool outer = d->in_conversion;
        info->no_return = true;
        d->in_conversion = true;
        s = read_type(d, s + 2);
        d->in_conversion = outer;
        return s;
    }
    if (starts(s, "li")) {
        emit(d, "\"\" ");
        return read_source_name(d, s + 2);
    }
    if (!op) {
        return fail(d, -EINVAL);
    }
    emit(d, op->text);
    return s + 2;
}

static const char *read_unqualified(struct demangler *d, const char *s, struct name_info *info)
{
    if (*s == 'L') { /* internal linkage, not written */
        s++;
    }
    if (kp_is_digit(*s)) {
        s = read_source_name(d, s);
    } else if (starts(s, "Ul") || starts(s, "Ut")) {
        s = read_closure(d, s);
    } else {
        s = read_operator_name(d, s, info);
    }
    while (*s == 'B') {
        emit(d, "[abi:");
        s = read_source_name(d, s + 1);
        emit(d, "]");
    }
    return s;
}

/* Writes the meaning of a substitution, and no more. */
static void write_sub(struct demangler *d, struct sub sub)
{
    d->replay++;
    if (sub.end) {
        struct name_info unused = {0};
        read_prefix(d, sub.start, sub.end, &unused);
    } else {
        read_left(d, sub.start);
    }
    d->replay--;
}

/* Reads `S…`: a substitution, or the abbreviation of a name in std. `St`, the namespace itself, is written without
 * `::`. */
static const char *read_substitution(struct demangler *d, const char *s)
{
    static const struct {
        char code;
        const char *text;
    } abbreviations[] = {
        {'t', "std"},          {'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
        {'i', "std::istream"}, {'o', "std::ostream"},   {'d', "std::iostream"},
    };
    struct sub sub;
    const char *end = find_sub(d, s, &sub);
    if (end) {
        write_sub(d, sub);
        return d->err ? d->end : end;
    }
    for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++) {
        if (s[1] == abbreviations[i].code) {
            emit(d, abbreviations[i].text);
            return s + 2;
        }
    }
    return fail(d, -EINVAL);
}

/* Does not substitute: `T1` is the first template parameter, as the template declares it. */
static const char *read_template_param(struct demangler *d, const char *s)
{
    unsigned long index;
    const char *end = read_index(d, s + 1, &index);
    emit_number(d, "T", index + 1, "");
    add_sub(d, s, end);
    return end;
}

static const char *read_decltype(struct demangler *d, const char *s)
{
    if (!starts(s, "Dt") && !starts(s, "DT")) {
        return fail(d, -EINVAL);
    }
    emit(d, "decltype(");
    s = read_expression(d, s + 2);
    emit(d, ")");
    return expect(d, s, 'E');
}

/* Writes a constructor or destructor: the name of the class written last, at or after `scope` in the text. */
static const char *read_structor(struct demangler *d, const char *s, size_t scope, struct name_info *info)
{
    size_t start, length;
    info->no_return = true;
    emit(d, *s == 'D' ? "~" : "");
    if (!d->err && !d->mute) {
        size_t tail = *s == 'D' ? strlen("::~") : strlen("::");
        last_component(d->text + scope, d->len - scope - tail, &start, &length);
        /* Copies through a buffer because the text may move when it grows. */
        char *name = strndup(d->text + scope + start, length);
        if (name) {
            emit(d, name);
        } else {
            fail(d, -ENOMEM);
        }
        free(name);
    }
    return s[1] >= '0' && s[1] <= '5' ? s + 2 : fail(d, -EINVAL);
}

static const char *read_component(struct demangler *d, const char *s, size_t scope, struct name_info *info)
{
    info->template_id = false;
    if (*s == 'S') {
        return read_substitution(d, s);
    }
    if (*s == 'T') {
        return read_template_param(d, s);
    }
    if (starts(s, "Dt") || starts(s, "DT")) {
        return read_decltype(d, s);
    }
    if (*s == 'C' || *s == 'D') {
        return d->len > scope || d->mute ? read_structor(d, s, scope, info) : fail(d, -EINVAL);
    }
    return read_unqualified(d, s, info);
}

/* Reads components up to `stop`, or up to the E that ends a nested name. Every proper prefix becomes a substitution. */
static const char *read_prefix(struct demangler *d, const char *s, const char *stop, struct name_info *info)
{
    const char *start = s;
    size_t scope = d->len;
    if (!enter(d)) {
        return d->end;
    }
    while (!d->err && (stop ? s < stop : *s != 'E')) {
        const char *component = s;
        if (*s == 'I' && s != start) {
            s = read_template_args(d, s);
            info->template_id = true;
        } else {
            emit(d, s == start ? "" : "::");
            s = read_component(d, s, scope, info);
        }
        s += *s == 'M'; /* the scope of a member's initializer, not written */
        if (*component != 'S' && *component != 'T' && *s != 'E') {
            add_sub(d, start, s);
        }
    }
    leave(d);
    return s;
}

static const char *read_nested(struct demangler *d, const char *s, struct name_info *info)
{
    info->quals = ++s;
    s += strspn(s, "rVK");
    info->quals_end = s;
    info->ref = *s == 'R' ? " &" : *s == 'O' ? " &&" : "";
    s += *s == 'R' || *s == 'O';
    return expect(d, read_prefix(d, s, NULL, info), 'E');
}

static const char *read_discriminator(struct demangler *d, const char *s)
{
    unsigned long unused;
    if (*s != '_') {
        return s;
    }
    if (s[1] == '_') {
        return expect(d, read_number(d, s + 2, &unused), '_');
    }
    return kp_is_digit(s[1]) ? s + 2 : s;
}

/* Reads an entity inside a function, which is written with its signature. */
static const char *read_local(struct demangler *d, const char *s, struct name_info *info)
{
    s = expect(d, read_encoding(d, s + 1, !d->names_only), 'E');
    emit(d, "::");
    if (*s == 's') {
        emit(d, "[string literal]");
        s++;
    } else {
        if (*s == 'd') {
            unsigned long index;
            s = read_index(d, s + 1, &index);
            emit_number(d, "[default argument ", index + 1, " (from end)]::");
        }
        s = read_name(d, s, info);
    }
    return read_discriminator(d, s);
}

static const char *read_name(struct demangler *d, const char *s, struct name_info *info)
{
    const char *start = s;
    if (!enter(d)) {
        return d->end;
    }
    if (*s == 'N') {
        s = read_nested(d, s, info);
    } else if (*s == 'Z') {
        s = read_local(d, s, info);
    } else if (*s == 'S' && s[1] != 't') { /* an earlier template with other arguments */
        s = read_template_args(d, read_substitution(d, s));
        info->template_id = true;
    } else {
        if (starts(s, "St")) {
            emit(d, "std::");
            s += 2;
        }
        s = read_unqualified(d, s, info);
        if (*s == 'I') {
            add_sub(d, start, s);
            s = read_template_args(d, s);
            info->template_id = true;
        }
    }
    leave(d);
    return s;
}

/* ---- types ---- */

static const char *const builtins[26] = {
    ['a' - 'a'] = "signed char", ['b' - 'a'] = "bool",
    ['c' - 'a'] = "char",        ['d' - 'a'] = "double",
    ['e' - 'a'] = "long double", ['f' - 'a'] = "float",
    ['g' - 'a'] = "__float128",  ['h' - 'a'] = "unsigned char",
    ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
    ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
    ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
    ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
    ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
    ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
    ['z' - 'a'] = "...",
};

/* Types of two letters, the first being D. */
static const char *const more_builtins[26] = {
    ['a' - 'a'] = "auto",       ['c' - 'a'] = "decltype(auto)", ['d' - 'a'] = "decimal64",
    ['e' - 'a'] = "decimal128", ['f' - 'a'] = "decimal32",      ['h' - 'a'] = "half",
    ['i' - 'a'] = "char32_t",   ['n' - 'a'] = "std::nullptr_t", ['s' - 'a'] = "char16_t",
    ['u' - 'a'] = "char8_t",
};

static const char *builtin_text(const char *s, size_t *length)
{
    const char *const *table = *s == 'D' ? more_builtins : builtins;
    char letter = *s == 'D' ? s[1] : *s;
    *length = *s == 'D' ? 2 : 1;
    return letter >= 'a' && letter <= 'z' ? table[letter - 'a'] : NULL;
}

/* Skips `const` and the like; for functions also `noexcept` (Do). */
static const char *skip_quals(const char *s)
{
    for (;;) {
        if (*s && strchr("rVK", *s)) {
            s++;
        } else if (starts(s, "Do")) {
            s += 2;
        } else {
            return s;
        }
    }
}

/* Returns the letter of a type's kind, after qualifiers and substitutions; '\0' for the name of a class. */
static char kind_of(const struct demangler *d, const char *s)
{
    struct sub sub;
    for (;;) {
        s = skip_quals(s);
        const char *end = find_sub(d, s, &sub);
        if (!end || sub.end || *end == 'I') {
            return end ? '\0' : *s;
        }
        s = sub.start;
    }
}

static bool is_pointer(const struct demangler *d, const char *s)
{
    char kind = kind_of(d, s);
    return kind && strchr("PROM", kind);
}

/* Returns true if a type continues after the declarator, so that a pointer to it needs parentheses. */
static bool has_right(const struct demangler *d, const char *s)
{
    char kind = kind_of(d, s);
    return kind == 'F' || kind == 'A';
}

static const char *skip_type(struct demangler *d, const char *s)
{
    d->mute++;
    s = read_type(d, s);
    d->mute--;
    return s;
}

static void emit_quals(struct demangler *d, const char *s, const char *end, const char *before, const char *after)
{
    /* In NVIDIA's order; the mangled name has them reversed. */
    static const struct {
        char code;
        const char *text;
    } quals[] = {{'K', "const"}, {'V', "volatile"}, {'r', "__restrict__"}};
    if (s == end) {
        return;
    }
    for (size_t i = 0; i < sizeof quals / sizeof *quals; i++) {
        if (memchr(s, quals[i].code, (size_t)(end - s))) {
            emit(d, before);
            emit(d, quals[i].text);
            before = " ";
        }
    }
    emit(d, after);
}

static const char *left_of_pointer(struct demangler *d, const char *s, const char *mark)
{
    const char *end = read_left(d, s);
    if (has_right(d, s)) {
        emit(d, "(");
    } else if (d->len && !strchr("*&(", d->text[d->len - 1])) {
        emit(d, " ");
    }
    emit(d, mark);
    return end;
}

static const char *left_of_member_pointer(struct demangler *d, const char *s)
{
    const char *class = s;
    const char *member = skip_type(d, class);
    const char *end = read_left(d, member);
    if (has_right(d, member)) {
        emit(d, "(");
    } else {
        emit_space(d);
    }
    d->replay++;
    read_type(d, class);
    d->replay--;
    emit(d, "::*");
    return end;
}

static const char *left_of_function(struct demangler *d, const char *s)
{
    s += *s == 'Y'; /* extern "C" */
    s = read_left(d, s);
    emit_space(d);
    d->mute++;
    s = read_parameters(d, s);
    d->mute--;
    s += *s == 'R' || *s == 'O';
    return expect(d, s, 'E');
}

static const char *left_of_array(struct demangler *d, const char *s)
{
    d->mute++;
    if (kp_is_digit(*s)) {
        s += strspn(s, "0123456789");
    } else if (*s != '_') {
        s = read_expression(d, s);
    }
    d->mute--;
    s = read_left(d, expect(d, s, '_'));
    emit_space(d);
    return s;
}

static const char *left_of_qualified(struct demangler *d, const char *s)
{
    const char *base = skip_quals(s);
    if (*base == 'F') { /* of a member function: written after its parameters */
        return left_of_function(d, base + 1);
    }
    if (strspn(s, "rVK") != (size_t)(base - s)) {
        return fail(d, -EINVAL);
    }
    if (is_pointer(d, base)) {
        const char *end = read_left(d, base);
        emit_quals(d, s, base, "", "");
        return end;
    }
    emit_quals(d, s, base, "", " ");
    return read_left(d, base);
}

/* Reads `DF16_` as _Float16, `DF32x` as _Float32x, `DF16b` as bfloat16. */
static const char *read_float_type(struct demangler *d, const char *s)
{
    unsigned long bits;
    s = read_number(d, s + 2, &bits);
    if (*s == 'b') {
        emit(d, "std::bfloat16_t");
    } else {
        emit_number(d, "_Float", bits, *s == 'x' ? "x" : "");
    }
    return *s && strchr("b_x", *s) ? s + 1 : fail(d, -EINVAL);
}

/* Reads the name of a class, a template parameter or an abbreviation, with template arguments if any. */
static const char *read_class(struct demangler *d, const char *s, bool *known)
{
    struct name_info unused = {0};
    const char *end;
    if (*s == 'T') {
        end = read_template_param(d, s);
        *known = true;
        /* In `operator T1<int>` the arguments are the operator's. */
        if (*end != 'I' || d->in_conversion) {
            return end;
        }
    } else if (*s == 'S' && s[1] != 't') {
        end = read_substitution(d, s);
        *known = true;
        if (*end != 'I') {
            return end;
        }
    } else {
        return read_name(d, s, &unused);
    }
    *known = false;
    return read_template_args(d, end);
}

static const char *left_of_vendor_type(struct demangler *d, const char *s)
{
    s = read_source_name(d, s);
    return *s == 'I' ? read_template_args(d, s) : s;
}

/* Writes the part of a type before its declarator. *known: the type adds nothing to the table of substitutions. */
static const char *left_of(struct demangler *d, const char *s, bool *known)
{
    switch (*s) {
    case 'r':
    case 'V':
    case 'K':
        return left_of_qualified(d, s);
    case 'P':
        return left_of_pointer(d, s + 1, "*");
    case 'R':
        return left_of_pointer(d, s + 1, "&");
    case 'O':
        return left_of_pointer(d, s + 1, "&&");
    case 'M':
        return left_of_member_pointer(d, s + 1);
    case 'F':
        return left_of_function(d, s + 1);
    case 'A':
        return left_of_array(d, s + 1);
    case 'u':
        return left_of_vendor_type(d, s + 1);
    case 'C':
        s = read_left(d, s + 1);
        emit(d, " _Complex");
        return s;
    case 'D':
        if (s[1] == 'p') {
            s = read_type(d, s + 2);
            emit(d, "...");
            return s;
        }
        if (s[1] == 'F') {
            *known = true;
            return read_float_type(d, s);
        }
        return s[1] == 'o' ? left_of_qualified(d, s) : read_decltype(d, s);
    default:
        return read_class(d, s, known);
    }
}

static const char *read_left(struct demangler *d, const char *s)
{
    size_t length;
    const char *text = builtin_text(s, &length);
    if (text) {
        emit(d, text);
        return s + length;
    }
    if (!enter(d)) {
        return d->end;
    }
    bool known = false;
    const char *end = left_of(d, s, &known);
    if (!known) {
        add_sub(d, s, NULL);
    }
    leave(d);
    return end;
}

static void right_of_function(struct demangler *d, const char *quals, const char *s)
{
    const char *result = s + 1 + (s[1] == 'Y');
    s = read_parameters(d, skip_type(d, result));
    emit_quals(d, quals, quals + strspn(quals, "rVK"), " ", "");
    emit(d, *s == 'R' ? " &" : *s == 'O' ? " &&" : "");
    emit(d, starts(quals + strspn(quals, "rVK"), "Do") ? " noexcept" : "");
    write_right(d, result);
}

static void right_of_array(struct demangler *d, const char *s)
{
    const char *dimension = s + 1;
    const char *element = dimension + strspn(dimension, "0123456789");
    emit(d, "[");
    emit_n(d, dimension, (size_t)(element - dimension));
    if (*element != '_') {
        element = read_expression(d, element);
    }
    emit(d, "]");
    write_right(d, d->err ? d->end : element + 1);
}

/* Writes the part of a type after its declarator. The left part has been read already. */
static void write_right(struct demangler *d, const char *s)
{
    struct sub sub;
    const char *base = skip_quals(s);
    if (d->mute || !enter(d)) {
        return;
    }
    d->replay++;
    if (*base == 'P' || *base == 'R' || *base == 'O' || *base == 'M') {
        const char *pointee = *base == 'M' ? skip_type(d, base + 1) : base + 1;
        emit(d, has_right(d, pointee) ? ")" : "");
        write_right(d, pointee);
    } else if (*base == 'F') {
        right_of_function(d, s, base);
    } else if (*base == 'A') {
        right_of_array(d, base);
    } else if (find_sub(d, base, &sub) && !sub.end) {
        write_right(d, sub.start);
    }
    d->replay--;
    leave(d);
}

static const char *read_type(struct demangler *d, const char *s)
{
    const char *end = read_left(d, s);
    write_right(d, s);
    return end;
}

/* ---- template arguments and expressions ---- */

static const char *read_literal(struct demangler *d, const char *s)
{
    if (starts(s, "L_Z")) {
        return expect(d, read_encoding(d, s + strlen("L_Z"), false), 'E');
    }
    emit(d, "(");
    s = read_type(d, s + 1);
    emit(d, ")");
    if (*s == 'n') {
        emit(d, "-");
        s++;
    }
    size_t n = strcspn(s, "E");
    emit_n(d, s, n);
    return expect(d, s + n, 'E');
}

/* Reads up to the E. A pack (J) is written flat; an empty one still leaves its separator: `Lambda<(long)0, >`. */
static const char *read_args(struct demangler *d, const char *s)
{
    const char *separator = "";
    if (!enter(d)) {
        return d->end;
    }
    while (*s && *s != 'E') {
        emit(d, separator);
        separator = ", ";
        if (*s == 'J' || *s == 'I') { /* I: GCC before 4.7 and its libraries' old names */
            s = read_args(d, s + 1);
        } else if (*s == 'X') {
            s = expect(d, read_expression(d, s + 1), 'E');
        } else if (*s == 'L') {
            s = read_literal(d, s);
        } else {
            s = read_type(d, s);
        }
    }
    leave(d);
    return expect(d, s, 'E');
}

static const char *read_template_args(struct demangler *d, const char *s)
{
    bool outer = d->in_conversion;
    d->in_conversion = false;
    d->mute += d->names_only;
    emit(d, d->len && d->text[d->len - 1] == '<' ? " <" : "<"); /* after `operator <` */
    s = read_args(d, expect(d, s, 'I'));
    emit(d, ">");
    d->mute -= d->names_only;
    d->in_conversion = outer;
    return s;
}

static const char *read_operand(struct demangler *d, const char *s)
{
    emit(d, "(");
    s = read_expression(d, s);
    emit(d, ")");
    return s;
}

/* Reads expressions up to and including the E. */
static const char *read_operands(struct demangler *d, const char *s, const char *open, const char *close)
{
    const char *separator = "";
    emit(d, open);
    while (*s && *s != 'E') {
        emit(d, separator);
        separator = ", ";
        s = read_expression(d, s);
    }
    emit(d, close);
    return expect(d, s, 'E');
}

/* Reads `fp_`, the first parameter of the function, or `fL0p_`, that of an enclosing one. */
static const char *read_function_param(struct demangler *d, const char *s)
{
    unsigned long index, unused;
    if (starts(s, "fpT")) {
        emit(d, "this");
        return s + strlen("fpT");
    }
    s = s[1] == 'L' ? expect(d, read_number(d, s + 2, &unused), 'p') : s + 2;
    s = read_index(d, s + strspn(s, "rVK"), &index);
    emit_number(d, "param#", index + 1, "");
    return s;
}

/* Reads a name in an expression, with its template arguments if any. */
static const char *read_simple_id(struct demangler *d, const char *s)
{
    struct name_info unused = {0};
    s += starts(s, "on") || starts(s, "dn") ? 2 : 0;
    s = read_unqualified(d, s, &unused);
    return *s == 'I' ? read_template_args(d, s) : s;
}

static bool is_simple_id(const char *s)
{
    return kp_is_digit(*s) || starts(s, "on") || starts(s, "dn");
}

/* Reads `sr` scopes E name, `srN` type scopes E name, or `sr` type name. */
static const char *read_scoped_id(struct demangler *d, const char *s)
{
    bool several = s[2] == 'N';
    s += 2 + several;
    s = kp_is_digit(*s) ? read_simple_id(d, s) : read_type(d, s);
    while (kp_is_digit(*s)) {
        emit(d, "::");
        s = read_simple_id(d, s);
    }
    if (*s == 'E' && is_simple_id(s + 1)) {
        emit(d, "::");
        return read_simple_id(d, s + 1);
    }
    return s;
}

static const char *read_conversion(struct demangler *d, const char *s)
{
    emit(d, "(");
    s = read_type(d, s + 2);
    emit(d, ")");
    return *s == '_' ? read_operands(d, s + 1, "(", ")") : read_operand(d, s);
}

static const char *read_cast(struct demangler *d, const char *s, const char *keyword)
{
    emit(d, keyword);
    s = read_type(d, s + 2);
    emit(d, ">");
    return read_operand(d, s);
}

static const char *read_of_type(struct demangler *d, const char *s, const char *keyword)
{
    emit(d, keyword);
    s = read_type(d, s + 2);
    emit(d, ")");
    return s;
}

/* Reads constructs with a form of their own, by their first letters. NULL when `s` starts none of them. */
static const char *read_special_expression(struct demangler *d, const char *s)
{
    static const struct {
        const char *code, *text;
        const char *(*read)(struct demangler *, const char *, const char *);
    } rows[] = {
        {"sc", "static_cast<", read_cast},      {"dc", "dynamic_cast<", read_cast}, {"cc", "const_cast<", read_cast},
        {"rc", "reinterpret_cast<", read_cast}, {"st", "sizeof(", read_of_type},    {"at", "alignof(", read_of_type},
        {"ti", "typeid(", read_of_type},        {"sZ", "sizeof...(", read_of_type},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (starts(s, rows[i].code)) {
            return rows[i].read(d, s, rows[i].text);
        }
    }
    if (starts(s, "fp") || starts(s, "fL")) {
        return read_function_param(d, s);
    }
    if (starts(s, "sr")) {
        return read_scoped_id(d, s);
    }
    if (starts(s, "cv")) {
        return read_conversion(d, s);
    }
    if (starts(s, "cl")) {
        return read_operands(d, read_expression(d, s + 2), "(", ")");
    }
    if (starts(s, "il")) {
        return read_operands(d, s + 2, "{", "}");
    }
    if (starts(s, "tl")) {
        return read_operands(d, read_type(d, s + 2), "{", "}");
    }
    if (starts(s, "sp")) {
        s = read_expression(d, s + 2);
        emit(d, "...");
        return s;
    }
    if (is_simple_id(s)) {
        return read_simple_id(d, s);
    }
    return NULL;
}

static const char *read_operation(struct demangler *d, const char *s)
{
    const struct operator_row *op = find_operator(s);
    if (!op) {
        return fail(d, -EINVAL);
    }
    s += 2;
    if (op->operands == 1) {
        s += *s == '_'; /* `pp_` is the prefix form */
        emit(d, op->text);
        return read_operand(d, s);
    }
    if (op->operands == 2) {
        s = read_operand(d, s);
        emit(d, op->text);
        return read_operand(d, s);
    }
    if (!strcmp(op->code, "qu")) {
        s = read_operand(d, s);
        emit(d, "?");
        s = read_operand(d, s);
        emit(d, ":");
        return read_operand(d, s);
    }
    if (!strcmp(op->code, "ix")) {
        s = read_operand(d, s);
        emit(d, "[");
        s = read_expression(d, s);
        emit(d, "]");
        return s;
    }
    return fail(d, -EINVAL);
}

static const char *read_member_access(struct demangler *d, const char *s, const char *mark)
{
    s = read_operand(d, s + 2);
    emit(d, mark);
    return read_simple_id(d, s);
}

static const char *read_expression(struct demangler *d, const char *s)
{
    if (!enter(d)) {
        return d->end;
    }
    const char *end;
    if (*s == 'L') {
        end = read_literal(d, s);
    } else if (*s == 'T') { /* a value: no type, so no substitution */
        d->replay++;
        end = read_template_param(d, s);
        d->replay--;
    } else if (starts(s, "adL_Z")) { /* a function or variable: only its name, no parentheses */
        emit(d, "&");
        end = read_literal(d, s + 2);
    } else if (starts(s, "dt")) {
        end = read_member_access(d, s, ".");
    } else if (starts(s, "pt")) {
        end = read_member_access(d, s, "->");
    } else {
        end = read_special_expression(d, s);
        end = end ? end : read_operation(d, s);
    }
    leave(d);
    return end;
}

/* ---- the whole ---- */

/* Reads a function or variable; without `signature`, its name only. Ends at the E of the enclosing construct. */
static const char *read_encoding(struct demangler *d, const char *s, bool signature)
{
    struct name_info info = {0};
    size_t start = d->len;
    if (!enter(d)) {
        return d->end;
    }
    s = read_name(d, s, &info);
    if (*s && *s != 'E') {
        const char *result = info.template_id && !info.no_return ? s : NULL;
        d->mute += !signature;
        if (result) {
            size_t name_end = d->len;
            s = read_left(d, s);
            emit_space(d);
            swap_texts(d, start, name_end);
        }
        s = read_parameters(d, s);
        if (info.quals) {
            emit_quals(d, info.quals, info.quals_end, " ", "");
            emit(d, info.ref);
        }
        if (result) {
            write_right(d, result);
        }
        d->mute -= !signature;
    }
    leave(d);
    return s;
}

/* Returns the text of a name; NULL with *err set as in struct demangler. */
static char *demangle(const char *mangled, bool signature, bool names_only, int *err)
{
    static const char prefix[] = "_Z";
    struct demangler d = {.end = mangled + strlen(mangled), .names_only = names_only};
    if (!starts(mangled, prefix) || *read_encoding(&d, mangled + strlen(prefix), signature)) {
        fail(&d, -EINVAL);
    }
    free(d.subs);
    if (d.err) {
        free(d.text);
        d.text = NULL;
    }
    *err = d.err;
    return d.text;
}

/* nvcc makes `static` kernels, and those of unnamed namespaces, unique by a prefix when device code is linked:
 * `__nv_static_21__1e1ceecd_4_a_cu_main__Z4initPi`. The number is the length of the part that names the source file.
 * Returns the name after the prefix, or the symbol if it has none. */
static const char *behind_static_prefix(const char *symbol)
{
    static const char prefix[] = "__nv_static_";
    size_t n = 0;
    if (!starts(symbol, prefix)) {
        return symbol;
    }
    const char *s = symbol + strlen(prefix);
    for (; kp_is_digit(*s) && n < TEXT_MAX; s++) {
        n = n * 10 + (size_t)(*s - '0');
    }
    if (!n || *s != '_' || strnlen(s + 1, n + 2) < n + 2 || s[1 + n] != '_') {
        return symbol;
    }
    return s + 1 + n + 1;
}

/* Returns a copy of what stands for a symbol whose name has no other text. */
static char *as_it_is(const char *symbol, const char *name)
{
    return strdup(starts(name, "_Z") ? symbol : name);
}

char *kp_demangle(const char *symbol)
{
    int err;
    const char *mangled = behind_static_prefix(symbol);
    char *text = demangle(mangled, true, false, &err);
    return text || err == -ENOMEM ? text : as_it_is(symbol, mangled);
}

char *kp_demangle_function(const char *symbol)
{
    int err;
    const char *mangled = behind_static_prefix(symbol);
    size_t length = strcspn(mangled, ".");
    bool is_part =
        !strncmp(mangled, "_Z", 2) && mangled[length]; /* `.cold` and the like: parts that the compiler split off */
    char *whole = is_part ? strndup(mangled, length) : strdup(mangled);
    char *text = whole ? demangle(whole, false, true, &err) : NULL;
    free(whole);
    return text ? text : as_it_is(symbol, mangled);
}

char *kp_demangle_base(const char *symbol)
{
    int err;
    const char *mangled = behind_static_prefix(symbol);
    char *text = demangle(mangled, false, false, &err);
    if (!text) {
        return err == -ENOMEM ? NULL : as_it_is(symbol, mangled);
    }
    size_t start, length;
    last_component(text, strlen(text), &start, &length);
    memmove(text, text + start, length);
    text[length] = '\0';
    return text;
}
