/* Spells flags as variables, for the table of options and for the file of options. */
#include <ctype.h>

#include "report/options/options.h"

void kp_option_env_spell(char *flag)
{
    for (char *c = flag; *c && *c != '='; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}
