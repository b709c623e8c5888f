/* LINK: -lcupti */
/* Prints the value that the fake CUPTI gives: metric, kernel (as the driver names it), range. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fake/fake_image.h"

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    printf("%.17g\n", fake_cupti_value(argv[1], argv[2], strtoul(argv[3], NULL, 10)));
    return 0;
}
