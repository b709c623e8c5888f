/* Names of launches and NVTX ranges. Threads: pure functions. */
#ifndef KP_REPORT_MODEL_LAUNCH_NAMES_H
#define KP_REPORT_MODEL_LAUNCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "report/model/model.h"

/* Returns the kernel's name as reports print it; valid as long as `l`. */
const char *kp_launch_name(const struct kp_launch_info *l);
/* Begins the note of an entry of a rotation that has some launches of its kernel and shape, and says which; what such a
 * note may go on with. */
#define KP_KIND_NOTE    "the launches "
#define KP_KIND_NUMBERS " (#: any number)"
/* Returns that note; "" for an entry that has all launches, or one. */
const char *kp_launch_kind(const struct kp_launch_info *l);
/* Returns which launches it names: "in the NVTX range step #"; "" for all. malloc'ed; NULL
 * without memory. */
char *kp_launch_which(const struct kp_launch_info *l);
/* Writes RANGE/NAME to *out, the name for print-nvtx-rename (and in ncu): the launching thread's innermost push-pop
 * range, then the name. *out is malloc'ed, NULL without such a range. 0 or -ENOMEM. */
int kp_launch_range_name(const struct kp_launch_info *l, char **out);
/* Returns that range; else the last range around the launch, NULL if there is none. */
const struct kp_nvtx_range *kp_nvtx_innermost(const struct kp_nvtx *n);
/* Returns the length of the range with its '/' in kp_launch_name, once kp_launch_range_name has become the name;
 * else 0. */
size_t kp_launch_range_length(const struct kp_launch_info *l);
/* Writes the first `range` bytes of such a name to *out, in at most `most` columns; *out has room for these bytes and
 * for ".../", and is not terminated. A wider range becomes its beginning and ".../", for which `most` must have room.
 * Returns the number of bytes written. */
size_t kp_range_cut(const char *name, size_t range, size_t most, char *out);
/* Returns a kernel's name without return type, template arguments and parameters. A name wider than `width` columns
 * loses its namespaces, and then its end, replaced by "...". malloc'ed; NULL without memory. */
char *kp_trace_name(const char *demangled, size_t width);

/* Returns the name as ncu's CSV has it: without namespaces, and without the types of constants among template
 * arguments. malloc'ed; NULL without memory. */
char *kp_launch_plain_name(const char *name);

/* Returns the name of a range as a heading for its launches: as a filter names it, without line ends. malloc'ed;
 * NULL without memory. */
char *kp_range_title(const struct kp_nvtx_range *r);
/* Stands for a number that counts steps in a range's name when the steps are merged; the same character in the name
 * itself, or an escape, is preceded by an escape. */
#define KP_RANGE_NUMBER '#'
#define KP_RANGE_ESCAPE '\\'
/* Reads the next character, or number that counts steps, of a name and moves *at, which begins as `name`, past it.
 * Writes what stands for it; returns the length of that. Digits count steps
 * - after a word for it, directly or after other characters: "step 3", "Iter12", "batch[7]", "seq = 40, sizes = []";
 * - as the whole name, or its end after such a character and a letter: "12", "train_5", "conv2d (3)".
 * They do not if a letter follows, nor anywhere else: "layer1", "conv2d", "layers.0.mlp", "[64, 3]", "lr 0.5". */
size_t kp_range_next(const char *name, const char **at, char out[2]);
/* Returns such a name as a whole; malloc'ed, NULL without memory. */
char *kp_range_without_numbers(const char *name);
/* Returns true if such a text stands for names with other numbers, too. */
bool kp_range_has_number(const char *text);
/* Replaces the name of a nameless range. */
extern const char kp_range_nameless[];
/* Returns true if range `i` is the first of its kind, domain and name around the launch; recursion opens several. */
bool kp_range_is_new(const struct kp_nvtx *n, size_t i);

#endif
