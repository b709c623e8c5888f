/* LINK: -shared */
/* Another library, which takes the place of stack_plugin where that has been closed: at its addresses is other code. */
#define PLUGIN_FRAME "0x48"
#include "stack_plugin.c"
