#!/bin/bash
# testapps/queue on the simulator, bare and recorded: the call for which the queue has no room blocks
# until the GPU catches up, others do not; and the report says that the queue was full and blames no lock.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/queue
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
echo 'queue 300' >script
export SPYSIM_SCRIPT=$tmp/script

"$sim" "$app" --ms 500 --json >table.json 2>err || fail "bare: status $?: $(cat err)"
expect "rows" "$(jq -r 'map(.what) | join(" ")' table.json)" "launch copy"
jq -e 'all(.[]; .depth == 300 and .blocked_ms > .kernel_ms / 4 and .blocked_ms < 3 * .kernel_ms and
	.other_launches > 5 and .other_worst_ms < .blocked_ms / 2)' table.json >/dev/null ||
	fail "the table says $(cat table.json)"
"$sim" "$app" --quick --csv --what copy >table.csv || fail "copies alone: status $?"
expect "rows of copies alone" "$(sed 1d table.csv | cut -d, -f 1,2)" "copy,300"
"$sim" "$app" --quick --ms 200 --csv --what copy >table.csv || fail "quick, with a length: status $?"
expect "length of the kernel, given with --quick" "$(sed 1d table.csv | cut -d, -f 4)" 200

unset SPYSIM_SCRIPT # as deep as a GPU's queue
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" "$app" --ms 500 --json \
	>recorded.json 2>recorded.err || fail "recorded: status $?: $(cat recorded.err)"
"$tool" report --format=json "$(the_trace)" >report.json || fail "no report"
expect "depth" "$(jq -c 'map(.depth)' recorded.json)" "[1020,1020]"
jq -e --argjson blocked "$(jq 'map(.blocked_ms) | add * 1e6' recorded.json)" '
	.waits.queue_ns > 0.6 * $blocked and .waits.queue_ns + .waits.not_running_ns > 0.95 * $blocked and .waits.lock_ns < 0.02 * $blocked and
	([.blame[] | select(.waited_ns > 10e6)] | length) == 0 and
	([.worst_calls[:2][].function] | sort) == ["__cudaLaunchKernel", "cudaMemcpyAsync"] and
	all(.worst_calls[:2][]; (.what | test("launch queue was full")) and .lock == null)' report.json >/dev/null ||
	fail "the report says $(jq -c '.waits, .blame[:2], .worst_calls[:3]' report.json)"

# What it must refuse and notice.
for wrong in "--what nosuch" "--ms 0" "--nosuch" nosuch; do
	"$sim" "$app" $wrong >/dev/null 2>err
	expect "status for $wrong" $? 2
	grep -q '^queue: ' err || fail "$wrong: says $(cat err)"
done
echo 'broken add' >script
SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --quick --what launch >/dev/null 2>err
expect "status for wrong results" $? 1
grep -q 'results are wrong' err || fail "wrong results: says $(cat err)"
echo 'hold cuLaunchKernel mutex:slow 2000' >script # the kernel ends before the queue is full
SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --ms 400 --what launch >/dev/null 2>err
expect "status if nothing blocks" $? 1
grep -q 'longer --ms' err || fail "if nothing blocks: says $(cat err)"
