#!/bin/bash
# starved, on the simulator: while the host gets the next batch the GPU has nothing to do, and the
# report says for how long and what the host did then, and finds it. The twin that has its batches made
# ahead keeps the GPU busy. The same with kernels that are shorter than their launches, and a graph of them.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
app=$build/testapps/starved
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
steps=40 gpu_us=3000 host_us=2000 # as --quick has them

# cell FILE VARIANT COLUMN
cell() {
	awk -F, -v variant="$2" -v column="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 == variant { print $at[column] }' "$1"
}

# A busy machine makes each variant longer, but not shorter.
ahead_is_busier() {
	awk "BEGIN { exit !($(cell table.csv ahead gpu_percent) > 1.15 * $(cell table.csv sleep gpu_percent)) }"
}

try=1
until
	"$sim" "$app" --quick --csv >table.csv 2>table.err || fail "exit status $?: $(cat table.err)"
	ahead_is_busier
do
	again $try 3 || fail "the GPU has no more work if batches are made ahead: $(cat table.csv)"
	try=$((try + 1))
done
expect "header" "$(head -n 1 table.csv)" "variant,steps,total_ms,step_us,gpu_percent"
expect "variants" "$(sed 1d table.csv | cut -d, -f1 | tr '\n' ' ')" "sleep compute read lock thread join ahead launches graph "
expect "steps" "$(sed 1d table.csv | cut -d, -f2 | sort -u)" $steps
for variant in sleep compute read lock thread join; do
	awk "BEGIN { ms = $(cell table.csv $variant total_ms); us = $(cell table.csv $variant step_us)
		percent = $(cell table.csv $variant gpu_percent)
		exit !(ms >= $steps * ($gpu_us + $host_us) / 1000 && percent * ms > 99 * $steps * $gpu_us / 1000 &&
			percent * ms < 101 * $steps * $gpu_us / 1000 && us * $steps > 999 * ms && us * $steps < 1001 * ms) }" ||
		fail "$variant: the table is wrong: $(cat table.csv)"
done
"$sim" "$app" --quick --steps 3 --gpu-us 0 --host-us 0 --json >table.json || fail "with no time for anything: status $?"
expect "rows with no time for anything" "$(jq -c 'map([.steps, (.gpu_percent + 0)]) | unique' table.json)" "[[3,0]]"

# spy VARIANT OPTION...: recorded, its report in report.json.
spy() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
		timeout -k 1 60 "$app" --quick --csv --variant "$@" >recorded.csv 2>recorded.err ||
		fail "$1: exit status $?: $(tail -n 3 recorded.err)"
	"$tool" report --format=json "$(the_trace)" >report.json 2>report.err || fail "$1: no report: $(cat report.err)"
	jq '.gpus[0]' report.json >gpu.json
}

# is VARIANT CONDITION: of the GPU's row.
is() {
	jq -e --argjson wanted $((steps * host_us * 1000)) "
		def ns(cause): [.idle_causes[] | select(.cause == cause) | .ns] | add // 0;
		$2" gpu.json >/dev/null || fail "$1: not so: $2: $(jq -c 'del(.feeder_causes)' gpu.json)"
}

# found VARIANT ID: that problem alone of those about idle GPUs, and what the GPU's idle time is charged to is its price.
found() {
	expect "$1: found" "$(jq -r '[.findings[] | select(.severity == "problem") | .id |
		select(test("^starved|^launch-bound|^serial"))] | join(" ")' report.json)" "$2"
	[ "$2" != starved-by-host ] ||
		jq -e '.findings[] | select(.id == "starved-by-host") | .idle_gpu_ns == .cost_ns and
			.idle_gpu_ns >= 0.8 * '$((steps * host_us * 1000)) report.json >/dev/null ||
		fail "$1: the price is wrong: $(jq -c .findings report.json)"
}

