/* A module's image: its functions, what they reach, their instructions, line tables and PTX. */
#include <errno.h>
#include <stdlib.h>

#include "collectors/code/cubin.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_FUNCTIONS = 24 }; /* whose code is read; an input of some kilobytes can name thousands of the same one */

struct seen {
    const struct kp_cubin *cubin;
    unsigned n;
};

/* What is not told by a sanitiser: whatever the readers of code take for granted. */
static void check_code(const struct kp_code *c)
{
    for (size_t i = 0; i < c->n_instructions; i++) {
        kp_fuzz_require(!i || c->instructions[i].offset > c->instructions[i - 1].offset, "offsets do not ascend");
        kp_fuzz_require(c->instructions[i].location <= c->n_locations, "an instruction without its location");
    }
    for (size_t i = 0; i < c->n_locations; i++) {
        kp_fuzz_require(c->locations[i].file < c->n_files, "a location without its file");
        kp_fuzz_require(c->locations[i].parent <= c->n_locations, "a location without its parent");
    }
}

static void check_ptx(const struct kp_code *c)
{
    for (size_t i = 0; i < c->n_ptx; i++) {
        kp_fuzz_require(c->ptx[i].line > (i ? c->ptx[i - 1].line : 0), "lines of PTX do not ascend");
        kp_fuzz_require(kp_code_ptx(c, c->ptx[i].line) == c->ptx[i].text, "a line of PTX is not found");
    }
}

static int one_function(const struct kp_cubin_function *f, void *arg)
{
    struct seen *s = arg;
    struct kp_cubin_reach reach;
    struct kp_code code;
    const char *name;
    int rc = kp_cubin_function_at(s->cubin, f->symbol, &name);
    kp_fuzz_require(!rc, "a function that was listed has no name");
    rc = kp_cubin_reach(s->cubin, f->symbol, &reach);
    kp_fuzz_require(!rc || rc == -E2BIG || rc == -ENOENT, "what a function reaches");
    rc = kp_cubin_code(s->cubin, f->name, &code);
    kp_fuzz_require(!rc || rc == -ENOENT, "the code of a function");
    check_code(&code);
    rc = kp_cubin_ptx(s->cubin, &code);
    kp_fuzz_require(!rc, "the PTX of a function");
    check_ptx(&code);
    kp_code_free(&code);
    return ++s->n == MOST_FUNCTIONS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen seen = {0};
    struct kp_cubin *cubin = NULL;
    uint8_t *image = kp_fuzz_bytes(data, size);
    int rc = kp_cubin_open(image, size, &cubin);
    kp_fuzz_require(!rc || rc == -EINVAL, "neither a cubin nor none");
    seen.cubin = cubin;
    if (!rc) {
        kp_cubin_each_function(cubin, one_function, &seen);
        kp_cubin_close(cubin);
    }
    free(image);
    return 0;
}
