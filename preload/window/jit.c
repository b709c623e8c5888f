#include "preload/window/jit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/text.h"
#include "collectors/code/cubin.h"
#include "collectors/providers/observe.h"
#include "preload/program/ptx.h"

/* The code of a compilation. */
struct code {
    void *image; /* malloc'ed */
    size_t size;
    struct kp_cubin *opened;           /* from look_at */
    struct kp_cubin_function function; /* the kernel in it */
};

static void free_code(struct code *c)
{
    kp_cubin_close(c->opened);
    free(c->image);
}

__attribute__((format(printf, 2, 3))) static bool refuse(struct kp_jit_kernel *k, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = k->why ? 0 : vasprintf(&k->why, format, list);
    va_end(list);
    if (n < 0)
        k->why = kp_strdup("out of memory");
    return false;
}

/* ---- compiling ---- */

/* Refuses with what the JIT said: the first line of its log. */
static bool refuse_compiled(const struct kp_jit *j, struct kp_jit_kernel *k, CUresult rc, char *log)
{
    log[strcspn(log, "\r\n")] = '\0';
    return refuse(k, "the JIT refuses it: %s", *log ? log : kp_driver_error(j->driver, rc));
}

static CUresult link_ptx(const struct kp_driver *d, CUlinkState link, const struct kp_ptx *ptx, struct code *out)
{
    void *image = NULL;
    CUjitInputType type = ptx->form == KP_PTX_TEXT ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_FATBINARY;
    CUresult rc = d->cuLinkAddData(link, type, ptx->bytes, ptx->size, "module", 0, NULL, NULL);
    if (rc == CUDA_SUCCESS)
        rc = d->cuLinkComplete(link, &image, &out->size); /* the image lives as long as the link */
    if (rc == CUDA_SUCCESS && !(out->image = malloc(out->size)))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc == CUDA_SUCCESS)
        memcpy(out->image, image, out->size);
    return rc;
}

enum { LOG_SIZE = 1024 };

struct jit_options {
    CUjit_option option[KP_PTX_OPTIONS + 4];
    void *value[KP_PTX_OPTIONS + 4];
    unsigned n;
};

static void add(struct jit_options *o, CUjit_option option, uintptr_t value)
{
    o->option[o->n] = option;
    o->value[o->n++] = (void *)value;
}

/* Compiles with the kernel's limit, 0: without one, for a target, 0: the one that the program has named, or the
 * context's device. Other options are the program's. */
static CUresult compile_for(const struct kp_jit *j, const struct kp_ptx_source *from, uint64_t limit, unsigned target,
                            char log[LOG_SIZE], struct code *out)
{
    const struct kp_driver *d = j->driver;
    struct jit_options o = {.n = 0};
    CUlinkState link;
    add(&o, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)log);
    add(&o, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_SIZE - 1);
    for (unsigned i = 0; i < from->options.n; i++)
        if (!target || from->options.option[i] != CU_JIT_TARGET)
            add(&o, from->options.option[i], from->options.value[i]);
    if (limit)
        add(&o, CU_JIT_MAX_REGISTERS, limit);
    if (target)
        add(&o, CU_JIT_TARGET, target);
    CUresult rc = d->cuLinkCreate(o.n, o.option, o.value, &link);
    if (rc == CUDA_SUCCESS) {
        rc = link_ptx(d, link, &from->ptx, out);
        d->cuLinkDestroy(link);
    }
    return rc;
}

/* The linker hands out code without loading it, so that it can be looked at before. PTX for one architecture alone,
 * such as sm_90a, has to have that named as the target. */
static bool compile(const struct kp_jit *j, const struct kp_ptx_source *from, struct kp_jit_kernel *k, struct code *out)
{
    const struct kp_driver *d = j->driver;
    char log[LOG_SIZE] = "", other[LOG_SIZE] = "";
    unsigned own = (unsigned)(10 * j->device->cc_major + j->device->cc_minor);
    if (!d->cuLinkCreate || !d->cuLinkAddData || !d->cuLinkComplete || !d->cuLinkDestroy)
        return refuse(k, "this driver has no linker");
    CUresult rc = compile_for(j, from, k->limit, 0, log, out);
    return rc == CUDA_SUCCESS ||
           compile_for(j, from, k->limit, CU_COMPUTE_ACCELERATED_TARGET_BASE + own, other, out) == CUDA_SUCCESS ||
           refuse_compiled(j, k, rc, log);
}

