/* LINK: -lcuda */
/* The driver linked by name, as programs of the driver API are: each symbol is bound by the dynamic linker. */
#include "linked.h"

int main(void)
{
    return run_scenario(&linked);
}
