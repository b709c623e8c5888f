/* LINK: -lcuda -rdynamic */
/* A program with a function of its own that is called write, which C leaves to programs. It writes nothing. */
#include <unistd.h>

#include "linked.h"

ssize_t write(int fd, const void *text, size_t size)
{
    (void)fd, (void)text, (void)size;
    return 0;
}

int main(void)
{
    enum { N = 8, LAUNCHES = 2 };
    struct session s;

    open_session(&linked, &s, 0);
    CUfunction f = get_function(&linked, &s, "increment");
    CUdeviceptr values = device_ints(&linked, (const int[N]){0}, N);
    for (int i = 0; i < LAUNCHES; i++)
        MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s.stream, (void *[]){&values, &(int){N}}, NULL));
    report_number("increments", sum_ints(&linked, values, N), LAUNCHES * N);
    return program_wrong;
}
