#!/bin/bash
# testapps/nbody on the simulator, bare and recorded: its figures fit together; users, clients of MPS and
# their shares are what was asked for; and the report of processes that only compute finds nobody who
# waited for anybody.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/nbody
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps # where there is no daemon, at first

# right FILE PROCESSES: whether the figures of a table fit together, each mode having so many processes.
right() {
	jq -e --argjson processes "$2" '
		def about(a; b): (a - b | fabs) <= 0.05 * b + 0.2;
		all(.[]; .gflops > 0 and about(.gflops; 20 * .ginteractions_per_s) and
			about(.ginteractions_per_s * .seconds; 2048 * 2048 * 3 / 1e9 *
				(if .process != "all" then 1 elif .mode == "alone" then 1 else $processes end))) and
		(group_by(.mode)[] | (map(select(.process == "all"))[0]) as $all | map(select(.process != "all"))
			| length == (if $all.mode == "alone" then 1 else $processes end) and
			  (map(.start_s) | min) == 0 and about(map(.end_s) | max; $all.end_s) and
			  all(.[]; .end_s > .start_s and .seconds <= $all.seconds + 0.002 and .cuda_start_s >= 0))' \
		"$1" >/dev/null || fail "$1: figures do not fit: $(cat "$1")"
}

"$sim" "$app" --quick --json >bare.json 2>err || fail "bare: status $?: $(cat err)"
expect "rows" "$(jq -r 'map("\(.mode) \(.process) \(.mps)") | join(", ")' bare.json)" \
	"alone 0 no, alone all null, shared 0 no, shared 1 no, shared all null"
right bare.json 2
"$sim" "$app" --quick --mode shared --processes 3 --csv >three.csv || fail "three processes: status $?"
expect "three processes" "$(sed 1d three.csv | cut -d, -f 1,2 | tr '\n' ' ')" "shared,0 shared,1 shared,2 shared,all "

"$sim" "$app" --quick --mode mps >/dev/null 2>err
expect "status without a daemon" $? 1
grep -q 'no MPS daemon' err || fail "without a daemon: says $(cat err)"
mkdir mps
: >mps/control
"$sim" "$app" --quick --shares 25,75 --json >mps.json 2>err || fail "with a daemon: status $?: $(cat err)"
right mps.json 2
expect "who is a client, with which part" \
	"$(jq -r 'map(select(.process != "all") | "\(.mode) \(.mps) \(.share_percent) \(.multiprocessors)") | join(", ")' mps.json)" \
	"alone no null 132, shared no null 132, shared no null 132, mps yes 25 33, mps yes 75 99"

# Recorded: processes of two users where that can be.
users=
[ "$(id -u)" = 0 ] && users="--users 2"
chmod 755 "$tmp"
mkdir -m 777 "$out"
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
	"$app" --quick --mode mps $users --json >recorded.json 2>recorded.err ||
	fail "recorded: status $?: $(cat recorded.err)"
right recorded.json 2
[ -z "$users" ] || expect "users" "$(jq -c 'map(select(.process != "all").user)' recorded.json)" "[60001,60002]"
expect "traces" "$(traces | wc -l)" 2
"$tool" report --format=json "$out" >report.json || fail "no report"
jq -e '.summary.processes == 2 and .summary.lost_records == 0 and .pageable_copies == [] and
	.waits.gpu_intended_ns + .waits.not_running_ns > 0.5 * .waits.total_ns and
	.waits.lost_ns - .waits.not_running_ns < 0.05 * .waits.total_ns and
	([.blame[] | select(.waited_ns > 2e6)] | length) == 0' report.json >/dev/null ||
	fail "the report says $(jq -c '.summary, .waits, .blame[:2], .victims[:2]' report.json)"

# What it must refuse and notice.
for wrong in "--mode nosuch" "--shares 30" "--shares 30,70,10" "--shares 0,100" "--shares 30,70," "--bodies 1" --nosuch; do
	"$sim" "$app" $wrong >/dev/null 2>err
	expect "status for $wrong" $? 2
	grep -q '^nbody: ' err || fail "$wrong: says $(cat err)"
done
echo 'broken nbody' >script
SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --quick --mode alone >/dev/null 2>err
expect "status for wrong results" $? 1
grep -q 'otherwise than on the CPU' err || fail "wrong results: says $(cat err)"