is_at_work() {
	jq -e --argjson wanted $((steps * host_us * 1000)) \
		'([.idle_causes[] | select(.cause == "not-running") | .ns] | add // 0) < 0.3 * $wanted' gpu.json >/dev/null
}

# starves [ID]: is that found, and nothing else of its kind? Of time without a CPU, which was not the GPU's fault, less is left.
starves() {
	[ "$(jq -r '[.findings[] | select(.severity == "problem") | .id | select(test("^starved|^launch-bound|^serial"))] | join(" ")' report.json)" = "$1" ]
}

# charged VARIANT CAUSE: the time is charged to that, however long the host waited for a CPU besides.
charged() {
	local variant=$1 cause=$2 try=1
	# A thread that has no CPU for as long is what the report says then, and rightly.
	until spy "$variant" && is_at_work && starves "$([ "$variant" = sleep ] || echo starved-by-host)"; do
		again $try 5 || break
		try=$((try + 1))
	done
	is "$variant" "([.idle_causes[] | select(.cause != \"not-running\")][0].cause) == \"$cause\""
	is "$variant" "ns(\"$cause\") >= 0.8 * \$wanted"
	is "$variant" "([.idle_causes[] | select(.cause == \"$cause\")][0].site) != null"
	is "$variant" "([.idle_causes[].ns] | add) == .idle_ns and ([.feeder_causes[].ns] | add) == .feeder_outside_ns"
	is "$variant" ".idle_ns <= .idle_max_ns and .idle_max_ns <= .work_ns and .unknown == null"
	found "$variant" "$([ "$variant" = sleep ] || echo starved-by-host)"
	echo "$variant: $(jq -r '[.idle_causes[:2][] | "\(.ns / 1e5 | round / 10) ms \(.cause) (\(.site))"] | join(", ")' gpu.json)"
}

charged sleep sleep
charged compute cpu
charged read pipe
charged lock lock
charged thread lock
charged join join

# However late the host is: it waits for a step when the next one has been submitted. So nothing
# shows an idle GPU.
spy ahead
is ahead '.idle_ns < 0.1 * .work_ns and ([.idle_causes[].ns] | add // 0) == .idle_ns and .unknown == null'

found ahead ""

# A launch takes the host 20 us and the GPU 2 us; the twin has the same kernels in a graph. By the calls alone: three looks of NVML
# would be enough for an estimate.
echo 'hold cuLaunchKernel read:submits 20' >script
export SPYSIM_SCRIPT=$tmp/script
try=1
until CUDASPY_NONVML=1 spy launches --steps 12 && jq -e '.findings[] | select(.id == "launch-bound")' report.json >/dev/null; do
	again $try 3 || break # a machine that is busy may have kept the thread from launching
	try=$((try + 1))
done
found launches launch-bound
jq -e '.findings[] | select(.id == "launch-bound") | (.what | test("^inferred: ")) and .idle_gpu_ns == null and
	.count >= 18000' report.json >/dev/null || fail "launch-bound: $(jq -c .findings report.json)"
try=1
until spy graph --steps 12 && starves ""; do
	again $try 3 || break # a thread that has no CPU keeps its GPU waiting
	try=$((try + 1))
done
found graph ""
unset SPYSIM_SCRIPT

# What it must refuse and notice.
echo 'broken add' >script
SPYSIM_SCRIPT=$tmp/script "$sim" "$app" --quick --steps 3 >wrong.out 2>wrong.err
expect "exit status with wrong results" $? 1
expect "variants with wrong results" "$(grep -c 'values came back wrong' wrong.err)" 9
for wrong in --variant=nothing --steps=0 --gpu-us=-1 --host-us=many --launches=0 --nothing; do
	"$sim" "$app" $wrong >wrong.out 2>wrong.err
	expect "exit status with $wrong" $? 2
	[ -s wrong.err ] && [ ! -s wrong.out ] || fail "$wrong: $(cat wrong.out wrong.err)"
done
