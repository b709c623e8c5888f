#include "preload/who/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/os/symbols.h"

/* Reads from a line table the line of a frame's call. `at` is the call's place in the code (in the version's own
 * unit), `first` the line that the code starts at. 0 for code without a line. */
typedef uint32_t line_reader(const uint8_t *table, size_t size, int64_t at, uint32_t first);
static line_reader lnotab, linetable, locations;

enum { KP_NONE = -1 };

/* Marks code without a line. */
enum { NO_LINE = INT32_MIN };

/* A row of python.def, which explains the fields. */
struct layout {
    int minor;
    line_reader *lines;
    int top, cframe;
    int code, back, at, owner;
    int first, name, file, table, start;
    int ascii, compact;
};

static const struct layout layouts[] = {
#define KP_PYTHON(...) {__VA_ARGS__},
#include "preload/who/python.def"
#undef KP_PYTHON
};

/* The heads of objects, the same in all versions: PyObject.ob_type, PyVarObject.ob_size, PyBytesObject.ob_sval,
 * PyASCIIObject.length and .state with its bits. */
enum { OB_TYPE = 8, OB_SIZE = 16, BYTES_VALUE = 32, TEXT_LENGTH = 16, TEXT_STATE = 32 };
enum { STATE_KIND_SHIFT = 2, STATE_KIND_MASK = 7, STATE_COMPACT = 1 << 5, STATE_ASCII = 1 << 6 };

/* _PyInterpreterFrame.owner of a frame that only represents a C function of the interpreter. */
enum { OWNED_BY_C_STACK = 3 };

/* Larger sizes mean misread memory, not a table or a name. */
enum { TABLE_MOST = 1 << 24, TEXT_MOST = 1 << 16 };

/* Data about the interpreter in this process. Two threads that look at the same time find the same, so each field may
 * be written twice. `layout` is written last, and is NULL until everything can be read. */
static struct {
    _Atomic(const struct layout *) layout;
    _Atomic(void *) thread_state, is_finalizing, code_type, text_type;
    _Atomic(const char *) why_not;
    atomic_uint looks;
} python;

static void *symbol(const char *name)
{
    return kp_real_dlsym(RTLD_DEFAULT, name);
}

/* Returns the row of a version text such as "3.12.1 (main, …)"; alphas and betas may differ from the release. */
static const struct layout *find_layout(const char *version)
{
    int major, minor, patch;
    char stage = '\0';
    if (sscanf(version, "%d.%d.%d%c", &major, &minor, &patch, &stage) < 3 || major != 3 || stage == 'a' || stage == 'b')
        return NULL;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

static const struct layout *choose_layout(const char *version, const char **why_not)
{
    const struct layout *found = NULL;
    if (symbol("_Py_NegativeRefcount")) /* exported only by builds that check references: Py_DEBUG, Py_TRACE_REFS */
        *why_not = "it is a debug build of CPython";
    else if (strstr(version, "free-threading"))
        *why_not = "it is a free-threaded build of CPython";
    else if (!(found = find_layout(version)))
        *why_not = "its version of CPython is not known";
    return found;
}

static const struct layout *look(void)
{
    void *state = symbol("PyGILState_GetThisThreadState"), *get_version = symbol("Py_GetVersion");
    void *code = symbol("PyCode_Type"), *text = symbol("PyUnicode_Type");
    void *ending = symbol("Py_IsFinalizing"); /* its name since 3.13 */
    if (!ending)
        ending = symbol("_Py_IsFinalizing");
    if (!state || !get_version || !code || !text || !ending)
        return NULL;
    const char *why_not = NULL;
    const struct layout *l = choose_layout(((const char *(*)(void))(uintptr_t)get_version)(), &why_not);
    atomic_store(&python.thread_state, state);
    atomic_store(&python.is_finalizing, ending);
    atomic_store(&python.code_type, code);
    atomic_store(&python.text_type, text);
    atomic_store(&python.why_not, why_not);
    atomic_store(&python.layout, l);
    return l;
}

/* Looks for an interpreter. A program may load Python after its first launches, but without Python the search must
 * become rare: after each failed look, as many calls pass as before it. */
static const struct layout *interpreter(void)
{
    const struct layout *l = atomic_load_explicit(&python.layout, memory_order_acquire);
    if (l || atomic_load_explicit(&python.why_not, memory_order_relaxed) || !kp_real_dlsym)
        return l;
    unsigned nth = atomic_fetch_add_explicit(&python.looks, 1, memory_order_relaxed) + 1;
    return nth & (nth - 1) ? NULL : look();
}

const char *kp_python_why_not(void)
{
    return atomic_load(&python.why_not);
}

static const void *pointer_at(const void *object, int offset)
{
    const void *p;
    memcpy(&p, (const char *)object + offset, sizeof(p));
    return p;
}

static int32_t int_at(const void *object, int offset)
{
    int32_t v;
    memcpy(&v, (const char *)object + offset, sizeof(v));
    return v;
}

static bool is_a(const void *object, const _Atomic(void *) *type)
{
    return object && pointer_at(object, OB_TYPE) == atomic_load_explicit(type, memory_order_relaxed);
}

/* Returns the size field of an object, SIZE_MAX when implausible. */
static size_t size_at(const void *object, int offset, size_t most)
{
    size_t n = (size_t)pointer_at(object, offset);
    return n <= most ? n : SIZE_MAX;
}

/* --- line tables: CPython's Objects/lnotab_notes.txt, from 3.11 on Objects/locations.md --- */

/* 3.9: pairs of bytes: code to advance, and lines to advance after it. */
static uint32_t lnotab(const uint8_t *table, size_t size, int64_t at, uint32_t first)
{
    int64_t address = 0;
    uint32_t line = first;
    for (size_t i = 0; i + 1 < size; i += 2) {
        address += table[i];
        if (address > at)
            break;
        line += (uint32_t)(int8_t)table[i + 1];
    }
    return line;
}

/* 3.10: pairs of bytes: code, and its line relative to the previous one. A place is in units of two bytes. */
static uint32_t linetable(const uint8_t *table, size_t size, int64_t at, uint32_t first)
{
    enum { NO_STEP = -128, UNIT = 2 };
    int64_t end = 0;
    uint32_t line = first;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t step = (int8_t)table[i + 1];
        if (step != NO_STEP)
            line += (uint32_t)step;
        end += table[i];
        if (end > at * UNIT)
            return step == NO_STEP ? 0 : line;
    }
    return 0;
}

