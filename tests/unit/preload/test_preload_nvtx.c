/* NVTX calls as a program's copy of NVTX makes them, and what a launch is then inside of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_FIELD(ours, field, theirs, name)                                                                          \
    SAME(offsetof(ours, field), offsetof(theirs, name));                                                               \
    SAME(sizeof(((ours *)0)->field), sizeof(((theirs *)0)->name))
#endif

#include "base/lock.h"
#include "preload/who/nvtx.h"
#include "report/model/nvtx_expr.h"

#ifdef SAME
SAME(KP_NVTX_VERSION, NVTX_VERSION);
SAME(KP_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(KP_NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(sizeof(struct kp_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME_FIELD(struct kp_nvtx_callbacks, functions_of, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME(sizeof(struct kp_nvtx_version), sizeof(NvtxExportTableVersionInfo));
SAME_FIELD(struct kp_nvtx_version, set_injection_version, NvtxExportTableVersionInfo, SetInjectionNvtxVersion);
SAME(KP_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(KP_NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(KP_NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(KP_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(KP_NVTX_RangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME(KP_NVTX_NameOsThreadW, NVTX_CBID_CORE_NameOsThreadW);
SAME(KP_NVTX_NameCuStreamA, NVTX_CBID_CUDA_NameCuStreamA);
SAME(KP_NVTX_NameCudaStreamA, NVTX_CBID_CUDART_NameCudaStreamA);
SAME(KP_NVTX_DomainRangeStartEx, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(KP_NVTX_DomainCreateW, NVTX_CBID_CORE2_DomainCreateW);
SAME(KP_NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(KP_NVTX_PAYLOAD_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(KP_NVTX_NOT_TRACKED, NVTX_NO_PUSH_POP_TRACKING);
SAME(sizeof(struct kp_nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME_FIELD(struct kp_nvtx_attributes, size, nvtxEventAttributes_t, size);
SAME_FIELD(struct kp_nvtx_attributes, category, nvtxEventAttributes_t, category);
SAME_FIELD(struct kp_nvtx_attributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME_FIELD(struct kp_nvtx_attributes, payload, nvtxEventAttributes_t, payload);
SAME_FIELD(struct kp_nvtx_attributes, message_type, nvtxEventAttributes_t, messageType);
SAME_FIELD(struct kp_nvtx_attributes, message, nvtxEventAttributes_t, message);
SAME(sizeof(struct kp_nvtx_resource), sizeof(nvtxResourceAttributes_t));
SAME_FIELD(struct kp_nvtx_resource, type, nvtxResourceAttributes_t, identifierType);
SAME_FIELD(struct kp_nvtx_resource, id, nvtxResourceAttributes_t, identifier);
SAME_FIELD(struct kp_nvtx_resource, message, nvtxResourceAttributes_t, message);
SAME(KP_NVTX_RESOURCE_THREAD, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);
SAME(KP_NVTX_RESOURCE_CUDA_STREAM, NVTX_RESOURCE_TYPE_CUDA_STREAM);
SAME(KP_NVTX_RESOURCE_CUDART_STREAM, NVTX_RESOURCE_TYPE_CUDART_STREAM);
#endif

/* ---- a program's copy of NVTX ---- */

enum { MODULES = 8, FUNCTIONS = 16 };

static kp_nvtx_function functions[MODULES][FUNCTIONS];
static kp_nvtx_function *slots[MODULES][FUNCTIONS];
static uint32_t version_set;
static size_t table_size = sizeof(struct kp_nvtx_callbacks);

static int functions_of(int module, kp_nvtx_function ***table, unsigned *n)
{
    if (module == 3)
        return 0;
    for (int i = 0; i < FUNCTIONS; i++)
        slots[module][i] = &functions[module][i];
    slots[module][0] = NULL;
    *table = slots[module];
    *n = FUNCTIONS;
    return 1;
}

static void set_version(uint32_t version)
{
    version_set = version;
}

static const void *get_table(uint32_t table)
{
    static struct kp_nvtx_callbacks callbacks = {0, functions_of};
    static const struct kp_nvtx_version version = {sizeof(version), 3, 0, set_version};
    callbacks.struct_size = table_size;
    return table == KP_NVTX_TABLE_CALLBACKS ? (const void *)&callbacks
           : table == KP_NVTX_TABLE_VERSION ? (const void *)&version
                                            : NULL;
}

#define CALL(type, module, id) ((type)functions[KP_NVTX_MODULE_##module][KP_NVTX_##id])

typedef const void *domain;

static int push(const char *text)
{
    return CALL(int (*)(const char *), CORE, RangePushA)(text);
}

static int pop(void)
{
    return CALL(int (*)(void), CORE, RangePop)();
}

