/*
 * The host side, which is the real library's: metrics, config images, numbers of passes. Loading that library would
 * cost each process of a test 0.1 s of a processor, and packing a set of metrics into passes as much. Answers depend
 * only on the question, so if KP_HOST_ANSWERS names a folder, later processes find them there. A file has one whole
 * question and its answer; the question starts with what distinguishes one library from another.
 *
 * The functions of this file must not be called by two threads for one object, like those of the real library.
 */
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* A question or an answer, as bytes. `failed`: some allocation found no memory. */
struct bytes {
    uint8_t *at;
    size_t n;
    bool failed;
};

/* What a caller may read for as long as its object is there. */
struct lent {
    struct lent *next;
    struct bytes bytes;
    const char *names[];
};

/* What CUpti_Profiler_Host_Object points to. */
struct host {
    uint64_t magic;
    CUpti_Profiler_Host_Object *real; /* of the library, as soon as a question has no kept answer */
    CUpti_ProfilerType type;
    char *chip;
    const uint8_t *availability; /* the caller's */
    const char **names;          /* of the first list */
    size_t n_names;
    bool told; /* the library knows that list */
    bool live; /* it is more than type, chip and one list: no answer is kept */
    struct bytes image;
    struct lent *lent;
    struct bytes added; /* of each add call: the number of its metrics, its passes, hashes of base names */
};

/* What a config image counts, for the target side. Kept for the life of the process. */
struct known_config {
    struct known_config *next;
    uint64_t image; /* its hash */
    struct bytes added;
    bool patched; /* patched code counts some of its first list */
};

static struct known_config *_Atomic known_configs; /* the newest first; none ever changes */

#define HOST_MAGIC 0x686f73746f626a31ull

static void put(struct bytes *b, const void *data, size_t n)
{
    uint8_t *grown = b->failed ? NULL : fake_realloc(b->at, b->n + n + 1);

    if (!grown) {
        b->failed = true;
        return;
    }
    memcpy(grown + b->n, data, n);
    b->at = grown;
    b->n += n;
}

static void put_text(struct bytes *b, const char *text)
{
    put(b, text ? text : "", (text ? strlen(text) : 0) + 1);
}

static void put_number(struct bytes *b, uint64_t number)
{
    put(b, &number, sizeof(number));
}

/* --- the folder --- */

/* Adds what distinguishes one library from another: its path and time. False without a folder or a library. */
static bool put_library(struct bytes *question)
{
    static const char *const files[] = {"libnvperf_host.so", "libcupti.so.13"};
    const char *folder = getenv("KP_REAL_CUPTI"), *answers = getenv("KP_HOST_ANSWERS");

    if (!answers || !*answers || !folder || !*folder)
        return false;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[PATH_MAX];
        struct stat st;

        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        if (stat(path, &st))
            return false;
        put_text(question, path);
        put_number(question, (uint64_t)st.st_size);
        put_number(question, (uint64_t)st.st_mtime);
    }
    return true;
}

static void path_of(const struct bytes *question, char path[PATH_MAX])
{
    uint64_t low = fake_hash(FAKE_HASH_START, question->at, question->n);

    snprintf(path, PATH_MAX, "%s/%016llx", getenv("KP_HOST_ANSWERS"), (unsigned long long)low);
}

