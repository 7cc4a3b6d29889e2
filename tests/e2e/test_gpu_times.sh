#!/bin/bash
# --gpu: the times of GPUs, by CUPTI's look-alike on the simulator, which knows what the GPUs did.
. "$(dirname "$0")/lib.sh"
need jq
[ -e "$build/libcudaspy_gpu.so" ] || skip "libcudaspy_gpu.so was not built: no cupti.h"
sim="$here/../sim/with-sim"
app=$build/testapps/starved
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"

# gpu NAME CMD...: recorded with GPU times; the report is in NAME.json, the GPU's row in NAME.gpu. $value: of CUDASPY_GPU.
gpu() {
	local name=$1
	shift
	rm -rf "$out" truth
	mkdir truth
	CUDASPY_OUT=$out SPYSIM_TRUTH=$tmp/truth "$sim" env CUDASPY_GPU="${value:-1}" \
		LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" timeout -k 1 60 "$@" >"$name.out" 2>"$name.err"
	status=$?
	"$tool" report --format=json "$(the_trace)" >"$name.json" 2>"$name.report_err" || fail "$name: no report: $(cat "$name.report_err")"
	jq '.gpus[0]' "$name.json" >"$name.gpu"
}

# is NAME CONDITION: of the GPU's row.
is() {
	jq -e "$2" "$1.gpu" >/dev/null || fail "$1: not so: $2: $(jq -c 'del(.feeder_causes)' "$1.gpu")"
}

# ---- what GPUs did: each operation, and no more than the truth is certain ----
gpu whole "$app" --quick --csv --variant sleep
[ "$status" = 0 ] || fail "whole: status $status: $(tail -n 3 whole.err)"
is whole '.busy_known == "exact" and .idle_ns == .idle_max_ns and .busy_ns + .idle_ns == .known_ns'
is whole '([.idle_causes[].ns] | add) == .idle_ns and .known_ns <= .work_ns and .known_ns * 100 > .work_ns * 99'
is whole '.certain_ns <= .idle_ns and .certain_ns * 2 > .idle_ns'
is whole '.idle_causes[0].cause == "sleep"'
"$tool" dump "$(the_trace)" | grep ' gpu_op ' >ops
operations=$(wc -l <ops)
is whole ".operations == $operations"
# Each as the truth has it, by its correlation: times by CUPTI's clock here, by CLOCK_MONOTONIC there, apart by the same for
# all; less the first digits, for awk. The last three were still going on when the process ended.
sed 's/.* correlation=\([0-9]*\) begin=[0-9]\{4\}\([0-9]*\) end=[0-9]\{4\}\([0-9]*\) .*/\1 \2 \3/' ops | sort >ours
sed 1d truth/gpu.*.tsv | awk -F'\t' '{ print $14, $9, $10 }' | sort >theirs
join ours theirs >both
expect "operations that are the truth's" "$(wc -l <both)" "$operations"
[ $(($(wc -l <theirs) - operations)) -le 3 ] || fail "$operations operations of $(wc -l <theirs)"
awk '	NR == 1 { by = $2 - $4 }
	{ off = $2 - $4 - by; if (off > 2000 || off < -2000 || $3 - $2 != $5 - $4) wrong++ }
	END { exit wrong > 0 }' both || fail "times differ from the truth: $(head -n 3 both)"
"$tool" dump "$(the_trace)" | grep -q 'state=off text="the process ends"' || fail "the end is not recorded"
if command -v babeltrace2 >/dev/null; then
	expect "babeltrace2's operations" "$(babeltrace2 "$(the_trace)" 2>/dev/null | grep -c ' gpu_op: ')" "$operations"
else
	without babeltrace2
fi
"$tool" report "$(the_trace)" | tr -s ' \n' ' ' >text
grep -q 'worked [0-9.]* %, idle [0-9.]* % of .* of work: asleep [0-9.]* %' text || fail "the report says: $(grep -A 8 ^GPUS text)"

# ---- the same output as bare; and where CUPTI is not to be had ----
SPYSIM_KERNEL_US=5 "$sim" "$build/testapps/clean" --quick --csv >bare.out 2>/dev/null
SPYSIM_KERNEL_US=5 gpu clean "$build/testapps/clean" --quick --csv
expect "columns" "$(head -n 1 clean.out)" "$(head -n 1 bare.out)"
expect "status" "$status" 0

script() {
	printf '%s\n' "$@" >script
	export SPYSIM_SCRIPT=$tmp/script
}

script "cupti_slot_taken 1"
gpu taken "$app" --quick --csv --variant sleep
expect "status where the slot is taken" "$status" 0
is taken '.busy_known == "bounds" and .idle_ns > 0 and (.times | test("CUPTI is in use by another tool"))'
CUDA_INJECTION64_PATH=/opt/tool/libother.so gpu taken "$app" --quick --csv --variant sleep
is taken '.times | test("CUPTI is in use by /opt/tool/libother.so")'

