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

Who waits in `libkprof.so`, for what, and how long. `base/waits.def` has a row for each limit, and `tools/gen_waits.sh` makes this
page from it. `tests/unit/preload/test_preload_waits.c` lets each of these waits run out. In the code `KP_WAIT_` stands before the
row's name: search for `KP_WAIT_PASS` to see who waits by `PASS`.

- *First* is the limit until a wait of this kind has run out.
- *Next* is the limit after that. Waits for launches also share `BUDGET` of the last table, which has nothing to do with
  `--budget`: once it is spent, each has this limit.
- *At exit* is the limit while the program ends.

When a window closes, these rows apply, in this order:

| window | waits |
| --- | --- |
| replayed | for its launches: `WINDOW_LEFT`, `WINDOW_WAITS` or `WINDOW_END`, and `HOST_CALL` if it has a host function; then for repetitions: `REHEARSAL`, `RESCUE`, `PUT_BACK`, `PASS` |
| of a launch with variants | `RANGE_END`, then `VARIANT` for each, then as one that is replayed |
| counted once | `COUNTED_WAITS` if its launches may wait for the host, else `COUNTED` |
| of a rotation that lets other launches pass | `ROTATION_STREAMS` or `ROTATION`, then `ROTATION_END` |
| of a range, if the program runs once for each pass | `RANGE_END`, or `RANGE_CAPTURE` |
| that cannot be replayed, because memory was changed without its knowledge | `LEAVE` |

A wait without a row ends when what it waits for ends:

- *Locks*: code that holds a lock waits for nothing that has no limit. The gate is held during a replay, whose waits have rows.
- *The worker* evaluates and stores results, and never waits for the GPU. *Threads of kprof's* are joined once their work is done,
  or wait for something that has a row. A parked thread waits for the end of the process, and nothing waits for it.
- *The thread that waits for a context* stays in the driver as long as the work takes. Whoever waits for the thread has a row.
  If no thread can be created, streams that do not synchronise with the legacy stream are waited for without a limit.
- *Copies, restores and flushes of kprof's* run after work that has ended; kprof waits for the driver until they have run.
- *A call of the program* that kprof makes on its behalf, the freeing of host memory, waits for the GPU as it does without kprof.
- *The process that starts nvdisasm* does nothing else. *A write* to a log or file that blocks takes as long as it takes the program.

| wait | who waits | what for | first, ms | next, ms | at exit, ms |
| --- | --- | --- | --- | --- | --- |
END
rows 'KP_WAIT(id, first, next, at_exit, who, what)' 'id | who | what | first | next | at_exit'
cat <<'END'

Periods, and the budget:

| time | ms | what it is |
| --- | --- | --- |
END
rows 'KP_SPAN(id, ms, what)' 'id | ms | what'
