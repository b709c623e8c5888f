/* Options and the mode that they ask for; and what holds of each row of the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "preload/mode/modes.h"

static void test_choice(void **state)
{
    static const struct {
        struct kp_options o;
        bool quick;
        const char *mode;
    } rows[] = {
        {{.replay_mode = KP_REPLAY_AUTO, .vary = "", .fallback = KP_FALLBACK_ROTATE}, false, "auto"},
        {{.replay_mode = KP_REPLAY_AUTO, .vary = "", .fallback = KP_FALLBACK_QUICK}, false, "auto, others once"},
        {{.replay_mode = KP_REPLAY_AUTO, .vary = "", .fallback = KP_FALLBACK_ROTATE, .only_columns = true},
         false,
         "auto, others once"},
        {{.replay_mode = KP_REPLAY_AUTO, .vary = "", .fallback = KP_FALLBACK_ROTATE}, true, "auto, quick"},
        {{.replay_mode = KP_REPLAY_AUTO, .vary = "block=64", .fallback = KP_FALLBACK_ROTATE}, false, "series"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "", .fallback = KP_FALLBACK_ROTATE}, false, "kernel"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "", .fallback = KP_FALLBACK_QUICK}, false, "kernel, others once"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "", .fallback = KP_FALLBACK_ROTATE, .only_columns = true},
         false,
         "kernel, others once"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "", .fallback = KP_FALLBACK_ROTATE}, true, "quick"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "block=64", .fallback = KP_FALLBACK_ROTATE}, false, "series"},
        {{.replay_mode = KP_REPLAY_KERNEL, .vary = "block=64", .fallback = KP_FALLBACK_ROTATE}, true, "quick"},
        {{.replay_mode = KP_REPLAY_ROTATE, .vary = ""}, false, "rotate"},
        {{.replay_mode = KP_REPLAY_ROTATE, .vary = ""}, true, "rotate"},
        {{.replay_mode = KP_REPLAY_APPLICATION, .vary = "", .replay_run = 1}, false, "application"},
        {{.replay_mode = KP_REPLAY_APPLICATION, .vary = "", .replay_run = 2}, true, "application"},
        {{.replay_mode = KP_REPLAY_RANGE, .vary = ""}, false, "range"},
        {{.replay_mode = KP_REPLAY_RANGE, .vary = ""}, true, "range"},
        {{.replay_mode = KP_REPLAY_APP_RANGE, .vary = "", .replay_run = 1}, true, "app-range"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(kp_mode_choose(&rows[i].o, rows[i].quick)->name, rows[i].mode);
}

/* What files that ask one column take for granted of the others. */
static void test_columns(void **state)
{
    size_t n = 0;
    (void)state;
    for (const struct kp_mode *m = kp_modes; m->name; m++, n++) {
        assert_non_null(m->strategies);
        assert_non_null(m->strategies[0]);
        assert_int_equal(kp_mode_repeats(m), m->lists == KP_LISTS_ALL);
        assert_int_equal(kp_mode_recurs(m), m->lists == KP_LISTS_TURNS);
        assert_int_equal(kp_mode_reruns(m), m->lists == KP_LISTS_RUN);
        assert_true(!m->varies || kp_mode_repeats(m));
        assert_true(!m->otherwise || (kp_mode_repeats(m) && !kp_mode_repeats(m->otherwise)));
        assert_true(!m->otherwise || m->otherwise->strategies[0]);
        assert_true(!m->bounded || m->option == KP_REPLAY_AUTO);
    }
    assert_int_equal(n, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice), cmocka_unit_test(test_columns)};
    return cmocka_run_group_tests_name("preload/modes", tests, NULL, NULL);
}