/* Reads a signed number of six bits a byte, lowest first, with its sign in the lowest bit of all. */
static uint32_t signed_varint(const uint8_t *p, const uint8_t *end)
{
    uint32_t v = 0;
    for (unsigned shift = 0; p < end && shift < 32; shift += 6, p++) {
        v |= (uint32_t)(*p & 63) << shift;
        if (!(*p & 64))
            break;
    }
    return v & 1 ? -(v >> 1) : v >> 1;
}

/* Reads a table from 3.11 on: entries start with a byte above 127 that has their form and length in code units. Returns
 * the bytes read to find the line; 0 if the table ends before the place. */
static size_t read_locations(const uint8_t *table, size_t size, int64_t at, int32_t *step)
{
    enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15, START = 128 };
    const uint8_t *p = table, *end = table + size;
    int64_t unit = 0;
    uint32_t line = 0;
    while (p < end) {
        unsigned form = *p >> 3 & 15;
        unit += (*p & 7) + 1;
        p++;
        if (form == NO_COLUMNS || form == LONG)
            line += signed_varint(p, end);
        else if (form >= ONE_LINE_0 && form <= ONE_LINE_2)
            line += form - ONE_LINE_0;
        while (p < end && *p < START)
            p++;
        if (unit > at) {
            *step = form == NO_LOCATION ? NO_LINE : (int32_t)line;
            return (size_t)(p - table);
        }
    }
    return 0;
}

/* Caches answers, because such a table has several entries a line, hundreds before the call of a longer function. Other
 * code may reuse the address, so an answer is checked against the table's bytes, which takes a tenth of the time of
 * reading them. `check` also covers the place and `answer`, so that an entry that two threads write at once is
 * invalid. */
enum { KEPT = 4096 };
static struct {
    atomic_uint_least64_t answer; /* bytes read << 32 | lines after the first */
    atomic_uint_least64_t check;
} kept[KEPT];

static uint64_t mix_words(uint64_t a, uint64_t b)
{
    static const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 over the golden ratio, as in Fibonacci hashing */
    a = (a * odd ^ b) * odd;
    return a ^ a >> 32;
}

/* Fletcher's checksum, of 64-bit words. */
static uint64_t checksum(const uint8_t *p, size_t size)
{
    uint64_t sum = size, sums = 0, word;
    for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        sums += sum += word;
    }
    word = 0;
    memcpy(&word, p, size);
    sum += word;
    return mix_words(sum, sums);
}

static uint32_t locations(const uint8_t *table, size_t size, int64_t at, uint32_t first)
{
    uint64_t place = mix_words((uintptr_t)table, (uint64_t)at);
    size_t i = place % KEPT;
    uint64_t answer = atomic_load_explicit(&kept[i].answer, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&kept[i].check, memory_order_relaxed);
    size_t used = answer >> 32;
    int32_t step = (int32_t)(uint32_t)answer;
    if (!used || used > size || check != mix_words(checksum(table, used), mix_words(place, answer))) {
        used = read_locations(table, size, at, &step);
        if (!used)
            return 0;
        answer = (uint64_t)used << 32 | (uint32_t)step;
        atomic_store_explicit(&kept[i].answer, answer, memory_order_relaxed);
        atomic_store_explicit(&kept[i].check, mix_words(checksum(table, used), mix_words(place, answer)),
                              memory_order_relaxed);
    }
    return step == NO_LINE ? 0 : first + (uint32_t)step;
}

