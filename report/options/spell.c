/* The spelling that flags and variables share: both the table of options and the file of them need it. */
#include <ctype.h>

#include "report/options/options.h"

void kp_option_env_spell(char *flag)
{
    for (char *c = flag; *c && *c != '='; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}
