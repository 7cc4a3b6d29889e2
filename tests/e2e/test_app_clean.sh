#!/bin/bash
# testapps/clean on the simulator, bare and recorded: results are right, and the report finds nothing: no
# pageable copy, nobody who waited for anybody, nothing lost but to want of a CPU.
# Only where CPUs want may there be a minor finding: a first launch of the start takes a millisecond more then.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/clean
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"

# Rounds long enough for the two CPUs of a small machine.
slowly="--ms 600 --kernel-us 10000"
SPYSIM_GPUS=3 "$sim" "$app" $slowly --json >table.json 2>err || fail "bare: status $?: $(cat err)"
expect "rows" "$(jq -r 'map("\(.variant) \(.thread) \(.gpu)") | join(", ")' table.json)" \
	"plain 0 0, plain 1 1, plain 2 2, pipelined 0 0, pipelined 1 1, pipelined 2 2"
jq -e 'all(.[]; .rounds >= 5 and .rounds_per_s <= (if .variant == "plain" then 101 else 202 end))' \
	table.json >/dev/null || fail "the table says $(cat table.json)"
"$sim" "$app" --quick --csv --variant plain --gpus 1 --threads 3 >table.csv || fail "three on a GPU: status $?"
expect "three on a GPU" "$(sed 1d table.csv | cut -d, -f 1-3 | tr '\n' ' ')" "plain,0,0 plain,1,0 plain,2,0 "

SPYSIM_GPUS=2 CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
	"$app" $slowly >recorded.out 2>recorded.err || fail "recorded: status $?: $(cat recorded.err)"
"$tool" report --format=json "$(the_trace)" >report.json || fail "no report"
jq -e '(.waits.not_running_ns > 0.02 * .waits.total_ns) as $crowded |
	.waits.unexplained_ns < 0.02 * .waits.total_ns and
	.waits.lost_ns - .waits.not_running_ns < 0.02 * .waits.total_ns and
	.waits.gpu_intended_ns + .waits.not_running_ns > 0.5 * .waits.total_ns and
	([.findings[] | select(.id != "oversubscribed-host" and ($crowded and .severity == "minor" | not))] == []) and
	.summary.lost_records == 0 and
	(0.01 * .waits.total_ns) as $much |
	([.blame[] | select(.waited_ns > $much)] | length) == 0 and
	([.worst_calls[] | select(.lost_ns > $much and (.what | test("got no CPU") | not))] | length) == 0' \
	report.json >/dev/null ||
	fail "the report says $(jq -c '.waits, .summary.lost_records, .findings, .blame[:2], .worst_calls' report.json)"

"$tool" info --format=json "$(the_trace)" >info.json || fail "no information"
expect "GPUs: name, capability, memory, where" \
	"$(jq -r '.gpus[] | [.device, .name, .capability, .bytes, .pci] | join(",")' info.json | tr '\n' ' ')" \
	"0,Simulated GPU 0,9.0,17179869184,0000:01:00.0 1,Simulated GPU 1,9.0,17179869184,0000:02:00.0 "

# One thread works, on one CPU, and others have that: a note, which fails no gate.
rm -rf "$out"
taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" timeout 60 bash -c '
	for i in 1 2 3 4 5 6; do
		while :; do :; done &
		others="$others $!"
	done
	SPYSIM_GPUS=1 CUDASPY_OUT=$1 "$2" env LD_PRELOAD="$3" "$4" --ms 600 --kernel-us 10000 --variant plain
	status=$?
	kill $others
	exit $status' - "$out" "$sim" "$first $shim $build/sim/libsimkernel.so" "$app" >crowded.out 2>crowded.err ||
	fail "beside other processes: status $?: $(cat crowded.err)"
"$tool" report --fail-on=problem --format=json "$(the_trace)" >report.json || fail "other processes fail the gate: $(cat report.json)"
jq -e '[.findings[] | select(.id == "oversubscribed-host")] == [] or
	(.findings[] | select(.id == "oversubscribed-host") | .severity == "note" and
	(.what | test("may use 1 CPU, .* other programs on the host had the CPUs")) and
	(.fix | test("[Ff]ewer threads") | not))' report.json >/dev/null ||
	fail "the report says $(jq -c '.waits, .findings' report.json)"

# What it must refuse and notice.
for wrong in "--variant nosuch" "--threads 0" "--ms 0" "--nosuch"; do
	"$sim" "$app" $wrong >/dev/null 2>err
	expect "status for $wrong" $? 2
	grep -q '^clean: ' err || fail "$wrong: says $(cat err)"
done
"$sim" "$app" --gpus 9 >/dev/null 2>err
expect "status with too few GPUs" $? 1
grep -q 'there are only 2' err || fail "too few GPUs: says $(cat err)"
echo 'broken add' >script
for variant in plain pipelined; do
	SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --quick --variant $variant >/dev/null 2>err
	expect "status for wrong results, $variant" $? 1
	grep -q 'came back wrong' err || fail "wrong results: says $(cat err)"
done
