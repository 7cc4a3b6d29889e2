#!/bin/bash
# testapps/contention on the simulator, four GPUs: under its default locks threads that pin memory wait
# for each other whatever their GPU, and processes do not. The report names the lock, says that it is
# held for other GPUs and that processes would help; it says nothing of the sort about calls that share
# no lock, nor about processes. Simulated: no measurement.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/contention
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
export SPYSIM_GPUS=4

# ran WANTED ARG...: its exit status is as wanted.
ran() {
	local wanted=$1 status
	shift
	"$sim" timeout 60 "$app" --csv "$@" >table 2>err </dev/null
	status=$?
	expect "contention $*: $(tail -n 2 err): exit status" "$status" "$wanted"
}

# cell CALL MODE COLUMN: of the table.
cell() {
	awk -F, -v call="$1" -v mode="$2" -v key="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		$1 == call && $2 == mode { print $column[key] }' table
}

# ---- the table: all calls in all modes -------------------------------------------------------------
ran 0 --quick
"$sim" "$app" --list | awk '{ print $1 }' >calls
[ "$(wc -l <calls)" -ge 17 ] || fail "only $(wc -l <calls) calls"
for call in $(cat calls); do
	for mode in one threads same processes; do
		echo "$call,$mode"
	done
done | diff - <(sed 1d table | cut -d, -f1,2) >rows.diff || fail "rows: $(head -n 5 rows.diff)"
awk -F, 'NR > 1 {
	workers = $2 == "one" ? 1 : 4; gpus = $2 == "one" || $2 == "same" ? 1 : 4
	if ($3 != workers || $4 != gpus || $5 < workers || $6 <= 0 || $7 < $6 || $9 < $7 || $8 > $9 ||
	    ($2 == "one" && $10 != 1) || $10 == "" || NF != 11) print }' table >wrong.rows
[ -s wrong.rows ] && fail "rows that cannot be: $(cat wrong.rows)"
ran 0 --quick --peer --calls malloc-peer,malloc-3m --mode same,one
expect "rows of two calls in two modes" "$(sed 1d table | cut -d, -f1,2 | tr '\n' ' ')" \
	"malloc-3m,one malloc-3m,same malloc-peer,one malloc-peer,same "

# ---- who waits: threads do, on any GPU; processes do not ------------------------------------------
# The means tell also where the lock is not fair: then most calls wait for nothing and few very long. On
# a busy machine processes may lack a CPU: then once more.
for ((try = 1; ; try++)); do
	ran 0 --calls malloc-host --ms 2000 --iterations 100
	awk -v threads="$(cell malloc-host threads mean_times_one)" -v same="$(cell malloc-host same mean_times_one)" \
		-v processes="$(cell malloc-host processes mean_times_one)" \
		'BEGIN { exit !(threads > 2 && same > 2 && threads > 1.5 * processes) }' && break
	again $try 4 || fail "pinning memory: $(cat table)"
done

# ---- what the report says -------------------------------------------------------------------------
# Pinning takes long enough for a busy machine not to matter beside it.
echo "cost cuMemHostAlloc 3000" >script
# told MODE CALL: recorded; report.json.
told() {
	rm -rf "$out"
	SPYSIM_SCRIPT=$tmp/script CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $kernel" timeout 60 "$app" --csv \
		--mode "$1" --threads 4 --processes 4 --calls "$2" --ms 1000 --iterations 20 >spied 2>spied.err ||
		fail "under cudaspy, $1: status $?: $(tail -n 2 spied.err)"
	expect "$1: rows under cudaspy" "$(sed 1d spied | cut -d, -f1-5)" \
		"$2,$1,4,$([ "$1" = same ] && echo 1 || echo 4),80"
	"$tool" report --format=json "$out" >report.json || fail "no report: $1"
}
# holds WHAT FILTER
holds() {
	jq -e "$2" report.json >/dev/null ||
		fail "not so: $1: $(jq -c '.findings, .waits, .locks, .root_blame[:4]' report.json)"
}

told threads malloc-host
holds "one lock of the driver, for which all wait and which all hold" '
	.locks[0] | .waiters == 4 and .holders == 4 and .kind == "mutex" and
	(.place | startswith("libcuda.so")) and (.first_function | test("cudaMallocHost|cudaFreeHost"))'
holds "it is most of the waiting" '.locks[0].waited_ns > 0.8 * .waits.lock_waited_ns and .waits.lock_waited_ns > 100e6'
holds "by threads on other GPUs" '.waits.cross_device_ns > 0.9 * .waits.lock_waited_ns'
holds "the holders are known" '.waits.holder_known_ns > 0.9 * .waits.lock_waited_ns'
holds "the four pin memory at the root" '
	[.root_blame[] | select(.root_function == "cudaMallocHost" and .cause == "own")]
	| (map(.waited_ns) | add) > 30e6 and (map(.root) | unique | length) == 4'
holds "a finding says so" '
	.findings[] | select(.id == "cross-device-stall") | .severity == "problem" and .cost_ns > 100e6 and
	(.function | test("cudaMallocHost|cudaFreeHost")) and .gain_high_ns > 0.8 * .cost_ns and
	(.what | test("^4 threads that work on 4 GPUs"))'
"$tool" report --format=sarif "$out" >report.sarif || fail "no report in SARIF"
valid "$here/../schemas/sarif-2.1.0.json" report.sarif
jq -e --arg app "file://$(realpath "$app")" '[.runs[0].results[] | select(.ruleId | test("-stall$|^oversubscribed"))] | length > 0 and
	all(.[]; (.locations | length) == 1 and (.locations[0].physicalLocation | .region == null and .artifactLocation.uri == $app))' \
	report.sarif >/dev/null || fail "what is of no line is not the program's: $(jq -c '.runs[0].results[].locations' report.sarif)"
holds "none of threads on one GPU" '[.findings[] | select(.id == "same-device-stall" or .id == "legacy-stream")] == []'
holds "processes would help" '.waits.processes | test("would save up to")'

told threads func-set
holds "nobody waits for a lock, and nothing would be saved" '
	.waits.lock_ns < 0.01 * .waits.total_ns and (.waits.processes // "" | test("would save") | not)'
holds "no stall is told" '[.findings[] | select(.id | test("-stall"))] == []'
told same malloc-host
holds "threads of one GPU wait as well" '
	([.findings[] | select(.id == "cross-device-stall")] == []) and
	(.findings[] | select(.id == "same-device-stall") | .severity == "problem" and .cost_ns > 100e6)'
told processes malloc-host
holds "no stall is told" '[.findings[] | select(.id | test("-stall"))] == []'
holds "processes do not wait for each other" '
	.waits.lock_ns < 0.01 * .waits.total_ns and .waits.cross_device_ns == 0 and
	(.waits.processes // "" | test("would save") | not)'

# ---- what it refuses ------------------------------------------------------------------------------
echo "broken add" >script
SPYSIM_SCRIPT=$tmp/script ran 1 --quick --mode threads --calls launch,graph
expect "wrong results told" "$(grep -c 'found a wrong result' err)" 8
ran 2 --mode some
ran 2 --calls launch,some
ran 2 --mode ''
ran 2 --ms 0
ran 2 --some
ran 1 --quick --gpus 5
grep -q 'there are only 4' err || fail "too few GPUs: $(cat err)"