static domain create(const char *name)
{
    return CALL(domain(*)(const char *), CORE2, DomainCreateA)(name);
}

static struct kp_nvtx_attributes attributes(const char *text)
{
    return (struct kp_nvtx_attributes){.version = 3,
                                       .size = sizeof(struct kp_nvtx_attributes),
                                       .message_type = KP_NVTX_MESSAGE_ASCII,
                                       .message.ascii = text};
}

static int push_ex(domain d, struct kp_nvtx_attributes a)
{
    return CALL(int (*)(domain, const struct kp_nvtx_attributes *), CORE2, DomainRangePushEx)(d, &a);
}

static int pop_in(domain d)
{
    return CALL(int (*)(domain), CORE2, DomainRangePop)(d);
}

static uint64_t start(const char *text)
{
    return CALL(uint64_t(*)(const char *), CORE, RangeStartA)(text);
}

static void end(uint64_t id)
{
    CALL(void (*)(uint64_t), CORE, RangeEnd)(id);
}

/* ---- what a launch is inside of ---- */

static void configure(const char *include, const char *exclude, enum kp_push_pop_scope scope)
{
    struct kp_options o = {
        .nvtx = true, .nvtx_include = (char *)include, .nvtx_exclude = (char *)exclude, .nvtx_push_pop_scope = scope};
    assert_int_equal(kp_nvtx_configure(&o), 0);
}

/* "push-pop ranges / ... ; start-end ranges , ...", each DOMAIN@NAME(CATEGORY,PAYLOAD); static storage. */
static const char *text_of(const struct kp_nvtx *n)
{
    static char text[KP_NVTX_DEPTH * 2 * KP_NVTX_NAME];
    char *to = text;
    *to = '\0';
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        bool first_started = r->kind == KP_NVTX_START_END && (!i || n->ranges[i - 1].kind == KP_NVTX_PUSH_POP);
        to += sprintf(to, "%s%s%s%s", first_started ? ";" : i ? "/" : "", r->domain, *r->domain ? "@" : "", r->name);
        if (*r->category || *r->payload)
            to += sprintf(to, "(%s,%s)", r->category, r->payload);
    }
    return text;
}

static const char *around(void)
{
    struct kp_nvtx n = {.ranges = NULL};
    assert_true(kp_nvtx_judge(NULL, &n));
    const char *text = text_of(&n);
    kp_nvtx_free(&n);
    return text;
}

static bool wanted(void)
{
    struct kp_nvtx n = {.ranges = NULL};
    bool yes = kp_nvtx_judge(NULL, &n);
    kp_nvtx_free(&n);
    return yes;
}

/* ---- cases ---- */

static int attach(void **state)
{
    (void)state;
    setenv("KPROF_NVTX", "on", 1);
    unsetenv(KP_NVTX_PATH_VARIABLE);
    kp_locks_watch_forks(kp_nvtx_forked);
    kp_nvtx_offer();
    assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
    configure("", "", KP_SCOPE_THREAD);
    return 0;
}

/* Without what a sanitiser has to say about the threads that a fork left behind. */
static void leave(int status)
{
    syscall(SYS_exit_group, status);
}

/* In a process of its own, as what is decided at the start stays. Returns what `check` does. */
static int in_child(int (*check)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (!pid)
        leave(check());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What kp_nvtx_offer makes of an environment. */
static const char *offered(const char *nvtx, const char *include, const char *path)
{
    unsetenv("KPROF_NVTX_EXCLUDE");
    nvtx ? setenv("KPROF_NVTX", nvtx, 1) : unsetenv("KPROF_NVTX");
    include ? setenv("KPROF_NVTX_INCLUDE", include, 1) : unsetenv("KPROF_NVTX_INCLUDE");
    path ? setenv(KP_NVTX_PATH_VARIABLE, path, 1) : unsetenv(KP_NVTX_PATH_VARIABLE);
    kp_nvtx_offer();
    return getenv(KP_NVTX_PATH_VARIABLE);
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            return __LINE__ % 251 + 1;                                                                                 \
    } while (0)

static int check_not_wanted(void)
{
    CHECK(!offered(NULL, NULL, NULL));
    CHECK(!offered("off", NULL, NULL));
    CHECK(!offered("no", "", NULL));
    CHECK(!offered("maybe", NULL, NULL));
    CHECK(!InitializeInjectionNvtx2(get_table));
    CHECK(!strcmp(offered(NULL, NULL, "/opt/other.so"), "/opt/other.so"));
    CHECK(!kp_nvtx_other());
    return 0;
}

static int check_wanted(void)
{
    CHECK(!strcmp(offered("on", NULL, NULL), "libkprof.so"));
    CHECK(!strcmp(offered("off", "a/", NULL), "libkprof.so"));
    CHECK(!strcmp(offered(NULL, "a/", "/here/libkprof.so"), "/here/libkprof.so"));
    CHECK(!kp_nvtx_other());
    return 0;
}

static int check_other(void)
{
    CHECK(!strcmp(offered("yes", NULL, "/opt/other.so"), "/opt/other.so"));
    CHECK(!strcmp(kp_nvtx_other(), "/opt/other.so"));
    return 0;
}

/* An empty environment has no place to put the name at. */
static int check_bare(void)
{
    clearenv();
    kp_nvtx_offer();
    return 0;
}

static void it_is_offered_where_it_is_wanted(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_not_wanted), 0);
    assert_int_equal(in_child(check_wanted), 0);
    assert_int_equal(in_child(check_other), 0);
    assert_int_equal(in_child(check_bare), 0);
}

