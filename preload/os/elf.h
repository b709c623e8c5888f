/*
 * The loaded ELF objects of this process, read straight from memory. Needed because this library's own doors stand in
 * front of dlsym and dlvsym: the real ones cannot be asked for through themselves, and dlopen may live in libc or
 * libdl.
 *
 * Threads: any; the loader's own lock is held during a walk, and a fork waits for it to end. Nothing is allocated.
 */
#ifndef KP_PRELOAD_OS_ELF_H
#define KP_PRELOAD_OS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address of function `name` in the first loaded object, in load order, that comes after this library. Calls no
 * function, not even of libc, and takes no lock: for the first look-up of all, which may be made by another library's
 * initialiser (a sanitiser's, say) before anything works. NULL when absent. */
void *kp_elf_bootstrap(const char *name);

/* Address of function `name` in the first loaded object, in load order, whose file name (without folder) or soname
 * begins with `soname`; any object when `soname` is NULL. This library itself is never searched. NULL when absent. */
void *kp_elf_find(const char *soname, const char *name);

/* Address of function `name` as the dynamic linker would bind it for the code at `caller`, had this library not been
 * there: the objects that the caller's object names as needed, breadth first, then all others in load order. */
void *kp_elf_find_for(const void *caller, const char *name);

/* Folder of the loaded object that `address` lies in. False when unknown or too long. */
bool kp_elf_directory_of(const void *address, char *dir, size_t size);

/* Folder of the first loaded object whose name begins with `soname`. */
bool kp_elf_directory(const char *soname, char *dir, size_t size);

/* The addresses from the first byte of the loaded object that `address` lies in to its last. False: it is in none. */
struct kp_elf_range {
    uintptr_t start, end;
};
bool kp_elf_range(const void *address, struct kp_elf_range *out);

/* Whether two addresses lie in the same loaded object. */
bool kp_elf_same(const void *a, const void *b);

/* Whether `address` lies in this library. Takes no lock. */
bool kp_elf_is_own(const void *address);

#endif
