#!/bin/bash
# SIGKILL in the middle of recording: every complete record is there, the trace can be read, and the
# call that the process was in when it died is named.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# start LINE CMD...: starts CMD spied, waits until it has said LINE.
start() {
	local line=$1 i
	shift
	rm -f started
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$@" >started 2>/dev/null &
	for i in $(seq 100); do
		grep -qs "^$line" started && return
		sleep 0.05
	done
	fail "$* does not get going"
}

start waiting "$bin/life" until-killed 10000
kill -KILL $!
wait $! 2>/dev/null
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=10000
expect_counts "$trace" cudaGetDevice=10000
expect "the call in flight" "$("$bin/board" "$trace" | head -n 1)" \
	"depth 1: cudaStreamSynchronize in cudaStreamSynchronize"
readable "$trace"
"$tool" info "$trace" >info.out 2>&1 || fail "cudaspy info: $(tail -n 3 info.out)"
grep -q 'cudaStreamSynchronize' info.out || fail "cudaspy info does not name the call in flight"

rm -rf "$out"
start waiting "$bin/nest" wait
kill -KILL $!
wait $! 2>/dev/null
expect "the calls in flight" "$("$bin/board" "$(the_trace)" | head -n 1)" \
	"depth 2: cudaStreamSynchronize in cudaLaunchHostFunc"

# A call of the driver's inside one of the runtime's is only counted, but can be seen.
rm -rf "$out"
start waiting "$bin/nest" driver
kill -KILL $!
wait $! 2>/dev/null
expect "the driver's call in flight" "$("$bin/board" "$(the_trace)" | head -n 1)" \
	"depth 1: cuLaunchHostFunc in cudaLaunchHostFunc"
"$tool" info "$(the_trace)" >info.out 2>&1 || fail "cudaspy info: $(tail -n 3 info.out)"
grep -q 'cudaLaunchHostFunc (in cuLaunchHostFunc)' info.out || fail "cudaspy info does not name the driver's call"

# Of its files only the board is there: what that has counted is said. Nor has it counted anything: it had only begun.
rm "$(the_trace)"/stream_* "$(the_trace)"/metadata
"$tool" report --format=json "$out" >report.json 2>err || fail "a board alone: $(cat err)"
grep -q 'metadata: missing' err || fail "a board alone: nothing is said: $(cat err)"
truncate -s 4096 "$(the_trace)/.board"
"$tool" report --format=json "$out" >report.json 2>err
expect "a recording that has only begun: status" $? 2
grep -q "only begun" err && ! grep -q metadata err || fail "a recording that has only begun: $(cat err)"

# Wherever it is hit: a packet that was on its way from memory to the file may be there in part or
# twice, which only our own reader copes with.
refused=0
for i in $(seq 12); do
	rm -rf "$out"
	start waiting "$bin/life" for-ever
	sleep "0.0$((RANDOM % 20 + 10))"
	kill -KILL $!
	wait $! 2>/dev/null
	trace=$(the_trace) || exit 1
	calls=$("$bin/board" "$trace" | sed -n 's/^calls \([0-9]*\) .*/\1/p')
	if babeltrace2 "$trace" >/dev/null 2>&1; then
		got=$(events "$trace" | grep -c ' \(op\|call\): ')
	else
		refused=$((refused + 1))
		got=$("$tool" dump "$trace" 2>/dev/null | awk '$4 == "cudaSetDevice"' | wc -l)
	fi
	# the board's counter is written after the record
	[ "$got" -ge "$calls" ] && [ "$got" -le $((calls + 1)) ] ||
		fail "killed: $got records, the board says $calls"
done
echo "babeltrace2 refused $refused of 12 traces"
