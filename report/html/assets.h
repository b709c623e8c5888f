/* The script and the style sheet of the HTML file, from the build of kprof (assets.S), and their hashes for the file's
 * content security policy. */
#ifndef KP_REPORT_HTML_ASSETS_H
#define KP_REPORT_HTML_ASSETS_H

extern const char kp_html_script[], kp_html_style[];
extern const char kp_html_script_hash[], kp_html_style_hash[]; /* SHA-256 in base 64 */

#endif
