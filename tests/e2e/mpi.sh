#!/bin/sh
# Several ranks: each writes files of its own, named by the launcher's variable. The output and exit status of the ranks
# and the launcher do not change, and the sessions are read together.
. "$(dirname "$0")/e2e.inc"

case "${KP_TEST_PRELOAD_FIRST:-}" in ?*) echo "skipped: launchers are not for sanitisers"; exit 77 ;; esac
unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MV2_COMM_WORLD_RANK PALS_RANKID FLUX_TASK_RANK SLURM_PROCID RANK WORLD_SIZE
# On this machine alone: it needs no ssh, and finds no fault with the network.
export OMPI_MCA_plm=isolated OMPI_MCA_btl=^tcp
mpirun="mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"
many="$programs/p_many 4" # 12 launches

ranked() { # COMMAND...
    rm -f "$tmp"/session* "$tmp"/log*
    KPROF_EXPORT="$tmp/session%r.kprof" KPROF_LOG_FILE="$tmp/log%r" profiled "$@"
}

# The launches of each process, in the order of their numbers, as its sessions say when they are read together.
launches_of_ranks() {
    "$build/kprof" report --csv "$tmp"/session*.kprof 2>/dev/null | python3 -c '
import csv, sys
launches = {(row["Process ID"], row["ID"]) for row in csv.DictReader(sys.stdin)}
processes = [process for process, launch in launches]
print(*sorted(processes.count(p) for p in set(processes)))'
}

# What ranks print comes in any order. Open MPI 5 puts a zero byte somewhere among it when a rank aborts, and the number of
# the job into what it says itself.
compare() { # NAME RANKS LAUNCHES
    for stream in plain.out kprof.out plain.err kprof.err; do
        tr -d '\000' <"$tmp/$stream" | sed 's/\[[0-9]*,[0-9]*\]/[job]/g; /^$/d' | sort >"$tmp/sorted"
        mv "$tmp/sorted" "$tmp/$stream"
    done
    same "$1"
    wanted=$(for rank in $2; do echo "log$rank"; done; for rank in $2; do echo "session$rank.kprof"; done)
    expect "$1: files" "$(cd "$tmp" && echo $(ls | grep -E '^(log|session).*[^l]$'))" "$(echo $wanted)"
    expect "$1: launches of the ranks" "$(launches_of_ranks)" "$3"
}

# What each launcher tells, alone and where it was started in another's job.
by_environment() {
    plain $many
    for what in "PMI_RANK=3" "SLURM_PROCID=3" "OMPI_COMM_WORLD_RANK=3" "PMIX_RANK=3 PMIX_NAMESPACE=x" \
        "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1" "RANK=3 WORLD_SIZE=4 SLURM_PROCID=0" "PMI_RANK=3 SLURM_PROCID=0"; do
        ranked env $what $many
        compare "$what" 3 12
        "$build/kprof" report --page session "$tmp/session3.kprof" | grep -q "^    ${what%%=*} *3\$" ||
            fail "$what: not in the session"
    done
}

# A launcher that has started CUDA, but launches nothing, leaves the first rank its files; where none is taken, it has its
# own. Names that are relative start where it started CUDA.
by_cuda_program() {
    plain "$programs/p_ranks" $many
    ranked "$programs/p_ranks" $many
    compare "a launcher that counts devices" "0 1" "12 12"
    expect "a launcher that counts devices: reports" "$(grep -l '12 launches seen' "$tmp"/log* | wc -l)" 2
    KPROF_FORCE_OVERWRITE=on ranked "$programs/p_ranks" $many
    compare "a launcher that may overwrite" "0 1" "12 12"
    plain "$programs/p_ranks" /bin/true
    ranked "$programs/p_ranks" /bin/true
    compare "a launcher without ranks" "0" ""
    grep -q 'Nothing was profiled' "$tmp/log0" || fail "a launcher without ranks: no report"
    for program in "$programs/p_ranks" "$programs/p_ranks /bin/true"; do
        rm -rf "$tmp/there"
        mkdir "$tmp/there"
        (cd "$tmp/there" && KPROF_EXPORT=s.kprof KPROF_LOG_FILE=l profiled $program)
        expect "relative names: files" "$(cd "$tmp/there" && echo *)" "l s.kprof"
    done
}

# With MPI's library in the ranks, preloaded everywhere, into the ranks alone, and by the command on either side.
open_mpi() {
    bare="env -u LD_PRELOAD"
    plain $mpirun "$programs/p_mpi"
    ranked $mpirun "$programs/p_mpi"
    compare "mpirun and the ranks" "0 1" "2 3"
    cmp -s "$tmp/plain.err" "$tmp/kprof.err" || { fail "mpirun and the ranks: other words on stderr"; show; }
    ranked $bare $mpirun -x "LD_PRELOAD=$library" "$programs/p_mpi"
    compare "the ranks alone" "0 1" "2 3"
    ranked $bare $mpirun "$build/kprof" "$programs/p_mpi"
    compare "the command in each rank" "0 1" "2 3"
    ranked $bare "$build/kprof" $mpirun "$programs/p_mpi"
    compare "the command before mpirun" "0 1" "2 3"
    for how in fail abort; do
        plain $mpirun "$programs/p_mpi" $how
        ranked $mpirun "$programs/p_mpi" $how
        compare "$how" "0 1" "2 3"
    done
}

# Programs that know nothing of MPI, and shells around them. None fails: the launcher would kill the others.
shells() { # COMMAND...
    plain "$@" sh -c "$many; true"
    ranked "$@" sh -c "$many; true"
    compare "shells of $1" "0 1" "12 12"
    plain "$@" sh -c 'echo one'
    ranked "$@" sh -c 'echo one'
    compare "nothing but shells of $1" "" ""
    [ -s "$tmp/kprof.err" ] && { fail "nothing but shells of $1: words on stderr"; show; }
}

mpirun_shells() {
    shells $mpirun
}

hydra() {
    shells mpiexec.hydra -n 2
}

these=
mpirun --version 2>/dev/null | grep -q 'Open MPI' && these="open_mpi mpirun_shells"
command -v mpiexec.hydra >/dev/null && these="$these hydra"
if [ -z "$these" ]; then
    by_environment
    by_cuda_program
    [ $failures -eq 0 ] || exit 1
    echo "skipped: no launcher of MPI"
    exit 77
fi
for part in by_environment by_cuda_program $these; do
    beside "$part"
done
finish
