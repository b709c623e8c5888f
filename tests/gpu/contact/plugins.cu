// LINK: -ldl
// The host of plug.cu, which it opens as the argument says: plain, deep (RTLD_DEEPBIND) or new (dlmopen). It launches
// kernels itself between the plug-in's.
#include "contact.cuh"
#include <dlfcn.h>
#include <string>
#include <unistd.h>

int main(int argc, char **argv)
{
    enum { TURNS = 4, N = 1 << 12 };
    std::string how = argc > 1 ? argv[1] : "plain", path(4096, 0);
    ssize_t length = readlink("/proc/self/exe", &path[0], path.size());
    path.resize(length > 0 ? length : 0);
    path = path.substr(0, path.rfind('/')) + "/libplug.so";
    void *h = how == "new"    ? dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW)
              : how == "deep" ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
                              : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    unsigned (*turn)(unsigned) = h ? (unsigned (*)(unsigned))dlsym(h, "plug_turn") : NULL;
    NEEDS(!turn, dlerror());
    unsigned *v = device_zeros<unsigned>(N), mine = 0, theirs = 0;
    bool ok = true;
    for (unsigned t = 0; t < TURNS; t++) {
        mix<<<16, 256>>>(v, N, t);
        unsigned got = turn(t);
        mix<<<16, 256>>>(v, N, t + 5);
        mine = mixed(mixed(mine, t), t + 5);
        for (unsigned k = 0; k < 3; k++)
            theirs = mixed(theirs, t + k);
        theirs = mixed(theirs, 77);
        printf("turn %u: %u\n", t, got);
        ok = ok && got == theirs;
    }
    CK(cudaDeviceSynchronize());
    unsigned got = from_device(v);
    printf("value %u\n", got);
    return verdict("plugins", ok && got == mine);
}
