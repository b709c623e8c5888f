/* Demangles C++ symbols in the style of NVIDIA's tools: `void f<(int)128, (bool)1>(const float *, T1 *)`. Each form
 * leaves out the prefix `__nv_static_` by which nvcc makes kernels of a file unique. */
#ifndef KP_BASE_DEMANGLE_H
#define KP_BASE_DEMANGLE_H

/* Returns the full signature; a name that is unmangled or unparsable stays as it is. malloc'ed; NULL = no memory. */
char *kp_demangle(const char *symbol);
/* Returns the name with namespaces and classes, but without all arguments, also those of templates: `ns::f`. A name
 * that is unmangled or unparsable stays as it is. malloc'ed; NULL = no memory. */
char *kp_demangle_function(const char *symbol);
/* Returns the function's base name without namespace, template arguments and parameters: `f`. malloc'ed. */
char *kp_demangle_base(const char *symbol);

#endif
