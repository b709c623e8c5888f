/* Takes the files in as they are. The Makefile gives the hashes. */
    .section .rodata

    .globl kp_html_script
kp_html_script:
    .incbin "report/html/report.js"
    .byte 0

    .globl kp_html_style
kp_html_style:
    .incbin "report/html/report.css"
    .byte 0

    .globl kp_html_script_hash
kp_html_script_hash:
    .asciz KP_SCRIPT_HASH

    .globl kp_html_style_hash
kp_html_style_hash:
    .asciz KP_STYLE_HASH