/* --- frames --- */

static uint32_t line_of(const struct layout *l, const void *frame, const void *code)
{
    int64_t at;
    if (l->start == KP_NONE)
        at = int_at(frame, l->at);
    else /* in units of two bytes */
        at = ((intptr_t)pointer_at(frame, l->at) - ((intptr_t)code + l->start)) / 2;
    uint32_t first = (uint32_t)int_at(code, l->first);
    const uint8_t *table = pointer_at(code, l->table);
    size_t size = table ? size_at(table, OB_SIZE, TABLE_MOST) : SIZE_MAX;
    if (at < 0) /* execution has not started */
        return first;
    return size == SIZE_MAX ? 0 : l->lines(table + BYTES_VALUE, size, at, first);
}

/* Returns true if the frame belongs to a Python function: the interpreter also links frames for its own C functions. */
static bool is_python(const struct layout *l, const void *frame)
{
    if (l->owner != KP_NONE && ((const char *)frame)[l->owner] == OWNED_BY_C_STACK)
        return false;
    return is_a(pointer_at(frame, l->code), &python.code_type);
}

static const void *innermost(const struct layout *l)
{
    int (*is_finalizing)(void) = (int (*)(void))(uintptr_t)atomic_load(&python.is_finalizing);
    void *(*thread_state)(void) = (void *(*)(void))(uintptr_t)atomic_load(&python.thread_state);
    /* An ending interpreter frees the states of threads that are still outside it. */
    const void *state = is_finalizing() ? NULL : thread_state();
    const void *top = state ? pointer_at(state, l->top) : NULL;
    return top && l->cframe != KP_NONE ? pointer_at(top, l->cframe) : top;
}

size_t kp_python_frames(struct kp_python_frame *out, size_t cap)
{
    const struct layout *l = interpreter();
    const void *frame = l ? innermost(l) : NULL;
    size_t n = 0;
    /* At most one of the interpreter's own frames lies below each Python function. */
    for (size_t seen = 0; frame && n < cap && seen < 2 * cap; seen++, frame = pointer_at(frame, l->back)) {
        if (!is_python(l, frame))
            continue;
        const void *code = pointer_at(frame, l->code);
        out[n++] = (struct kp_python_frame){.code = code, .line = line_of(l, frame, code)};
    }
    return n;
}

/* --- names --- */

static char *put_utf8(char *to, uint32_t c)
{
    enum { REPLACEMENT = 0xfffd };
    if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff) /* Python's surrogates for undecodable bytes */
        c = REPLACEMENT;
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

static uint32_t character(const char *data, unsigned width, size_t i)
{
    uint32_t c = 0; /* the machine is little-endian */
    memcpy(&c, data + i * width, width);
    return c;
}

/* Copies a Python text as UTF-8, malloc'ed; "" for anything else. NULL if memory is short. */
static char *copy_text(const struct layout *l, const void *text)
{
    enum { UTF8_MOST = 4 };
    size_t length = is_a(text, &python.text_type) ? size_at(text, TEXT_LENGTH, TEXT_MOST) : SIZE_MAX;
    uint32_t state = length != SIZE_MAX ? (uint32_t)int_at(text, TEXT_STATE) : 0;
    unsigned width = state >> STATE_KIND_SHIFT & STATE_KIND_MASK;
    if (!(state & STATE_COMPACT) || (width != 1 && width != 2 && width != 4)) /* not text, or text not yet laid out */
        return strdup("");
    const char *data = (const char *)text + (state & STATE_ASCII ? l->ascii : l->compact);
    char *copy = malloc(length * UTF8_MOST + 1), *end = copy;
    if (!copy)
        return NULL;
    for (size_t i = 0; i < length; i++)
        end = put_utf8(end, character(data, width, i));
    *end = '\0';
    return copy;
}

int kp_python_describe(const struct kp_python_frame *f, char **function, char **file)
{
    const struct layout *l = interpreter();
    bool known = l && is_a(f->code, &python.code_type);
    *function = known ? copy_text(l, pointer_at(f->code, l->name)) : strdup("");
    *file = known ? copy_text(l, pointer_at(f->code, l->file)) : strdup("");
    if (*function && *file)
        return 0;
    free(*function);
    free(*file);
    *function = *file = NULL;
    return -ENOMEM;
}
