/*
 * Finds functions and source lines of addresses in executables and shared libraries, from their symbol tables and
 * DWARF. The implementation is a separate shared library because it needs elfutils. libkprof.so loads it from its own
 * folder when a program with call stacks ends. Without it, stacks lack lines.
 */
#ifndef KP_REPORT_DWARF_SYMBOLS_H
#define KP_REPORT_DWARF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define KP_SYMBOLS_LIBRARY "libkprof-symbols.so"
/* The name of its one function, kp_symbols_resolve_fn. The number changes with the interface. */
#define KP_SYMBOLS_FUNCTION "kp_symbols_resolve_1"

/* A place in the source; all NULL or 0 if unknown. */
struct kp_symbol_place {
    const char *function; /* mangled, the linker's name */
    const char *file;     /* absolute, unless the compiler did not record its folder */
    uint32_t line;
};

/* Receives the places of one address, by its `index`; not called for unknown addresses. The innermost inlined
 * function comes first, then each caller, the function itself last. `places` and their texts are valid during the
 * call. */
typedef void kp_symbols_found_fn(void *arg, size_t index, const struct kp_symbol_place *places, size_t n);

/* Looks up addresses[n] in the file `path`, ascending and each once, in the file's own addresses. `build_id` is that of
 * the file in memory; NULL when it had none. Debug information may also be in a separate file below /usr/lib/debug;
 * nothing is downloaded. Function names need one pass over the symbols, whatever `n` is; lines need one reading of each
 * compilation unit involved. 0; -ENOENT when the file is gone or replaced; -EINVAL when unreadable; -ENOMEM. Threads:
 * any. */
typedef int kp_symbols_resolve_fn(const char *path, const unsigned char *build_id, size_t build_id_size,
                                  const uint64_t *addresses, size_t n, kp_symbols_found_fn *found, void *arg);

#endif
