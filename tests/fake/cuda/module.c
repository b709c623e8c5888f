/*
 * Modules, libraries, functions and their facts. Images: text "FAKEMOD name ... global:NAME:BYTES ..." with names from
 * the table in kernels.c, and const: and texref: for other things that a module has, or target: where it is for one
 * architecture alone; PTX text, whose entries become kernels that take their parameters and do nothing; a fat binary
 * with one of them; what the linker made; any other binary, which is taken to hold every name asked for.
 */
#include "core.h"

#include <ctype.h>

static struct kernel_code *add_code(struct module_image *image, const struct kernel_code *code)
{
    image->codes = realloc(image->codes, (image->n_codes + 1) * sizeof(*image->codes));
    if (!image->codes)
        fake_misuse("out of host memory");
    image->codes[image->n_codes] = *code;
    return &image->codes[image->n_codes++];
}

static struct kernel_code idle_code(const char *name, size_t length)
{
    struct kernel_code code = {.name = strndup(name, length), .regs = 16, .max_threads = 1024, .n_params = -1};

    return code;
}

/* Returns true if the word names something in a module other than kernels. */
static bool parse_global(struct module_image *image, const char *word)
{
    static const char *const kinds[] = {"global", "const", "texref", "target"};
    char kind[8], name[64];
    size_t size;

    if (sscanf(word, "%7[^:]:%63[^:]:%zu", kind, name, &size) != 3)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kind, kinds[i])) {
            strcpy(image->globals[image->n_globals].name, name);
            image->globals[image->n_globals].size = size;
            image->globals[image->n_globals++].kind = (enum global_kind)i;
            return true;
        }
    return false;
}