/* Uses system calls directly: a test's library may replace those of libc, and count them. */
static bool read_file(const char *path, struct bytes *out)
{
    struct stat st;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    bool good = fd >= 0 && !fstat(fd, &st) && (out->at = fake_realloc(NULL, (size_t)st.st_size + 1));

    for (long n; good && out->n < (size_t)st.st_size; out->n += (size_t)n) {
        n = syscall(SYS_read, fd, out->at + out->n, (size_t)st.st_size - out->n);
        good = n > 0;
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return good;
}

/* Finds the kept answer to a question: true, with its code, and bytes owned by the caller. */
static bool recall(const struct bytes *question, CUptiResult *code, struct bytes *answer)
{
    char path[PATH_MAX];
    struct bytes file = {NULL, 0, false};
    uint64_t head[2]; /* size of the question, code */
    bool found = false;

    memset(answer, 0, sizeof(*answer));
    if (question->failed)
        return false;
    path_of(question, path);
    if (read_file(path, &file) && file.n >= sizeof(head) + question->n) {
        memcpy(head, file.at, sizeof(head));
        found = head[0] == question->n && !memcmp(file.at + sizeof(head), question->at, question->n);
    }
    if (found) {
        *code = (CUptiResult)head[1];
        put(answer, file.at + sizeof(head) + question->n, file.n - sizeof(head) - question->n);
        found = !answer->failed;
    }
    free(file.at);
    return found;
}

/* Returns true if a code answers the question itself, rather than reflecting a lack of memory or descriptors. */
static bool lasts(CUptiResult code)
{
    return code == CUPTI_SUCCESS || code == CUPTI_ERROR_INVALID_METRIC_NAME || code == CUPTI_ERROR_INVALID_CHIP_NAME ||
           code == CUPTI_ERROR_NOT_SUPPORTED;
}

/* Keeps an answer, if it can. Trying would end a process that may not write large files. */
static void keep(const struct bytes *question, CUptiResult code, const struct bytes *answer)
{
    char path[PATH_MAX], part[PATH_MAX + 32];
    struct bytes file = {NULL, 0, false};
    struct rlimit most;

    if (!lasts(code) || question->failed || answer->failed || getrlimit(RLIMIT_FSIZE, &most) ||
        most.rlim_cur != RLIM_INFINITY)
        return;
    put_number(&file, question->n);
    put_number(&file, (uint64_t)code);
    put(&file, question->at, question->n);
    put(&file, answer->at ? (const void *)answer->at : "", answer->n);
    path_of(question, path);
    snprintf(part, sizeof(part), "%s.%d.%ld", path, (int)getpid(), (long)syscall(SYS_gettid));
    mkdir(getenv("KP_HOST_ANSWERS"), 0755);
    int fd = file.failed ? -1 : (int)syscall(SYS_openat, AT_FDCWD, part, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) {
        bool whole = syscall(SYS_write, fd, file.at, file.n) == (long)file.n;

        syscall(SYS_close, fd);
        if (!whole || rename(part, path))
            unlink(part);
    }
    free(file.at);
}

/* --- objects --- */

static struct host *host_of(CUpti_Profiler_Host_Object *object)
{
    struct host *h = (void *)object;

    return h && h->magic == HOST_MAGIC ? h : NULL;
}

/* Starts a question about the object: function, type, chip and list. False if its answers are not kept. */
static bool ask(const struct host *h, const char *function, struct bytes *question)
{
    memset(question, 0, sizeof(*question));
    if (h->live || !put_library(question))
        return false;
    put_text(question, function);
    put_number(question, (uint64_t)h->type);
    put_text(question, h->chip);
    put_number(question, h->n_names);
    for (size_t i = 0; i < h->n_names; i++)
        put_text(question, h->names[i]);
    return true;
}

#define REAL(function, type)                                                                                           \
    CUptiResult (*real)(type *);                                                                                       \
    *(void **)&real = real_symbol(function);                                                                           \
    if (!real)                                                                                                         \
    return CUPTI_ERROR_NOT_INITIALIZED

/* The library's other lists wait for its first host object. */
static bool host_opened, real_opened;

static CUptiResult real_initialize(struct host *h)
{
    CUpti_Profiler_Host_Initialize_Params p = {.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};

    REAL("cuptiProfilerHostInitialize", CUpti_Profiler_Host_Initialize_Params);
    p.profilerType = h->type;
    p.pChipName = h->chip;
    p.pCounterAvailabilityImage = h->availability;
    CUptiResult result = real(&p);
    h->real = result ? NULL : p.pHostObject;
    real_opened |= !result;
    return result;
}

static CUptiResult real_add(struct host *h, const char **names, size_t n)
{
    CUpti_Profiler_Host_ConfigAddMetrics_Params p = {.structSize =
                                                         CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};

    REAL("cuptiProfilerHostConfigAddMetrics", CUpti_Profiler_Host_ConfigAddMetrics_Params);
    p.pHostObject = h->real;
    p.ppMetricNames = names;
    p.numMetrics = n;
    return real(&p);
}

static void note_added(struct host *h, const char *const *names, size_t n, size_t passes)
{
    put_number(&h->added, n);
    put_number(&h->added, passes);
    for (size_t i = 0; i < n; i++)
        put_number(&h->added, fake_hash(FAKE_HASH_START, names[i], strcspn(names[i], ".")));
}

static struct known_config *find_config(uint64_t image)
{
    struct known_config *k = atomic_load(&known_configs);

    while (k && k->image != image)
        k = k->next;
    return k;
}

/* Tells the target side what the image counts. Several lists may have the same image as one list of all their metrics:
 * they say more, and take longer to write. Takes no driver lock, like the real host side: a thread of the program that
 * ended within the driver holds it for good. */
static void publish(const struct host *h, const uint8_t *image, size_t size)
{
    uint64_t hash = fake_hash(FAKE_HASH_START, image, size);
    struct known_config *k = find_config(hash);

    if ((k && k->added.n >= h->added.n) || !(k = fake_realloc(NULL, sizeof(*k))))
        return;
    memset(k, 0, sizeof(*k));
    k->image = hash;
    put(&k->added, h->added.at, h->added.n);
    for (size_t i = 0; i < h->n_names; i++)
        k->patched |= strstr(h->names[i], "__sass_") != NULL;
    k->next = atomic_load(&known_configs);
    while (!atomic_compare_exchange_weak(&known_configs, &k->next, k))
        ;
}

/* What one add call of a config image requested. */
struct added {
    const uint64_t *bases; /* hashes of base names */
    uint64_t n;
    size_t pass, passes; /* the first of its passes, and how many; 0 = all of the image */
};

/* Returns the add calls in turn; *at is NULL at first. */
static bool next_added(const struct known_config *k, const uint64_t **at, struct added *out)
{
    const uint64_t *begin = (const void *)k->added.at, *end = begin + k->added.n / sizeof(*begin);

    out->pass = *at ? out->pass + out->passes : 0;
    *at = *at ? *at + 2 + out->n : begin;
    if (*at >= end)
        return false;
    out->n = (*at)[0];
    out->passes = (*at)[1];
    out->bases = *at + 2;
    return true;
}

/* Opens the object in the library, with its list. */
static CUptiResult open_real(struct host *h)
{
    CUptiResult result = h->real ? CUPTI_SUCCESS : real_initialize(h);

    if (!result && h->names && !h->told) {
        result = real_add(h, h->names, h->n_names);
        h->told = !result;
    }
    return result;
}

static void forget_list(struct host *h)
{
    for (size_t i = 0; i < h->n_names; i++)
        free((void *)(uintptr_t)h->names[i]);
    free(h->names);
    h->names = NULL;
    h->n_names = 0;
}

static void free_host(struct host *h)
{
    while (h->lent) {
        struct lent *next = h->lent->next;

        free(h->lent->bytes.at);
        free(h->lent);
        h->lent = next;
    }
    forget_list(h);
    free(h->added.at);
    free(h->image.at);
    free(h->chip);
    h->magic = 0;
    free(h);
}

static atomic_int first_host; /* 1: a thread is in the first call, 2: it has returned */

static void leave_first(const bool *is_first)
{
    if (*is_first)
        atomic_store(&first_host, 2);
}

/* The real library would refuse the fake's availability image; without one it assumes all counters. It fails while
 * another thread is in the first call, as seen on the real one. */
CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *params)
{
    struct bytes question, answer = {NULL, 0, false};
    CUptiResult result;
    int none = 0;
    bool is_first __attribute__((cleanup(leave_first))) = atomic_compare_exchange_strong(&first_host, &none, 1);

    if (!is_first && atomic_load(&first_host) == 1)
        return CUPTI_ERROR_UNKNOWN;
    ENTER(params, CUpti_Profiler_Host_Initialize_Params);
    struct host *h = fake_realloc(NULL, sizeof(*h));
    if (!h)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    memset(h, 0, sizeof(*h));
    h->magic = HOST_MAGIC;
    h->type = params->profilerType;
    h->chip = params->pChipName ? strdup(params->pChipName) : NULL;
    if (params->pCounterAvailabilityImage &&
        memcmp(params->pCounterAvailabilityImage, AVAILABILITY_MAGIC, strlen(AVAILABILITY_MAGIC)) != 0)
        h->availability = params->pCounterAvailabilityImage;
    h->live = h->availability != NULL;
    bool kept = ask(h, __func__, &question);
    if (!kept || !recall(&question, &result, &answer)) {
        result = real_initialize(h);
        if (kept)
            keep(&question, result, &answer);
    }
    free(question.at);
    free(answer.at);
    params->pHostObject = result ? NULL : (void *)h;
    host_opened |= !result;
    if (result)
        free_host(h);
    return result;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *params)
{
    CUpti_Profiler_Host_Deinitialize_Params real_params;
    CUptiResult result = CUPTI_SUCCESS;

    ENTER(params, CUpti_Profiler_Host_Deinitialize_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (h->real) {
        REAL("cuptiProfilerHostDeinitialize", CUpti_Profiler_Host_Deinitialize_Params);
        real_params = *params;
        real_params.pHostObject = h->real;
        result = real(&real_params);
    }
    free_host(h);
    return result;
}

/* Copies the list into the object. */
static bool note_names(struct host *h, const char *const *names, size_t n)
{
    h->names = fake_realloc(NULL, (n + 1) * sizeof(*names));
    for (; h->names && h->n_names < n; h->n_names++)
        if (!(h->names[h->n_names] = strdup(names[h->n_names])))
            return false;
    return h->names;
}

static size_t passes_alone(const struct host *h, const char *const *names, size_t n);

/* Notes a list after the first one: each then has passes of its own. */
static void note_further(struct host *h, const char *const *names, size_t n)
{
    if (h->names && h->added.n == (h->n_names + 2) * sizeof(uint64_t)) {
        h->added.n = 0;
        note_added(h, h->names, h->n_names, passes_alone(h, h->names, h->n_names));
    }
    note_added(h, names, n, passes_alone(h, names, n));
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *params)
{
    struct bytes question, answer = {NULL, 0, false};
    CUptiResult result;

    ENTER(params, CUpti_Profiler_Host_ConfigAddMetrics_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (h->live || h->names || !params->ppMetricNames) {
        result = open_real(h);
        h->live = true;
        if (!result)
            result = real_add(h, params->ppMetricNames, params->numMetrics);
        if (!result)
            note_further(h, params->ppMetricNames, params->numMetrics);
        return result;
    }
    if (!note_names(h, params->ppMetricNames, params->numMetrics))
        return CUPTI_ERROR_OUT_OF_MEMORY;
    bool kept = ask(h, __func__, &question);
    if (!kept || !recall(&question, &result, &answer)) {
        result = open_real(h);
        if (kept)
            keep(&question, result, &answer);
    }
    free(question.at);
    free(answer.at);
    if (result)
        forget_list(h);
    else
        note_added(h, params->ppMetricNames, params->numMetrics, 0);
    return result;
}

static CUptiResult real_image_size(struct host *h, size_t *size)
{
    CUpti_Profiler_Host_GetConfigImageSize_Params p = {.structSize =
                                                           CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};

    REAL("cuptiProfilerHostGetConfigImageSize", CUpti_Profiler_Host_GetConfigImageSize_Params);
    p.pHostObject = h->real;
    CUptiResult result = real(&p);
    *size = p.configImageSize;
    return result;
}

static CUptiResult real_image(struct host *h, uint8_t *image, size_t size)
{
    CUpti_Profiler_Host_GetConfigImage_Params p = {.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};

    REAL("cuptiProfilerHostGetConfigImage", CUpti_Profiler_Host_GetConfigImage_Params);
    p.pHostObject = h->real;
    p.configImageSize = size;
    p.pConfigImage = image;
    return real(&p);
}

static CUptiResult fetch_image(struct host *h, struct bytes *image)
{
    size_t size = 0;
    CUptiResult result = open_real(h);

    if (!result)
        result = real_image_size(h, &size);
    if (result)
        return result;
    image->at = fake_realloc(NULL, size + 1);
    image->n = size;
    return image->at ? real_image(h, image->at, size) : CUPTI_ERROR_OUT_OF_MEMORY;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *params)
{
    struct bytes question;
    CUptiResult result = CUPTI_SUCCESS;

    ENTER(params, CUpti_Profiler_Host_GetConfigImageSize_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h)
        return CUPTI_ERROR_INVALID_PARAMETER;
    free(h->image.at);
    memset(&h->image, 0, sizeof(h->image));
    bool kept = ask(h, __func__, &question);
    if (!kept || !recall(&question, &result, &h->image)) {
        result = fetch_image(h, &h->image);
        if (kept && !result)
            keep(&question, result, &h->image);
    }
    free(question.at);
    params->configImageSize = h->image.n;
    return result;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *params)
{
    ENTER(params, CUpti_Profiler_Host_GetConfigImage_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h || !params->pConfigImage)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!h->image.at || params->configImageSize != h->image.n) {
        CUptiResult result = open_real(h);
        result = result ? result : real_image(h, params->pConfigImage, params->configImageSize);
        if (result)
            return result;
    } else {
        memcpy(params->pConfigImage, h->image.at, h->image.n);
    }
    publish(h, params->pConfigImage, params->configImageSize);
    return CUPTI_SUCCESS;
}

/* Passes of the images that this process asked about: a program may have moved to a folder where no file is found. */
static struct {
    _Atomic uint64_t hash; /* 0: none yet */
    size_t passes;
} images[64];
static atomic_size_t n_images;

static uint64_t hash_image(const CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
    return fake_hash(FAKE_HASH_START, params->pConfigImage, params->pConfigImage ? params->configImageSize : 0);
}

static bool recall_passes(CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
    uint64_t hash = hash_image(params);

    for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++)
        if (atomic_load(&images[i].hash) == hash) {
            params->numOfPasses = images[i].passes;
            return true;
        }
    return false;
}

