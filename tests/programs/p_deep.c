/* LINK: -ldl */
/* A program without CUDA that opens a library with it. Arguments: how (now, lazy: RTLD_DEEPBIND with this binding;
 * local: without; new: in another namespace), the file, the function to call, and how often the file is to be opened,
 * called and closed (without: it stays open). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_file(const char *how, const char *file)
{
    if (!strcmp(how, "new"))
        return dlmopen(LM_ID_NEWLM, file, RTLD_NOW | RTLD_LOCAL);
    if (!strcmp(how, "local"))
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return dlopen(file, RTLD_LOCAL | RTLD_DEEPBIND | (strcmp(how, "lazy") ? RTLD_NOW : RTLD_LAZY));
}

static int run_in(const char *how, const char *file, const char *function, int closes)
{
    void *library = open_file(how, file);
    int (*run)(void) = library ? (int (*)(void))dlsym(library, function) : NULL;

    if (!run) {
        printf("%s\n", dlerror());
        return 2;
    }
    int rc = run();
    if (closes)
        printf("closed: %d\n", dlclose(library));
    return rc;
}

int main(int argc, char **argv)
{
    int times = argc > 4 ? atoi(argv[4]) : 1, rc = argc > 3 ? 0 : 2;

    for (int i = 0; argc > 3 && i < times; i++)
        rc |= run_in(argv[1], argv[2], argv[3], argc > 4);
    return rc;
}
