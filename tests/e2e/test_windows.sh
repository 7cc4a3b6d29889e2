#!/bin/bash
# Windows: recording that is dormant until something opens one, on the simulator. What is in them is recorded as ever, with
# what is known of before; what is not, leaves nothing.
. "$(dirname "$0")/lib.sh"
need jq python3
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libcudart.so.13" ] || skip "no simulator"
made="memory pin pageable stream"

# ran "VARIABLE=VALUE..." ACTION...: recorded; its trace, and the dump of it.
ran() {
	local variables=$1
	shift
	rm -rf "$out"
	# shellcheck disable=SC2086 # several variables
	env CUDASPY_OUT="$out" LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" $variables timeout 60 "$bin/windows" "$@" >output 2>messages
	set -- $? "$@"
	[ "$1" = "${status:-0}" ] || fail "${*:2}: status $1: $(tail -n 3 messages)"
	shift
	trace=$(traces | head -n 1)
	"$tool" dump "$trace" >dump || fail "$*: no dump"
}

# copies KIND: how many copies from such memory there are; windows STATE: how many such records.
copies() { grep -c " copy .* src=$1 " dump; }
windows() { grep -c " window state=$1 " dump; }
# expect_windows WHAT OPENED CLOSED COPIES
expect_windows() {
	expect "$1: opened" "$(windows open)" "$2"
	expect "$1: closed" "$(windows closed)" "$3"
	expect "$1: copies from pinned memory" "$(copies pinned)" "$4"
	expect "$1: copies from pageable memory" "$(copies pageable)" "$4"
	expect "$1: nothing lost" "$(grep -c 'lost' messages):$(grep -c ' 0 lost' messages)" "${lost:-1:1}"
}
reported() {
	"$tool" report --format=json "$trace" >report.json || fail "no report"
}

# --- the program's own calls; device, memory and context from before are known ---
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made device:1 copy:10 start copy:5 thread:3 stop copy:7
readable "$trace"
expect_windows "profiler" 1 2 8
expect "the device is known" "$(grep -c ' copy device=1 ' dump)" 10
expect "the new thread's is the first" "$(grep -c ' copy device=0 ' dump)" 6
expect "no context is unknown" "$(grep -c ' copy .* context=0 ' dump)" 0
reported
expect "the report counts" "$(jq -c '.summary | [.windows, .calls, .lost_records]' report.json)" '[1,17,0]'
expect "of less time than there was" "$(jq '.summary | .recorded_ns > 0 and .recorded_ns < .duration_ns' report.json)" true
"$tool" report "$trace" >report.txt
grep -q 'recorded .*, in 1 window$' report.txt || fail "the report does not say how much was recorded"

# --- time behind the last window, and before the first one, is not recorded ---
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made copy:1 wait:300 copy:1 start copy:5 stop copy:1 wait:300 copy:1
reported
expect "dormant time" "$(jq '.summary | .duration_ns - .recorded_ns >= 600e6' report.json)" true
expect "nothing of it is lost" "$(jq -c '[.losses[]?]' report.json)" '[]'

# --- the same calls, recorded from begin to end: the same figures ---
ran A=1 $made device:1 copy:10 start copy:5 thread:3 stop copy:7
expect "without windows there is no record of one" "$(grep -c ' window ' dump)" 0
expect "all copies" "$(copies pinned)" 25
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi start $made device:1 copy:10 copy:5 thread:3 copy:7 stop
expect_windows "all in a window" 1 2 25

# --- nothing is written while it is dormant: no stream but the session's ---
ran CUDASPY_CAPTURE_RANGE=command $made copy:500 get:100 thread:20 thread:20 copy:500
expect "files" "$(cd "$trace" && ls -A | grep -v metadata | sort | paste -sd ' ')" ".board stream_0000_tail"
expect "calls" "$(grep -c cudaMemcpy dump)" 0
expect "counts" "$(counts "$trace" cudaGetDevice)" 0
reported
"$tool" report "$trace" >report.txt
expect "the report says so" "$(grep -c 'recorded  *nothing: no window was opened' report.txt):$(jq .summary.calls report.json)" "1:0"
expect "threads without files are no loss" "$(jq -c '[.losses[]?]' report.json)" '[]'

