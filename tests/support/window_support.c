#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "cupti/internal.h"
#include "tests/support/fake_support.h"
#include "tests/support/window_support.h"

const char *const kp_test_kernel_names[KP_TEST_KERNELS] = {"append", "increment", "atomic_count"};

struct kp_test_window kp_test_window;
static struct kp_test_window *const w = &kp_test_window;

/* ---- launches ---- */

unsigned kp_test_window_blocks(size_t i)
{
    return 1 + (unsigned)i % 3;
}

CUresult kp_test_window_launch(size_t i)
{
    int capacity = KP_TEST_CAPACITY, tag = (int)i + 1, words = 4;
    void *append[] = {&w->buffer, &w->cursor, &capacity, &tag}, *increment[] = {&w->cursor, &words},
         *atomic[] = {&w->buffer};
    void **params[] = {append, increment, atomic};
    CUresult rc = (CUresult)kp_test_met("launch");
    if (rc != CUDA_SUCCESS)
        return rc;
    usleep(w->us);
    return KP_TEST_FAKE(cuLaunchKernel)(w->kernels[w->kernel[i]], kp_test_window_blocks(i), 1, 1, 32, 1, 1, 0, NULL,
                                        params[w->kernel[i]], NULL);
}

/* Like the window: nothing follows a refused launch. */
static CUresult issue(void *arg, const struct kp_issue_hooks *hooks)
{
    CUresult rc = (CUresult)kp_test_met(hooks ? "issue" : "plain");
    (void)arg;
    for (size_t i = 0; i < w->n && rc == CUDA_SUCCESS; i++) {
        bool hooked = hooks && w->wanted[i];
        if (hooked)
            rc = hooks->before(hooks->arg, w->stream);
        if (rc == CUDA_SUCCESS)
            rc = kp_test_window_launch(i);
        if (rc == CUDA_SUCCESS && hooked)
            rc = hooks->after(hooks->arg);
        if (rc == CUDA_SUCCESS && hooks && w->foreign)
            rc = kp_test_window_launch(i);
    }
    return rc;
}

static int rehearse(void *arg)
{
    int rc = kp_test_met("rehearse");
    size_t n = rc && rc != KP_ISSUE_TOO_LONG ? w->n / 2 : w->n;
    (void)arg;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
    return rc;
}

/* ---- the window ---- */

void kp_test_window_load(void)
{
    assert_int_equal(KP_TEST_FAKE(cuModuleLoadData)(&w->module, "FAKEMOD append increment atomic_count fail"),
                     CUDA_SUCCESS);
    for (size_t k = 0; k < KP_TEST_KERNELS; k++)
        assert_int_equal(KP_TEST_FAKE(cuModuleGetFunction)(&w->kernels[k], w->module, kp_test_kernel_names[k]),
                         CUDA_SUCCESS);
}

void kp_test_window_clear(void)
{
    assert_int_equal(KP_TEST_FAKE(cuMemsetD8)(w->buffer, 0, sizeof(w->after)), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuMemsetD8)(w->cursor, 0, 4 * sizeof(int)), CUDA_SUCCESS);
}

void kp_test_window_open(void)
{
    memset(w, 0, sizeof(*w));
    kp_test_window_load();
    assert_int_equal(KP_TEST_FAKE(cuMemAlloc)(&w->buffer, sizeof(w->after)), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuMemAlloc)(&w->cursor, 4 * sizeof(int)), CUDA_SUCCESS);
    kp_test_window_clear();
    w->job = (struct kp_window_job){
        .issue = issue, .rehearse = rehearse, .wanted = w->wanted, .executed = w->executed, .mode = KP_RANGE_AUTO};
}

void kp_test_window_of(const char *letters)
{
    static const char known[] = "aicAIC";
    w->n = w->job.n_launches = strlen(letters);
    w->n_wanted = 0;
    assert_true(w->n <= KP_TEST_MOST_LAUNCHES);
    for (size_t i = 0; i < w->n; i++) {
        w->kernel[i] = (int)((strchr(known, letters[i]) - known) % KP_TEST_KERNELS);
        w->wanted[i] = letters[i] < 'a';
        w->n_wanted += w->wanted[i];
    }
}

static void read_memory(int buffer[KP_TEST_CAPACITY], int *cursor)
{
    assert_int_equal(KP_TEST_FAKE(cuMemcpyDtoH)(buffer, w->buffer, sizeof(w->after)), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuMemcpyDtoH)(cursor, w->cursor, sizeof(int)), CUDA_SUCCESS);
}

void kp_test_window_check_memory(void)
{
    int buffer[KP_TEST_CAPACITY], cursor;
    read_memory(buffer, &cursor);
    assert_int_equal(cursor, w->cursor_after);
    assert_memory_equal(buffer, w->after, sizeof(buffer));
}

void kp_test_window_run(void)
{
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
    read_memory(w->after, &w->cursor_after);
}

/* ---- checkpoints, logged ---- */

static const struct kp_cupti *logged;

static CUptiResult log_save(kp_checkpoint_abi *const handle)
{
    CUptiResult rc = (CUptiResult)kp_test_met("save");
    return rc ? rc : logged->cuptiCheckpointSave(handle);
}

static CUptiResult log_restore(kp_checkpoint_abi *const handle)
{
    CUptiResult rc = (CUptiResult)kp_test_met("restore");
    return rc ? rc : logged->cuptiCheckpointRestore(handle);
}

static CUptiResult log_drop(kp_checkpoint_abi *const handle)
{
    kp_test_met("drop");
    return logged->cuptiCheckpointFree(handle);
}

void kp_test_log_checkpoints(struct kp_cupti *cupti, const struct kp_cupti *fake)
{
    logged = fake;
    cupti->cuptiCheckpointSave = log_save;
    cupti->cuptiCheckpointRestore = log_restore;
    cupti->cuptiCheckpointFree = log_drop;
}
