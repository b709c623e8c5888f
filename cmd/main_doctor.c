/* `kprof doctor`. */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/terminal.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/doctor.h"
#include "cmd/doctor_cuda.h"
#include "cmd/run.h"
#include "report/dwarf/symbols.h"
#include "report/options/options.h"
#include "report/write/out.h"

/* Returns why the library of symbols next to `library` cannot be loaded; NULL if it can. */
static const char *symbols_error(const char *library)
{
    char path[PATH_MAX + sizeof KP_SYMBOLS_LIBRARY];
    const char *slash = library ? strrchr(library, '/') : NULL;
    if (!slash)
        return NULL;
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - library), library, KP_SYMBOLS_LIBRARY);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL) ? NULL : dlerror();
}

int kp_main_doctor(void)
{
    struct kp_doctor_facts *facts = calloc(1, sizeof *facts);
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_options o = {0};
    char *library = kp_run_library(), *err = NULL;
    size_t faults = 0;
    int status = EXIT_SUCCESS, rc = facts ? kp_options_from_env(&o, environ, &err) : -ENOMEM;
    if (rc) {
        status = kp_console_error(rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
        goto out;
    }
    kp_doctor_machine(o.cupti_dir, facts);
    size_t width = kp_terminal_width(STDOUT_FILENO);
    struct kp_doctor_input input = {.facts = facts,
                                    .paths = kp_doctor_paths,
                                    .library = library,
                                    .glibc_version = gnu_get_libc_version(),
                                    .symbols_error = symbols_error(library),
                                    .width = width ? width : KP_LINE_WIDTH};
    rc = kp_doctor(&out, &input, &faults);
    status = kp_console_end(rc, NULL);
    if (!status && faults)
        status = KP_EXIT_FAILED;
    kp_options_free(&o);
out:
    free(library);
    free(facts);
    free(err);
    return status;
}
