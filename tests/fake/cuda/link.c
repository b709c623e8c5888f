/*
 * The linker: it makes an image from PTX, with a limit of registers. Like the driver's, it gives kernels with launch
 * bounds the registers they want, and spills what exceeds a limit, down to a limit of 24. Unlike it, it refuses limits
 * below 16.
 */
#include "core.h"

#include <elf.h>

enum { REFUSED_BELOW = 16, LEAST_REGISTERS = 24, REGISTER = 4 /* bytes */ };

struct link {
    unsigned int limit, target;
    char options[128]; /* the rest: OPTION:VALUE,... */
    char *log;
    size_t log_size;
    struct module_image *image;
    void *made; /* ends with it */
};

/* Its results, which a module is loaded from by their bytes. They outlive the linker's own copy. */
static struct linked {
    const struct module_image *image;
    struct linked *next;
} * all_linked;

static const struct module_image *linked_image(const void *data)
{
    for (const struct linked *l = all_linked; l; l = l->next) {
        size_t size = memcmp(data, ELFMAG, SELFMAG) ? 0 : cubin_size(data);

        if (size == l->image->cubin.size && !memcmp(data, l->image->cubin.image, size))
            return l->image;
    }
    return NULL;
}

static void note_option(struct link *link, CUjit_option option, unsigned int value)
{
    size_t n = strlen(link->options);

    snprintf(link->options + n, sizeof(link->options) - n, "%s%d:%u", n ? "," : "", (int)option, value);
}

CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *out)
{
    struct link *link;

    ENTER_NOT_CAPTURING();
    link = calloc(1, sizeof(*link));
    if (!link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned int i = 0; i < n; i++) {
        if (options[i] == CU_JIT_MAX_REGISTERS)
            link->limit = (unsigned int)(uintptr_t)values[i];
        else if (options[i] == CU_JIT_TARGET)
            link->target = (unsigned int)(uintptr_t)values[i];
        else if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            link->log = values[i];
        else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            link->log_size = (size_t)(uintptr_t)values[i];
        else
            note_option(link, options[i], (unsigned int)(uintptr_t)values[i]);
    }
    *out = (CUlinkState)link;
    return CUDA_SUCCESS;
}

static void limit_code(struct kernel_code *code, unsigned int limit)
{
    int most = limit < LEAST_REGISTERS ? LEAST_REGISTERS : (int)limit;

    code->limit = (int)limit;
    if (!limit || code->regs <= most || code->max_threads < 1024)
        return;
    code->local_bytes += REGISTER * (code->regs - most);
    code->regs = most;
}

static CUresult refuse_link(const struct link *link, const char *why)
{
    if (link->log)
        snprintf(link->log, link->log_size, "%s\nptxas fatal   : Aborted", why);
    return CUDA_ERROR_INVALID_PTX;
}

/* PTX for one architecture alone needs that architecture. */
static bool fits_target(const struct link *link)
{
    unsigned int target = (unsigned int)(10 * the_chip()->major + the_chip()->minor);

    for (size_t i = 0; i < link->image->n_globals; i++)
        if (link->image->globals[i].kind == GLOBAL_TARGET &&
            link->target != CU_COMPUTE_ACCELERATED_TARGET_BASE + target)
            return false;
    return true;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                          unsigned int n, CUjit_option *options, void **values)
{
    struct link *link = (struct link *)state;
    CUresult result;

    ENTER_NOT_CAPTURING();
    (void)size, (void)name, (void)n, (void)options, (void)values;
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
        return CUDA_ERROR_INVALID_VALUE;
    fake_log("jit pid=%d limit=%u type=%d target=%u options=%s\n", (int)getpid(), link->limit, (int)type, link->target,
             link->options);
    if (link->limit && link->limit < REFUSED_BELOW)
        return refuse_link(link, "ptxas fatal   : Register limit too low");
    link->image = calloc(1, sizeof(*link->image));
    if (!link->image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = parse_names(link->image, data);
    if (!fits_target(link))
        return refuse_link(link,
                           "ptxas fatal   : PTX with .target 'sm_90a' cannot be compiled to architecture 'sm_90'");
    for (size_t i = 0; i < link->image->n_codes; i++)
        limit_code(&link->image->codes[i], link->limit);
    return result;
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
    struct link *link = (struct link *)state;
    struct linked *made;

    ENTER_NOT_CAPTURING();
    made = calloc(1, sizeof(*made));
    if (!link->image || !made)
        return CUDA_ERROR_INVALID_VALUE;
    link->image->cubin = make_cubin(link->image);
    *made = (struct linked){link->image, all_linked};
    all_linked = made;
    *size = link->image->cubin.size;
    *cubin = link->made = malloc(*size);
    if (!*cubin)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(*cubin, link->image->cubin.image, *size);
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    ENTER_NOT_CAPTURING();
    free(((struct link *)state)->made);
    free(state);
    return CUDA_SUCCESS;
}
