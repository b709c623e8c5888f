/* Takes the files in as they are. The Makefile names them, and gives their hashes. */
    .section .rodata

    .globl kp_html_script
kp_html_script:
    .incbin KP_SCRIPT
    .byte 0

    .globl kp_html_style
kp_html_style:
    .incbin KP_STYLE
    .byte 0

    .globl kp_html_script_hash
kp_html_script_hash:
    .asciz KP_SCRIPT_HASH

    .globl kp_html_style_hash
kp_html_style_hash:
    .asciz KP_STYLE_HASH