static void an_unknown_table_is_refused(void **state)
{
    (void)state;
    assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
    table_size = sizeof(size_t);
    assert_int_equal(InitializeInjectionNvtx2(get_table), 0);
    table_size = sizeof(struct kp_nvtx_callbacks);
    assert_int_equal(version_set, 3);
}

static void push_and_pop(void **state)
{
    (void)state;
    assert_string_equal(around(), "");
    assert_int_equal(push("a"), 0);
    assert_int_equal(push("b"), 1);
    assert_string_equal(around(), "a/b");
    assert_int_equal(pop(), 1);
    assert_string_equal(around(), "a");
    assert_int_equal(pop(), 0);
    assert_true(pop() < 0);
    assert_int_equal(push(NULL), 0);
    assert_string_equal(around(), "");
    pop();
}

static void domains_have_their_own_levels(void **state)
{
    (void)state;
    domain io = create("io"), again = create("io"), other = create("other");
    assert_non_null(io);
    assert_ptr_equal(io, again);
    assert_ptr_not_equal(io, other);
    assert_int_equal(push("a"), 0);
    assert_int_equal(push_ex(io, attributes("x")), 0);
    assert_int_equal(push("b"), 1);
    assert_int_equal(push_ex(io, attributes("y")), 1);
    assert_string_equal(around(), "a/io@x/b/io@y");
    assert_true(pop_in(other) < 0);
    assert_int_equal(pop(), 1); /* from between the others */
    assert_string_equal(around(), "a/io@x/io@y");
    assert_int_equal(pop(), 0);
    assert_int_equal(pop_in(io), 1);
    assert_int_equal(pop_in(io), 0);
    assert_string_equal(around(), "");
}

static void messages_of_all_kinds(void **state)
{
    static const wchar_t wide[] = {'g', 0xfc, 0x20ac, 0x1f600, 0};
    (void)state;
    domain d = create("io");
    struct kp_nvtx_attributes a = attributes(NULL);
    a.message_type = KP_NVTX_MESSAGE_UNICODE;
    a.message.unicode = wide;
    push_ex(d, a);
    const char *text = CALL(const char *(*)(domain, const char *), CORE2, DomainRegisterStringA)(d, "registered");
    assert_ptr_equal(CALL(const char *(*)(domain, const char *), CORE2, DomainRegisterStringA)(NULL, "registered"),
                     text);
    a.message_type = KP_NVTX_MESSAGE_REGISTERED;
    a.message.registered = text;
    push_ex(d, a);
    a.message.registered = CALL(const char *(*)(domain, const wchar_t *), CORE2, DomainRegisterStringW)(d, wide);
    push_ex(NULL, a);
    CALL(int (*)(const wchar_t *), CORE, RangePushW)(L"wide");
    CALL(int (*)(const struct kp_nvtx_attributes *), CORE, RangePushEx)(NULL);
    a.size = 8; /* of a version that never was */
    push_ex(NULL, a);
    assert_string_equal(around(), "io@g\u00fc\u20ac\U0001f600/io@registered/g\u00fc\u20ac\U0001f600/wide//");
    for (int i = 0; i < 4; i++)
        pop();
    pop_in(d);
    pop_in(d);
    assert_string_equal(around(), "");
}

