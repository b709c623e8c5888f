/* LINK: -shared -lcuda */
/* A library with a CUDA of its own, for a program that opens it in another namespace: run() makes three launches. */
#include "linked.h"

int run(void);
int run(void)
{
    struct session s;

    open_session(&linked, &s, 0);
    do_axpy(&linked, &s, "axpy_inplace");
    close_session(&linked, &s);
    return program_wrong;
}
