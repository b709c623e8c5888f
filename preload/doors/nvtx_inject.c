/* Receives the program's NVTX calls. */
#include <stdbool.h>
#include <string.h>

#include "preload/who/nvtx.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- messages ---- */

/* Puts one character at `to` in UTF-8, if it fits before `end`. Returns where the next one goes; NULL: no room. */
static char *put_utf8(char *to, const char *end, uint32_t c)
{
    static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    int more = 0;
    while (more < 3 && c >= limits[more])
        more++;
    if (c >= limits[3] || to + more >= end)
        return NULL;
    for (int i = more; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    *to = (char)(first[more] | c);
    return to + more + 1;
}

static const char *narrow(const wchar_t *wide, char buffer[KP_NVTX_NAME])
{
    char *to = buffer, *next;
    for (; wide && *wide && (next = put_utf8(to, buffer + KP_NVTX_NAME - 1, (uint32_t)*wide)); wide++)
        to = next;
    *to = '\0';
    return buffer;
}

static const char *plain(const char *text)
{
    return text ? text : "";
}

static const char *text_of(int32_t type, union kp_nvtx_message message, char buffer[KP_NVTX_NAME])
{
    if (type == KP_NVTX_MESSAGE_ASCII)
        return plain(message.ascii);
    if (type == KP_NVTX_MESSAGE_UNICODE)
        return narrow(message.unicode, buffer);
    return type == KP_NVTX_MESSAGE_REGISTERED ? kp_nvtx_registered(message.registered) : "";
}

static struct kp_nvtx_event event_of(const struct kp_nvtx_attributes *a, char buffer[KP_NVTX_NAME])
{
    if (!a || a->size < sizeof(*a))
        return (struct kp_nvtx_event){.text = ""};
    return (struct kp_nvtx_event){text_of(a->message_type, a->message, buffer), a->category, a->payload_type,
                                  a->payload};
}

/* ---- the functions ---- */

static int domain_push(const struct kp_nvtx_domain *d, const struct kp_nvtx_attributes *a)
{
    char buffer[KP_NVTX_NAME];
    struct kp_nvtx_event e = event_of(a, buffer);
    return kp_nvtx_push(d, &e);
}

static uint64_t domain_start(const struct kp_nvtx_domain *d, const struct kp_nvtx_attributes *a)
{
    char buffer[KP_NVTX_NAME];
    struct kp_nvtx_event e = event_of(a, buffer);
    return kp_nvtx_start(d, &e);
}

static void domain_end(const struct kp_nvtx_domain *d, uint64_t id)
{
    (void)d; /* ids are unique in the process */
    kp_nvtx_end(id);
}

static int push(const struct kp_nvtx_attributes *a)
{
    return domain_push(NULL, a);
}

static int push_a(const char *text)
{
    return kp_nvtx_push(NULL, &(struct kp_nvtx_event){.text = plain(text)});
}

static int push_w(const wchar_t *text)
{
    char buffer[KP_NVTX_NAME];
    return kp_nvtx_push(NULL, &(struct kp_nvtx_event){.text = narrow(text, buffer)});
}

static int pop(void)
{
    return kp_nvtx_pop(NULL);
}

static uint64_t start(const struct kp_nvtx_attributes *a)
{
    return domain_start(NULL, a);
}

static uint64_t start_a(const char *text)
{
    return kp_nvtx_start(NULL, &(struct kp_nvtx_event){.text = plain(text)});
}

static uint64_t start_w(const wchar_t *text)
{
    char buffer[KP_NVTX_NAME];
    return kp_nvtx_start(NULL, &(struct kp_nvtx_event){.text = narrow(text, buffer)});
}

static const struct kp_nvtx_domain *domain_a(const char *name)
{
    return kp_nvtx_domain_named(plain(name));
}

static const struct kp_nvtx_domain *domain_w(const wchar_t *name)
{
    char buffer[KP_NVTX_NAME];
    return kp_nvtx_domain_named(narrow(name, buffer));
}

static const void *register_a(const struct kp_nvtx_domain *d, const char *text)
{
    (void)d;
    return kp_nvtx_register(plain(text));
}

static const void *register_w(const struct kp_nvtx_domain *d, const wchar_t *text)
{
    char buffer[KP_NVTX_NAME];
    (void)d;
    return kp_nvtx_register(narrow(text, buffer));
}

static void domain_category_a(const struct kp_nvtx_domain *d, uint32_t id, const char *name)
{
    kp_nvtx_name(KP_NVTX_CATEGORY, d, id, plain(name));
}

static void domain_category_w(const struct kp_nvtx_domain *d, uint32_t id, const wchar_t *name)
{
    char buffer[KP_NVTX_NAME];
    kp_nvtx_name(KP_NVTX_CATEGORY, d, id, narrow(name, buffer));
}

static void category_a(uint32_t id, const char *name)
{
    domain_category_a(NULL, id, name);
}

static void category_w(uint32_t id, const wchar_t *name)
{
    domain_category_w(NULL, id, name);
}

static void thread_a(uint32_t id, const char *name)
{
    kp_nvtx_name(KP_NVTX_THREAD, NULL, id, plain(name));
}

static void thread_w(uint32_t id, const wchar_t *name)
{
    char buffer[KP_NVTX_NAME];
    kp_nvtx_name(KP_NVTX_THREAD, NULL, id, narrow(name, buffer));
}

static void stream_a(void *stream, const char *name)
{
    kp_nvtx_name(KP_NVTX_STREAM, NULL, (uintptr_t)stream, plain(name));
}

static void stream_w(void *stream, const wchar_t *name)
{
    char buffer[KP_NVTX_NAME];
    kp_nvtx_name(KP_NVTX_STREAM, NULL, (uintptr_t)stream, narrow(name, buffer));
}

/* Handles resources, which also name threads and streams. The handle can only be destroyed. */
static const void *resource(const struct kp_nvtx_domain *d, const struct kp_nvtx_resource *r)
{
    static const char any;
    char buffer[KP_NVTX_NAME];
    (void)d;
    if (!r || r->size < sizeof(*r))
        return NULL;
    const char *name = text_of(r->message_type, r->message, buffer);
    if (r->type == KP_NVTX_RESOURCE_THREAD)
        kp_nvtx_name(KP_NVTX_THREAD, NULL, r->id.number, name);
    else if (r->type == KP_NVTX_RESOURCE_CUDA_STREAM || r->type == KP_NVTX_RESOURCE_CUDART_STREAM)
        kp_nvtx_name(KP_NVTX_STREAM, NULL, r->id.number, name);
    return &any;
}

/* ---- injection ---- */

#define HOOK(module, id, function)                                                                                     \
    {                                                                                                                  \
        KP_NVTX_MODULE_##module, KP_NVTX_##id, (kp_nvtx_function)(function)                                            \
    }

/* All other functions of NVTX do nothing: marks, and names that launches do not show. */
static const struct hook {
    int module;
    unsigned id;
    kp_nvtx_function function;
} hooks[] = {
    HOOK(CORE, RangeStartEx, start),
    HOOK(CORE, RangeStartA, start_a),
    HOOK(CORE, RangeStartW, start_w),
    HOOK(CORE, RangeEnd, kp_nvtx_end),
    HOOK(CORE, RangePushEx, push),
    HOOK(CORE, RangePushA, push_a),
    HOOK(CORE, RangePushW, push_w),
    HOOK(CORE, RangePop, pop),
    HOOK(CORE, NameCategoryA, category_a),
    HOOK(CORE, NameCategoryW, category_w),
    HOOK(CORE, NameOsThreadA, thread_a),
    HOOK(CORE, NameOsThreadW, thread_w),
    HOOK(CUDA, NameCuStreamA, stream_a),
    HOOK(CUDA, NameCuStreamW, stream_w),
    HOOK(CUDART, NameCudaStreamA, stream_a),
    HOOK(CUDART, NameCudaStreamW, stream_w),
    HOOK(CORE2, DomainRangeStartEx, domain_start),
    HOOK(CORE2, DomainRangeEnd, domain_end),
    HOOK(CORE2, DomainRangePushEx, domain_push),
    HOOK(CORE2, DomainRangePop, kp_nvtx_pop),
    HOOK(CORE2, DomainResourceCreate, resource),
    HOOK(CORE2, DomainNameCategoryA, domain_category_a),
    HOOK(CORE2, DomainNameCategoryW, domain_category_w),
    HOOK(CORE2, DomainRegisterStringA, register_a),
    HOOK(CORE2, DomainRegisterStringW, register_w),
    HOOK(CORE2, DomainCreateA, domain_a),
    HOOK(CORE2, DomainCreateW, domain_w),
};

EXPORT int InitializeInjectionNvtx2(kp_nvtx_get_table get)
{
    const struct kp_nvtx_callbacks *callbacks = kp_nvtx_wanted() && get ? get(KP_NVTX_TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
        return 0;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
        const struct hook *h = &hooks[i];
        kp_nvtx_function **slots = NULL;
        unsigned n = 0;
        if (callbacks->functions_of(h->module, &slots, &n) && slots && h->id < n && slots[h->id])
            *slots[h->id] = h->function;
    }
    const struct kp_nvtx_version *version = get(KP_NVTX_TABLE_VERSION);
    if (version && version->struct_size >= sizeof(*version) && version->set_injection_version)
        version->set_injection_version(KP_NVTX_VERSION);
    kp_nvtx_attached();
    return 1;
}
