#!/bin/bash
# Functions on the host in streams, on the simulator: they run as they do bare, when they ran is recorded, and a GPU that stands
# still behind one is told with the function, its line and where it was put into the stream. Near twins: functions that are short,
# work in another stream, nothing behind the function.
. "$(dirname "$0")/lib.sh"
need jq
[ -e "$build/sim/lib/libcudart.so.13" ] || skip "no simulator"
program=$bin/host_functions source=$here/programs/host_functions.c
export LC_ALL=C

# played MODE RAN: recorded as it runs bare; its report in report.json, its records in dump.
played() {
	rm -rf "$out"
	LD_LIBRARY_PATH=$build/sim/lib LD_PRELOAD=$first timeout 60 "$program" "$1" >bare || fail "$1, bare: status $?"
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$build/sim/lib LD_PRELOAD="$first $shim" timeout 60 "$program" "$1" >spied 2>err ||
		fail "$1: status $?: $(tail -n 3 err)"
	expect "$1: functions, bare" "$(cat bare)" "$2 ran, 0 wrong"
	expect "$1: functions" "$(cat spied)" "$2 ran, 0 wrong"
	trace=$(the_trace) || exit 1
	"$tool" report --format=json "$trace" >report.json || fail "$1: no report"
	"$tool" dump "$trace" >dump || fail "$1: cannot be dumped"
	valid "$here/../../docs/report.schema.json" report.json
}

# charged: milliseconds of idle time that are due to functions. records: of functions. unwatched: functions that were not looked at.
charged() { jq '[.gpus[0].idle_causes[] | select(.cause == "host-function") | .ns] | add // 0 | . / 1e6 | floor' report.json; }
records() { grep -c ' \[host_function\] ' dump; }
unwatched() { "$tool" info --format=json "$trace" | jq ".recorder_memory[0].functions_unwatched"; }
found() { jq -r '.findings[] | select(.id == "stalled-on-device") | .severity' report.json; }
line() { grep -n "$1" "$source" | head -n 1 | cut -d: -f1; }

# 40 functions of 4 ms; the first steps are before the working phase.
for mode in host add; do
	played $mode 40
	expect "$mode: records" "$(records)" 40
	expect "$mode: charged" "$(charged | awk '{ print ($1 >= 80) }')" 1
	expect "$mode: no more than they took" "$(charged | awk -v ran="$(sed -n 's/.* ran_ns=\([0-9]*\) .*/\1/p' dump |
		awk '{ all += $1 } END { print all }')" '{ print ($1 * 1e6 <= ran) }')" 1
	# Where the machine is busy, the program may be late for more of the time than the functions take.
	if [ "$(jq '.gpus[0] | ([.idle_causes[] | select(.cause == "host-function") | .ns] | add) >= .work_ns / 4' report.json)" != true ]; then
		without "the finding: the machine is busy"
		continue
	fi
	expect "$mode: found" "$(found)" problem
	function=on_host call='OK(cudaLaunchHostFunc(stream, on_host, &ran));'
	[ $mode = host ] || function=on_stream call='OK(cudaStreamAddCallback(stream'
	site="$function, host_functions.c:$(($(line "static void $function(") + 1))"
	expect "$mode: the function, and its call" "$(jq -r '[.gpus[0].idle_causes[] | select(.cause == "host-function") | .site][0]' report.json)" \
		"$site, put into a stream by $([ $mode = host ] && echo cudaLaunchHostFunc || echo cudaStreamAddCallback) in steps, host_functions.c:$(line "$call")"
	jq -r '.findings[] | select(.id == "stalled-on-device") | .what' report.json | grep -q "most of it in $function" ||
		fail "$mode: the finding does not name the function: $(jq -r '.findings[].what' report.json)"
done

played behind 40
expect "behind: charged, for the other stream waits for the function, too" "$(charged | awk '{ print ($1 >= 80) }')" 1

# On a busy machine the twins' functions may begin late, and the next work be there before they end.
for mode in short beside last; do
	for ((try = 1; ; try++)); do
		played $mode 40
		expect "$mode: records" "$(records)" 40
		[ "$(charged)" -ge 20 ] && again $try 4 || break
	done
	expect "$mode: charged" "$(charged | awk '{ print ($1 < 20) }')" 1
	expect "$mode: found" "$(found)" ""
done

# What began in a window before is of none.
CUDASPY_CAPTURE_RANGE=cudaProfilerApi played windows 2
expect "windows: records" "$(records)" 1

# A graph runs its function again and again: that goes to CUDA as it is. So does what there is no room for.
played graph 20
expect "graph: records" "$(records)" 0
expect "graph: unwatched" "$(unwatched)" 1
played flood 3000
expect "flood: records and what was not looked at" "$(($(records) + $(unwatched)))" 3000
expect "flood: records" "$(($(records) >= 2048))" 1

CUDASPY_NOFUNCTIONS=1 played host 40
expect "off: records" "$(records)" 0
expect "off: charged" "$(charged)" 0
CUDASPY_CAPTURE_RANGE=command played host 40
expect "dormant: records" "$(records)" 0

# A GPU that two processes use may work for the other one: nothing is said, by however many threads it is read.
rm -rf "$out"
for i in 1 2; do
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$build/sim/lib LD_PRELOAD="$first $shim" timeout 60 "$program" host >"two$i" 2>&1 &
done
wait
for jobs in 1 2; do
	"$tool" report --jobs=$jobs --format=json "$out"/*.cudaspy >report.json || fail "two processes: no report"
	expect "two processes, $jobs threads: charged" "$(charged)" 0
done