/* ---- looking at the code ---- */

struct look {
    const char *name; /* of the kernel */
    bool found;
    struct kp_cubin_function function;
};

static int find_function(const struct kp_cubin_function *f, void *arg)
{
    struct look *l = arg;
    l->found = !strcmp(f->name, l->name);
    if (l->found)
        l->function = *f;
    return l->found;
}

/* What the code has for itself would be another copy of what the program's has: constants can be copied, as no kernel
 * writes them. */
static int judge_object(const char *name, enum kp_cubin_object kind, void *arg)
{
    if (kind == KP_CUBIN_VARIABLE)
        refuse(arg, "it uses the variable %s of its module, of which the variant would have another copy", name);
    else if (kind == KP_CUBIN_REFERENCE)
        refuse(arg, "its module has a reference to a texture or surface (%s), which the program binds to its own alone",
               name);
    return kind != KP_CUBIN_CONSTANT;
}

static bool judge(const struct code *c, struct kp_jit_kernel *k)
{
    const struct kp_cubin_function *f = &c->function;
    struct kp_cubin_reach reach;
    if (kp_cubin_each_use(c->opened, f->symbol, judge_object, k))
        return refuse(k, "what it uses of its module cannot be read");
    if (kp_cubin_reach(c->opened, f->symbol, &reach))
        return refuse(k, "its calls cannot be followed");
    if (reach.by_pointer)
        return refuse(k, "it calls functions through pointers, which may be to those of the program's module");
    k->function.facts.code =
        (struct kp_kernel_code){f->barriers, reach.functions, reach.launches, reach.spills, reach.once};
    return true;
}

/* Reads the registers of the code, and refuses what may not run in the place of the program's. */
static bool look_at(const struct kp_jit *j, struct code *code, struct kp_jit_kernel *k)
{
    struct look l = {.name = j->own->facts.mangled};
    if (kp_cubin_open(code->image, code->size, &code->opened))
        return refuse(k, "kprof cannot read the code that the JIT made");
    kp_cubin_each_function(code->opened, find_function, &l);
    code->function = l.function;
    k->registers = l.found ? l.function.registers : 0;
    return l.found ? judge(code, k) : refuse(k, "the PTX of its module has no kernel of its name");
}

/* ---- loading ---- */

struct copy {
    const struct kp_driver *d;
    CUmodule from;
    struct kp_jit_kernel *k;
};

static int copy_constant(const char *name, enum kp_cubin_object kind, void *arg)
{
    struct copy *c = arg;
    CUdeviceptr from, to;
    size_t size, other;
    (void)kind;
    if (c->d->cuModuleGetGlobal(&from, &size, c->from, name) != CUDA_SUCCESS ||
        c->d->cuModuleGetGlobal(&to, &other, c->k->module, name) != CUDA_SUCCESS || size != other ||
        c->d->cuMemcpyDtoDAsync(to, from, size, CU_STREAM_LEGACY) != CUDA_SUCCESS)
        refuse(c->k, "the constant %s could not be copied from the program's module", name);
    return c->k->why != NULL;
}

static bool copy_constants(const struct kp_jit *j, const struct code *code, struct kp_jit_kernel *k)
{
    const struct kp_driver *d = j->driver;
    struct copy copy = {d, NULL, k};
    if (!d->cuFuncGetModule || !d->cuModuleGetGlobal ||
        d->cuFuncGetModule(&copy.from, j->own->facts.handle) != CUDA_SUCCESS)
        return refuse(k, "this driver does not tell its module, whose constants are to be copied");
    kp_cubin_each_use(code->opened, code->function.symbol, copy_constant, &copy);
    if (!k->why && d->cuCtxSynchronize() != CUDA_SUCCESS)
        refuse(k, "its constants could not be copied from the program's module");
    return !k->why;
}

