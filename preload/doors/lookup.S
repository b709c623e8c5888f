/*
 * Replaces dlsym and dlvsym. RTLD_NEXT and RTLD_DEFAULT depend on the caller, which the real function finds by its
 * return address. So those, and every name that cannot be a door's, must reach it as a tail jump.
 */
#ifndef __x86_64__
#error "the lookups are written for x86-64"
#endif

        .hidden kp_dlsym, kp_dlvsym, kp_symbols_init, kp_real_dlsym, kp_real_dlvsym

        .text

#define KP_LOOKUP(symbol, real, substitute)                                                                            \
        .globl  symbol;                                                                                                \
        .type   symbol, @function;                                                                                     \
        .p2align 4;                                                                                                    \
symbol:                                                                                                                \
        .cfi_startproc;                                                                                                \
        endbr64;                                                                                                       \
        leaq    1(%rdi), %rax;      /* RTLD_NEXT is -1, RTLD_DEFAULT is 0 */                                           \
        cmpq    $1, %rax;                                                                                              \
        jbe     1f;                                                                                                    \
        testq   %rsi, %rsi;                                                                                            \
        jz      1f;                                                                                                    \
        cmpb    $'c', (%rsi);                                                                                          \
        jne     1f;                                                                                                    \
        cmpb    $'u', 1(%rsi);                                                                                         \
        jne     1f;                                                                                                    \
        jmp     substitute;                                                                                            \
1:      movq    real(%rip), %rax;                                                                                      \
        testq   %rax, %rax;                                                                                            \
        jz      2f;                                                                                                    \
        jmp     *%rax;                                                                                                 \
2:      pushq   %rdi;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        pushq   %rsi;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        pushq   %rdx;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        call    kp_symbols_init;                                                                                       \
        popq    %rdx;                                                                                                  \
        .cfi_adjust_cfa_offset -8;                                                                                     \
        popq    %rsi;                                                                                                  \
        .cfi_adjust_cfa_offset -8;                                                                                     \
        popq    %rdi;                                                                                                  \
        .cfi_adjust_cfa_offset -8;                                                                                     \
        jmp     *real(%rip);                                                                                           \
        .cfi_endproc;                                                                                                  \
        .size   symbol, .-symbol;

KP_LOOKUP(dlsym, kp_real_dlsym, kp_dlsym)
KP_LOOKUP(dlvsym, kp_real_dlvsym, kp_dlvsym)

        .section .note.GNU-stack, "", @progbits
