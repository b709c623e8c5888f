/* What a disassembler prints for a module, which is not fuzzed: the program is the one of the user's PATH. */
#include "collectors/code/disassemble.c"

#include "tests/fuzz/fuzz.h"

static struct {
    uint8_t *image;
    size_t size;
    struct kp_cubin *cubin;
    struct kp_code codes[4], *list[4];
    size_t n;
    struct reader found; /* its targets */
} module;

static int take_function(const struct kp_cubin_function *f, void *arg)
{
    (void)arg;
    kp_fuzz_require(!kp_cubin_code(module.cubin, f->name, &module.codes[module.n]), "the module's own code");
    module.list[module.n] = &module.codes[module.n];
    return ++module.n == sizeof module.codes / sizeof *module.codes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    module.image = kp_fuzz_source("tests/data/inline.sm90-cuda13.cubin", &module.size);
    kp_fuzz_require(!kp_cubin_open(module.image, module.size, &module.cubin), "the module cannot be opened");
    kp_cubin_each_function(module.cubin, take_function, NULL);
    char *functions = NULL;
    kp_fuzz_require(!find_targets(module.cubin, module.list, module.n, &module.found, &functions), "no functions");
    free(functions);
    return 0;
}

static void forget_texts(void)
{
    for (size_t i = 0; i < module.n; i++)
        for (size_t k = 0; k < module.codes[i].n_instructions; k++) {
            struct kp_instruction *at = &module.codes[i].instructions[k];
            kp_fuzz_require(at->text != NULL, "an instruction has lost its text");
            if (*at->text) {
                free(at->text);
                at->text = kp_strdup("");
            }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reader r;
    static char lines[512]; /* small, so that lines do not fit it */
    int fd = open(kp_fuzz_file(data, size), O_RDONLY | O_CLOEXEC);
    struct child child = {.tool = -1, .output = fd};
    clock_gettime(CLOCK_MONOTONIC, &child.deadline);
    child.deadline.tv_sec += 60;
    r = module.found;
    read_listing(&child, &r, lines, sizeof lines);
    finish(&child);
    kp_fuzz_require(!resolve_all(&r), "labels cannot be resolved");
    kp_arena_free(&r.names);
    free(r.labels);
    forget_texts();
    return 0;
}