static void categories_and_payloads(void **state)
{
    static const struct {
        int32_t type;
        union kp_nvtx_payload payload;
        const char *text;
    } payloads[] = {
        {KP_NVTX_PAYLOAD_U64, {.u64 = UINT64_MAX}, "a(,18446744073709551615)"},
        {KP_NVTX_PAYLOAD_I64, {.i64 = -1}, "a(,-1)"},
        {KP_NVTX_PAYLOAD_DOUBLE, {.real = 0.5}, "a(,0.5)"},
        {KP_NVTX_PAYLOAD_U32, {.u32 = UINT32_MAX}, "a(,4294967295)"},
        {KP_NVTX_PAYLOAD_I32, {.i32 = -7}, "a(,-7)"},
        {KP_NVTX_PAYLOAD_FLOAT, {.single = 1.25F}, "a(,1.25)"},
        {KP_NVTX_PAYLOAD_NONE, {.u64 = 5}, "a"},
        {0x7fff0001, {.u64 = 5}, "a"}, /* of an extension */
    };
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct kp_nvtx_attributes a = attributes("a");
        a.payload_type = payloads[i].type;
        a.payload = payloads[i].payload;
        push_ex(NULL, a);
        assert_string_equal(around(), payloads[i].text);
        pop();
    }
    domain io = create("io");
    struct kp_nvtx_attributes a = attributes("a");
    a.category = 3;
    CALL(void (*)(domain, uint32_t, const char *), CORE2, DomainNameCategoryA)(io, 3, "first");
    CALL(void (*)(domain, uint32_t, const wchar_t *), CORE2, DomainNameCategoryW)(io, 3, L"disk");
    CALL(void (*)(uint32_t, const char *), CORE, NameCategoryA)(4, "four");
    push_ex(io, a);
    push_ex(NULL, a);
    a.category = 4;
    push_ex(NULL, a);
    assert_string_equal(around(), "io@a(disk,)/a(3,)/a(four,)");
    pop_in(io);
    pop();
    pop();
}

static void started_ranges_are_of_the_process(void **state)
{
    (void)state;
    domain io = create("io");
    struct kp_nvtx_attributes x = attributes("x");
    uint64_t a = start("a"), b = start("b"),
             c = CALL(uint64_t(*)(domain, const struct kp_nvtx_attributes *), CORE2, DomainRangeStartEx)(io, &x);
    assert_true(a && b && c && a != b && b != c);
    push("p");
    assert_string_equal(around(), "p;a/b/io@x");
    pop();
    end(b);
    end(b);
    end(0);
    assert_string_equal(around(), ";a/io@x");
    end(a);
    CALL(void (*)(domain, uint64_t), CORE2, DomainRangeEnd)(io, c);
    assert_string_equal(around(), "");
}

/* ---- threads ---- */

static int first[2], then[2]; /* pipes: the other thread is where it should be; it may go on */

static void *with_a_range(void *arg)
{
    char c = 0;
    push(arg);
    push("inner");
    c += write(first[1], &c, 1) < 0;
    c += read(then[0], &c, 1) < 0;
    return NULL;
}

/* A thread that ends takes its ranges along, also those it left open. */
static void a_thread_has_its_own_stack(void **state)
{
    pthread_t thread;
    char c;
    (void)state;
    assert_int_equal(pipe(first) + pipe(then), 0);
    push("here");
    assert_int_equal(pthread_create(&thread, NULL, with_a_range, "there"), 0);
    assert_int_equal(read(first[0], &c, 1), 1);
    assert_string_equal(around(), "here");
    configure("there/", "", KP_SCOPE_THREAD);
    assert_false(wanted());
    configure("", "", KP_SCOPE_PROCESS);
    assert_string_equal(around(), "here/there/inner");
    configure("there/inner]", "", KP_SCOPE_PROCESS);
    assert_true(wanted());
    configure("here/there", "", KP_SCOPE_PROCESS);
    assert_false(wanted());
    configure("here/", "inner/", KP_SCOPE_PROCESS);
    assert_false(wanted());
    assert_int_equal(write(then[1], &c, 1), 1);
    pthread_join(thread, NULL);
    assert_true(wanted());
    configure("", "", KP_SCOPE_PROCESS);
    assert_string_equal(around(), "here");
    configure("", "", KP_SCOPE_THREAD);
    pop();
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(then[i]);
    }
}

static void *many_ranges(void *arg)
{
    domain d = create("busy");
    (void)arg;
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "range %d", i);
        push(name);
        push_ex(d, attributes("x"));
        uint64_t id = start(name);
        pop();
        end(id);
        pop_in(d);
    }
    return NULL;
}

/* For a sanitiser to watch; and nothing is left over. */
static void threads_do_not_get_into_each_others_way(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    (void)state;
    configure("", "", KP_SCOPE_PROCESS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_ranges, NULL), 0);
    for (int i = 0; i < 300; i++) {
        struct kp_nvtx n = {.ranges = NULL};
        assert_true(kp_nvtx_judge(NULL, &n));
        assert_true(n.n_ranges <= 3 * THREADS);
        kp_nvtx_free(&n);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_string_equal(around(), "");
    configure("", "", KP_SCOPE_THREAD);
}

static volatile int in_handler = 1;

static void handler(int sig)
{
    (void)sig;
    in_handler = push("in a handler");
    if (in_handler >= 0)
        pop();
}

