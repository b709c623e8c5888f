#!/bin/sh
# Usage: gen_locks.sh
# Prints docs/locks.md: the table of locks (base/locks.def) as Markdown. `make tables` writes the file.
set -eu
export LC_ALL=C
source=$(dirname "$0")/..

cat <<'END'
# Locks

All locks of `libkprof.so`, in their order. `base/locks.def` has a row for each; `tools/gen_locks.sh` makes this page from
it. `base/lock.h` tells how a lock is taken, waited for and given back.

- A thread that waits without end for a lock holds only locks that stand above it. The builds with ASan or TSan check that.
- A thread may try any lock with a limit of time.
- One handler walks this table at each fork. The last column tells what it does with a lock.

| at a fork | meaning |
| --- | --- |
| held | a forked child can meet the lock. The thread that forks holds it over the fork, so that what it guards is whole |
| freed | only code that looks at launches takes it, which never runs in a child. The child gets it free, and no more |
| each | there is one for each thing of a kind, which the child makes anew |

| rank | lock | file | guards | at a fork |
| --- | --- | --- | --- | --- |
END
{
    echo '#define KP_LOCK(name, fork, file, what) ROW name | fork | file | what END'
    echo '#include "base/locks.def"'
} | ${CC:-cc} -E -P -I"$source" - | tr '\n' ' ' | sed 's/ROW /\n/g' | sed -n '1d; s/ END.*//; s/"  *"//g; s/"//g; s/ *| */|/g; p' |
    awk -F '|' '{print "| " NR - 1 " | `" $1 "` | `" $3 "` | " $4 " | " tolower($2) " |"}'
