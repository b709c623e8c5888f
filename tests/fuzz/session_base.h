/* The session that the harness of session files starts from. */
#ifndef KP_TESTS_FUZZ_SESSION_BASE_H
#define KP_TESTS_FUZZ_SESSION_BASE_H

/* Writes a session to `path`, by the store's own functions: two launches and their code, recorded on an H200 and cut
 * short, with a call stack, NVTX ranges and series of our own. `whole`: the first launch has a value for each row of
 * each section, too. */
void kp_fuzz_write_session(const char *path, int whole);

#endif