# ---- what CUPTI loses, or has wrong, is said, and nothing is called exact ----
script "cupti_drop 10"
gpu dropped "$app" --quick --csv --variant sleep
is dropped '.busy_known == "bounds" and (.times | test("not complete: [1-9][0-9]* records were lost"))'
script "cupti_broken_times 10"
gpu broken "$app" --quick --csv --variant sleep
is broken '.busy_known == "bounds" and (.times | test("[1-9][0-9]* operations have impossible times"))'

# ---- its clock may lie anywhere, and drift ----
script "cupti_offset_us 3600000000" "cupti_drift_ppm 20"
gpu drift "$app" --csv --steps 300 --variant sleep
is drift '.busy_known == "exact" and .clock_drift_ns > 10000 and .clock_drift_ns < 100000'
is drift '.idle_causes[0].cause == "sleep" and .idle_causes[0].ns * 100 > .idle_ns * 60'
unset SPYSIM_SCRIPT

# ---- a profiler in the program gets the slot, and what it wants to know ----
for when in early late; do
	SPYSIM_KERNEL_US=5 "$sim" "$bin/profiled" $when >bare.out 2>&1 || fail "$when, bare: $(cat bare.out)"
	gpu $when "$bin/profiled" $when
	expect "$when: status; $(tail -n 3 $when.err)" "$status" 0
	expect "$when: what its profiler saw" "$(cat $when.out)" "$(cat bare.out)"
done
is early '.busy_known == "bounds" and (.times | test("CUPTI is in use by .*profiled"))'
is late '(.times | test("until another tool began to use CUPTI: .*profiled")) and .operations == 200'
"$tool" dump "$(the_trace)" | grep -q 'state=gave_way text=".*profiled"' || fail "who took the slot is not recorded"

# ---- windows ----
value=30ms/100ms gpu windows "$app" --csv --steps 100 --variant sleep
expect "status with windows" "$status" 0
[ "$("$tool" dump "$(the_trace)" | grep -c 'state=on')" -ge 3 ] || fail "windows: $("$tool" dump "$(the_trace)" | grep -c 'state=on') were open"
is windows '.busy_known == "exact" and .known_ns * 2 < .work_ns and .known_ns * 10 > .work_ns and .busy_ns + .idle_ns == .known_ns'
is windows '.idle_causes[0].cause == "sleep"'
# A child ends while the windows' thread, which it does not have, is at work.
rm -rf "$out"
CUDASPY_OUT=$out "$sim" env CUDASPY_GPU=2ms/3ms LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
	timeout -k 1 60 "$bin/profiled" forks >forks.out 2>&1
expect "status with windows and children; $(tail -n 3 forks.out)" "$?" 0
"$tool" run --gpu=3x -- true >windows.out 2>&1 && fail "--gpu=3x is taken"
grep -q -- "--gpu=3x" windows.out || fail "--gpu=3x: $(cat windows.out)"
value=3x gpu odd "$app" --quick --csv --variant sleep
grep -q "CUDASPY_GPU=3x is neither" odd.err || fail "CUDASPY_GPU=3x: $(cat odd.err)"

# operations_there N: the program that runs has recorded more of them.
operations_there() {
	for ((i = 0; i < 600; i++)); do
		sleep 0.1
		[ "$("$tool" dump "$(traces)" 2>/dev/null | grep -c ' gpu_op ')" -gt "$1" ] && return
	done
	fail "no $1 operations of a GPU after a minute"
}

# ---- a process that is killed ----
rm -rf "$out"
CUDASPY_OUT=$out "$sim" env CUDASPY_GPU=1 LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
	"$app" --csv --steps 100000 --variant sleep >killed.out 2>&1 &
program=$!
operations_there 50
kill -KILL $program || fail "killed: it had ended: $(cat killed.out)"
wait
"$tool" report --format=json "$(the_trace)" 2>/dev/null | jq '.gpus[0]' >killed.gpu
is killed '.busy_known == "exact" and .operations > 50 and .busy_ns + .idle_ns == .known_ns and .known_ns <= .work_ns'

# ---- its stream's file is truncated: a thread of CUPTI's, which blocks all signals, meets that ----
rm -rf "$out"
CUDASPY_OUT=$out "$sim" env CUDASPY_GPU=1 LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
	timeout -k 1 60 "$app" --csv --steps 600 --variant sleep >torn.out 2>torn.err &
program=$!
operations_there 20
: >"$(the_trace)/stream_0002_tail"
wait $program
expect "status with a truncated stream; $(tail -n 1 torn.err)" "$?" 0
grep -q 'truncated or removed' torn.err || fail "torn: $(cat torn.err)"

# ---- a bounded trace: what is left of it has its clock ----
CUDASPY_KEEP=1 SPYSIM_KERNEL_US=5 gpu kept "$app" --csv --steps 3000 --gpu-us 300 --host-us 200 --variant sleep
expect "status of a bounded trace" "$status" 0
is kept '(.times // "" | test("impossible") | not) and .operations > 50'

# ---- without the second library ----
mkdir alone
cp "$shim" alone/libcudaspy.so
shim=$tmp/alone/libcudaspy.so gpu alone "$app" --quick --csv --variant sleep
expect "status without the library" "$status" 0
is alone '.busy_known == "bounds" and (.times | test("libcudaspy_gpu.so is not beside libcudaspy.so"))'
exit 0
