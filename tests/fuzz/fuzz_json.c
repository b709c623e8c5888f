/* JSON that a session holds: instances of a metric, or a list of numbers whose type the first byte tells. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "report/model/instances.h"
#include "tests/fuzz/fuzz.h"

static const size_t sizes[] = {
    [KP_NUMBER_U32] = sizeof(uint32_t), [KP_NUMBER_U64] = sizeof(uint64_t), [KP_NUMBER_REAL] = sizeof(double)};

enum { INSTANCES = sizeof sizes / sizeof *sizes, FORMS };

/* What was read is written so that it reads back as the same. */
static void check_numbers(enum kp_number type, const char *json)
{
    void *values, *again = NULL;
    size_t n, n_again = 0;
    int rc = kp_numbers_read(type, json, &values, &n);
    kp_fuzz_require(!rc || rc == -EINVAL, "neither numbers nor none");
    if (rc)
        return;
    char *text = kp_numbers_write(type, values, n);
    kp_fuzz_require(text && !kp_numbers_read(type, text, &again, &n_again), "numbers that cannot be read back");
    kp_fuzz_require(n == n_again, "numbers that are lost");
    for (size_t i = 0; type == KP_NUMBER_REAL && i < n; i++) {
        double a = ((double *)values)[i], b = ((double *)again)[i];
        kp_fuzz_require(a == b || (isnan(a) && isnan(b)), "a number that reads back as another");
    }
    kp_fuzz_require(type == KP_NUMBER_REAL || !memcmp(values, again, n * sizes[type]),
                    "a number that reads back as another");
    free(again);
    free(values);
    free(text);
}

static void check_same(const struct kp_metric *a, const struct kp_metric *b)
{
    kp_fuzz_require(a->n_instances == b->n_instances, "instances that are lost");
    for (size_t i = 0; i < a->n_instances; i++) {
        double x = a->instances[i].value, y = b->instances[i].value;
        kp_fuzz_require(!strcmp(a->instances[i].key, b->instances[i].key), "a key that reads back as another");
        kp_fuzz_require(x == y || (isnan(x) && isnan(y)), "a value that reads back as another");
    }
}

static void check_instances(const char *json)
{
    struct kp_result a = {0}, b = {0};
    kp_fuzz_require(!kp_result_set_real(&a, "m", "", 1) && !kp_result_set_real(&b, "m", "", 1), "no metric");
    int rc = kp_instances_read(json, &a, "m");
    kp_fuzz_require(!rc || rc == -EINVAL, "neither instances nor none");
    if (!rc) {
        const struct kp_metric *m = kp_result_find(&a, "m");
        char *text = kp_instances_write(m->instances, m->n_instances);
        kp_fuzz_require(text && !kp_instances_read(text, &b, "m"), "instances that cannot be read back");
        check_same(m, kp_result_find(&b, "m"));
        free(text);
    }
    kp_result_free(&a);
    kp_result_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *json = kp_fuzz_text(data + 1, size - 1);
    unsigned form = data[0] % FORMS;
    if (form == INSTANCES)
        check_instances(json);
    else
        check_numbers((enum kp_number)form, json);
    free(json);
    return 0;
}
