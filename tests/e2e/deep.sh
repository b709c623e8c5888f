#!/bin/sh
# Libraries with CUDA that a program opens so that their calls are not bound to preloaded libraries: those calls still
# reach the doors, and a line reports the calls that cannot.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser does not take RTLD_DEEPBIND"
one_thread
export KPROF_SET=quick
p=$programs/p_deep plugin=$programs/deep_plugin

words() { # TEXT
    cat "$tmp/report" "$tmp/kprof.err" | grep -c "==WARNING==.*$1"
}

for how in local now lazy; do
    for run in run_linked run_opened; do
        both "$how $run" "$p" $how "$plugin" $run
        expect "$how $run: seen" "$(account seen)" "$(launches)"
        expect "$how $run: profiled" "$(account profiled)" "$(launches)"
        expect "$how $run: words" "$(words '')" 0
    done
done

# Found where the dynamic linker looks for a bare name.
E2E_PATH=$build/fake:$programs both bare "$p" now deep_plugin run_linked
expect "bare: seen" "$(account seen)" "$(launches)"
[ "$(account seen)" -gt 0 ] || fail "bare: nothing was launched"
both "no such file" "$p" now "$programs/none" run_linked

# Calls that are made before anything can be done, and those of another namespace.
PLUGIN_AT_LOAD=1 both "at load" "$p" now "$plugin" none
expect "at load: said" "$(words 'the program used CUDA, but none of its calls reached kprof')" 1
both namespace "$p" new "$plugin" run_linked
expect "namespace: said" "$(words 'opened with dlmopen has a CUDA driver of its own')" 1
LD_LIBRARY_PATH=$build/fake "$build/kprof" --strict --quiet "$p" new "$plugin" run_linked >"$tmp/out" 2>"$tmp/err"
expect "namespace: strict" $? 96

# CUDA starts in a destructor, while the dynamic linker unloads the driver with the library; or goes on behind it.
for times in 1 3; do
    PLUGIN_AT_CLOSE=1 both "at close, $times" "$p" local "$plugin" getpagesize $times
    expect "at close, $times: seen" "$(account seen)" "$(launches)"
    both "closed, $times" "$p" local "$plugin" run_linked $times
    expect "closed, $times: seen" "$(account seen)" "$(launches)"
done

# Nothing is said of a program that is linked to CUDA and does not use it, or has a namespace without CUDA.
both unused "$p" now "$plugin" getpagesize
expect "unused: words" "$(words '')" 0
both "a namespace without CUDA" "$p" new libm.so.6 fegetround
expect "a namespace without CUDA: words" "$(words '')" 0
finish
