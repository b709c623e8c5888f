/* LINK: -shared -lcuda -ldl */
/* A library with CUDA: linked to the driver, or opening it; with PLUGIN_AT_LOAD set it launches in its constructor,
 * with PLUGIN_AT_CLOSE in its destructor. */
#include "linked.h"

#include "opened.h"

int run_linked(void);
int run_opened(void);

int run_linked(void)
{
    struct session s;

    open_session(&linked, &s, 0);
    do_axpy(&linked, &s, "axpy_inplace");
    close_session(&linked, &s);
    return program_wrong;
}

int run_opened(void)
{
    struct driver d;
    struct session s;

    fill_driver(&d, dlsym);
    open_session(&d, &s, 0);
    do_axpy(&d, &s, "axpy_inplace");
    close_session(&d, &s);
    return program_wrong;
}

__attribute__((constructor)) static void begin(void)
{
    if (getenv("PLUGIN_AT_LOAD"))
        run_linked();
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("PLUGIN_AT_CLOSE"))
        run_linked();
}
