#include "cmd/console.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int kp_console_error(int status, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len >= 0)
        kp_blank_controls(text, (size_t)len);
    fprintf(stderr, "==ERROR== %s\n", len >= 0 ? text : strerror(ENOMEM));
    if (len >= 0)
        free(text);
    return status;
}

void kp_console_warn(const char *text)
{
    const char *end;
    for (; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        fprintf(stderr, "==WARNING== %.*s\n", (int)(end - text), text);
    }
}

int kp_console_end(int rc, const char *err)
{
    /* A write may have failed before, with nothing left to flush now; errno is still that write's. */
    if (fflush(stdout) || ferror(stdout))
        return kp_console_error(KP_EXIT_FAILED, "cannot write the output: %s", strerror(errno ? errno : EIO));
    return rc ? kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc)) : EXIT_SUCCESS;
}
