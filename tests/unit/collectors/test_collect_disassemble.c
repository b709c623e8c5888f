/* Disassembly by a tool: shell scripts stand for nvdisasm, well-behaved and other ones; the real one where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/code/cubin.h"
#include "collectors/code/disassemble.h"
#include "tests/support/collect_support.h"
#include "tests/support/end_support.h"
#include "tests/support/report_support.h"

#define LIMIT_MS 20000

static struct {
    char folder[PATH_MAX / 2];
    char tool[PATH_MAX];
    uint8_t image[65536]; /* that of tests/data/inline.cu */
    size_t size;
    struct kp_code nested, called;
    char path[4096]; /* PATH as it was */
} on;

static int set_up(void **state)
{
    struct kp_cubin *c;
    FILE *f = fopen(kp_test_source("tests/data/inline.sm90-cuda13.cubin"), "re");
    (void)state;
    if (!f)
        return -1;
    on.size = fread(on.image, 1, sizeof(on.image), f);
    fclose(f);
    snprintf(on.folder, sizeof(on.folder), "%s", kp_test_folder());
    snprintf(on.tool, sizeof(on.tool), "%s/nvdisasm", on.folder);
    snprintf(on.path, sizeof(on.path), "%s", getenv("PATH"));
    if (kp_cubin_open(on.image, on.size, &c) || kp_cubin_code(c, "nested", &on.nested) ||
        kp_cubin_code(c, "$calling$called", &on.called))
        return -1;
    kp_cubin_close(c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kp_code_free(&on.nested);
    kp_code_free(&on.called);
    kp_test_remove_folder(on.folder);
    setenv("PATH", on.path, 1);
    unsetenv("CUDA_HOME");
    unsetenv("LD_PRELOAD");
    return 0;
}

/* The tool is that shell script; $folder is where it may write. */
static void write_tool(const char *script)
{
    char text[8192];
    snprintf(text, sizeof(text), "#!/bin/sh\nfolder='%s'\n%s", on.folder, script);
    kp_test_write(on.tool, text);
    assert_int_equal(chmod(on.tool, 0700), 0);
}

static char *left_by_tool(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", on.folder, name);
    return kp_test_read(path);
}

static int run(unsigned limit_ms)
{
    struct kp_code *const codes[] = {&on.nested, &on.called};
    return kp_disassemble(on.tool, on.image, on.size, codes, 2, limit_ms);
}

static const char *text_at(const struct kp_code *code, uint32_t offset)
{
    return kp_code_at(code, offset)->text;
}

static uint32_t symbol_of(const char *name)
{
    struct kp_cubin *c;
    const char *own;
    uint32_t i = 0;
    assert_int_equal(kp_cubin_open(on.image, on.size, &c), 0);
    while (kp_cubin_function_at(c, i, &own) || strcmp(own, name) != 0)
        i++;
    kp_cubin_close(c);
    return i;
}

/* What it is given, and what is made of its output. */
static void test_texts(void **state)
{
    (void)state;
    char expected[64];
    write_tool("echo \"$1 $2 $3 ${LD_PRELOAD-none}\" >$folder/arguments; cat \"$4\" >$folder/image\n"
               "cat <<'END'\n"
               "\t.target\tsm_90\n"
               "        /*0010*/                   NOT IN A SECTION ;\n"
               "//--------------------- .text.nested --------------------------\n"
               "\t.section\t.text.nested,\"ax\",@progbits\n"
               ".text.nested:\n"
               "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
               ".L_x_1:\n"
               ".L_x_10:\n"
               "        /*0010*/              @!P0 BRA `(.L_x_2) ;\n"
               "        /*0020*/                   CALL.REL.NOINC `($calling$called) ; // more\n"
               "        /*0030*/                   BSSY.RECONVERGENT B0, `(.L_x_10), 0x5 ;\n"
               "        /*0040*/                   BRA `(.L_x_99) ;\n"
               ".L_x_2:\n"
               "        /*0050*/                   FFMA.FTZ R1, R2, R3, R4 ;\n"
               "        /*fff0*/                   NOP ;\n"
               "\t.section\t.text.calling,\"ax\",@progbits\n"
               "        /*0000*/                   S2R R0, SR_TID.X ;\n"
               "        /*00a0*/                   LDG.E R1, desc[UR4][R2.64] ;\n"
               ".L_x_3:\n"
               "        /*00b0*/                   BRA `(.L_x_3) ;\n"
               "END\n");
    setenv("LD_PRELOAD", "", 1);
    assert_int_equal(run(LIMIT_MS), 0);
    unsetenv("LD_PRELOAD");
    assert_string_equal(text_at(&on.nested, 0x00), "LDC R1, c[0x0][0x28]");
    assert_string_equal(text_at(&on.nested, 0x10), "@!P0 BRA 0x50");
    assert_string_equal(text_at(&on.nested, 0x20), "CALL.REL.NOINC `($calling$called)");
    assert_string_equal(text_at(&on.nested, 0x30), "BSSY.RECONVERGENT B0, 0x10, 0x5");
    assert_string_equal(text_at(&on.nested, 0x40), "BRA `(.L_x_99)");
    assert_string_equal(text_at(&on.nested, 0x50), "FFMA.FTZ R1, R2, R3, R4");
    assert_string_equal(text_at(&on.nested, 0x60), "");
    /* A function within another's section, with offsets of its own. */
    assert_string_equal(text_at(&on.called, 0x00), "LDG.E R1, desc[UR4][R2.64]");
    assert_string_equal(text_at(&on.called, 0x10), "BRA 0x10");
    char *image = left_by_tool("image"), *arguments = left_by_tool("arguments");
    assert_memory_equal(image, on.image, on.size);
    snprintf(expected, sizeof(expected), "-c -fun %u,%u none\n", symbol_of("nested"), symbol_of("$calling$called"));
    assert_string_equal(arguments, expected);
    free(image);
    free(arguments);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One that does not end is ended, and what it printed until then is good. */
static void test_time_limit(void **state)
{
    (void)state;
    double begin = seconds();
    write_tool("printf '.section .text.nested,\\n/*0070*/ SLOW R1 ;\\n/*0080*/ UNFINISHED'\n"
               "exec sleep 60\n");
    assert_int_equal(run(1000), 0);
    assert_true(seconds() - begin > 0.9 && seconds() - begin < 20);
    assert_string_equal(text_at(&on.nested, 0x70), "SLOW R1");
    assert_string_equal(text_at(&on.nested, 0x80), "");
    /* No child is left. */
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
}

/* Nor may its output be without an end. */
static void test_endless_output(void **state)
{
    (void)state;
    double begin = seconds();
    write_tool("echo '.section .text.nested,'; exec yes '/*00d0*/ AGAIN;'\n");
    assert_int_equal(run(500), 0);
    assert_true(seconds() - begin < 20);
    assert_string_equal(text_at(&on.nested, 0xd0), "AGAIN");
    assert_int_equal(waitpid(-1, NULL, 0), -1);
}

/* Its output ends before it does. */
static void test_closed_output(void **state)
{
    (void)state;
    double begin = seconds();
    write_tool("printf '.section .text.nested,\\n/*0090*/ CLOSED ;\\n'\nexec >/dev/null; exec sleep 60\n");
    assert_int_equal(run(LIMIT_MS), 0);
    assert_true(seconds() - begin < 10);
    assert_string_equal(text_at(&on.nested, 0x90), "CLOSED");
    assert_int_equal(waitpid(-1, NULL, 0), -1);
}

static void test_bad_output(void **state)
{
    (void)state;
    write_tool("exit 3\n");
    assert_int_equal(run(LIMIT_MS), -ENODATA);
    write_tool("echo; echo .section; echo '/*'; echo '/*10'; echo '/*10*/'; echo .L; echo ' .section x, /*0000*/ X ;'\n"
               "head -c 100000 /dev/urandom\n");
    assert_int_equal(run(LIMIT_MS), -ENODATA);
    /* A line of any length, and a good one after it. */
    write_tool("echo '.section .text.nested,'; printf '/*00a0*/ LONG '; head -c 300000 /dev/zero | tr '\\0' x\n"
               "echo ';'; echo '/*00b0*/ GOOD;'\n");
    assert_int_equal(run(LIMIT_MS), 0);
    assert_string_equal(text_at(&on.nested, 0xa0), "");
    assert_string_equal(text_at(&on.nested, 0xb0), "GOOD");
    write_tool("echo '.section .text.nested,'; head -c 65535 /dev/zero | tr '\\0' x; echo '/*00b0*/ END OF A LINE;'\n");
    assert_int_equal(run(LIMIT_MS), -ENODATA);
    /* The name of a section, too. */
    write_tool("echo '.section .text.nested,'; printf '.section '; head -c 9000 /dev/zero | tr '\\0' y; echo ,\n"
               "echo '/*00b0*/ OF ANOTHER;'\n");
    assert_int_equal(run(LIMIT_MS), -ENODATA);
    assert_string_equal(text_at(&on.nested, 0xb0), "GOOD");
}

static void test_not_started(void **state)
{
    (void)state;
    struct kp_code unknown = {.function = (char *)"unknown"}, *const codes[] = {&unknown};
    unlink(on.tool);
    assert_int_equal(run(LIMIT_MS), -ENOENT);
    write_tool("exit 0\n");
    assert_int_equal(kp_disassemble(on.tool, on.image, on.size, codes, 1, LIMIT_MS), -ENOENT);
    assert_int_equal(kp_disassemble(on.tool, on.image, on.size, codes, 0, LIMIT_MS), -ENOENT);
    assert_int_equal(kp_disassemble(on.tool, on.tool, 8, codes, 1, LIMIT_MS), -EINVAL);
}

static const char good[] = "echo '.section .text.nested,'; echo '/*00c0*/ GOOD;'\n";

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static volatile sig_atomic_t children;

static void count_child(int signal)
{
    (void)signal;
    children++;
}

/* A program's own ways with its children and its descriptors are left alone. */
static void test_host(void **state)
{
    (void)state;
    struct sigaction own = {.sa_handler = count_child, .sa_flags = SA_RESTART}, now;
    int before = open_descriptors();
    write_tool(good);
    assert_int_equal(sigaction(SIGCHLD, &own, NULL), 0);
    assert_int_equal(run(LIMIT_MS), 0);
    assert_int_equal(sigaction(SIGCHLD, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, count_child);
    assert_int_equal(open_descriptors(), before);
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(run(LIMIT_MS), 0);
    signal(SIGCHLD, SIG_DFL);
    /* The tool is not stopped by what the program ignores or blocks. */
    write_tool("kill -TERM $$; sleep 5\necho '.section .text.nested,'; echo '/*00c0*/ NOT ENDED;'\n");
    signal(SIGTERM, SIG_IGN);
    assert_int_equal(run(LIMIT_MS), -ENODATA);
    signal(SIGTERM, SIG_DFL);
}

/* A daemon has no standard descriptors, so ours would get their numbers. */
static void test_closed_descriptors(void **state)
{
    (void)state;
    write_tool(good);
    pid_t child = fork();
    int status;
    if (child == 0) {
        for (int i = 0; i < 10; i++)
            close(i);
        bool right = run(LIMIT_MS) == 0 && strcmp(text_at(&on.nested, 0xc0), "GOOD") == 0 && fcntl(0, F_GETFD) < 0;
        kp_test_end(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_finding(void **state)
{
    (void)state;
    char paths[PATH_MAX], home[PATH_MAX], bin[PATH_MAX + 8], moved[PATH_MAX + 32];
    write_tool(good);
    snprintf(paths, sizeof(paths), "/nonexistent::%s", on.folder);
    setenv("PATH", paths, 1);
    char *found = kp_disassembler_find();
    assert_string_equal(found, on.tool);
    free(found);
    snprintf(home, sizeof(home), "%s/home", on.folder);
    snprintf(bin, sizeof(bin), "%s/bin", home);
    snprintf(moved, sizeof(moved), "%s/nvdisasm", bin);
    assert_int_equal(mkdir(home, 0700) || mkdir(bin, 0700) || rename(on.tool, moved), 0);
    setenv("CUDA_HOME", home, 1);
    found = kp_disassembler_find();
    assert_string_equal(found, moved);
    free(found);
    /* Not to be executed. */
    assert_int_equal(chmod(moved, 0600), 0);
    found = kp_disassembler_find();
    assert_true(geteuid() == 0 || !found || strcmp(found, moved) != 0);
    free(found);
    assert_int_equal(rename(moved, on.tool) || rmdir(bin) || rmdir(home), 0);
    unsetenv("PATH");
    unsetenv("CUDA_HOME");
    found = kp_disassembler_find();
    assert_true(!found || strcmp(found, "/usr/local/cuda/bin/nvdisasm") == 0);
    free(found);
    setenv("PATH", on.path, 1);
}

/* The opcode of a text: the first word after a predicate, up to its modifiers. */
static size_t opcode_len(const char **text)
{
    if (**text == '@')
        *text += strcspn(*text, " ") + 1;
    return strcspn(*text, ". ");
}

/* The bits that a text of a plain load or store says; 0 for other opcodes. */
static unsigned bits_in(const char *opcode, const char *text)
{
    static const struct {
        const char *modifier;
        unsigned bits;
    } sizes[] = {{".U8", 8}, {".S8", 8}, {".U16", 16}, {".S16", 16}, {".64", 64}, {".128", 128}};
    static const char *const plain[] = {"LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS"};
    size_t len = strcspn(text, " "), i = 0;
    while (i < sizeof(plain) / sizeof(*plain) && strcmp(plain[i], opcode) != 0)
        i++;
    if (i == sizeof(plain) / sizeof(*plain))
        return 0;
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const char *at = strstr(text, sizes[i].modifier);
        if (at && at < text + len)
            return sizes[i].bits;
    }
    return 32;
}

static void test_real(void **state)
{
    (void)state;
    char *tool = kp_disassembler_find();
    if (!tool) {
        print_message("no nvdisasm here\n");
        skip();
    }
    struct kp_code *const codes[] = {&on.nested, &on.called};
    assert_int_equal(kp_disassemble(tool, on.image, on.size, codes, 2, LIMIT_MS), 0);
    size_t accesses = 0;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < codes[i]->n_instructions; k++) {
            const char *text = codes[i]->instructions[k].text, *opcode = codes[i]->instructions[k].opcode;
            size_t len = opcode_len(&text);
            assert_int_equal(len, strlen(opcode));
            assert_memory_equal(text, opcode, len);
            assert_null(strstr(text, ".L_"));
            assert_int_equal(codes[i]->instructions[k].access_bits, bits_in(opcode, text));
            accesses += codes[i]->instructions[k].access_bits != 0;
        }
    }
    assert_true(accesses > 0);
    free(tool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_endless_output), cmocka_unit_test(test_closed_output),
        cmocka_unit_test(test_bad_output),     cmocka_unit_test(test_not_started),
        cmocka_unit_test(test_host),           cmocka_unit_test(test_closed_descriptors),
        cmocka_unit_test(test_finding),        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
