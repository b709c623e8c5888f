#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/os/elf.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

const struct kp_dl *kp_test_dl(void)
{
    static const struct kp_dl dl = {.open = dlopen, .sym = dlsym, .directory_of = kp_elf_directory_of};
    return &dl;
}

const struct kp_cupti *kp_test_real_cupti(void)
{
    static struct kp_cupti *cupti;
    const char *folder = getenv("KP_REAL_CUPTI");
    char *err = NULL;
    if (!folder || !*folder) {
        print_message("KP_REAL_CUPTI does not name the folder of a libcupti.so.13: nothing to test against\n");
        skip();
    }
    if (!cupti && kp_cupti_load(kp_test_dl(), folder, NULL, &cupti, &err))
        fail_msg("%s", err);
    return cupti;
}

void kp_test_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    if (!f)
        fail_msg("cannot write %s: %s", path, strerror(errno));
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

const char *kp_test_shared_object(const char *folder, const char *name, const char *source, const char *flags)
{
    static char path[PATH_MAX];
    char from[PATH_MAX + 2], command[3 * PATH_MAX];
    const char *compiler = getenv("CC");
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(from, sizeof(from), "%s.c", path);
    kp_test_write(from, source);
    /* These tests ask the dynamic linker by name: soname is the file's own. */
    snprintf(command, sizeof(command), "%s -w -shared -fPIC -Wl,-soname,%s -o '%s' '%s' %s", compiler ? compiler : "cc",
             name, path, from, flags);
    if (system(command))
        fail_msg("the compiler failed: %s", command);
    return path;
}

/* Returns the folders of a variable in build/cuda.mk, which tools/cuda.sh wrote, one by one. */
static char *next_folder(const char *text, const char **at)
{
    const char *line = *at ? *at : strstr(text, "CUDA_CPPFLAGS :=");
    size_t mark = strlen("-isystem ");
    line = line ? strstr(line, "-isystem ") : NULL;
    if (!line)
        return NULL;
    *at = line + mark;
    return strndup(*at, strcspn(*at, " \n"));
}

char *kp_test_toolkit_file(const char *const *below, const char *name)
{
    char *text = kp_test_read(kp_test_source("build/cuda.mk")), *folder, *found = NULL;
    const char *at = NULL;
    while (!found && (folder = next_folder(text, &at))) {
        for (size_t i = 0; below[i] && !found; i++) {
            assert_true(asprintf(&found, "%s/%s/%s", folder, below[i], name) > 0);
            if (access(found, R_OK)) {
                free(found);
                found = NULL;
            }
        }
        free(folder);
    }
    free(text);
    return found;
}

bool kp_test_is_sanitized(void)
{
    const char *variant = getenv("KP_TEST_VARIANT");
    return variant && (!strcmp(variant, "asan") || !strcmp(variant, "ubsan") || !strcmp(variant, "tsan"));
}

void kp_test_skip_sanitized(void)
{
    if (kp_test_is_sanitized())
        skip();
}

Elf64_Shdr *kp_test_elf_section(uint8_t *image, const char *name)
{
    Elf64_Ehdr *h = (Elf64_Ehdr *)image;
    Elf64_Shdr *sections = (Elf64_Shdr *)(image + h->e_shoff);
    for (int i = 1; i < h->e_shnum; i++)
        if (!strcmp((char *)image + sections[h->e_shstrndx].sh_offset + sections[i].sh_name, name))
            return &sections[i];
    fail_msg("no section %s", name);
    return NULL;
}

void kp_test_set_ptx(uint8_t *image, size_t *size, const char *text, size_t len)
{
    Elf64_Shdr *s = kp_test_elf_section(image, ".nv_debug_ptx_txt");
    memcpy(image + *size, text, len);
    s->sh_offset = *size;
    s->sh_size = len;
    *size += len;
}

char *kp_test_print_image(const void *bytes, size_t size,
                          int (*print)(const struct kp_cubin_function *f, void *printing))
{
    struct kp_test_printing p;
    char *text = NULL;
    size_t len;
    if (kp_cubin_open(bytes, size, &p.cubin))
        return NULL;
    p.to = open_memstream(&text, &len);
    assert_non_null(p.to);
    assert_int_equal(kp_cubin_each_function(p.cubin, print, &p), 0);
    fclose(p.to);
    kp_cubin_close(p.cubin);
    return text;
}
