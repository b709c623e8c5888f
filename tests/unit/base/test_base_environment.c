/* What of an environment a session keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"

static void chosen(void **state)
{
    char *env[] = {"SECRET_TOKEN=x",
                   "SLURM_PROCID=4",
                   "KPROF_SET=full",
                   "CUDA_VISIBLE_DEVICES=1,0",
                   "CUDA_EMPTY=",
                   "NCCL_DEBUG=a\nb=c",
                   "KPROF_SESSION_FILE=s",
                   "KPROF_APPLICATION=1",
                   "KPROF_REPLAY_RUN=1",
                   "KPROF_REPLAY_FOLDER=/tmp/f",
                   "RANKING=1",
                   "KPROF_NO_SIGN",
                   "HOME=/root",
                   NULL};
    char *none[] = {"PATH=/bin", NULL};
    (void)state;
    char *text = kp_environment_lines(env);
    assert_string_equal(text,
                        "CUDA_EMPTY=\nCUDA_VISIBLE_DEVICES=1,0\nKPROF_SET=full\nNCCL_DEBUG=a b=c\nSLURM_PROCID=4\n");
    free(text);
    text = kp_environment_lines(none);
    assert_string_equal(text, "");
    free(text);
}

static void taken_apart(void **state)
{
    static const char *const expected[][2] = {{"A", "b=c"}, {"EMPTY", ""}, {"NO_SIGN", ""}, {"LAST", "1"}};
    const char *cursor = "A=b=c\nEMPTY=\nNO_SIGN\nLAST=1", *name, *value;
    size_t name_len, value_len, n = 0;
    (void)state;
    for (; kp_environment_next(&cursor, &name, &name_len, &value, &value_len); n++) {
        assert_int_equal(name_len, strlen(expected[n][0]));
        assert_memory_equal(name, expected[n][0], name_len);
        assert_int_equal(value_len, strlen(expected[n][1]));
        assert_memory_equal(value, expected[n][1], value_len);
    }
    assert_int_equal(n, 4);
    cursor = NULL; /* of a session that has none */
    assert_false(kp_environment_next(&cursor, &name, &name_len, &value, &value_len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(taken_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
