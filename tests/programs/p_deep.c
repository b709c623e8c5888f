/* LINK: -ldl */
/* A program without CUDA that opens a library with it. Arguments: how (now, lazy: RTLD_DEEPBIND with this binding;
 * local: without; new: in another namespace), the file, and the function to call. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *open_file(const char *how, const char *file)
{
    if (!strcmp(how, "new"))
        return dlmopen(LM_ID_NEWLM, file, RTLD_NOW | RTLD_LOCAL);
    if (!strcmp(how, "local"))
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return dlopen(file, RTLD_LOCAL | RTLD_DEEPBIND | (strcmp(how, "lazy") ? RTLD_NOW : RTLD_LAZY));
}

int main(int argc, char **argv)
{
    void *library = argc > 3 ? open_file(argv[1], argv[2]) : NULL;
    int (*run)(void) = library ? (int (*)(void))dlsym(library, argv[3]) : NULL;

    if (!run) {
        printf("%s\n", dlerror());
        return 2;
    }
    return run();
}