static void note_passes(const CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
    size_t at = atomic_fetch_add(&n_images, 1);

    if (at >= sizeof(images) / sizeof(*images))
        return;
    images[at].passes = params->numOfPasses;
    atomic_store(&images[at].hash, hash_image(params));
}

static CUptiResult count_passes(CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
    struct bytes question = {NULL, 0, false}, answer = {NULL, 0, false};
    CUptiResult result;
    bool known = recall_passes(params), kept = !known && params->pConfigImage && put_library(&question);

    if (known)
        return CUPTI_SUCCESS;
    if (kept) {
        put_text(&question, __func__);
        put(&question, params->pConfigImage, params->configImageSize);
    }
    if (kept && recall(&question, &result, &answer) && answer.n == sizeof(params->numOfPasses)) {
        memcpy(&params->numOfPasses, answer.at, sizeof(params->numOfPasses));
    } else {
        REAL("cuptiProfilerHostGetNumOfPasses", CUpti_Profiler_Host_GetNumOfPasses_Params);
        result = real(params);
        put(&answer, &params->numOfPasses, sizeof(params->numOfPasses));
        if (kept && !result)
            keep(&question, result, &answer);
    }
    if (!result)
        note_passes(params);
    free(question.at);
    free(answer.at);
    return result;
}