/* Gives the function what the program has set for its own. */
static void copy_attributes(const struct kp_driver *d, CUfunction from, CUfunction to)
{
    static const CUfunction_attribute set[] = {
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    };
    for (size_t i = 0; d->cuFuncSetAttribute && i < sizeof(set) / sizeof(*set); i++) {
        int own, other;
        if (d->cuFuncGetAttribute(&own, set[i], from) == CUDA_SUCCESS &&
            d->cuFuncGetAttribute(&other, set[i], to) == CUDA_SUCCESS && own != other)
            d->cuFuncSetAttribute(to, set[i], own);
    }
}

static CUresult load_function(const struct kp_driver *d, const char *name, const struct code *code,
                              struct kp_jit_kernel *k, CUfunction *f)
{
    CUresult rc = d->cuModuleLoadData(&k->module, code->image);
    if (rc != CUDA_SUCCESS) {
        k->module = NULL;
        return rc;
    }
    rc = d->cuModuleGetFunction(f, k->module, name);
    return rc == CUDA_SUCCESS && d->cuFuncLoad ? d->cuFuncLoad(*f) : rc; /* now, not in the middle of a pass */
}

static bool load(const struct kp_jit *j, const struct code *code, struct kp_jit_kernel *k)
{
    const struct kp_driver *d = j->driver;
    const struct kp_kernel_code told = k->function.facts.code;
    struct kp_known_function *own = &k->function;
    CUfunction f = NULL;
    kp_images_aside(true);
    CUresult rc = load_function(d, j->own->facts.mangled, code, k, &f);
    kp_images_aside(false);
    if (rc != CUDA_SUCCESS)
        return refuse(k, "its code could not be loaded: %s", kp_driver_error(d, rc));
    if (!copy_constants(j, code, k))
        return false;
    copy_attributes(d, j->own->facts.handle, f);
    *own = *j->own;
    own->configs = NULL;
    own->n_configs = 0;
    own->next = NULL;
    own->key = f;
    rc = kp_function_read(d, j->device, f, &own->facts);
    own->facts.code = told;
    own->facts.code_known = j->own->facts.code_known;
    return rc == CUDA_SUCCESS || refuse(k, "its function could not be read: %s", kp_driver_error(d, rc));
}

/* ---- the kernels of a launch ---- */

static bool make(const struct kp_jit *j, struct kp_jit_kernel *k, bool loads)
{
    struct code code = {.image = NULL};
    struct kp_ptx_source from;
    const char *why;
    if (!kp_ptx_of(j->driver, j->own->key, &j->own->facts, &from, &why))
        return refuse(k, "%s", why);
    bool made = compile(j, &from, k, &code) && look_at(j, &code, k) && (!loads || load(j, &code, k));
    free_code(&code);
    kp_ptx_free(&from.ptx);
    return made;
}

/* What the JIT takes without a limit, against which the limits are held. */
static void ask_unlimited(struct kp_jit *j)
{
    struct kp_jit_kernel k = {.limit = 0};
    if (!j->asked && make(j, &k, false))
        j->unlimited = k.registers;
    j->asked = true;
    free(k.why);
}

struct kp_jit_kernel *kp_jit_get(struct kp_jit *j, uint64_t limit)
{
    struct kp_jit_kernel *k = j->made;
    while (k < j->made + j->n && k->limit != limit)
        k++;
    if (k < j->made + j->n)
        return k;
    if (j->n == sizeof(j->made) / sizeof(*j->made))
        return NULL;
    j->n++;
    *k = (struct kp_jit_kernel){.limit = limit};
    if (make(j, k, true))
        ask_unlimited(j);
    kp_debug(KP_DEBUG_WINDOW, "at most %u registers: %u, %u without a limit%s%s", (unsigned)limit, k->registers,
             j->unlimited, k->why ? ": " : "", k->why ? k->why : "");
    return k;
}

void kp_jit_end(struct kp_jit *j, bool dead)
{
    for (struct kp_jit_kernel *k = j->made; k < j->made + j->n; k++) {
        if (k->module && !dead)
            j->driver->cuModuleUnload(k->module);
        if (k->function.key)
            kp_function_free(&k->function.facts);
        free(k->function.configs);
        free(k->why);
    }
    j->n = 0;
}
