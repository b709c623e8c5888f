#!/bin/sh
# Do no harm: output, results and exit code of each program are its own, whatever is collected and however.
. "$(dirname "$0")/e2e.inc"

all='p_direct p_dlopen p_dlvsym p_getproc p_next p_extra p_legacy p_graph p_nodes p_capture p_fail p_many p_cudart p_nocuda'

for p in $all; do
    both "$p" "$programs/$p"
    KPROF_SET=quick both "$p, counted as it comes" "$programs/$p"
    sanitised && continue # these have code of their own, which other tests run; all of them with all programs takes minutes
    KPROF_CACHE_CONTROL=none both "$p, no cache control" "$programs/$p"
    KPROF_SECTION=LaunchStats both "$p, no counters" "$programs/$p"
    KPROF_KERNEL_NAME=nothing_like_it both "$p, nothing selected" "$programs/$p"
    KPROF_LAUNCH_SKIP=2 KPROF_LAUNCH_COUNT=3 both "$p, three launches" "$programs/$p"
    KPROF_QUIET=on both "$p, quiet" "$programs/$p"
    KPROF_NO_SUCH_OPTION=1 both "$p, an unknown option" "$programs/$p"
done

# Without an option file the report goes to stderr; stdout stays the program's.
KPROF_LOG_FILE=stderr both "report on stderr" "$programs/p_direct"
grep -q 'launches seen' "$tmp/kprof.err" || { fail "no report on stderr"; show; }

finish