/* A handler that comes upon a function of NVTX neither hangs nor leaves anything. */
static void signal_handlers_may_use_it(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = handler}, before;
    sigaction(SIGALRM, &act, &before);
    ualarm(50, 50);
    for (int i = 0; i < 100000; i++) {
        assert_true(push("outside") >= 0);
        assert_true(pop() >= 0);
    }
    ualarm(0, 0);
    sigaction(SIGALRM, &before, NULL);
    assert_string_equal(around(), "");
}

static int check_child(void)
{
    configure("", "", KP_SCOPE_PROCESS);
    CHECK(!strcmp(around(), "here;started")); /* and nothing of a thread that is no more */
    push("more");
    CHECK(!strcmp(around(), "here/more;started"));
    struct kp_nvtx n = {.ranges = NULL};
    kp_nvtx_judge(NULL, &n);
    CHECK(n.thread == (uint64_t)syscall(SYS_gettid));
    return 0;
}

/* GCC's ASan has no handlers of fork: a lock of its allocator that another thread holds stays held in the child, which
 * hangs. */
#ifdef __SANITIZE_ADDRESS__
enum { FORKS = 0 };
#else
enum { FORKS = 50 };
#endif

static void a_forked_child_goes_on(void **state)
{
    pthread_t thread, busy;
    char c;
    (void)state;
    assert_int_equal(pipe(first) + pipe(then), 0);
    push("here");
    uint64_t id = start("started");
    assert_int_equal(pthread_create(&thread, NULL, with_a_range, "there"), 0);
    assert_int_equal(read(first[0], &c, 1), 1);
    assert_int_equal(in_child(check_child), 0);
    assert_int_equal(write(then[1], &c, 1), 1);
    pthread_join(thread, NULL);
    end(id);
    pop();
    /* while others hold the locks */
    assert_int_equal(pthread_create(&busy, NULL, many_ranges, NULL), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (!pid) {
            alarm(30);
            many_ranges(NULL);
            leave(0);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
    pthread_join(busy, NULL);
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(then[i]);
    }
}

/* More texts than their table has places. */
static void each_text_has_one_handle(void **state)
{
    enum { TEXTS = 2000 };
    static const void *handles[TEXTS];
    char text[32];
    (void)state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < TEXTS; i++) {
            snprintf(text, sizeof(text), "text %d", i);
            const void *handle = kp_nvtx_register(text);
            assert_string_equal(kp_nvtx_registered(handle), text);
            assert_true(!round || handle == handles[i]);
            handles[i] = handle;
        }
}

/* Each copy of NVTX in the process attaches. */
static void a_second_copy_goes_on_with_the_ranges(void **state)
{
    (void)state;
    push("of the first");
    kp_nvtx_attached();
    push("of the second");
    assert_string_equal(around(), "of the first/of the second");
    pop();
    pop();
}

static void expressions_that_cannot_be_read_are_refused(void **state)
{
    const struct kp_options bad = {.nvtx_include = "regex:(", .nvtx_exclude = "", .nvtx = true};
    (void)state;
    assert_int_not_equal(kp_nvtx_configure(&bad), 0);
    configure("", "", KP_SCOPE_THREAD);
}

/* ---- a fork that begins ---- */

/* What calls in a fork's handler return; handlers of before run later, with all locks held. */
static struct {
    bool calls;
    int pushed, popped;
    uint64_t started;
    struct kp_nvtx around;
    const void *domain, *text;
} at_fork;

static void use_at_fork(void)
{
    if (!at_fork.calls)
        return;
    at_fork.pushed = push("at a fork");
    at_fork.popped = pop();
    at_fork.started = start("at a fork");
    end(at_fork.started);
    kp_nvtx_judge(NULL, &at_fork.around);
    at_fork.domain = kp_nvtx_domain_named("at a fork");
    at_fork.text = kp_nvtx_register("at a fork");
    kp_nvtx_name(KP_NVTX_THREAD, NULL, (uint64_t)syscall(SYS_gettid), "at a fork");
    kp_nvtx_end_timeline();
}

__attribute__((constructor)) static void before_others(void)
{
    pthread_atfork(use_at_fork, NULL, NULL);
}

static int do_nothing(void)
{
    return 0;
}

/* The program's own handler of forks neither hangs nor leaves anything. */
static void handlers_of_forks_may_use_it(void **state)
{
    (void)state;
    push("around the fork");
    at_fork.calls = true;
    assert_int_equal(in_child(do_nothing), 0);
    at_fork.calls = false;
    assert_int_equal(at_fork.pushed, KP_NVTX_NOT_TRACKED);
    assert_int_equal(at_fork.popped, KP_NVTX_NOT_TRACKED);
    assert_int_not_equal(at_fork.started, 0);
    assert_int_equal(at_fork.around.n_ranges, 0);
    assert_ptr_not_equal(at_fork.domain, kp_nvtx_domain_named("at a fork"));
    assert_ptr_not_equal(at_fork.text, kp_nvtx_register("at a fork"));
    assert_string_equal(around(), "around the fork");
    pop();
}

