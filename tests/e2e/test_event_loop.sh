#!/bin/bash
# Event loops that wait for the GPU between two polls, on the simulator, in C and in Python's asyncio: the finding has the line
# of the wait, that of the poll, and how often other descriptors were ready; it is the first one, and the same time is counted
# once. Near twins: one client, clients that take turns, a thread that waits instead of the loop, a loop without requests, a
# reply that is polled for, a loop that never waits.
. "$(dirname "$0")/lib.sh"
need jq python3
sim=$build/sim/lib
[ -e "$sim/libcudart.so.13" ] || skip "no simulator"
source=$here/programs/event_loop.c script=$here/event_loop.py
python=$(python3 -c 'import sys; print(sys.executable)')
export LC_ALL=C

# reported: what was recorded, in report.json and dump.
reported() {
	trace=$(the_trace) || exit 1
	"$tool" report --format=json "$trace" >report.json || fail "$1: no report"
	"$tool" dump "$trace" >dump || fail "$1: cannot be dumped"
	valid "$here/../../docs/report.schema.json" report.json
}

# served MODE: as it is without the shim.
served() {
	rm -rf "$out"
	LD_LIBRARY_PATH=$sim LD_PRELOAD=$first timeout 60 "$bin/event_loop" "$1" >bare || fail "$1, bare: status $?"
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$sim LD_PRELOAD="$first $shim" timeout 60 "$bin/event_loop" "$1" >spied 2>err ||
		fail "$1: status $?: $(tail -n 3 err)"
	expect "$1: requests" "$(cat spied)" "$(cat bare)"
	reported "$1"
}

# served_by_asyncio MODE
served_by_asyncio() {
	rm -rf "$out" socket
	CUDASPY_OUT=$out SPYSIM_COPY_GBPS=0.25 LD_LIBRARY_PATH=$sim LD_PRELOAD="$first $shim" timeout 60 "$python" "$script" "$1" socket \
		>line 2>err || fail "asyncio, $1: status $?: $(tail -n 3 err)"
	reported "asyncio, $1"
}

line() { grep -n "mark: $1 " "$source" | cut -d: -f1; }
# late: polls behind a long call; found FILTER: of the finding.
late() { grep ' \[outside\] ' dump | grep -c " ready=${1:-}"; }
found() { jq -r ".findings[] | select(.id == \"blocked-loop\") | $1" report.json; }
holds() { jq -e "$2" report.json >/dev/null || fail "$1: $(jq -c .findings report.json)"; }

# until_first COMMAND...: on a busy machine clients may be late, and threads without a CPU be what costs most.
until_first() {
	local try
	for ((try = 1; ; try++)); do
		"$@"
		jq -e '.findings[0] | .id == "blocked-loop" and .severity == "problem"' report.json >/dev/null && return
		again $try 4 || fail "$*: not the first: $(jq -c .findings report.json)"
	done
}
# until_silent COMMAND...: there the next client may come while the loop has no CPU, and another thread's wait be the loop's.
until_silent() {
	local try
	for ((try = 1; ; try++)); do
		"$@"
		[ -z "$(found .id)" ] && return
		again $try 4 || fail "$*: found: $(found .what)"
	done
}

for mode in epoll poll select; do
	until_first served $mode
	expect "$mode: the wait" "$(found '"\(.function) \(.line)"')" "cudaStreamSynchronize $(line wait)"
	found .what | grep -q "; it polls in loop_$mode, event_loop.c:$(line $mode)," || fail "$mode: the poll: $(found .what)"
	found .what | grep -q ' ready when it polled again, up to 3 at one time; ' || fail "$mode: descriptors: $(found .what)"
	# 120 requests of 3 ms each, three or four between two polls; nearly all of that with others ready, if they have CPUs.
	expect "$mode: cost" "$(found '.cost_ns >= 90e6 and .count >= 10')" true
	expect "$mode: not more than it waited" "$(jq '[.findings[] | select(.id == "blocked-loop") | .cost_ns][0] <=
		.waits.total_ns' report.json)" true
	holds "$mode: counted once" '[.findings[] | select(.function == "cudaStreamSynchronize" and .severity == "problem") | .id] == ["blocked-loop"]'
	expect "$mode: other findings of that time name it" "$(jq '[.findings[] | select(.id == "early-sync") |
		(.what | test("these waits are in the cost of blocked-loop")) | not] | any' report.json)" false
	expect "$mode: by two threads" "$("$tool" report --jobs=2 --format=json "$trace" | jq -c .findings)" "$(jq -c .findings report.json)"
done

# The recorder: a record of the first poll behind each long call, and none more; one that is ready counts, one that is
# being served does not.
served one
[ "$(late)" -ge 100 ] || fail "one: $(late) polls behind a wait"
expect "one: ready" "$(late '[^0]')" 0
expect "one: found" "$(found .id)" ""
served spin
[ "$(late '[1-9][0-9]* at_once')" -ge 10 ] || fail "spin: $(late '[1-9][0-9]* at_once') polls found requests"
expect "spin: found" "$(found .id)" ""
served unasked
expect "unasked: polls" "$(late) $(late 0)" "120 120"
expect "unasked: found" "$(found .id)" ""
served reply
expect "reply: polls of one descriptor" "$(late)" 0
expect "reply: found" "$(found .id)" ""
CUDASPY_NOPROBES=1 served epoll
expect "without probes: polls" "$(late)" 0
expect "without probes: found" "$(found .id)" ""

for mode in turns elsewhere; do
	until_silent served $mode
done

until_first served_by_asyncio loop
expect "asyncio: the wait" "$(found '"\(.python_file | split("/") | last):\(.python_line)"')" "event_loop.py:$(cat line)"
found .what | grep -q "; it polls at event_loop.py:$(grep -n '^asyncio.run' "$script" | cut -d: -f1) in <module>" ||
	fail "asyncio: the loop: $(found .what)"
found .fix | grep -q '^Wait in another thread: await asyncio.to_thread' || fail "asyncio: the cure: $(found .fix)"
for mode in one thread; do
	until_silent served_by_asyncio $mode
done
