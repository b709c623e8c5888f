/* Arithmetic over metrics, computed with values that the names themselves give. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "tests/fuzz/fuzz.h"

static int look_up(const char *name, void *arg, double *value)
{
    static const double values[] = {0, 1, -1, 0.5, 1e308, -1e308, 5e-324, INFINITY, -INFINITY, NAN, 3, 7e9};
    size_t *asked = arg;
    ++*asked;
    *value = values[strlen(name) % (sizeof values / sizeof *values)];
    return *name == 'Z' ? -ENOENT : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_expr *e = NULL;
    char *err = NULL, *text = kp_fuzz_text(data, size);
    size_t n = 0, asked = 0;
    double value;
    int rc = kp_expr_compile(text, &e, &err);
    kp_fuzz_outcome(rc, &err);
    if (!rc) {
        kp_expr_names(e, &n);
        rc = kp_expr_eval(e, look_up, &asked, &value);
        kp_fuzz_require(!rc || rc == -EDOM || rc == -ENOENT, "an expression that cannot be computed");
        kp_fuzz_require(rc == -ENOENT || asked == n, "a name that was not asked for, or not once");
        kp_expr_free(e);
    }
    free(text);
    return 0;
}