/* ---- short memory ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define fails(yes) skip()
#else
static __thread bool failing;

static void fails(bool yes)
{
    failing = yes;
}

/* In front of the C library's, for the code under test. */
void *malloc(size_t bytes);
void *__libc_malloc(size_t bytes);

void *malloc(size_t bytes)
{
    return failing ? NULL : __libc_malloc(bytes);
}
#endif

/* A thread that got no memory for its ranges once is told of no levels again: they would be too low. */
static void *push_without_memory(void *arg)
{
    int *levels = arg;
    fails(true);
    levels[0] = push("lost");
    levels[1] = pop();
    levels[2] = push("lost, too");
    fails(false);
    levels[3] = push("inner");
    levels[4] = pop();
    levels[5] = pop();
    return NULL;
}

static void short_memory_is_as_without_a_tool(void **state)
{
    pthread_t thread;
    int levels[6] = {0};
    (void)state;
    fails(false);
    assert_int_equal(pthread_create(&thread, NULL, push_without_memory, levels), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 6; i++)
        assert_int_equal(levels[i], KP_NVTX_NOT_TRACKED);
}

/* ---- handles ---- */

/* A handle of another tool, or of nothing, is compared and never read: its ranges and names are ignored. */
static void unknown_handles_are_ignored(void **state)
{
    const char *known = create("known");
    const void *text = CALL(const void *(*)(domain, const char *), CORE2, DomainRegisterStringA)(NULL, "text");
    const domain none[] = {(domain)(uintptr_t)1,
                           (domain)(uintptr_t)0x1000,
                           (domain)UINTPTR_MAX,
                           known + 1,
                           known + (1 << 20),
                           known - 16,
                           &none,
                           text};
    const void *texts[] = {(void *)(uintptr_t)1,
                           (void *)(uintptr_t)0x1000,
                           (void *)UINTPTR_MAX,
                           (const char *)text + 1,
                           (const char *)text + (1 << 20),
                           &none,
                           known};
    (void)state;
    assert_int_equal(push("outer"), 0);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(push_ex(none[i], attributes("lost")), KP_NVTX_NOT_TRACKED);
        uint64_t id = CALL(uint64_t(*)(domain, const struct kp_nvtx_attributes *), CORE2, DomainRangeStartEx)(
            none[i], &(struct kp_nvtx_attributes){.size = sizeof(struct kp_nvtx_attributes)});
        CALL(void (*)(domain, uint32_t, const char *), CORE2, DomainNameCategoryA)(none[i], 7, "lost");
        assert_string_equal(around(), "outer");
        end(id);
        assert_int_equal(pop_in(none[i]), KP_NVTX_NOT_TRACKED);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kp_nvtx_attributes a = attributes("");
        a.message_type = KP_NVTX_MESSAGE_REGISTERED;
        a.message.registered = texts[i];
        assert_int_equal(push_ex((domain)known, a), 0);
        assert_string_equal(around(), "outer/known@");
        assert_int_equal(pop_in((domain)known), 0);
    }
    end(12345678);
    assert_int_equal(pop(), 0);
}

static void too_many_domains_are_as_without_a_tool(void **state)
{
    enum { MANY = 1100 };
    domain last = NULL;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "domain %d", i);
        last = create(name);
        assert_non_null(last);
    }
    assert_int_equal(push_ex(last, attributes("lost")), KP_NVTX_NOT_TRACKED);
    assert_int_equal(push("here"), 0);
    assert_int_equal(pop_in(last), KP_NVTX_NOT_TRACKED);
    assert_int_equal(pop(), 0);
}

/* ---- names ---- */

static void threads_and_streams_have_names(void **state)
{
    (void)state;
    CUstream stream = (CUstream)(uintptr_t)0x1000, other = (CUstream)(uintptr_t)0x2000;
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    struct kp_nvtx n = {.ranges = NULL};
    kp_nvtx_judge(stream, &n);
    assert_null(n.thread_name);
    assert_null(n.stream_name);
    kp_nvtx_free(&n);
    CALL(void (*)(uint32_t, const char *), CORE, NameOsThreadA)(self, "first");
    CALL(void (*)(uint32_t, const wchar_t *), CORE, NameOsThreadW)(self, L"main");
    CALL(void (*)(uint32_t, const char *), CORE, NameOsThreadA)(self + 1, "another");
    CALL(void (*)(CUstream, const char *), CUDA, NameCuStreamA)(stream, "compute");
    CALL(void (*)(CUstream, const wchar_t *), CUDART, NameCudaStreamW)(other, L"copy");
    kp_nvtx_judge(stream, &n);
    assert_int_equal(n.thread, self);
    assert_string_equal(n.thread_name, "main");
    assert_string_equal(n.stream_name, "compute");
    kp_nvtx_free(&n);
    struct kp_nvtx_resource r = {.version = 3,
                                 .size = sizeof(r),
                                 .type = KP_NVTX_RESOURCE_THREAD,
                                 .id.number = self,
                                 .message_type = KP_NVTX_MESSAGE_ASCII,
                                 .message.ascii = "by resource"};
    assert_non_null(CALL(void *(*)(domain, struct kp_nvtx_resource *), CORE2, DomainResourceCreate)(NULL, &r));
    kp_nvtx_judge(other, &n);
    assert_string_equal(n.thread_name, "by resource");
    assert_string_equal(n.stream_name, "copy");
    kp_nvtx_free(&n);
}

