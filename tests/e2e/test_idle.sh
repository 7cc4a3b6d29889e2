#!/bin/bash
# What a thread in Python waits for between its CUDA calls, on the simulator: the report names the cause and the line.
. "$(dirname "$0")/lib.sh"
need jq python3
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libcudart.so.12" ] || skip "no simulator"
python=$(python3 -c 'import sys; print(sys.executable)')

# reported MODE: recorded; its report in report.json.
reported() {
	rm -rf "$out"
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$sim LD_PRELOAD="$first $shim" timeout 60 "$python" "$here/outside.py" "$1" >line 2>err ||
		fail "$1: status $?: $(tail -n 3 err)"
	trace=$(ls -d "$out"/*python*.cudaspy | head -n 1)
	"$tool" report --format=json "$trace" >report.json || fail "$1: no report"
	valid "$here/../../docs/report.schema.json" report.json
}

# waits MODE CAUSE: the largest cause but for a CPU that was not to be had, and of it so much at the line that waits.
waits() {
	reported "$1"
	expect "$1" "$(jq -r '.gpus[0].idle_causes | map(select(.cause != "not-running")) | group_by(.cause) |
		max_by(map(.ns) | add)[0].cause' report.json)" "$2"
	expect "$1: at its line" "$(jq -r '[.gpus[0].idle_causes[] | select(.cause == "'"$2"'" and
		((.site // "") | test("outside.py:'"$(cat line)"' ")) and .ns >= 2e6)] | length' report.json)" 1
	expect "$1: sums" "$(jq '.gpus[0] | (.idle_causes | map(.ns) | add) == .idle_ns and
		(.feeder_causes | map(.ns) | add) == .feeder_outside_ns' report.json)" true
}

# starved MODE YES: the finding about the host, with its line; or none: who sleeps, or reads from a connection, may mean to.
starved() {
	expect "$1: found" "$(jq -r '.findings[] | select(.id == "starved-by-host") | "\(.python_file | split("/") | last):\(.python_line)"' report.json)" \
		"$([ "$2" = no ] || echo "outside.py:$(cat line)")"
}

waits sleep sleep
starved sleep no
waits pipe pipe
starved pipe yes
waits connection socket
starved connection no
waits queue lock
starved queue yes
expect "a queue by its name" "$(jq -r '[.gpus[0].idle_causes[] | select(.cause == "lock" and ((.site // "") | test("waiting_queue"))) | .name][0]' report.json)" "a queue between threads, which is empty"
# Behind asyncio's own functions.
waits coroutine lock
starved coroutine yes

try=1
until reported busy && jq -e '.findings[] | select(.id == "starved-by-host")' report.json >/dev/null; do
	again $try 3 || break # a busy machine may make the GPU's part of the time longer
	try=$((try + 1))
done
starved busy yes
expect "busy: Python" "$(jq -r '.findings[] | select(.id == "starved-by-host") |
	(.what | startswith("Python keeps GPU 0 waiting")) and (.fix | test("fewer lines of Python")) and .idle_gpu_ns >= 60e6' report.json)" true

# Another thread runs Python: for 5 ms each time. It is waited for where a call gives the lock back, too.
reported gil
expect "gil" "$(jq -r '.gpus[0].feeder_causes | map(select(.cause == "gil")) | (map(.ns) | add) >= 20e6' report.json)" true
expect "gil: found" "$(jq -r '.findings[] | select(.id == "gil-contention") | .severity' report.json)" problem

# A GPU that is asked over and over whether it is done is waited for; a thread that works and asks now and then is not waiting.
export SPYSIM_COPY_GBPS=0.25 # 4 ms each
asks() {
	reported "$1"
	expect "$1: it waits for the GPU" "$(jq -r '.gpus[0] | .feeder_query_ns '"$2"' (.feeder_outside_ns + .feeder_in_calls_ns) * '"$3" report.json)" true
	expect "$1: causes" "$(jq '.gpus[0] | ([.feeder_causes[] | select(.cause == "gpu-query") | .ns] | add // 0) == .feeder_query_ns and
		(.feeder_causes | map(.ns) | add) == .feeder_outside_ns' report.json)" true
}
# Of a stack there need not be one where the machine is busy. It may be that of the sleep, in the next line.
at_its_line() {
	jq -e '[.gpus[0].feeder_causes[] | select(.cause == "gpu-query" and
		((.site // "") | test("outside.py:('"$(cat line)|$(($(cat line) + 1))"') ")))] | length >= 1' report.json >/dev/null
}
for mode in query query-sleep; do
	try=1
	until asks $mode '>' 0.3 && at_its_line; do
		again $try 4 || fail "$mode: not at its line: $(jq -c '.gpus[0].feeder_causes' report.json)"
		try=$((try + 1))
	done
done
"$tool" report "$trace" | tr -s ' \n' ' ' | grep -q 'which feeds it, waited for the GPU for [0-9.]* % of its time, by asking whether it is done, and was outside CUDA for' ||
	fail "a thread that asks is said to be outside CUDA: $("$tool" report "$trace" | head -n 20)"
asks query-seldom '<' 0.1