/* Returns the passes of a list on a host object of its own. */
static size_t passes_alone(const struct host *h, const char *const *names, size_t n)
{
    CUpti_Profiler_Host_GetNumOfPasses_Params p = {.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
    struct host *alone = fake_realloc(NULL, sizeof(*alone));
    struct bytes question;
    CUptiResult result;

    if (!alone)
        return 0;
    memset(alone, 0, sizeof(*alone));
    alone->type = h->type;
    alone->chip = h->chip ? strdup(h->chip) : NULL;
    if (note_names(alone, names, n)) {
        bool kept = ask(alone, "cuptiProfilerHostGetConfigImageSize", &question);
        if (!kept || !recall(&question, &result, &alone->image))
            result = fetch_image(alone, &alone->image);
        p.configImageSize = alone->image.n;
        p.pConfigImage = alone->image.at;
        if (result || count_passes(&p))
            p.numOfPasses = 0;
        free(question.at);
    }
    if (alone->real) {
        CUpti_Profiler_Host_Deinitialize_Params end = {.structSize =
                                                           CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
        CUptiResult (*real)(CUpti_Profiler_Host_Deinitialize_Params *);

        *(void **)&real = real_symbol("cuptiProfilerHostDeinitialize");
        end.pHostObject = alone->real;
        if (real)
            real(&end);
    }
    free_host(alone);
    return p.numOfPasses;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
    ENTER(params, CUpti_Profiler_Host_GetNumOfPasses_Params);
    return count_passes(params);
}

/* --- metrics --- */

/* Gives an answer to the object, for the caller to read as n texts in a row. NULL without memory. */
static struct lent *lend(struct host *h, struct bytes *answer, size_t n)
{
    struct lent *lent = answer->failed ? NULL : fake_realloc(NULL, sizeof(*lent) + (n + 1) * sizeof(*lent->names));
    const char *text = (const char *)answer->at;

    if (!lent) {
        free(answer->at);
        return NULL;
    }
    for (size_t i = 0; i < n; i++, text += strlen(text) + 1)
        lent->names[i] = text;
    lent->bytes = *answer;
    lent->next = h->lent;
    h->lent = lent;
    return lent;
}

static size_t count_texts(const struct bytes *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += !b->at[i];
    return n;
}

/* Answers with a list of names: the kept one, or the result of `real`, which is then kept. */
static CUptiResult list_names(struct host *h, struct bytes *question, bool kept,
                              CUptiResult (*real)(struct host *h, void *params, const char ***names, size_t *n),
                              void *params, const char ***names, size_t *n)
{
    struct bytes answer = {NULL, 0, false};
    CUptiResult result;

    if (!kept || !recall(question, &result, &answer)) {
        result = open_real(h);
        if (!result)
            result = real(h, params, names, n);
        for (size_t i = 0; !result && i < *n; i++)
            put_text(&answer, (*names)[i]);
        if (kept && !result)
            keep(question, result, &answer);
    }
    free(question->at);
    if (result) {
        free(answer.at);
        return result;
    }
    *n = count_texts(&answer);
    struct lent *lent = lend(h, &answer, *n);
    *names = lent ? lent->names : NULL;
    return lent ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}

static CUptiResult real_base(struct host *h, void *params, const char ***names, size_t *n)
{
    CUpti_Profiler_Host_GetBaseMetrics_Params p = *(CUpti_Profiler_Host_GetBaseMetrics_Params *)params;

    REAL("cuptiProfilerHostGetBaseMetrics", CUpti_Profiler_Host_GetBaseMetrics_Params);
    p.pHostObject = h->real;
    CUptiResult result = real(&p);
    *names = p.ppMetricNames;
    *n = p.numMetrics;
    return result;
}

CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params *params)
{
    struct bytes question;

    ENTER(params, CUpti_Profiler_Host_GetBaseMetrics_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h)
        return CUPTI_ERROR_INVALID_PARAMETER;
    bool kept = ask(h, __func__, &question);
    if (kept)
        put_number(&question, (uint64_t)params->metricType);
    return list_names(h, &question, kept, real_base, params, &params->ppMetricNames, &params->numMetrics);
}

static CUptiResult real_sub(struct host *h, void *params, const char ***names, size_t *n)
{
    CUpti_Profiler_Host_GetSubMetrics_Params p = *(CUpti_Profiler_Host_GetSubMetrics_Params *)params;

    REAL("cuptiProfilerHostGetSubMetrics", CUpti_Profiler_Host_GetSubMetrics_Params);
    p.pHostObject = h->real;
    CUptiResult result = real(&p);
    *names = p.ppSubMetrics;
    *n = p.numOfSubmetrics;
    return result;
}

CUptiResult cuptiProfilerHostGetSubMetrics(CUpti_Profiler_Host_GetSubMetrics_Params *params)
{
    struct bytes question;

    ENTER(params, CUpti_Profiler_Host_GetSubMetrics_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!params->pMetricName)
        return CUPTI_ERROR_INVALID_PARAMETER;
    bool kept = ask(h, __func__, &question);
    if (kept) {
        put_number(&question, (uint64_t)params->metricType);
        put_text(&question, params->pMetricName);
    }
    return list_names(h, &question, kept, real_sub, params, &params->ppSubMetrics, &params->numOfSubmetrics);
}

static CUptiResult real_properties(struct host *h, CUpti_Profiler_Host_GetMetricProperties_Params *params)
{
    CUpti_Profiler_Host_GetMetricProperties_Params p = *params;

    REAL("cuptiProfilerHostGetMetricProperties", CUpti_Profiler_Host_GetMetricProperties_Params);
    CUptiResult result = open_real(h);
    p.pHostObject = h->real;
    if (!result)
        result = real(&p);
    p.pHostObject = params->pHostObject;
    *params = p;
    return result;
}

CUptiResult cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *params)
{
    struct bytes question, answer;
    CUptiResult result;

    ENTER(params, CUpti_Profiler_Host_GetMetricProperties_Params);
    struct host *h = host_of(params->pHostObject);
    if (!h || !params->pMetricName)
        return CUPTI_ERROR_INVALID_PARAMETER;
    bool kept = ask(h, __func__, &question);
    if (kept)
        put_text(&question, params->pMetricName);
    if (kept && recall(&question, &result, &answer)) {
        size_t tail = sizeof(params->metricType);
        struct lent *lent = answer.n > tail ? lend(h, &answer, 3) : NULL;

        if (lent) {
            params->pDescription = lent->names[0];
            params->pHwUnit = lent->names[1];
            params->pDimUnit = lent->names[2];
            memcpy(&params->metricType, lent->bytes.at + lent->bytes.n - tail, tail);
        }
    } else {
        memset(&answer, 0, sizeof(answer));
        result = real_properties(h, params);
        if (!result) {
            put_text(&answer, params->pDescription);
            put_text(&answer, params->pHwUnit);
            put_text(&answer, params->pDimUnit);
            put(&answer, &params->metricType, sizeof(params->metricType));
        }
        if (kept && (result || (params->pDescription && params->pHwUnit && params->pDimUnit)))
            keep(&question, result, &answer);
        free(answer.at);
    }
    free(question.at);
    return result;
}
