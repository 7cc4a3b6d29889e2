#!/bin/bash
# The options of the environment: CUDASPY_TRACE, COUNT, QUIET, DISABLE, CLOCK; and what goes into the
# metadata from outside: arguments, variables and names with every odd character.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

CUDASPY_TRACE=cudaGetDevice same traced "$bin/life" calls 100
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=100 cudaGetDevice=100
expect_counts "$trace" cudaGetDevice=0
expect "calls" "$(closing traced.err)" "200 0 0"
readable "$trace"

CUDASPY_COUNT='cudaSet*,cuLaunch?ernel' same counted "$bin/life" calls 100
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=0 cudaGetDevice=0
expect_counts "$trace" cudaSetDevice=100 cudaGetDevice=100
readable "$trace"

CUDASPY_COUNT='cuda[GS]et*' CUDASPY_TRACE='cudaGet*' same both "$bin/life" calls 100
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=0 cudaGetDevice=100
readable "$trace"

CUDASPY_TRACE='*' same everything "$bin/use_rt13"
trace=$(the_trace) || exit 1
expect_records "$trace" cudaGetDeviceCount=1 cudaGetErrorName=1 cudaCreateChannelDesc=1 cudaMalloc=1
expect "results that are none" "$(events "$trace" |
	grep -c '"cuda\(GetErrorName\|CreateChannelDesc\)".*result = 65535')" 2
readable "$trace"

CUDASPY_QUIET=1 same quiet "$bin/life" calls 100
[ -s quiet.err ] && fail "not quiet: $(cat quiet.err)"
readable "$(the_trace)"
CUDASPY_QUIET=0 same not-quiet "$bin/life" calls 100
expect "not quiet" "$(closing not-quiet.err)" "100 0 0"

CUDASPY_DISABLE=1 same disabled "$bin/life" calls 100
[ -s disabled.err ] && fail "disabled, and says: $(cat disabled.err)"
no_trace
CUDASPY_DISABLE=1 same disabled-ways "$bin/ways" procaddress
no_trace

CUDASPY_CLOCK=monotonic same clock "$bin/life" calls 100
trace=$(the_trace) || exit 1
grep -q 'clock_source = "monotonic"' "$trace/metadata" || fail "not the monotonic clock"
grep -q 'freq = 1000000000;' "$trace/metadata" || fail "monotonic: not nanoseconds"
readable "$trace"

# Times are those of the wall, and in order between two processes.
babeltrace2 --clock-seconds "$trace" | sed -n '1s/^\[\([0-9]*\)\..*/\1/p' >seconds
age=$(($(date +%s) - $(cat seconds)))
[ $age -ge 0 ] && [ $age -le 20 ] || fail "the trace's time is $age s ago"
same tsc "$bin/life" again spawn calls 10
readable $(traces)
expect "processes" "$(traces | wc -l)" 2
begins() { babeltrace2 --clock-cycles "$1" | sed -n '1s/^\[0*\([0-9][0-9]*\)\].*/\1/p'; }
for trace in $(traces); do
	child=$(grep -l "ppid = $(sed -n 's/^[[:space:]]*pid = \([0-9]*\);/\1/p' "$trace/metadata");" "$out"/*.cudaspy/metadata) || continue
	[ "$(begins "$trace")" -le "$(begins "${child%/metadata}")" ] || fail "the child begins before its parent"
	parent=$trace
done
[ -n "${parent:-}" ] || fail "neither of two traces is the parent's"

# Without the child's metadata the two are still of one time.
traced() { "$tool" report --format=json "$out" 2>/dev/null | sed -n 's/^ *"duration_ns": \([0-9]*\),*$/\1/p' | head -n 1; }
whole=$(traced)
[ "$whole" -gt 0 ] || fail "how long was the run?"
child=$(traces | grep -vFx "$parent")
rm "$child/metadata"
lost=$(traced)
[ "$lost" -gt $((whole - 1000000)) ] && [ "$lost" -lt $((whole + 1000000)) ] ||
	fail "without metadata of one process the run took $lost ns, not $whole"

export CUDA_ODD=$'quote " backslash \\ newline \n tab \t \xff \xc3\xa9 %d %s */ };' CUDA_VISIBLE_DEVICES=0,1
same odd "$bin/life" calls $'3 "quoted" \\ back\nline */ \x01 \xff' "" "$(printf '%9000s' x)"
trace=$(the_trace) || exit 1
grep -q 'env_CUDA_VISIBLE_DEVICES = "0,1"' "$trace/metadata" || fail "a variable is missing"
readable "$trace"
ln -s "$bin/life" './odd name "'
same odd-name "$tmp/odd name \"" calls 3
readable "$(the_trace)"
