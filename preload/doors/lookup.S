/*
 * Replaces dlsym and dlvsym. RTLD_NEXT and RTLD_DEFAULT depend on the caller, which the real function finds by its
 * return address. So those, and every name that cannot be a door's, must reach it as a tail jump. The same applies to
 * dlopen and dlmopen, which search for a bare file name by the caller's object. dlclose is here because
 * C code would give it glibc's version.
 */
#ifndef __x86_64__
#error "the lookups are written for x86-64"
#endif

        .hidden kp_dlsym, kp_dlvsym, kp_symbols_init, kp_real_dlsym, kp_real_dlvsym, kp_real_dlopen, kp_real_dlmopen
        .hidden kp_past_waits, kp_past_deep, kp_past_open, kp_past_look, kp_past_namespace
        .hidden kp_past_close, kp_real_dlclose

/* Calls a function with three argument registers kept; the stack is aligned in it. */
#define KP_KEEPING(function)                                                                                           \
        pushq   %rdi;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        pushq   %rsi;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        pushq   %rdx;                                                                                                  \
        .cfi_adjust_cfa_offset 8;                                                                                      \
        call    function;                                                                                              \
        popq    %rdx;                                                                                                  \
        .cfi_adjust_cfa_offset -8;                                                                                     \
        popq    %rsi;                                                                                                  \
        .cfi_adjust_cfa_offset -8;                                                                                     \
        popq    %rdi;                                                                                                  \
        .cfi_adjust_cfa_offset -8;

        .text

#define KP_LOOKUP(symbol, real, substitute)                                                                            \
        .globl  symbol;                                                                                                \
        .type   symbol, @function;                                                                                     \
        .p2align 4;                                                                                                    \
symbol:                                                                                                                \
        .cfi_startproc;                                                                                                \
        endbr64;                                                                                                       \
        cmpl    $0, kp_past_waits(%rip);                                                                               \
        je      3f;                                                                                                    \
        KP_KEEPING(kp_past_look)                                                                                       \
3:      leaq    1(%rdi), %rax;      /* RTLD_NEXT is -1, RTLD_DEFAULT is 0 */                                           \
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
2:      KP_KEEPING(kp_symbols_init)                                                                                    \
        jmp     *real(%rip);                                                                                           \
        .cfi_endproc;                                                                                                  \
        .size   symbol, .-symbol;

KP_LOOKUP(dlsym, kp_real_dlsym, kp_dlsym)
KP_LOOKUP(dlvsym, kp_real_dlvsym, kp_dlvsym)

#define RTLD_DEEPBIND 8

        .globl  dlopen
        .type   dlopen, @function
        .p2align 4
dlopen:
        .cfi_startproc
        endbr64
        cmpq    $0, kp_real_dlopen(%rip)
        jne     1f
        KP_KEEPING(kp_symbols_init)
1:      testl   $RTLD_DEEPBIND, %esi
        jz      2f
        KP_KEEPING(kp_past_deep)
        testb   %al, %al
        jnz     kp_past_open
2:      movq    kp_real_dlopen(%rip), %rax
        testq   %rax, %rax
        jz      3f              /* a library that would call it if there were one: NULL */
        jmp     *%rax
3:      ret
        .cfi_endproc
        .size   dlopen, .-dlopen

        .globl  dlmopen
        .type   dlmopen, @function
        .p2align 4
dlmopen:
        .cfi_startproc
        endbr64
        cmpq    $0, kp_real_dlmopen(%rip)
        jne     1f
        KP_KEEPING(kp_symbols_init)
1:      testq   %rdi, %rdi      /* LM_ID_BASE */
        jz      2f
        KP_KEEPING(kp_past_namespace)
2:      movq    kp_real_dlmopen(%rip), %rax
        testq   %rax, %rax
        jz      3f
        jmp     *%rax
3:      ret
        .cfi_endproc
        .size   dlmopen, .-dlmopen

        .globl  dlclose
        .type   dlclose, @function
        .p2align 4
dlclose:
        .cfi_startproc
        endbr64
        cmpq    $0, kp_real_dlclose(%rip)
        jne     1f
        KP_KEEPING(kp_symbols_init)
1:      KP_KEEPING(kp_past_close)
        jmp     *kp_real_dlclose(%rip)
        .cfi_endproc
        .size   dlclose, .-dlclose

        .section .note.GNU-stack, "", @progbits
