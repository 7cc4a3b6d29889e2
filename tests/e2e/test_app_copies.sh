#!/bin/bash
# testapps/copies on the simulator. Through pageable memory a thread with a short kernel waits for the
# one with the longest, and the report charges that, at the root, to the copy that waits for the GPU;
# through pinned memory, or when they synchronise first, nobody waits and nothing is lost. The
# throughput has all its rows and right results, and asks for MPS only where there is some. Simulated:
# no measurement.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/copies
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps # where there is no daemon

# ran WANTED ARG...: its exit status is as wanted.
ran() {
	local wanted=$1 status
	shift
	"$sim" timeout 60 "$app" --csv "$@" >table 2>err </dev/null
	status=$?
	expect "copies $*: $(tail -n 2 err): exit status" "$status" "$wanted"
}

# column NAME PATTERN: its cells in the rows that match.
column() {
	awk -F, -v key="$1" -v rows="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == key) at = i; next }
		$0 ~ rows { print $at }' table
}

# ---- the reduced case ------------------------------------------------------------------------------
ran 0 --quick
expect "rows" "$(sed 1d table | cut -d, -f1,2 | tr '\n' ' ')" "$(
	for variant in pageable pageable-sync pinned; do
		printf '%s,%s ' $variant 0 $variant 1 $variant 2 $variant 3 $variant all
	done)"
expect "kernels' lengths" "$(column kernel_ms '^pinned,[0-9]' | tr '\n' ' ')" "80.0 70.0 60.0 50.0 "
column total_ms '^p.*,[0-9],' | awk '$1 < 50 { exit 1 }' || fail "shorter than its kernel: $(cat table)"
# A copy to pageable memory lasts as long as the kernel before it, to pinned memory it does not.
least=$(column d2h_ms '^pageable,[0-9]' | sort -g | head -n 1)
most=$(column d2h_ms '^(pinned|pageable-sync),[0-9]' | sort -g | tail -n 1)
awk -v least="$least" -v most="$most" 'BEGIN { exit !(least > 25 && most < least) }' || fail "copies back: $(cat table)"

# told VARIANT: recorded; report.json.
told() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $kernel" timeout 60 "$app" --csv --variant "$1" --ms 300 \
		--iterations 2 --stagger 20 >table 2>err || fail "under cudaspy, $1: status $?: $(tail -n 2 err)"
	"$tool" report --format=json "$(the_trace)" >report.json || fail "no report: $1"
}
# holds WHAT FILTER
holds() {
	jq -e "$2" report.json >/dev/null ||
		fail "not so: $1: $(jq -c '.waits, .root_blame[:4], .worst_calls[:3]' report.json)"
}

told pageable
holds "three threads wait, and at the root there is the copy that waits for the GPU" '
	[.root_blame[] | select(.cause == "gpu" and .root_function == "cudaMemcpyAsync" and
		.waiter_function == "cudaMemcpyAsync" and .waited_ns > 100e6)] as $rows
	| ($rows | map(.waiter) | unique | length) >= 3 and
	  ($rows | map(.waited_ns) | add) > 0.8 * .waits.lock_ns'
holds "the wait for the GPU inside a copy is a hidden one" '.waits.gpu_hidden_ns > 300e6'
holds "the worst calls are copies to pageable memory" '
	.worst_calls[0] | .function == "cudaMemcpyAsync" and (.what | test("pageable memory|held by"))'
holds "pageable copies back cost most, and are called by this program" '
	.findings[0] | .id == "pageable-copy" and (.what | test("from device to pageable")) and .count == 8 and .function == "cudaMemcpyAsync"'
for variant in pageable-sync pinned; do
	told $variant
	holds "$variant: nothing is lost but to want of a CPU" '
		.waits.lock_ns < 0.01 * .waits.total_ns and
		.waits.lost_ns - .waits.not_running_ns < 0.05 * .waits.total_ns and
		.waits.gpu_intended_ns > 0.5 * .waits.total_ns and
		([.root_blame[] | select(.waited_ns > 10e6)] | length) == 0'
done

# ---- throughput ------------------------------------------------------------------------------------
ran 0 --quick --throughput --workers 1,3 --gpus 1
for mode in threads processes; do
	for memory in pageable,no pageable,yes pinned,no pinned,yes; do
		echo "$mode,$memory,1,1"
		echo "$mode,$memory,3,1"
	done
done | diff - <(sed 1d table | cut -d, -f1-5) >rows.diff || fail "rows: $(head -n 5 rows.diff)"
awk -F, 'NR > 1 && ($6 < $4 || $7 <= 0 || ($8 * $4 / $7 - 1) ^ 2 > 0.001 || ($4 == 1 && $9 != 1) || $9 <= 0)' table >wrong.rows
[ -s wrong.rows ] && fail "rows that cannot be: $(cat wrong.rows)"

rm -rf "$out"
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $kernel" timeout 60 "$app" --csv --quick --throughput --mode processes \
	--workers 2 >table 2>err || fail "throughput under cudaspy: status $?: $(tail -n 2 err)"
expect "without one worker, what there is to compare with" "$(column times_one . | tr -d '\n')" ""
"$tool" report --format=json "$out" >report.json || fail "no report of the throughput"
holds "processes wait for no lock of each other's" '.summary.processes == 2 and .waits.lock_ns == 0'

ran 1 --quick --throughput --mode mps
grep -q 'no MPS daemon' err || fail "without a daemon: $(cat err)"
mkdir mps
touch mps/control
ran 1 --quick --throughput --mode threads,mps --workers 1
grep -q 'become no clients' err && [ ! -s table ] || fail "with a dead daemon: $(cat table err)"
ran 0 --quick --throughput --workers 1
expect "modes with a dead daemon" "$(column mode . | uniq | tr '\n' ' ')" "threads processes "
grep -q 'without MPS: .* become no clients' err || fail "all modes with a dead daemon: says $(cat err)"
rm -r mps
mps_start
rm -rf "$out"
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $kernel" timeout 60 "$app" --csv --quick --throughput --mode mps \
	--workers 2 >table 2>err || fail "throughput with MPS: status $?: $(tail -n 2 err)"
expect "rows with MPS" "$(column mode . | sort | uniq -c | tr -s ' ')" " 4 mps"
"$tool" report --format=json "$out" >report.json || fail "no report of the throughput with MPS"
holds "two clients share the GPU" '(.sharing | length) == 2 and
	all(.sharing[]; .how == "MPS" and .client == "yes" and .partners == 1)'
mps_stop
unset SPYSIM_SHARE

# ---- what it refuses ------------------------------------------------------------------------------
echo "broken add" >script
SPYSIM_SCRIPT=$tmp/script ran 1 --quick
expect "variants with wrong results" "$(grep -c 'came back wrong' err)" 3
SPYSIM_SCRIPT=$tmp/script ran 1 --quick --throughput --mode threads --workers 1
grep -q 'came back wrong' err || fail "wrong results of the throughput: $(cat err)"
ran 2 --variant some
ran 2 --throughput --mode some
ran 2 --throughput --workers 1,some
ran 2 --throughput --workers 0
ran 2 --workers 1
ran 1 --quick --gpus 64
