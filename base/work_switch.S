/*
 * Goes from one stack to another (System V x86-64). Keeps what a call must keep: six registers, and the control words of
 * the floating-point units.
 */
#ifdef __x86_64__
        .text

/* void kp_work_switch(void **left, void *to): notes the stack that is left, and returns on the other one. */
        .globl  kp_work_switch
        .hidden kp_work_switch
        .type   kp_work_switch, @function
        .p2align 4
kp_work_switch:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        popq    %r14
        .cfi_adjust_cfa_offset -8
        popq    %r13
        .cfi_adjust_cfa_offset -8
        popq    %r12
        .cfi_adjust_cfa_offset -8
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   kp_work_switch, .-kp_work_switch

/* uint64_t kp_work_control(void): returns the control words, as kp_work_switch keeps them. */
        .globl  kp_work_control
        .hidden kp_work_control
        .type   kp_work_control, @function
        .p2align 4
kp_work_control:
        .cfi_startproc
        endbr64
        movq    $0, -8(%rsp)
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        movq    -8(%rsp), %rax
        ret
        .cfi_endproc
        .size   kp_work_control, .-kp_work_control

/* The first frame on a stack: kp_work_switch returns here, with the function in %rbx and its argument in %r12. That begins
 * with the place where the program's stack goes on: unwinders find the program's frames there. */
        .globl  kp_work_first
        .hidden kp_work_first
        .type   kp_work_first, @function
        .p2align 4
kp_work_first:
        .cfi_startproc
        .cfi_escape 0x0f, 5, 0x7c, 0, 0x06, 0x23, 64 /* the frame: what %r12 points at, plus 64 */
        .cfi_offset %rip, -8
        .cfi_offset %rbp, -16
        .cfi_offset %rbx, -24
        .cfi_offset %r12, -32
        .cfi_offset %r13, -40
        .cfi_offset %r14, -48
        .cfi_offset %r15, -56
        endbr64
        movq    %r12, %rdi
        call    *%rbx
        ud2
        .cfi_endproc
        .size   kp_work_first, .-kp_work_first

#endif
        .section .note.GNU-stack, "", @progbits