# --- ranges of NVTX: of any thread, and such that another one ends ---
ran CUDASPY_CAPTURE_RANGE=nvtx:step $made push:step copy:3 push:inner copy:1 pop pop copy:4 begin:step copy:1 end-there copy:5 push:other copy:1 pop
expect_windows "ranges" 2 3 5
expect "they are in the trace" "$(grep -c ' range_name .*name="step"' dump)" 1
ran CUDASPY_CAPTURE_RANGE=nvtx:st\* $made push:step copy:2 pop push:stop copy:3 pop push:other copy:1 pop
expect_windows "by how they begin" 2 3 5
ran "CUDASPY_CAPTURE_RANGE=nvtx:step CUDASPY_STEPS=2-3" $made push:step copy:1 pop push:step copy:2 pop copy:1 push:step copy:4 pop push:step copy:8 pop
expect_windows "steps" 1 2 7
ran "CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_STEPS=2" $made start copy:1 stop start copy:2 stop start copy:4 stop
expect_windows "one step" 1 2 2

# --- several threads open and close them at the same moment: nothing is missing, and nothing of outside is there ---
memsets() { grep -c ' cudaMemsetAsync ' dump; }
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made starts:30000
[ "$(cat output)" -gt 0 ] || fail "no windows: $(cat output)"
expect "started together: windows, memsets in them, calls outside" "$(windows open):$(memsets):$(grep -c ' cudaDeviceSynchronize ' dump)" \
	"$(cat output):$(cat output):0"
ran CUDASPY_CAPTURE_RANGE=nvtx:step $made relay:30001
[ "$(cat output)" -gt 0 ] || fail "no ranges: $(cat output)"
expect "ranges in turn: memsets in them" "$(memsets)" "$(cat output)"

# --- a full disk: windows begin and end all the same, and what is lost in them is counted, no more (a call with the driver's inside) ---
set -- stay:2 start again:2000 copy:2000 stop again:2000 copy:2000 start again:2000 copy:2000 stop again:500 start again:100 stop
recorded_and_lost() { sed -n 's/.*: \([0-9]*\) calls .* \([0-9]*\) lost$/\1 \2/p' messages; }
ran "CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_NOPROBES=1" $made "$@"
read -r all lost_of_all < <(recorded_and_lost)
expect "not full: lost" "$lost_of_all" 0
rm -rf "$out"
(
	ulimit -f 64
	CUDASPY_OUT="$out" CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_NOPROBES=1 LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" \
		exec timeout 60 "$bin/windows" $made "$@" 2>messages
) || fail "full: status $?"
read -r calls lost_calls < <(recorded_and_lost)
[ "$lost_calls" -gt 0 ] || fail "the disk was not full"
expect "full: calls that are recorded or lost" "$((2 * calls + lost_calls))" "$((2 * all))"
expect "full: windows" "$(jq .windows < <("$tool" report --format=json "$out" | jq .summary))" 3

# --- threads that sleep through windows, or are there in each ---
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made stay:2 start again:3 stop again:4 thread:5 start again:6 thread:7 stop again:8 exit
expect_windows "threads" 2 3 16
readable "$trace"
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made stay:2 start again:3 stop start copy:1 stop start again:6 stop exit
expect_windows "a thread that does not notice" 3 4 10

# --- the time: a window that ends, one that begins late (a program that waits for a CPU is late itself: another try) ---
for ((try = 1; ; try++)); do
	ran CUDASPY_DURATION=40ms $made copy:5 wait:60 copy:200
	expect "no more than the first calls" "$(windows closed)" 1
	[ "$(copies pinned)" -ge 5 ] && [ "$(copies pinned)" -le 6 ] && break
	again $try 3 || fail "the first calls: $(copies pinned)"
done
for ((try = 1; ; try++)); do
	ran CUDASPY_DELAY=150ms $made copy:5 wait:200 copy:300
	[ "$(copies pinned)" -ge 200 ] && [ "$(copies pinned)" -lt 300 ] && break
	again $try 3 || fail "the last calls: $(copies pinned)"
done
ran "CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_DURATION=40ms" $made start copy:5 wait:60 copy:20 stop copy:1 start copy:2 stop
expect "each of them ends" "$(windows open):$(windows closed)" 2:3

# --- children: each begins anew ---
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi fork:3 fork:1004
expect "a child without a window" "$(traces | while read -r t; do "$tool" dump "$t" | grep -c ' copy .*src='; done | sort -n | paste -sd ' ')" "0 8"