/* Streams are named by resources of the driver and of the runtime; a resource of a kind or a size that is not known
 * names nothing. */
static void resources_name_streams(void **state)
{
    static const int32_t types[] = {KP_NVTX_RESOURCE_CUDA_STREAM, KP_NVTX_RESOURCE_CUDART_STREAM};
    void *(*make)(domain, struct kp_nvtx_resource *) =
        CALL(void *(*)(domain, struct kp_nvtx_resource *), CORE2, DomainResourceCreate);
    struct kp_nvtx n = {.ranges = NULL};
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        CUstream stream = (CUstream)(uintptr_t)(0x3000 + i);
        struct kp_nvtx_resource r = {.version = 3,
                                     .size = sizeof(r) - 1,
                                     .type = types[i],
                                     .id.number = 0x3000 + i,
                                     .message_type = KP_NVTX_MESSAGE_ASCII,
                                     .message.ascii = "a stream"};
        assert_null(make(NULL, &r));
        r.size++;
        r.type = 0x7fff0001;
        assert_non_null(make(NULL, &r));
        kp_nvtx_judge(stream, &n);
        assert_null(n.stream_name);
        kp_nvtx_free(&n);
        r.type = types[i];
        assert_non_null(make(NULL, &r));
        kp_nvtx_judge(stream, &n);
        assert_string_equal(n.stream_name, "a stream");
        kp_nvtx_free(&n);
    }
    assert_null(make(NULL, NULL));
}

/* The functions that take wide text, or attributes in the default domain, do as the others. */
static void each_form_of_text(void **state)
{
    struct kp_nvtx_attributes a = attributes("x");
    (void)state;
    assert_ptr_equal(CALL(domain(*)(const wchar_t *), CORE2, DomainCreateW)(L"io"), create("io"));
    CALL(void (*)(uint32_t, const wchar_t *), CORE, NameCategoryW)(77, L"wide");
    a.category = 77;
    uint64_t one = CALL(uint64_t(*)(const struct kp_nvtx_attributes *), CORE, RangeStartEx)(&a);
    uint64_t other = CALL(uint64_t(*)(const wchar_t *), CORE, RangeStartW)(L"g\u00fc\u20ac");
    assert_true(one != other);
    assert_string_equal(around(), ";x(wide,)/g\u00fc\u20ac");
    end(one);
    assert_string_equal(around(), ";g\u00fc\u20ac");
    end(other);
    /* Text ends where a character is none. */
    assert_int_equal(CALL(int (*)(const wchar_t *), CORE, RangePushW)((const wchar_t[]){'a', 0x110000, 'b', 0}), 0);
    assert_string_equal(around(), "a");
    pop();
    a.size--; /* an older header: nothing of it is known */
    assert_int_equal(CALL(int (*)(const struct kp_nvtx_attributes *), CORE, RangePushEx)(&a), 0);
    assert_string_equal(around(), "");
    pop();
}

/* ---- limits ---- */

static void names_are_cut_between_characters(void **state)
{
    char name[4 * KP_NVTX_NAME];
    wchar_t wide[KP_NVTX_NAME];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(&name[i], "\xc3\xbc", 3);
    push(name);
    assert_int_equal(strlen(around()), KP_NVTX_NAME - 2); /* an odd number of bytes has room */
    pop();
    for (size_t i = 0; i < KP_NVTX_NAME - 1; i++)
        wide[i] = 0x20ac;
    wide[KP_NVTX_NAME - 1] = 0;
    CALL(int (*)(const wchar_t *), CORE, RangePushW)(wide);
    assert_int_equal(strlen(around()) % 3, 0);
    assert_true(strlen(around()) > KP_NVTX_NAME - 5);
    pop();
}

static void deep_stacks_are_counted_on(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * KP_NVTX_DEPTH; i++)
        assert_int_equal(push("a"), i);
    assert_int_equal(strlen(around()), 2 * KP_NVTX_DEPTH - 1);
    for (int i = 3 * KP_NVTX_DEPTH - 1; i >= 0; i--)
        assert_int_equal(pop(), i);
    assert_string_equal(around(), "");
}

