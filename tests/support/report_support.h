/* What the tests of report/ share: a sink into memory, files, and the recorded launches of an H200. */
#ifndef KP_TESTS_SUPPORT_REPORT_SUPPORT_H
#define KP_TESTS_SUPPORT_REPORT_SUPPORT_H

#include <stddef.h>

#include "base/sink.h"
#include "report/model/model.h"
#include "report/write/out.h"

/* Text collected by a sink; free `text` at the end. */
struct kp_test_text {
    char *text;
    size_t len;
};

struct kp_sink kp_test_sink(struct kp_test_text *t);

/* A file of the source tree ("tests/golden/x"), or of the build ("kprof"); static storage, overwritten by the next
 * call of the same function. */
const char *kp_test_source(const char *name);
const char *kp_test_build(const char *name);

/* Returns the whole content, malloc'ed and terminated; fails the test if it cannot be read. */
char *kp_test_read(const char *path);
/* How often the file holds the text. */
int kp_test_occurrences(const char *path, const char *what);
/* Fails the test, saying at which line, when `text` is not what the file holds. */
void kp_test_reference(const char *text, const char *reference);
/* The same for our own wording: with KP_TEST_UPDATE set in the environment the file is rewritten. */
void kp_test_golden(const char *text, const char *golden);

/* A new folder under TMPDIR or /tmp, and its removal with the files in it; static storage. */
const char *kp_test_folder(void);
void kp_test_remove_folder(const char *folder);

/* The session and the launches of tests/golden/h200_basic.tsv. Free with kp_test_recording_free. */
struct kp_recording {
    struct kp_session session;
    struct kp_result *results;
    size_t n;
};

struct kp_recording kp_test_recording(void);
/* The same from another file of that form. */
struct kp_recording kp_test_recording_of(const char *data);
void kp_test_recording_free(struct kp_recording *r);

/* A launch of the page details, and one of its sections, as text; see details.h. */
int kp_test_launch(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                   const struct kp_result *r);
int kp_test_section(struct kp_out *o, const struct kp_section *s, const struct kp_view *v, bool asked_for);

#endif
