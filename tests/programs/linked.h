/* The driver of a program that is linked to libcuda. */
#ifndef TESTS_LINKED_H
#define TESTS_LINKED_H

#include "program.h"

static const struct driver linked = {
#define FIELD(base, version) .base = base,
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
};

#endif
