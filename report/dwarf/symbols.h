/*
 * Functions and source lines of addresses in executables and shared libraries, from their symbol tables and DWARF.
 * What is behind this header is a shared library of its own, since it needs elfutils: libkprof.so loads it when a
 * program with call stacks ends, from beside itself, and does without where that fails.
 */
#ifndef KP_REPORT_DWARF_SYMBOLS_H
#define KP_REPORT_DWARF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define KP_SYMBOLS_LIBRARY "libkprof-symbols.so"
/* Its one function, kp_symbols_resolve_fn. The number changes with what it takes and gives. */
#define KP_SYMBOLS_FUNCTION "kp_symbols_resolve_1"

/* A place in the source; all NULL or 0 where it is not known. */
struct kp_symbol_place {
    const char *function; /* as the linker knows it: mangled */
    const char *file;     /* absolute, unless the compiler was not told where it was */
    uint32_t line;
};

/* What it is called with for each address that something is known of: `index` of the address, and its places, that of
 * the innermost inlined function first, then the one that this was inlined at and so on, the function itself last.
 * `places` and their texts are valid during the call. */
typedef void kp_symbols_found_fn(void *arg, size_t index, const struct kp_symbol_place *places, size_t n);

/* Looks up addresses[n], as the file `path` counts them, ascending and each once. `build_id` of the file that was in
 * memory; NULL when it had none. Debug information may also be in a file of its own below /usr/lib/debug; nothing is
 * downloaded. Names of functions take a pass over the symbols, whatever `n` is; lines the reading of each compilation
 * unit that one is in. 0; -ENOENT when there is no such file any more, or another one has its place; -EINVAL when it
 * cannot be read; -ENOMEM. Threads: any. */
typedef int kp_symbols_resolve_fn(const char *path, const unsigned char *build_id, size_t build_id_size,
                                  const uint64_t *addresses, size_t n, kp_symbols_found_fn *found, void *arg);

#endif
