#!/bin/bash
# Calls that never return in the ordinary way: C++ exceptions, longjmp, pthread_exit and pthread_cancel
# inside a call, coroutine stacks that go away. The program does what it does without the shim, and
# later calls are recorded at the right depth. Also: calls deeper than we record, backtrace() and gdb
# through a stub, and errno.
. "$(dirname "$0")/lib.sh"

[ -x "$tool" ] || skip "no $tool"

# depths TRACE NAME: how many records of NAME at each depth, as "depth:records ...".
depths() {
	"$tool" dump "$1" | awk -v name="$2" '
		$4 == name { records[$3]++ }
		END { for (d = 0; d < 64; d++) if (records[d]) printf "%s%d:%d", (n++ ? " " : ""), d, records[d] }'
}

if [ -x "$bin/throw" ]; then
	same throw "$bin/throw"
	trace=$(the_trace) || exit 1
	expect "throw: cudaSetDevice" "$(depths "$trace" cudaSetDevice)" "0:50 1:50 2:100"
	# of each round's four calls only catcher's returns
	expect "throw: cudaLaunchHostFunc" "$(depths "$trace" cudaLaunchHostFunc)" "0:50"
	readable "$trace"
else
	without "C++"
fi

same longjmp "$bin/nest" longjmp
trace=$(the_trace) || exit 1
expect "longjmp: cudaSetDevice" "$(depths "$trace" cudaSetDevice)" "0:40"
readable "$trace"

same exit "$bin/nest" exit
trace=$(the_trace) || exit 1
expect "exit: cudaSetDevice" "$(depths "$trace" cudaSetDevice)" "0:10 1:10"
readable "$trace"

FAKE_MODE=quiet same cancel "$bin/nest" cancel
grep -q 'cleaned 1' cancel.out || fail "the test cancelled nothing"
trace=$(the_trace) || exit 1
expect "cancel: cudaSetDevice" "$(depths "$trace" cudaSetDevice)" "0:30"
readable "$trace"

FAKE_MODE=quiet same pending "$bin/nest" pending
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=60003
readable "$trace"

same coroutine "$bin/nest" coroutine
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=50
readable "$trace"

for n in 10 62 63 64 65 100 200; do
	in_turn || continue
	same "deep$n" "$bin/nest" deep $n
	trace=$(the_trace) || exit 1
	read -r calls _ lost < <(closing "deep$n.err")
	expect "deep $n: calls and lost" "$((calls + lost))" "$((6 * n + 1))"
	[ $n -gt 63 ] || expect "deep $n: lost" "$lost" 0
	expect "deep $n: last call" "$("$tool" dump "$trace" | awk '$4 == "cudaSetDevice" { d = $3 }
		END { print d }')" 0
	readable "$trace"
done

FAKE_MODE=quiet same refused "$bin/edge" refused
FAKE_MODE=quiet same edge "$bin/edge"
readable "$(the_trace)"
FAKE_MODE=quiet CUDASPY_CAPTURE_RANGE=command same edge_dormant "$bin/edge"

same backtrace "$bin/nest" backtrace
grep -q 'main is in the backtrace' backtrace.out || fail "backtrace() does not get through a stub"

FAKE_MODE=quiet same errno "$bin/nest" errno
