#!/bin/bash
# testapps/nbody on the simulator, bare and recorded: its figures fit together; users, clients of MPS and
# their shares are what was asked for; and the report of processes that only compute finds nobody who
# waited for anybody.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/nbody
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"

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

# A dead daemon's pipe: an error where MPS was asked for, and soon; else a word, and the rest is done.
mkdir stale
touch stale/control
for asked in "--mode mps" "--shares 25,75"; do
	CUDA_MPS_PIPE_DIRECTORY=$tmp/stale "$sim" "$app" --quick $asked >table 2>err
	expect "status of $asked with a dead daemon" $? 1
	grep -q 'become no clients' err && [ ! -s table ] || fail "$asked with a dead daemon: $(cat table err)"
done
CUDA_MPS_PIPE_DIRECTORY=$tmp/stale "$sim" "$app" --quick --csv >table 2>err || fail "all modes with a dead daemon: $(cat err)"
expect "modes with a dead daemon" "$(sed 1d table | cut -d, -f 1 | uniq | tr '\n' ' ')" "alone shared "
grep -q 'without MPS: .* become no clients' err || fail "all modes with a dead daemon: says $(cat err)"
mps_start
"$sim" "$app" --quick --shares 25,75 --json >mps.json 2>err || fail "with a daemon: status $?: $(cat err)"
right mps.json 2
expect "who is a client, with which part" \
	"$(jq -r 'map(select(.process != "all") | "\(.mode) \(.mps) \(.share_percent) \(.multiprocessors)") | join(", ")' mps.json)" \
	"alone no null 132, shared no null 132, shared no null 132, mps yes 25 32, mps yes 75 98"

# recorded NAME OPTION...: under the shim, and the report. Kernels of 30 ms: turns on the GPU can be seen.
recorded() {
	local name=$1
	shift
	rm -rf "$out" truth
	mkdir -m 777 "$out" truth
	SPYSIM_TRUTH=$tmp/truth SPYSIM_KERNEL_US=30000 CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $CUDASPY_BUILD/sim/libsimkernel.so" \
		"$app" --quick --json "$@" >$name.json 2>$name.err || fail "$name: status $?: $(cat $name.err)"
	right $name.json 2
	expect "$name: traces" "$(traces | wc -l)" 2
	"$tool" report --format=json "$out" >$name.report || fail "$name: no report"
}

# holds NAME WHAT FILTER: what a report must say.
holds() {
	jq -e "$3" $1.report >/dev/null ||
		fail "$1: not so: $2: $(jq -c '.findings, .sharing, .mps_turns, .waits, .blame[:2], .worst_calls[:2]' $1.report)"
}

recorded slices --mode shared
recorded shares --mode mps --shares 25,75
for name in slices shares; do
	holds $name "processes that compute wait for nobody" '
		.summary.processes == 2 and .summary.lost_records == 0 and ([.findings[] | select(.severity == "problem" and .id != "oversubscribed-host")] | length) == 0 and
		.waits.lost_ns - .waits.not_running_ns < 0.05 * .waits.total_ns and
		([.blame[] | select(.waited_ns > 2e6)] | length) == 0 and .mps_turns == []'
	holds $name "both used the GPU, most of the time together" '
		(.sharing | length) == 2 and (.sharing | map(.uuid) | unique | length) == 1 and
		all(.sharing[]; .partners == 1 and .shared_ns > 0.3 * (.until_ns - .from_ns))'
done
holds slices "which is told, and no more" '[.findings[] | select(.severity == "note" and .id != "oversubscribed-host") | .id] == ["time-slicing"] and
	(.findings[] | select(.id == "time-slicing") | .processes == 2 and (.fix | test("MPS daemon")))'
# Where the machine has other work, that is what costs most, and is told instead.
holds shares "the one that waits for its part is told" '.waits.not_running_ns > 0.1 * .waits.total_ns or
	[.findings[] | select(.severity == "note" and .id != "oversubscribed-host") | .id] == ["mps-share"] and
	(.findings[] | select(.id == "mps-share") | .what | test("\\(25 %\\)"))'
