/* Never touches CUDA: a profiler that is preloaded all the same opens no library here and starts no thread. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

static int mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = 0;

    while (maps && fgets(line, sizeof(line), maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

int main(void)
{
    static const char *const libraries[] = {"libcuda.so", "libcupti", "libcheckpoint", "libnvperf", "libstdc++"};

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        printf("%s: %s\n", libraries[i], mapped(libraries[i]) ? "mapped" : "not mapped");
    printf("threads: %d\n", entries("/proc/self/task") - 2);
    printf("open files: %d\n", entries("/proc/self/fd") - 2);
    return 0;
}