# --- ends: in a window, dormant, by a signal ---
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made copy:1 start copy:2 exit
expect_windows "exit in a window" 1 1 2
ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made copy:1 start copy:2 get:3 stop copy:1 get:4 exit
expect_windows "exit while dormant" 1 2 2
expect "only the window's getters are counted" "$(counts "$trace" cudaGetDevice)" 3
status=137 lost=0:0 ran CUDASPY_CAPTURE_RANGE=cudaProfilerApi $made start copy:2 get:3 stop get:4 copy:1 kill
lost=0:0 expect_windows "killed while dormant" 1 2 2
reported
expect "nor then" "$(jq '[.functions[]? | select(.name == "cudaGetDevice") | .counted] | add // 0 | . <= 3' report.json)" true

# --- dormant, and in no call that is counted: what opens a window is said, in the program's own terms ---
while IFS='|' read -r variables opens; do
	rm -rf "$out" here
	# shellcheck disable=SC2086 # several variables
	env CUDASPY_OUT="$out" LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" $variables timeout 120 "$bin/windows" \
		$made touch:here wait:100000 2>/dev/null &
	program=$!
	until_there here
	"$tool" snapshot --json "$out" >live.json
	expect "$variables: status" $? 2
	expect "$variables: windows, threads" "$(jq -c '[.processes[0].windows, .threads[0].doing, .verdicts[0].kind]' live.json)" '[0,"unseen","dormant"]'
	pid=$(jq '.processes[0].pid' live.json)
	expect "$variables: what opens a window" "$(jq -r '.processes[0].opens' live.json)" "$opens\`cudaspy start $pid\`"
	kill -KILL "$pid"
	wait $program 2>/dev/null
done <<-END
	CUDASPY_CAPTURE_RANGE=command|
	CUDASPY_CAPTURE_RANGE=cudaProfilerApi|cudaProfilerStart, or 
	CUDASPY_CAPTURE_RANGE=nvtx:step* CUDASPY_STEPS=10-12|the range step*, steps 10-12 of it, or 
	CUDASPY_DELAY=5000s|the time, 5000s after the begin (--delay), or 
	CUDASPY_CAPTURE_RANGE=nvtx:step CUDASPY_DELAY=2h|the range step, after the delay of 2h, or 
END

# --- times of GPUs are recorded in windows, too ---
if [ -e "$build/libcudaspy_gpu.so" ]; then
	export LD_LIBRARY_PATH="$sim" SPYSIM_KERNEL_US=5
	ran "CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_GPU=1" $made copy:200 start wait:300 copy:5 wait:300 stop wait:300 copy:200 exit
	expect "GPU times: on and off" "$(grep -c ' gpu_state state=on ' dump):$(grep -c ' gpu_state state=off ' dump)" 1:1
	operations=$(grep -c ' gpu_op ' dump)
	[ "$operations" -ge 10 ] && [ "$operations" -le 30 ] || fail "operations of GPUs in a window of ten copies: $operations"
	reported
	expect "and reported" "$(jq '.gpus[0].busy_known' report.json)" '"exact"'
	unset LD_LIBRARY_PATH SPYSIM_KERNEL_US
else
	without "GPU times: libcudaspy_gpu.so was not built"
fi

# --- from outside ---
rm -rf "$out" go here
env CUDASPY_OUT="$out" CUDASPY_CAPTURE_RANGE=command LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" timeout 120 "$bin/windows" \
	$made touch:here await:go exit 2>messages &
program=$!
until_there here
expect "start" "$("$tool" start "$out" | sed 's/.*: //')" recording
expect "a mark" "$("$tool" mark "the text" "$out" | sed 's/.*: //')" marked
expect "stop" "$("$tool" stop "$out" | sed 's/.*: //')" dormant