holds slices "by turns" 'all(.sharing[]; .how == "time slices" and .client == "no" and .multiprocessors == 132)'
holds shares "as clients, with their parts" 'all(.sharing[]; .how == "MPS" and .client == "yes") and
	(.sharing | map("\(.percentage) \(.multiprocessors)") | sort) == ["25 32", "75 98"]'
# The same kernels, of which the small client has a quarter and the other three: three times as fast. By the simulator's
# truth, where the time without a CPU is not in it.
waited=$(awk -F'\t' '/^#/ { next } { ns[FILENAME] += $3 == 0 ? $12 : 0 } END { for (file in ns) if (ns[file]) print ns[file] }' \
	truth/truth.*.tsv | sort -n | tr '\n' ' ')
awk '{ exit !(NF == 2 && $2 > 1.5 * $1) }' <<<"$waited" || fail "shares make no difference: waits for the GPU of $waited ns: $(cat shares.json)"

# Of two users, which only root can become, the second waits until the first has ended.
if [ "$(id -u)" = 0 ]; then
	mps_stop # the server that root's clients had
	for_other_users testapps/nbody
	app=$CUDASPY_BUILD/testapps/nbody
	mps_start
	recorded users --mode mps --users 2
	expect "users" "$(jq -c 'map(select(.process != "all").user) | sort' users.json)" "[60001,60002]"
	jq -e 'map(select(.process != "all")) | sort_by(.start_s) | .[1].start_s >= .[0].end_s - 0.01' users.json >/dev/null ||
		fail "two users at the same time: $(cat users.json)"
	holds users "one waited in cuInit for the other's server" '
		.sharing == [] and (.mps_turns | length) == 1 and
		(.mps_turns[0] | .user != .server_user and .server_user > 60000 and .waited_ns > 20e6) and
		(.findings[] | select(.id == "mps-users") | .cost_ns > 20e6 and .processes == 1) and
		.waits.mps_ns > 20e6 and (.worst_calls[0].what | test("another user.s MPS server"))'
else
	without "MPS with two users (not root)"
fi

# Somebody else's files where the daemon's would be: a pipe without a writer, a device, a folder, a number
# of a process that is no daemon. The recorder, which looks there, neither waits nor believes.
for pid_file in pipe device folder number; do
	rm -rf other
	mkdir other
	touch other/control
	case $pid_file in
	pipe) mkfifo other/nvidia-cuda-mps-control.pid ;;
	device) ln -s /dev/zero other/nvidia-cuda-mps-control.pid ;;
	folder) mkdir other/nvidia-cuda-mps-control.pid ;;
	number) echo $$ >other/nvidia-cuda-mps-control.pid ;;
	esac
	rm -rf "$out"
	CUDA_MPS_PIPE_DIRECTORY=$tmp/other CUDASPY_OUT=$out timeout -k 1 30 "$sim" env LD_PRELOAD="$first $shim" \
		"$build/testapps/clean" --quick >/dev/null 2>err || fail "a $pid_file: status $?: $(cat err)"
	"$tool" info --format=json "$out" | jq -e '.mps | length == 1 and .[0].daemon == 0' >/dev/null ||
		fail "a $pid_file: $("$tool" info --format=json "$out" | jq -c .mps)"
done

# What it must refuse and notice.
for wrong in "--mode nosuch" "--mode shared --shares 30,70" "--shares 30" "--shares 30,70,10" "--shares 0,100" "--shares 30,70," "--bodies 1" --nosuch; do
	"$sim" "$app" $wrong >/dev/null 2>err
	expect "status for $wrong" $? 2
	grep -q '^nbody: ' err || fail "$wrong: says $(cat err)"
done
echo 'broken nbody' >script
SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --quick --mode alone >/dev/null 2>err
expect "status for wrong results" $? 1
grep -q 'otherwise than on the CPU' err || fail "wrong results: says $(cat err)"
