/* LINK: -shared */
/* A library that p_stack opens, launches from, and closes again; tests/unit/preload/test_preload_stack.c too. */
#include <cuda.h>

#ifndef PLUGIN_FRAME
#define PLUGIN_FRAME "0x18"
#endif

CUresult plugin_launch(CUresult (*launch)(void *arg), void *arg);

__attribute__((noinline)) CUresult plugin_launch(CUresult (*launch)(void *arg), void *arg)
{
    CUresult rc = launch(arg);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return rc;
}

/* plugin_call does the same, with a frame of PLUGIN_FRAME byte: the code of a library with another one differs in
 * nothing else. */
__asm__(".text\n"
        ".globl plugin_call\n"
        ".type plugin_call, @function\n"
        "plugin_call:\n"
        ".cfi_startproc\n"
        "    sub $" PLUGIN_FRAME ", %rsp\n"
        "    .cfi_adjust_cfa_offset " PLUGIN_FRAME "\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    call *%rax\n"
        "    add $" PLUGIN_FRAME ", %rsp\n"
        "    .cfi_adjust_cfa_offset -" PLUGIN_FRAME "\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size plugin_call, .-plugin_call\n");