# What threads of a dormant program do is not known: no verdict says that it is fine, and what opens a window is said.
said() { tr -s '\n ' ' ' <live | grep -q "$1" || fail "$2: $(cat live)"; }
"$tool" snapshot "$out" >live
expect "snapshot of a dormant program: status" $? 2
said 'cannot be known, because recording is dormant for [0-9.]* [a-z]*, 1 window so far\. The next window opens with `cudaspy start' "snapshot"
"$tool" snapshot --json "$out" >live.json
expect "snapshot: verdict" "$(jq -r '[.verdicts[].kind] | join(",")' live.json)" dormant
pid=$(jq '.processes[0].pid' live.json)
"$tool" ps >live || fail "ps: status $?"
said "dormant for [0-9.]* [a-z]*, 1 window so far" "ps"
said "the next window opens with \`cudaspy start $pid\`" "ps says nothing of what opens a window"
"$tool" ps --json | jq -c ".processes[] | select(.pid == $pid) | [.recording, .windows, .opens, .recording_ns > 0]" >live
expect "ps" "$(cat live)" "[\"dormant\",1,\"\`cudaspy start $pid\`\",true]"
"$tool" top --once "$out" >live || fail "top: status $?"
said "cannot be known, because recording is dormant" "top"
"$tool" top --once --prom=metrics "$out" >/dev/null || fail "top --prom: status $?"
python3 "$here/checks/check_prom.py" metrics >metrics.read || fail "metrics"
expect "metrics" "$(awk -F '\t' '$1 ~ /dormant|windows_total/ {print $1, $NF}' metrics.read | paste -sd' ')" "cudaspy_dormant 1 cudaspy_windows_total 1"
expect "metrics: nothing is said to hang" "$(awk -F '\t' '$1 == "cudaspy_hangs" {sum += $NF} END {print sum + 0}' metrics.read)" 0
for ((try = 1; ; try++)); do # the answer may come late
	"$tool" start --at=+0.1s --for=20ms --every=60ms "$out" >answer
	grep -q ': dormant until then$' answer && break
	again $try 3 || fail "later: $(cat answer)"
	expect "stopped" "$("$tool" stop "$out" | sed 's/.*: //')" dormant
done
"$tool" ps >live
said 'the time, [^,]*, as `cudaspy start` asked, or\|window [0-9]*, for' "ps of one that was asked"
trace=$(the_trace)
for ((i = 0; i < 600 && $("$tool" dump "$trace" | grep -c 'state=open') < 4; i++)); do sleep 0.1; done
expect "stop again" "$("$tool" stop "$out" | sed 's/.*: //')" dormant
touch go
wait $program
"$tool" dump "$trace" >dump
[ "$(windows open)" -ge 4 ] || fail "windows of --every: $(windows open)"
grep -q 'window state=mark .*text="the text"' dump || fail "no mark"
"$tool" start "$out" 2>err && fail "a program that has ended is started"

# --- a program without calls for a while has a late window; the next ones are in time again ---
rm -rf "$out" go here over
env CUDASPY_OUT="$out" CUDASPY_CAPTURE_RANGE=command LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" timeout 120 "$bin/windows" \
	$made touch:here await:go wait:1400 await:over exit 2>messages &
program=$!
until_there here
for far in @99999999999 @9999999999 @1767225600000 +116d; do
	"$tool" start --at=$far "$out" 2>err && fail "start --at=$far"
done
at=$(($(date +%s) + 3)) # not before the program has answered, on a busy machine
expect "each second" "$("$tool" start --at=@$at --for=50ms --every=1s "$out" | sed 's/.*: //')" "dormant until then"
trace=$(the_trace)
until_windows() {
	for ((i = 0; i < 600 && $("$tool" dump "$trace" | grep -c 'state=closed') <= $1; i++)); do sleep 0.1; done
}
until_windows 1
while [ "$(date +%s%N)" -lt $((at * 1000000000 + 300000000)) ]; do sleep 0.01; done
touch go
until_windows 5
touch over
wait $program
"$tool" dump "$trace" >dump
expect "later windows are in time" "$(awk '/state=open/ { if (!n++) first = $1; off = $1 - first - int($1 - first + 0.5)
	if (n > 2 && off < 0.2 && off > -0.2) right = 1 } END { print right + 0 }' dump)" 1
"$tool" start --every=5s 2>err && fail "--every without --for"
"$tool" mark 2>err && fail "a mark without a text"
for wrong in --capture-range=nvtx: --capture-range=x --steps=3 "--capture-range=cudaProfilerApi --steps=3-2" --delay=5 --duration=0s "--delay=1s --gpu=1s/10s"; do
	# shellcheck disable=SC2086 # several options
	"$tool" run $wrong -- true 2>err && fail "run $wrong"
	[ -s err ] || fail "run $wrong says nothing"
done
CUDASPY_CAPTURE_RANGE=nvtx:step "$tool" run --no-report --steps=3 -- true 2>err || fail "--steps with a range of the environment: $(cat err)"
CUDASPY_GPU=1 "$tool" run --no-report --overhead=1% -- true 2>err && fail "--overhead with GPU times of the environment"
exit 0
