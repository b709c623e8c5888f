/*
 * Trampolines of the gate (System V x86-64). There is one for each intercepted exported symbol of cuda_api.def without
 * a typed door, and a pool for functions returned as pointers. Each loads its slot number and jumps to the common part,
 * which knows no signature. That part saves all argument registers, asks kp_call_enter which function to call and how
 * many words of arguments it expects on the stack, and calls it with a copy of these words.
 */
#ifndef __x86_64__
#error "the trampolines are written for x86-64"
#endif

#include "preload/doors/pool.h"

        .hidden kp_call_enter, kp_call_leave

        .text
        .set    kp_slot, 0

#define KP_TRAMPOLINE(symbol)                                                                                          \
        .globl  symbol;                                                                                                \
        .type   symbol, @function;                                                                                     \
        .p2align 4;                                                                                                    \
symbol:                                                                                                                \
        .cfi_startproc;                                                                                                \
        endbr64;                                                                                                       \
        movl    $kp_slot, %r11d;                                                                                       \
        jmp     kp_gate_common;                                                                                        \
        .cfi_endproc;                                                                                                  \
        .size   symbol, .-symbol;

/* Which classes have trampolines. */
#define KP_WAY_BARE       0
#define KP_WAY_TYPED      0
#define KP_WAY_TRAMPOLINE 1
#define KP_CLASS(name, way, ...) .set .Lkp_class_##name, KP_WAY_##way;
#include "preload/doors/classes.def"

#define KP_API(symbol, base, class)                                                                                    \
        .if .Lkp_class_##class;                                                                                        \
        KP_TRAMPOLINE(symbol)                                                                                          \
        .endif;                                                                                                        \
        .set kp_slot, kp_slot + 1;

#include "preload/doors/cuda_api.def"

        .globl  kp_gate_pool
        .hidden kp_gate_pool
        .type   kp_gate_pool, @function
        .p2align 4
kp_gate_pool:
        .rept   KP_GATE_POOL
        .p2align 4
        .cfi_startproc
        endbr64
        movl    $kp_slot, %r11d
        jmp     kp_gate_common
        .cfi_endproc
        .set    kp_slot, kp_slot + 1
        .endr
        .size   kp_gate_pool, .-kp_gate_pool

/*
 * Frame, from %rbp down: 8 slot, 16 rax, then the six integer argument registers to 64 (the first at the lowest address:
 * an array), eight vector registers to 192, 200 the state entered. kp_call_enter(slot, integer arguments) returns the
 * function in %rax and, in the halves of %rdx, the state entered and the words of the stack arguments. Unless the state
 * is 0, kp_call_leave(slot, result, state) must follow, and returns the result.
 */
        .type   kp_gate_common, @function
        .p2align 4
kp_gate_common:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $208, %rsp
        movq    %r11, -8(%rbp)
        movq    %rax, -16(%rbp)
        movq    %rdi, -64(%rbp)
        movq    %rsi, -56(%rbp)
        movq    %rdx, -48(%rbp)
        movq    %rcx, -40(%rbp)
        movq    %r8, -32(%rbp)
        movq    %r9, -24(%rbp)
        movups  %xmm0, -80(%rbp)
        movups  %xmm1, -96(%rbp)
        movups  %xmm2, -112(%rbp)
        movups  %xmm3, -128(%rbp)
        movups  %xmm4, -144(%rbp)
        movups  %xmm5, -160(%rbp)
        movups  %xmm6, -176(%rbp)
        movups  %xmm7, -192(%rbp)
        leaq    -64(%rbp), %rsi
        movq    %r11, %rdi
        call    kp_call_enter
        movq    %rax, %r10
        movq    %rdx, %r11
        movq    %rdx, -200(%rbp)
        movq    -16(%rbp), %rax
        movq    -64(%rbp), %rdi
        movq    -56(%rbp), %rsi
        movq    -48(%rbp), %rdx
        movq    -40(%rbp), %rcx
        movq    -32(%rbp), %r8
        movq    -24(%rbp), %r9
        movups  -80(%rbp), %xmm0
        movups  -96(%rbp), %xmm1
        movups  -112(%rbp), %xmm2
        movups  -128(%rbp), %xmm3
        movups  -144(%rbp), %xmm4
        movups  -160(%rbp), %xmm5
        movups  -176(%rbp), %xmm6
        movups  -192(%rbp), %xmm7
        testl   %r11d, %r11d
        jnz     1f
        leave
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        jmp     *%r10
        .cfi_restore_state
1:
        shrq    $32, %r11
        jz      4f
        testb   $1, %r11b
        jz      3f
        subq    $8, %rsp        /* the call needs an even number of words below %rbp */
3:
        pushq   8(%rbp, %r11, 8)
        decl    %r11d
        jnz     3b
4:
        call    *%r10
        movq    -8(%rbp), %rdi
        movl    %eax, %esi
        movl    -200(%rbp), %edx
        call    kp_call_leave
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   kp_gate_common, .-kp_gate_common

        .section .note.GNU-stack, "", @progbits
