#!/bin/bash
# test_formats.sh [--all FOLDER]: one trace, one answer: of recordings of all kinds, all numbers that occur in two of text, JSON,
# HTML, SQLite, CSV, timelines, folded stacks, JUnit and SARIF are the same, read by one thread or by several (checks/check_formats.py).
# --all: of all traces in FOLDER, where the other tests leave theirs:
#   CUDASPY_KEEP_TRACES=/tmp/traces tests/run; CUDASPY_BUILD=$PWD/build tests/e2e/test_formats.sh --all /tmp/traces
. "$(dirname "$0")/lib.sh"
need python3

checked() {
	timeout ${limit:-300} python3 "$here/checks/check_formats.py" "$tool" "$@" >checked 2>&1
	local status=$?
	cat checked
	[ $status = 0 ] || fail "numbers differ"
}

if [ "${1:-}" = --all ]; then
	find "$(cd "$OLDPWD" && realpath "$2")" -name '*.cudaspy' -type d -printf '%h\n' | sort -u >sets
	[ -s sets ] || fail "no traces in $2"
	mapfile -t sets <sets
	limit=7200 checked --skip "${sets[@]}"
	exit
fi

[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/ranks" ] || skip "no test applications built: no CUDA toolkit"
export SPYSIM_NCCL_WAIT_S=40 TMPDIR=$tmp
sim="$here/../sim/with-sim"

# recorded NAME [VARIABLE...] PROGRAM...: into the folder NAME.
recorded() {
	local name=$1
	shift
	CUDASPY_OUT=$tmp/$name timeout -k 5 60 "$sim" env LD_PRELOAD="$shim" "$@" >"$name.out" 2>"$name.err" ||
		[ "$name" = killed ] || fail "$name: status $?: $(tail -n 3 "$name.err")"
	[ -n "$(traces "$name")" ] || fail "$name: no trace"
}

# Jobs of ranks, with one that is late; with GPU times; each rank's GPU known to all of them.
recorded ranks "$build/testapps/ranks" --quick --csv --straggler 1:cpu:2:20
recorded four CUDASPY_GPU=1 "$build/testapps/ranks" --quick --csv --ranks 4 --steps 10 --straggler 2:sync:2:10
# Two jobs at a time: operations of one rank overlap, as those of several communicators do.
recorded jobs "$build/testapps/ranks" --quick --csv --straggler 1:cpu:2:20 &
recorded jobs "$build/testapps/ranks" --quick --csv --straggler 0:cpu:2:20
wait $! || fail "jobs"
# The first call is one that is only counted, and waits in the driver's begin inside of it, for MPS.
(
	mps_start
	recorded getter CUDASPY_NOGETTERS=1 "$bin/windows" devices memory
	mps_stop
) || fail "getter"
# Waits for GPUs, locks and the host; copies; operations of GPUs.
recorded contention "$build/testapps/contention" --quick --csv --mode threads --iterations 10
recorded starved "$build/testapps/starved" --quick --csv --variant sleep
recorded starved_gpu CUDASPY_GPU=1 "$build/testapps/starved" --quick --csv --variant compute
# Functions on the host that keep streams waiting, threads, windows, a process that is killed.
"$bin/feeders" --script 3 >script || fail "no script of feeders"
recorded feeders SPYSIM_SCRIPT=script LD_PRELOAD="$shim $build/sim/libsimkernel.so" "$bin/feeders" 3 notes "$bin/libfake_python.so"
recorded functions "$bin/host_functions"
recorded functions "$bin/windows" memory # knows the GPU, too, but has no work for it
recorded windows CUDASPY_CAPTURE_RANGE=cudaProfilerApi "$bin/windows" memory pin pageable stream copy:20 start copy:30 stop copy:20 start copy:10 thread:10 stop
recorded killed "$bin/windows" memory pin pageable stream copy:50 kill
# Parts, and one of them missing.
recorded parts CUDASPY_ROTATE_EVERY=20ms "$bin/windows" memory pin pageable stream copy:50 wait:30 copy:50 wait:30 copy:50 wait:30 copy:50 wait:30 copy:50
cp -r parts gap
middle=$(traces gap | sort | sed -n 2p)
[ -n "$middle" ] || fail "no parts"
rm -r "$middle"
# A part of a rank is not there.
mkdir cut
for trace in $(traces ranks); do
	"$here/cut_trace.py" "$trace" "cut/${trace##*/}" lost 0.5 0.6 >/dev/null || fail "$trace cannot be cut"
done
# Calls that take time in the kernel module in any case, and more when others are there.
for us in 300 1500; do
	"$sim" "$bin/scene" --script ioctl_no_lock | sed "s/^ioctl .*/ioctl cuStreamWaitEvent $us/" >"requests.$us"
	recorded kernel SPYSIM_SCRIPT="requests.$us" LD_PRELOAD="$shim $build/sim/libsimkernel.so" "$bin/scene" ioctl_no_lock
done
# Threads of one number, for an image becomes another; ranges in others of their name; a program that has gone.
recorded exec "$bin/life" again exec calls 5
nested_ranges=
"$bin/nvtx" >/dev/null 2>&1
if [ $? != 77 ]; then # there are headers of NVTX
	recorded nested_ranges "$bin/nvtx" deep 5
	nested_ranges=nested_ranges
fi
cp "$bin/windows" gone_soon
recorded gone "$tmp/gone_soon" memory
rm gone_soon
# Of each second thread not all calls are there: others waited for it in one that is lost.
cp -r contention torn
for stream in torn/*/stream_*[13579]_tail; do
	truncate -s $(($(stat -c %s "$stream") / 3)) "$stream"
done
# shellcheck disable=SC2086
checked kernel exec $nested_ranges gone torn ranks four jobs getter contention starved starved_gpu feeders functions windows killed parts gap cut
