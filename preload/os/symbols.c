#include "preload/os/symbols.h"

#include <dlfcn.h>
#include <string.h>

#include "preload/os/elf.h"

static const char driver_soname[] = "libcuda.so";

void *(*kp_real_dlsym)(void *handle, const char *name);
void *(*kp_real_dlvsym)(void *handle, const char *name, const char *version);
void *(*kp_real_dlopen)(const char *file, int flags);
void *(*kp_real_dlmopen)(long space, const char *file, int flags);
int (*kp_real_dlclose)(void *library);

static struct kp_dl loader;

/* Finds a dlfcn function: they live in libc from glibc 2.34 on, in libdl before. Another interposer of dlsym after us
 * comes first, in the dynamic linker's order. */
static void *find_libc(const char *name)
{
    return kp_elf_bootstrap(name);
}

void kp_symbols_init(void)
{
    void *sym = find_libc("dlsym"), *vsym = find_libc("dlvsym"), *open = find_libc("dlopen"),
         *mopen = find_libc("dlmopen"), *close = find_libc("dlclose");
    memcpy(&loader.open, &open, sizeof(open));
    memcpy(&kp_real_dlopen, &open, sizeof(open));
    memcpy(&kp_real_dlmopen, &mopen, sizeof(mopen));
    memcpy(&kp_real_dlclose, &close, sizeof(close));
    memcpy(&loader.sym, &sym, sizeof(sym));
    loader.directory_of = kp_elf_directory_of;
    loader.same_file = kp_elf_same;
    memcpy(&kp_real_dlvsym, &vsym, sizeof(vsym));
    memcpy(&kp_real_dlsym, &sym, sizeof(sym));
}

void *kp_symbols_driver(const char *symbol)
{
    return kp_elf_find(driver_soname, symbol);
}

/* Calls dlsym only if another library has the symbol, too: it would clear the error that the program's dlerror is to
 * return. */
void *kp_symbols_behind_door(const char *symbol)
{
    void *only = symbol[0] == 'c' && symbol[1] == 'u' ? kp_elf_find_only(driver_soname, symbol) : NULL;
    if (only)
        return only;
    if (!kp_real_dlsym)
        kp_symbols_init();
    void *next = kp_real_dlsym ? kp_real_dlsym(RTLD_NEXT, symbol) : NULL;
    return next ? next : kp_symbols_driver(symbol);
}

const struct kp_dl *kp_symbols_dl(void)
{
    if (!loader.sym)
        kp_symbols_init();
    return &loader;
}
