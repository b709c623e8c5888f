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
    char *env[] = {"SECRET_TOKEN=x", "SLURM_PROCID=4", "KPROF_SET=full", "CUDA_VISIBLE_DEVICES=1,0",
                   "CUDA_MODULE_LOADING=", "NCCL_DEBUG=a\nb=c", "KPROF_SESSION_FILE=s", "KPROF_APPLICATION=1",
                   "KPROF_REPLAY_RUN=1", "KPROF_REPLAY_FOLDER=/tmp/f", "RANKING=1", "KPROF_NO_SIGN", "HOME=/root",
                   /* what others put behind the prefixes of CUDA, its libraries and frameworks */
                   "TF_TOKEN_app_terraform_io=x", "TF_VAR_db_password=x", "TORCH_HUB_TOKEN=x",
                   "CUDA_REGISTRY_PASSWORD=x", "NCCL_COMM_ID=host:1", "PYTORCH_TOKEN=x", "TRITON_KEY=x",
                   "CUDA_VISIBLE_DEVICES_KEY=x", "CUDA=x", "XLA_FLAG=x", NULL};
    char *none[] = {"PATH=/bin", NULL};
    (void)state;
    char *text = kp_environment_lines(env);
    assert_string_equal(
        text, "CUDA_MODULE_LOADING=\nCUDA_VISIBLE_DEVICES=1,0\nKPROF_SET=full\nNCCL_DEBUG=a b=c\nSLURM_PROCID=4\n");
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

/* The rank that stored lines tell: torchrun's counts first where the number of ranks is beside it. */
static void rank_told(void **state)
{
    static const struct {
        const char *lines, *rank;
    } cases[] = {{"SLURM_PROCID=4\n", "4"},
                 {"RANK=12\nSLURM_PROCID=4\nWORLD_SIZE=16\n", "12"},
                 {"RANK=12\nSLURM_PROCID=4\n", "4"},
                 {"RANK=12\n", "12"},
                 {"PMI_RANK=\nPMI_SIZE=2\nRANK=3", "3"},
                 {"RANK=\n", NULL},
                 {"LOCAL_RANK=1\n", NULL},
                 {"", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = 99;
        const char *rank = kp_environment_rank(cases[i].lines, &len);
        assert_true(!rank == !cases[i].rank);
        assert_int_equal(len, rank ? strlen(cases[i].rank) : 0);
        if (rank)
            assert_memory_equal(rank, cases[i].rank, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(taken_apart),
                                       cmocka_unit_test(rank_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
