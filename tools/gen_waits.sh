#!/bin/sh
# Usage: gen_waits.sh
# Prints docs/waits.md: the table of waits (base/waits.def) as Markdown. `make tables` writes the file.
set -eu
export LC_ALL=C
source=$(dirname "$0")/..

# Prints the rows of a macro of the table, each by its macro.
rows() {
    { echo "#define $1 ROW $2 END"; echo '#include "base/waits.def"'; } | ${CC:-cc} -E -P -I"$source" - | tr '\n' ' ' |
        sed 's/ROW /\n/g' | sed -n '1d; s/ END.*//; s/"  *"//g; s/"//g; s/ *| */ | /g; s/^\([A-Z_]*\)/| `\1`/; s/$/ |/; p' | awk 1
}

cat <<'END'
# Waits

Who waits in `libkprof.so`, what for, and how long. `base/waits.def` has a row for each limit; `tools/gen_waits.sh` makes this
page from it. `tests/unit/preload/test_preload_waits.c` has each of them run out.

- *First* is the limit while no wait of the kind has run out.
- *Next* is the limit after one has. Waits for launches share a budget besides: once it is spent, each has this limit.
- *At exit* is the limit while the program ends.

A wait without a row ends with what it waits for:

- *A lock*, where `KP_FOREVER` stands, is held around work that waits for nothing without a limit. The gate's is held while a
  window is repeated, and each wait of that has a row. So calls that wait for the gate wait for these.
- *The worker* evaluates and stores, and waits for no work of the GPU. *A thread of ours* is joined when it has done its work, or
  waits for what has a row. One that is parked waits for the end of the process, and nobody waits for it.
- *The thread that waits for a context* is in the driver for as long as that takes. Who waits for the thread has a row.
  Where no thread can be had, streams that do not wait for the legacy stream are waited for without a limit.
- *Copies, restores and flushes of ours* run behind work that has ended; the driver is waited for until they have.
- *A call of the program* that kprof makes in its place, the freeing of host memory, waits for the GPU as the driver's own does.
- *The process that starts nvdisasm* does nothing else. *A write* to a log or file that blocks takes as long as one of the program's.

| wait | who waits | what for | first, ms | next, ms | at exit, ms |
| --- | --- | --- | --- | --- | --- |
END
rows 'KP_WAIT(id, first, next, at_exit, who, what)' 'id | who | what | first | next | at_exit'
cat <<'END'

Times that no wait runs into, and the budget:

| time | ms | what it is |
| --- | --- | --- |
END
rows 'KP_SPAN(id, ms, what)' 'id | ms | what'
