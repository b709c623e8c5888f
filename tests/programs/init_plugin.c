/* LINK: -shared -lcuda */
/* A library that launches in its constructor, which holds the loader's lock meanwhile. */
#include <unistd.h>

#include "linked.h"

__attribute__((constructor)) static void begin(void)
{
    struct session s;

    usleep((useconds_t)atoi(getenv("PLUGIN_MS") ? getenv("PLUGIN_MS") : "0") * 1000);
    open_session(&linked, &s, 0);
    for (int i = 0; i < 3; i++)
        do_axpy(&linked, &s, "axpy_inplace");
    close_session(&linked, &s);
}