static void many_started_ranges_are_let_go(void **state)
{
    enum { MANY = 5000 };
    static uint64_t ids[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_true((ids[i] = start("a")) != 0);
    struct kp_nvtx n = {.ranges = NULL};
    kp_nvtx_judge(NULL, &n);
    assert_true(n.n_ranges < MANY);
    kp_nvtx_free(&n);
    for (int i = 0; i < MANY; i++)
        end(ids[i]);
    assert_string_equal(around(), "");
}

static size_t n_seen;
static uint64_t times_seen;

static void count_seen(const struct kp_nvtx_range *r, uint64_t times)
{
    n_seen++;
    if (!strcmp(r->domain, "io") && !strcmp(r->name, "seen") && r->kind == KP_NVTX_PUSH_POP)
        times_seen += times;
}

/* The first ones; a program that names each of its ranges anew does not fill the memory. */
static void ranges_seen_are_counted(void **state)
{
    char name[32];
    (void)state;
    domain io = create("io");
    for (int i = 0; i < 5; i++) {
        push_ex(io, attributes("seen"));
        pop_in(io);
    }
    end(start("seen"));
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "unique %d", i);
        push(name);
        pop();
    }
    push_ex(io, attributes("seen"));
    pop_in(io);
    kp_nvtx_each_seen(count_seen);
    assert_int_equal(times_seen, 6);
    assert_true(n_seen > 100 && n_seen < 1000);
}

/* Which of the two decides. */
static void includes_and_excludes(void **state)
{
    (void)state;
    push("a");
    push("b");
    configure("", "", KP_SCOPE_THREAD);
    assert_true(wanted());
    configure("a/", "", KP_SCOPE_THREAD);
    assert_true(wanted());
    configure("c/;b/", "", KP_SCOPE_THREAD);
    assert_true(wanted());
    configure("c/", "", KP_SCOPE_THREAD);
    assert_false(wanted());
    configure("", "b]", KP_SCOPE_THREAD);
    assert_false(wanted());
    configure("", "c/", KP_SCOPE_THREAD);
    assert_true(wanted());
    configure("a/", "b/", KP_SCOPE_THREAD);
    assert_false(wanted());
    pop();
    assert_true(wanted());
    pop();
    configure("", "", KP_SCOPE_THREAD);
}

/* Without NVTX nothing is told of a launch, whatever is open. */
static void off_is_off(void **state)
{
    (void)state;
    struct kp_options o = {.nvtx_include = "", .nvtx_exclude = "", .nvtx_push_pop_scope = KP_SCOPE_THREAD};
    struct kp_nvtx n = {.ranges = NULL};
    push("a");
    assert_int_equal(kp_nvtx_configure(&o), 0);
    assert_true(kp_nvtx_judge(NULL, &n));
    assert_int_equal(n.n_ranges, 0);
    assert_int_equal(n.thread, 0);
    pop();
    configure("", "", KP_SCOPE_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_offered_where_it_is_wanted),
        cmocka_unit_test(an_unknown_table_is_refused),
        cmocka_unit_test(ranges_seen_are_counted), /* before others fill the list of them */
        cmocka_unit_test(push_and_pop),
        cmocka_unit_test(domains_have_their_own_levels),
        cmocka_unit_test(messages_of_all_kinds),
        cmocka_unit_test(categories_and_payloads),
        cmocka_unit_test(started_ranges_are_of_the_process),
        cmocka_unit_test(a_thread_has_its_own_stack),
        cmocka_unit_test(threads_do_not_get_into_each_others_way),
        cmocka_unit_test(signal_handlers_may_use_it),
        cmocka_unit_test(a_forked_child_goes_on),
        cmocka_unit_test(each_text_has_one_handle),
        cmocka_unit_test(a_second_copy_goes_on_with_the_ranges),
        cmocka_unit_test(expressions_that_cannot_be_read_are_refused),
        cmocka_unit_test(handlers_of_forks_may_use_it),
        cmocka_unit_test(short_memory_is_as_without_a_tool),
        cmocka_unit_test(unknown_handles_are_ignored),
        cmocka_unit_test(threads_and_streams_have_names),
        cmocka_unit_test(resources_name_streams),
        cmocka_unit_test(each_form_of_text),
        cmocka_unit_test(names_are_cut_between_characters),
        cmocka_unit_test(deep_stacks_are_counted_on),
        cmocka_unit_test(many_started_ranges_are_let_go),
        cmocka_unit_test(includes_and_excludes),
        cmocka_unit_test(too_many_domains_are_as_without_a_tool),
        cmocka_unit_test(off_is_off),
    };
    return cmocka_run_group_tests_name("nvtx", tests, attach, NULL);
}
