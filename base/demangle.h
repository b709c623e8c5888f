/* C++ symbol to text, in the style of NVIDIA's tools: `void f<(int)128, (bool)1>(const float *, T1 *)`. */
#ifndef KP_BASE_DEMANGLE_H
#define KP_BASE_DEMANGLE_H

/* Full signature; a name that is not mangled, or cannot be parsed, comes back as it is. malloc'ed; NULL = no memory. */
char *kp_demangle(const char *mangled);
/* With namespaces and classes, but without arguments, those of templates included: `ns::f`. A name that is not mangled,
 * or cannot be parsed, comes back as it is. malloc'ed; NULL = no memory. */
char *kp_demangle_function(const char *mangled);
/* Function base name without namespace, template arguments and parameters: `f`. malloc'ed. */
char *kp_demangle_base(const char *mangled);

#endif
