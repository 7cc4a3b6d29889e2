#!/bin/bash
# What cudaspy finds when it looks at the whole run, on the simulator: programs with a habit (habits_run.c) are
# told so, once, and their cured twins are not. Stalls and shared GPUs are in the tests of the applications.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
export SPYSIM_GPUS=2

# told HABIT: recorded; report.json and report.txt.
told() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim" "$bin/habits_run" "$1" 2>err ||
		fail "habits_run $1: status $?: $(cat err)"
	"$tool" report --format=json "$out" >report.json || fail "no report: $1"
	"$tool" report "$out" >report.txt || fail "no report in text: $1"
}
# holds WHAT FILTER
holds() {
	jq -e "$2" report.json >/dev/null || fail "not so: $1: $(jq -c .findings report.json)"
}

told legacy
holds "the default stream and another one are in each other's way" '
	[.findings[] | select(.id == "legacy-stream")] | length == 1 and (.[0] |
	.severity == "note" and .count >= 70 and .function == "cudaMemsetAsync" and (.module | endswith("/habits_run")) and
	.caller == "two_streams" and (.fix | test("cudaStreamNonBlocking")))'
tr -s ' \n' ' ' <report.txt | grep -q 'its cost is unknown' || fail "the text does not say that the cost is not known: $(cat report.txt)"
holds "nor do the numbers" '.findings[] | select(.id == "legacy-stream") | .cost_known == "no"'
for format in sarif junit; do
	"$tool" report --fail-on=legacy-stream --format=$format "$out" >report.$format 2>err
	expect "the gate" $? 1
	grep -q 'Its cost is unknown\.' report.$format || fail "$format does not say that the cost is not known: $(cat report.$format)"
done
jq -e '[.runs[0].results[] | select(.ruleId == "legacy-stream") | .message.text | select(test("It cost"))] == []' report.sarif >/dev/null ||
	fail "an unknown cost has a number: $(cat report.sarif)"
grep -q 'its cost is unknown' err || fail "the gate knows the cost: $(cat err)"
told nonblocking
holds "streams that do not wait are not" '[.findings[] | select(.id == "legacy-stream")] == []'

# Of launches, which all come from what nvcc made for their kernel, the line.
for program in legacy legacy_G; do
	[ -x "$bin/$program" ] && [ -z "$first" ] || { without "$program"; continue; }
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim" "$bin/$program" 100 2>err || fail "$program: status $?: $(cat err)"
	line=$(grep -n 'mark: bad$' "$here/programs/legacy.cu" | cut -d: -f1)
	echo "legacy-stream legacy.cu:$line -- the order is needed" >accepted
	"$tool" report --format=json --fail-on=legacy-stream --suppress=accepted "$out" >report.json 2>err ||
		fail "$program: the gate fails: $(cat err)"
	holds "$program: the launch into the default stream has its line" '
		[.findings[] | select(.id == "legacy-stream")] | length == 1 and (.[0] |
		.line == '"$line"' and (.caller | startswith("bad")) and .suppressed == "the order is needed")'
	expect "$program: SARIF" "$("$tool" report --format=sarif "$out" | jq -r '.runs[0].results[] | select(.ruleId == "legacy-stream") |
		.locations[0].physicalLocation | "\(.artifactLocation.uri | split("/") | last):\(.region.startLine)"')" "legacy.cu:$line"
	"$tool" dump "$out" | grep ' \[stack\] .* of=__cudaLaunchKernel ' | grep -c . >stacks
	[ "$(cat stacks)" -ge 2 ] && [ "$(cat stacks)" -le 12 ] || fail "$program: $(cat stacks) stacks of launches"
done

told peer
holds "copies go through the host" '
	[.findings[] | select(.id == "staged-peer-copy")] | length == 1 and (.[0] |
	.count == 40 and .bytes == 41943040 and .caller == "peers" and (.what | test("from GPU 0 to GPU 1")))'
told enabled
holds "with peer access they do not" '[.findings[] | select(.id == "staged-peer-copy")] == []'

# How many CPUs there were, the trace tells.
expect "CPUs in the trace" "$(sed -n 's/^\tcpus = \([0-9]*\);$/\1/p' "$(the_trace)/metadata")" "$(env -u OMP_NUM_THREADS nproc)"
