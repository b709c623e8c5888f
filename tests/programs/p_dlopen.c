/* LINK: -ldl */
/* The driver opened and each function looked up by dlsym, as Triton's launcher and ctypes do. */
#include "opened.h"

int main(void)
{
    struct driver d;

    fill_driver(&d, dlsym);
    return run_scenario(&d);
}
