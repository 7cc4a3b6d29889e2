#!/bin/bash
# calibrate on the simulator: a profile comes out that report finds for a trace of this machine, and
# not for others; damage, and what is not there, is said.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
export XDG_CONFIG_HOME=$tmp/config

# calibrate STATUS ARGUMENT...: on the simulator, into cal.out and cal.err.
calibrate() {
	local wanted=$1 status
	shift
	CUDASPY_LIB=$shim timeout 60 "$sim" "$tool" calibrate "$@" >cal.out 2>cal.err
	status=$?
	expect "calibrate $*: exit status ($(tail -n 2 cal.err))" $status "$wanted"
}

says() {
	grep -q -- "$2" "$1" || fail "$1 does not say '$2': $(head -n 5 "$1")"
}

# It writes where report looks, cleans up, and what it says it measured is in the file.
TMPDIR=$tmp calibrate 0 --format=json
profile=$(ls "$XDG_CONFIG_HOME"/cudaspy/profile-13000-*.json)
says cal.err "wrote $profile"
[ -z "$(ls -d "$tmp"/cudaspy-calibrate.* 2>/dev/null)" ] || fail "its trace is left in $tmp"
expect "schema" "$(jq -r .schema "$profile")" cudaspy-profile-1
expect "classes" "$(jq '.classes | length' "$profile")" "$(jq .profile.classes cal.out)"
missing=$(jq -r '[.classes[] | .function] | unique[]' "$profile" | sort >have
	sort <<-END | comm -13 have -
		cudaMalloc
		cudaFree
		cudaMallocHost
		cudaFreeHost
		cudaHostRegister
		cudaHostUnregister
		cudaMemcpy
		cudaMemcpyAsync
		cudaMemsetAsync
		cudaMallocAsync
		cudaFreeAsync
		cudaLaunchKernel
		cudaStreamSynchronize
		cudaEventRecord
		cuMemcpyDtoHAsync_v2
		cuLaunchKernel
		cuMemAlloc_v2
		cuMemAllocAsync
		cuMemFreeAsync
	END
)
[ -z "$missing" ] || fail "not measured: $missing"
for way in "h2d pageable device" "h2d pinned device" "d2h device pageable" "d2h device pinned" \
	"d2d device device" "h2h pinned pinned"; do
	read -r direction src dst <<<"$way"
	sizes=$(jq --arg d "$direction" --arg s "$src" --arg t "$dst" \
		'[.classes[] | select(.function == "cudaMemcpyAsync" and .direction == $d and
			.src == $s and .dst == $t and (.cold | not))] | length' "$profile")
	# 12 are measured; on a busy machine too few calls of a size may go undisturbed.
	[ "$sizes" -ge 7 ] && [ "$sizes" -le 12 ] || fail "cudaMemcpyAsync $way: $sizes sizes"
done
# More bytes take longer; calls that have nothing to wait for do not take milliseconds.
expect "the most bytes take longer than 64 KiB, or the next fewer" "$(jq '[.classes[] | select(.function == "cudaMemcpyAsync" and
	.direction == "d2h" and .dst == "pageable" and (.cold | not))] | sort_by(.bytes) |
	.[-1].expected_ns > 4 * (map(select(.bytes <= 65536))[-1].expected_ns)' "$profile")" true
expect "slow synchronisations" "$(jq '[.classes[] | select(.function | test("Synchronize$")) |
	select(.expected_ns > 1000000)] | length' "$profile")" 0

# One device only; a table for people.
calibrate 0 -d 1 -o one.json
says cal.out "^UNOBSTRUCTED CALLS"
expect "one device's samples" "$(jq '[.classes[] | select(.function == "cudaStreamCreateWithFlags")] | length' \
	one.json)" 1

# A trace of this machine.
CUDASPY_OUT=$out CUDASPY_QUIET=1 CUDASPY_LIB=$shim "$sim" "$tool" run --no-report -- "$tool" calibrate --workload 0 ||
	fail "the workload alone"
"$tool" report "$out" >report.out 2>report.err || fail "report with the profile that is found"
[ -s report.err ] && fail "report complains: $(cat report.err)"
"$tool" report --profile="$profile" "$out" >report.out 2>report.err || fail "report --profile"
[ -s report.err ] && fail "report --profile complains: $(cat report.err)"

# Of another driver, or another GPU: not used, and said; the report is there all the same.
jq '.driver = "12040"' "$profile" >driver.json
"$tool" report --profile=driver.json "$out" >report.out 2>report.err || fail "report with another driver's"
says report.err 'driver.json: the profile of .*, driver 12040: not used, because the traces are of driver 13000'
says report.out "^CUDASPY REPORT"
jq '.gpus = ["NVIDIA H200"]' "$profile" >gpu.json
CUDASPY_PROFILE=gpu.json "$tool" report "$out" >report.out 2>report.err || fail "report with another GPU's"
says report.err 'gpu.json: the profile of NVIDIA H200.*not used, because the traces are of a GPU '

# Damaged, missing.
head -c 3000 "$profile" >cut.json
"$tool" report --profile=cut.json "$out" >report.out 2>report.err && fail "report with half a profile"
says report.err '^cudaspy: cut.json:[0-9]*: no JSON: '
jq 'del(.classes[3].expected_ns)' "$profile" >hole.json
"$tool" report -p hole.json "$out" >report.out 2>report.err && fail "report with a hole in its profile"
says report.err 'hole.json: not a profile that can be used: class 4: no valid "expected_ns"'
"$tool" report -p none.json "$out" >report.out 2>report.err && fail "report with a profile that is not there"
says report.err 'none.json: No such file'
# One that nobody named does not stand in the way.
cp cut.json "$profile"
"$tool" report "$out" >report.out 2>report.err || fail "report with half a profile that nobody named"
says report.err "profile-13000-.*:[0-9]*: no JSON: "

# Nothing to measure, nowhere to write, nonsense.
LD_LIBRARY_PATH=$CUDASPY_BUILD/sim/nodevice CUDASPY_LIB=$shim "$tool" calibrate -o x.json >cal.out 2>cal.err &&
	fail "calibrate without a GPU"
says cal.err "no GPU to measure: cuInit: error 100"
calibrate 2 -o /dev/null/x.json
says cal.err "/dev/null"
calibrate 2 -d 63 -o x.json
says cal.err "device 63: error 101"
calibrate 2 -d 0,x
says cal.err "no device numbers: '0,x'"
calibrate 2 something
[ -e x.json ] && fail "a profile of nothing was written"
echo "a profile of $(jq '.classes | length' one.json) classes"
