/* Compares the row of preload/who/python.def for the Python whose headers this is compiled with. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#include <stddef.h>
#include <stdio.h>

#define KP_NONE (-1)
#if PY_VERSION_HEX < 0x030b0000
#define TOP    offsetof(PyThreadState, frame)
#define CFRAME KP_NONE
#define CODE   offsetof(struct _frame, f_code)
#define BACK   offsetof(struct _frame, f_back)
#define AT     offsetof(struct _frame, f_lasti)
#define NAME   offsetof(PyCodeObject, co_name)
#define START  KP_NONE
#else
#define BACK  offsetof(struct _PyInterpreterFrame, previous)
#define NAME  offsetof(PyCodeObject, co_qualname)
#define START offsetof(PyCodeObject, co_code_adaptive)
#endif
#if PY_VERSION_HEX < 0x030a0000
#define TABLE offsetof(PyCodeObject, co_lnotab)
#else
#define TABLE offsetof(PyCodeObject, co_linetable)
#endif
#if PY_VERSION_HEX < 0x030c0000
#define OWNER KP_NONE
#else
#define OWNER offsetof(struct _PyInterpreterFrame, owner)
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
#define TOP    offsetof(PyThreadState, cframe)
#define CFRAME offsetof(_PyCFrame, current_frame)
#define CODE   offsetof(struct _PyInterpreterFrame, f_code)
#define AT     offsetof(struct _PyInterpreterFrame, prev_instr)
#elif PY_VERSION_HEX >= 0x030d0000
#define TOP    offsetof(PyThreadState, current_frame)
#define CFRAME KP_NONE
#define CODE   offsetof(struct _PyInterpreterFrame, f_executable)
#define AT     offsetof(struct _PyInterpreterFrame, instr_ptr)
#endif

static int faults, rows;

static void compare(const char *what, long in_table, long in_headers)
{
    if (in_table == in_headers)
        return;
    printf("%s: %s is at %ld, in the table at %ld\n", PY_VERSION, what, in_headers, in_table);
    faults++;
}

static void row(long top, long cframe, long code, long back, long at, long owner, long first, long name, long file,
                long table, long start, long ascii, long compact)
{
    rows++;
    compare("top", top, TOP);
    compare("cframe", cframe, CFRAME);
    compare("code", code, CODE);
    compare("back", back, BACK);
    compare("at", at, AT);
    compare("owner", owner, OWNER);
    compare("first", first, offsetof(PyCodeObject, co_firstlineno));
    compare("name", name, NAME);
    compare("file", file, offsetof(PyCodeObject, co_filename));
    compare("table", table, TABLE);
    compare("start", start, START);
    compare("ascii", ascii, sizeof(PyASCIIObject));
    compare("compact", compact, sizeof(PyCompactUnicodeObject));
}

int main(void)
{
#define KP_PYTHON(minor, lines, ...)                                                                                   \
    if (minor == PY_MINOR_VERSION)                                                                                     \
        row(__VA_ARGS__);
#include "preload/who/python.def"
    printf("%s: %d row, %d faults\n", PY_VERSION, rows, faults);
    return rows != 1 || faults;
}
