#!/usr/bin/env bash
# Small programs of the kinds on which profilers fail: natively, and under kprof in several settings. Prints a table last.
#   tests/gpu/contact.sh OUT [CASE...]     CASE: some of them, by their names; default: all
# The programs are those of tests/gpu/contact/ and of the folder CONTACT_MORE, as cases.inc describes them.
# Environment: SETTINGS (basic quick full rotation timeline preload), LIMIT (seconds a profiled run may take above the native
# time, 25; a case that has used it up has a quarter of it from then on), JOBS (profiled runs at a time on each GPU, 1:
# processes that count on one GPU disturb each other), UNTIL (seconds of runs, 420: what is left then is left out),
# CONTACT (another folder for tests/gpu/contact), NVCC. OUT gets contact.md, the table; contact.json; contact.tar.gz, all logs.
# 46 cases need about 7 minutes on one GPU.
. "$(dirname "$0")/gpu.inc"
. "$here/cases.inc"

list_cases "${CONTACT:-$here/contact}" ${CONTACT_MORE:+"$CONTACT_MORE"} -- "$@"
started=$(now)
build_cases
echo "built in $(since "$started" 1) s"

python3 "$here/contact.py" --library "$lib" --kprof "$kprof" --cases "$work/cases" --out "$out" --logs "$logs" \
    --limit "${LIMIT:-25}" --until "${UNTIL:-420}" --jobs "${JOBS:-1}" \
    --settings "${SETTINGS:-basic quick full rotation timeline preload}"
code=$?
pack_logs "$out/contact.tar.gz"
exit $code
