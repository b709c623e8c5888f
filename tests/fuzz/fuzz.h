/*
 * What the fuzz harnesses share. A harness is a program of libFuzzer, which calls LLVMFuzzerTestOneInput with millions
 * of inputs in one process; a sanitiser's report, a call of kp_fuzz_require that does not hold, or a run that takes too
 * long or too much memory is a finding.
 */
#ifndef KP_TESTS_FUZZ_FUZZ_H
#define KP_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Called once, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A copy that ends where the input does, so that a sanitiser sees each read beyond it. The text is terminated, and ends
 * for its readers at its first NUL. Both to be freed. */
uint8_t *kp_fuzz_bytes(const uint8_t *data, size_t size);
char *kp_fuzz_text(const uint8_t *data, size_t size);

/* Ends the run as a finding, which it names, unless `holds`. */
void kp_fuzz_require(bool holds, const char *what);

/* The rule of messages: an error of the input, -EINVAL, has a line of its own, and nothing else has one. Frees it. A
 * pointer, as the call that sets it may stand in the same list of arguments. */
void kp_fuzz_outcome(int rc, char **err);

/* A file in memory, which exists as long as the process, and what it is opened by. Static storage. */
const char *kp_fuzz_file(const uint8_t *data, size_t size);

/* A whole file of the source tree, malloc'ed. Ends the process where it is not there. */
uint8_t *kp_fuzz_source(const char *name, size_t *size);

#endif
