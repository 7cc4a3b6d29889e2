#!/bin/bash
# `cudaspy why` of functions of the program: the times are those that the report has of them, in Python and in C; a function that
# others are inlined in, or that leads to them, has theirs, too; what was never there is refused. Simulated.
. "$(dirname "$0")/lib.sh"
need jq python3
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libnvidia-ml.so.1" ] || skip "no simulator"

# recorded NAME COMMAND...
recorded() {
	local name=$1
	shift
	mkdir -p "$name"
	CUDASPY_OUT=$name CUDASPY_SAMPLE=500 LD_LIBRARY_PATH=$sim LD_PRELOAD=$shim timeout 100 "$@" >"$name.out" 2>"$name.err" ||
		fail "$name: status $?, $(tail -n 3 "$name.err")"
	"$tool" report --format=json "$name" >"$name.json" || fail "$name: no report"
}

why() { "$tool" why --format=json "$2" "$1" >why.json 2>why.err || fail "why $2: $(cat why.err)"; }

# agrees NAME FUNCTION PLACES: its time is what the report has of the places that fit, of the thread that feeds the GPU.
agrees() {
	why "$1" "$2"
	jq -e --arg places "$3" --slurpfile report "$1.json" '
		([$report[0].gpus[0].feeder_causes[] | select((.site // "") | test($places)) | .ns] | add // 0) as $ns | .place_threads |
		length == 1 and .[0].ns > 0 and (.[0].ns - $ns | fabs) < 0.01 * $ns + 1000' why.json >said ||
		fail "$1: $2: $(jq -c .place_threads why.json), and the report has $(jq -c '.gpus[0].feeder_causes | map([.site, .ns])' "$1.json")"
}

for ((try = 1; ; try++)); do # Where the machine wakes threads up late there are few samples: then again, for longer.
	rm -rf shares
	recorded shares python3 "$here/sampled.py" shares $((400 * try))
	jq -e '[.gpus[0].feeder_causes[].site // ""] | any(test("in load$")) and any(test("in augment$"))' shares.json >said && break
	again $try 4 || fail "shares: no samples in load and augment"
done
agrees shares load 'in load$'
agrees shares augment 'in augment$'
agrees shares step 'in (load|augment|log|timed|step)(:|$)'
jq -e '[.place_calls[] | select(.function == "cudaMemcpy" and (.at | test("^sampled.py:[0-9]+$")) and .calls > 0 and .calls <= .calls_all)] | length == 1' \
	why.json >said || fail "step makes no calls: $(jq -c .place_calls why.json)"
why shares load
expect "calls of a function that makes none" "$(jq '.place_calls | length' why.json)" 0
expect "a GPU that was idle for it" "$(jq '.place_gpus | length == 1 and .[0].device == 0 and .[0].ns <= .[0].idle_ns' why.json)" true
"$tool" why load --redact shares >text || fail "no text"
grep -qF "$here" text && fail "a path is shown"
tr -s ' \n' ' ' <text | grep -q 'about function load (sampled.py), and what it called .*(GPU 0), which feeds it .* of its time outside CUDA' ||
	fail "in words: $(cat text)"
"$tool" why augmnt shares >text 2>why.err
expect "status for an unknown function" $? 2
grep -q "did you mean 'augment'?" why.err || fail "no suggestion: $(cat why.err)"
"$tool" why pt_loader shares >text 2>why.err
expect "status for a function that did not run" $? 2

recorded native "$bin/between" 300 200000
why native work
expect "calls of work" "$(jq -c '[.place_calls[] | [.function, .calls]] | sort' why.json)" \
	'[["cudaDeviceSynchronize",300],["cudaMalloc",1],["cudaMemcpy",300]]'
expect "locks of a function without any" "$(jq -c .own_lock_blame why.json)" '[]'
if ! "$tool" info native | tr -s ' \n' ' ' | grep -q 'where threads are that run'; then
	# Another function is compiled into them.
	agrees native load 'inlined in load'
	agrees native augment 'inlined in augment'
	agrees native compute '^compute, '
	agrees native work '(compute|log_metrics|clock_s|work), '
else
	without "perf_event_open (kernel.perf_event_paranoid, or a seccomp filter)"
fi

# A lock of the program's own. (Who has it may mostly have been ready and without a CPU: the unit test has both sides.)
if [ -x "$bin/launches" ]; then
	printf 'queue 20\nkernel_us 300\n' >script
	for ((try = 1; ; try++)); do # (A busy machine may keep the other thread from waiting.)
		rm -rf locked
		SPYSIM_SCRIPT=$tmp/script CUDASPY_OUT=locked "$here/../sim/with-sim" env LD_PRELOAD="$shim" "$bin/launches" locked 8 20 2>err ||
			fail "launches: status $?: $(cat err)"
		"$tool" report --format=json locked | jq -c '.own_lock_blame[0] | [.waiter, .holder, .waits]' >blame
		grep -q '^\[[1-9]' blame && break
		again $try 3 || fail "no thread waited for a lock"
	done
	why locked stand_in_line
	expect "the lock that it waits for" "$(jq -c '.own_lock_blame[0] | [.waiter, .holder, .waits]' why.json)" "$(cat blame)"
else
	without launches
fi

# C++: with as much of the name as one likes.
if [ -x "$bin/stacks_cc" ]; then
	FAKE_MODE=quiet CUDASPY_OUT=cc spied "$bin/stacks_cc" >cc.out 2>cc.err || fail "stacks_cc: status $?: $(cat cc.err)"
	for name in fetch typed_loader::fetch 'data::typed_loader<float>::fetch' 'fetch(int)' epoch 'function:data::epoch'; do
		why cc "$name"
		expect "calls of $name" "$(jq -c '[.place_calls[] | [.function, .calls]]' why.json)" '[["cudaMemcpyAsync",3]]'
	done
	"$tool" why 'typed_loader<double>::fetch' cc >text 2>&1
	expect "status for another template's function" $? 2
else
	without stacks_cc
fi