static CUresult parse_fakemod(struct module_image *image, const char *text)
{
    char word[256];
    int used;

    for (text += strlen("FAKEMOD"); sscanf(text, "%255s%n", word, &used) == 1; text += used) {
        const struct kernel_code *code = code_named(kernel_codes, N_KERNEL_CODES, word);

        if (code)
            add_code(image, code);
        else if (!parse_global(image, word))
            return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

/* One `.param` declaration; sizes are those of the PTX types. */
static void parse_ptx_param(struct kernel_code *code, const char *text, const char *end)
{
    static const struct {
        const char *name;
        int size;
    } types[] = {{".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2}, {".b32", 4},
                 {".u32", 4}, {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    char word[128];
    int used, size = 0, align = 0, count = 1;

    for (; text < end && sscanf(text, "%127s%n", word, &used) == 1; text += used) {
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
            if (!strcmp(word, types[i].name))
                size = types[i].size;
        if (!strcmp(word, ".align"))
            align = atoi(text + used);
        if (strchr(word, '[') && text + used <= end + 1)
            count = atoi(strchr(word, '[') + 1);
    }
    if (size && code->n_params < MAX_PARAMS) {
        code->param_align[code->n_params] = align && count > 1 ? align : size;
        code->param_size[code->n_params++] = size * count;
    }
}

static CUresult parse_ptx(struct module_image *image, const char *text)
{
    for (text = strstr(text, ".entry"); text; text = strstr(text, ".entry")) {
        const char *name, *end, *comma;
        const struct kernel_code *ours;
        struct kernel_code code;

        for (text += strlen(".entry"); isspace((unsigned char)*text); text++)
            ;
        for (name = text; *text && !isspace((unsigned char)*text) && *text != '('; text++)
            ;
        code = idle_code(name, text - name);
        ours =
            strncmp(code.name, "kprof_", strlen("kprof_")) ? NULL : code_named(kernel_codes, N_KERNEL_CODES, code.name);
        if (ours)
            code.run = ours->run;
        end = strchr(text, ')');
        text = strchr(text, '(');
        code.n_params = 0;
        for (; text && end && text < end; text = comma) {
            comma = memchr(text + 1, ',', end - text - 1);
            comma = comma ? comma : end;
            parse_ptx_param(&code, text + 1, comma);
        }
        add_code(image, &code);
        if (!text)
            break;
    }
    return image->n_codes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* The PTX of a fat binary, if it is not compressed; NULL without any. */
static const char *fatbin_ptx(const unsigned char *container)
{
    const struct {
        uint32_t magic;
        uint16_t version, header_size;
        uint64_t size;
    } *head = (const void *)container;
    const unsigned char *at = container + head->header_size, *end = at + head->size;

    while (at < end) {
        const struct {
            uint16_t kind, version;
            uint32_t header_size;
            uint64_t size;
        } *entry = (const void *)at;

        if (entry->kind == 1)
            return (const char *)at + entry->header_size;
        at += entry->header_size + entry->size;
    }
    return NULL;
}

static const struct module_image *linked_image(const void *data);

/* A binary that was made for a program on a GPU is known only through the names asked for. */
static CUresult parse_binary(struct module_image *image, const char *ptx)
{
    image->any_name = !ptx || strncmp(ptx, "FAKEMOD", strlen("FAKEMOD"));
    return image->any_name ? CUDA_SUCCESS : parse_fakemod(image, ptx);
}

static CUresult parse_names(struct module_image *image, const void *data)
{
    static const uint32_t fatbin_wrapper = 0x466243b1, fatbin = 0xba55ed50;
    const struct module_image *linked = linked_image(data);
    uint32_t magic;

    if (linked) {
        *image = *linked;
        return CUDA_SUCCESS;
    }
    memcpy(&magic, data, sizeof(magic));
    if (!memcmp(data, "\177ELF", 4))
        return parse_binary(image, NULL);
    if (magic == fatbin_wrapper)
        return parse_binary(image, fatbin_ptx(((const unsigned char *const *)data)[1]));
    if (magic == fatbin)
        return parse_binary(image, fatbin_ptx(data));
    if (!strncmp(data, "FAKEMOD", strlen("FAKEMOD")))
        return parse_fakemod(image, data);
    return parse_ptx(image, data);
}

static CUresult parse_image(const struct module_image **out, const void *data)
{
    struct module_image *image = calloc(1, sizeof(*image));
    CUresult result;

    *out = image;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    result = parse_names(image, data);
    if (!result)
        image->cubin = cubin_of(image, data);
    return result;
}

static const struct kernel_code *image_code(const struct module_image *image, const char *name)
{
    const struct kernel_code *code = code_named(image->codes, image->n_codes, name);
    struct kernel_code idle;

    if (code || !image->any_name)
        return code;
    idle = idle_code(name, strlen(name));
    return add_code(calloc(1, sizeof(struct module_image)), &idle);
}

static struct settable initial_settings(const struct kernel_code *code)
{
    struct settable set = {.max_dynamic_shared = 49152 - code->shared_bytes, .carveout = -1};

    return set;
}

static fake_module_fn module_hook;
static void *module_hook_data;

static void set_module_hook(fake_module_fn fn, void *data)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    module_hook = fn;
    module_hook_data = data;
}

static struct module *new_module(const struct module_image *image, struct library *library)
{
    struct module *module = make(sizeof(*module), KIND_MODULE, current());

    module->image = image;
    module->library = library;
    for (size_t i = 0; i < image->n_globals; i++) {
        void *base;

        if (allocate(&base, image->globals[i].size, false))
            fake_misuse("no memory for a module's globals");
        memset(base, 0, image->globals[i].size);
        module->globals[i] = allocation_of((uintptr_t)base);
    }
    if (module_hook)
        module_hook(&image->cubin, module_hook_data);
    return module;
}

static CUresult load_module(CUmodule *out, const void *data)
{
    const struct module_image *image;
    CUresult result = parse_image(&image, data);

    if (!result)
        *out = (CUmodule)new_module(image, NULL);
    return result;
}

CUresult cuModuleLoadData(CUmodule *out, const void *data)
{
    ENTER_NOT_CAPTURING();
    return load_module(out, data);
}

/* Afterwards this option has the value that the compiler used. */
static void tell_threads(unsigned int n, const CUjit_option *options, void **values)
{
    for (unsigned int i = 0; i < n; i++)
        if (options[i] == CU_JIT_THREADS_PER_BLOCK)
            values[i] = (void *)(uintptr_t)1;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned int n, CUjit_option *options, void **values)
{
    ENTER_NOT_CAPTURING();
    tell_threads(n, options, values);
    return load_module(out, data);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *data)
{
    ENTER_NOT_CAPTURING();
    return load_module(out, data);
}

CUresult cuModuleUnload(CUmodule handle)
{
    ENTER_NOT_CAPTURING();
    TAKE(module, module, KIND_MODULE, handle);
    for (struct function *f = module->functions; f; f = f->next)
        f->head.dead = true;
    for (size_t i = 0; i < module->image->n_globals; i++)
        release_memory(&module->globals[i]->head);
    module->head.dead = true;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    ENTER(NEED_INIT);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static struct function *module_function(struct module *module, const char *name)
{
    const struct kernel_code *code;
    struct function *f;

    for (f = module->functions; f; f = f->next)
        if (!strcmp(f->code->name, name))
            return f;
    code = image_code(module->image, name);
    if (!code)
        return NULL;
    f = make(sizeof(*f), KIND_FUNCTION, module->head.ctx);
    f->module = module;
    f->code = code;
    f->set = initial_settings(code);
    f->next = module->functions;
    module->functions = f;
    return f;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    ENTER(NEED_CONTEXT);
    TAKE(module, module, KIND_MODULE, handle);
    *out = (CUfunction)module_function(module, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(module, module, KIND_MODULE, handle);
    *count = module->image->n_codes;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(module, module, KIND_MODULE, handle);
    for (unsigned int i = 0; i < n && i < module->image->n_codes; i++)
        functions[i] = (CUfunction)module_function(module, module->image->codes[i].name);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule handle, const char *name)
{
    ENTER(NEED_CONTEXT);
    TAKE(module, module, KIND_MODULE, handle);
    for (size_t i = 0; i < module->image->n_globals; i++) {
        if (strcmp(module->image->globals[i].name, name))
            continue;
        if (out)
            *out = (CUdeviceptr)module->globals[i]->info.base;
        if (bytes)
            *bytes = module->image->globals[i].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *data, CUjit_option *jit, void **jit_values, unsigned int n_jit,
                           CUlibraryOption *options, void **values, unsigned int n)
{
    const struct module_image *image;
    struct library *library;
    CUresult result;

    ENTER(NEED_INIT);
    (void)options, (void)values, (void)n;
    tell_threads(n_jit, jit, jit_values);
    result = parse_image(&image, data);
    if (result)
        return result;
    library = make(sizeof(*library), KIND_LIBRARY, NULL);
    library->image = image;
    *out = (CUlibrary)library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    ENTER(NEED_INIT);
    TAKE(library, library, KIND_LIBRARY, handle);
    library->head.dead = true;
    for (struct kernel *k = library->kernels; k; k = k->next)
        k->head.dead = true;
    for (struct object *o = objects[KIND_MODULE]; o; o = o->next)
        o->dead |= ((struct module *)o)->library == library;
    for (struct object *o = objects[KIND_FUNCTION]; o; o = o->next)
        o->dead |= ((struct function *)o)->module->library == library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    const struct kernel_code *code;
    struct kernel *kernel;

    ENTER(NEED_INIT);
    TAKE(library, library, KIND_LIBRARY, handle);
    for (kernel = library->kernels; kernel && strcmp(kernel->code->name, name); kernel = kernel->next)
        ;
    code = kernel ? kernel->code : image_code(library->image, name);
    if (!code)
        return CUDA_ERROR_NOT_FOUND;
    if (!kernel) {
        kernel = make(sizeof(*kernel), KIND_KERNEL, NULL);
        kernel->library = library;
        kernel->code = code;
        kernel->set = initial_settings(code);
        kernel->next = library->kernels;
        library->kernels = kernel;
    }
    *out = (CUkernel)kernel;
    return CUDA_SUCCESS;
}

/* A library has one module in each context that it was used in. */
static struct module *library_module(struct library *library)
{
    for (struct object *o = objects[KIND_MODULE]; o; o = o->next)
        if (!o->dead && o->ctx == current() && ((struct module *)o)->library == library)
            return (struct module *)o;
    return new_module(library->image, library);
}

static struct function *kernel_function(struct kernel *kernel)
{
    struct function *f = module_function(library_module(kernel->library), kernel->code->name);

    f->set = kernel->set;
    return f;
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(library, library, KIND_LIBRARY, handle);
    *out = (CUmodule)library_module(library);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    *out = (CUfunction)kernel_function(kernel);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle)
{
    ENTER(NEED_INIT);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    *out = (CUlibrary)kernel->library;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel handle)
{
    ENTER(NEED_INIT);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    *name = kernel->code->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    *name = f->code->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    *out = (CUmodule)f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    *state = f->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    f->loaded = true;
    return CUDA_SUCCESS;
}

static CUresult param_info(const struct kernel_code *code, size_t index, size_t *offset, size_t *size)
{
    if (!offset || (int64_t)index >= code->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = param_offset(code, (int)index);
    if (size)
        *size = code->param_size[index];
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    return param_info(f->code, index, offset, size);
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
    ENTER(NEED_INIT);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    return param_info(kernel->code, index, offset, size);
}

static CUresult get_attribute(int *value, CUfunction_attribute attr, const struct kernel_code *code,
                              const struct settable *set)
{
    int version = 10 * the_chip()->major + the_chip()->minor;

    switch (attr) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = code->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = code->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = code->const_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = code->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = code->regs;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = version;
        break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = set->max_dynamic_shared;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = set->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = set->cluster[attr - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = set->non_portable_cluster;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = set->cluster_policy;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct settable *set, const struct kernel_code *code, CUfunction_attribute attr,
                              int value)
{
    switch (attr) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value + code->shared_bytes > the_chip()->shared_optin)
            return CUDA_ERROR_INVALID_VALUE;
        set->max_dynamic_shared = value;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        set->carveout = value;
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        set->non_portable_cluster = value;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        set->cluster_policy = value;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction handle)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    return get_attribute(value, attr, f->code, &f->set);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attr, int value)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    return set_attribute(&f->set, f->code, attr, value);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel handle, CUdevice dev)
{
    ENTER_DEVICE(dev);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    return get_attribute(value, attr, kernel->code, &kernel->set);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel handle, CUdevice dev)
{
    ENTER_DEVICE(dev);
    TAKE(kernel, kernel, KIND_KERNEL, handle);
    return set_attribute(&kernel->set, kernel->code, attr, value);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    (void)f, (void)config;
    return CUDA_SUCCESS;
}

/* Launches and occupancy queries accept a kernel in place of a function; the other cuFunc… calls do not. */
static struct function *function_or_kernel(void *handle, const char *caller)
{
    struct kernel *kernel;

    if (state_of(handle, KIND_KERNEL) == FAKE_NEVER_SEEN)
        return (struct function *)live(handle, KIND_FUNCTION, caller);
    kernel = (struct kernel *)live(handle, KIND_KERNEL, caller);
    return kernel_function(kernel);
}

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The published occupancy rules: warps get registers in units of 256, shared memory comes in units of 128 bytes. */
static int blocks_per_sm(const struct function *f, int threads, size_t dynamic_shared)
{
    const struct chip *chip = the_chip();
    int warps = (threads + 31) / 32, blocks = chip->blocks_per_sm, limit;
    int shared = round_up(f->code->shared_bytes + (int)dynamic_shared + chip->shared_reserved, 128);

    limit = chip->warps_per_sm / warps;
    blocks = limit < blocks ? limit : blocks;
    limit = 65536 / round_up(f->code->regs * 32, 256) / 4 * 4 / warps;
    blocks = limit < blocks ? limit : blocks;
    limit = shared ? chip->shared_per_sm / shared : blocks;
    return limit < blocks ? limit : blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                              size_t shared, unsigned int flags)
{
    const struct function *f;

    ENTER(NEED_CONTEXT);
    (void)flags;
    f = function_or_kernel(handle, __func__);
    if (!f || !blocks || threads < 1 || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_per_sm(f, threads, shared);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads, size_t shared)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, shared, 0);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config)
{
    const struct function *f;

    ENTER(NEED_CONTEXT);
    f = function_or_kernel(handle, __func__);
    if (!f || !config || !the_chip()->clusters)
        return CUDA_ERROR_INVALID_VALUE;
    *size = f->set.non_portable_cluster ? 16 : 8;
    return CUDA_SUCCESS;
}

/* Ignores the real chip's layout in clusters of SMs: as many as the SMs hold if all are alike. */
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    const struct function *f;
    int size = 1, threads;

    ENTER(NEED_CONTEXT);
    f = function_or_kernel(handle, __func__);
    if (!f || !config || !the_chip()->clusters)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
    threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    *clusters = blocks_per_sm(f, threads, config->sharedMemBytes) * the_chip()->sms / size;
    return CUDA_SUCCESS;
}
