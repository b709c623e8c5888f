/*
 * Reads the loaded ELF objects of this process straight from memory. This library's own doors stand in front of dlsym
 * and dlvsym, so these cannot find the real ones, and dlopen may live in libc or libdl. Threads: any; a walk holds the
 * loader's lock, and a fork waits for its end. Allocates nothing.
 */
#ifndef KP_PRELOAD_OS_ELF_H
#define KP_PRELOAD_OS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the address of function `name` in the first loaded object, in load order, after this library. Calls no
 * function, not even of libc, and takes no lock. This is for the very first lookup, which another library's initialiser
 * (a sanitiser's, say) may make before anything works. NULL if absent. */
void *kp_elf_bootstrap(const char *name);

/* Returns the address of function `name` in the first loaded object, in load order, whose file name (without folder) or
 * soname begins with `soname`. NULL `soname` means any object. Never searches this library itself. NULL if absent. */
void *kp_elf_find(const char *soname, const char *name);

/* The same, but NULL if another object has a function of that name, too. */
void *kp_elf_find_only(const char *soname, const char *name);

/* Returns the address of function `name` as the dynamic linker would bind it for the code at `caller`, without this
 * library. Searches the objects that the caller's object needs, breadth first, then all other objects in load order. */
void *kp_elf_find_for(const void *caller, const char *name);

/* Returns the address of this library's own exported function `name`. NULL if absent. Takes no lock. */
void *kp_elf_own(const char *name);

/* Returns the folder of the loaded object around `address`. False if unknown or too long. */
bool kp_elf_directory_of(const void *address, char *dir, size_t size);

/* Returns the folder of the first loaded object whose name begins with `soname`. */
bool kp_elf_directory(const char *soname, char *dir, size_t size);

/* Finds the addresses from the first to the last byte of the loaded object around `address`. Returns false if there is
 * none. */
struct kp_elf_range {
    uintptr_t start, end;
};
bool kp_elf_range(const void *address, struct kp_elf_range *out);

/* Returns true if two addresses lie in the same loaded object. */
bool kp_elf_same(const void *a, const void *b);

/* Returns true if `address` lies in this library. Takes no lock. */
bool kp_elf_is_own(const void *address);

#endif
