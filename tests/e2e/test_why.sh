#!/bin/bash
# `cudaspy why` of a thread, a function, a lock and a GPU of one scene on the simulator: each answer is
# about that one, and says who waited for whom; what there is not is refused. And a process that is
# killed while its calls wait: the report says for which lock, and who had it.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so

# play NAME: a scene of scene.c, recorded.
play() {
	rm -rf "$out"
	"$sim" "$bin/scene" --script "$1" >script || fail "no scene $1"
	CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/script "$sim" env LD_PRELOAD="$first $shim $kernel" \
		"$bin/scene" "$1" >play.out 2>play.err
}

why() {
	"$tool" why --format=json "$@" "$(the_trace)" 2>why.err
}

# On a busy machine a thread may come too late to wait: then once more.
for ((try = 1; ; try++)); do
	play free_under_kernel || fail "free_under_kernel: $(tail -n 3 play.err)"
	"$tool" report --format=json "$(the_trace)" >report.json || fail "no report"
	worst=$(jq -c '.blame[0]' report.json)
	[ "$(jq '.waited_ns // 0' <<<"$worst")" -ge 30000000 ] && break
	again $try 6 || fail "nobody waited long for anybody in free_under_kernel: $worst"
done
waiter=$(jq .waiter <<<"$worst") holder=$(jq .holder <<<"$worst")
function=$(jq -r .holder_function <<<"$worst") lock=$(jq -r .lock <<<"$worst")
expect "who held everybody up" "$function" cudaFree
# The same waits, thread by thread, GPU by GPU and call by call (each row rounds to a nanosecond).
for matrix in device_blame call_blame; do
	expect "$matrix: sum, and no pair twice" "$(jq "([.blame[] | select(.holder > 0)] | map(.waits) | add) ==
		(.$matrix | map(.waits) | add) and
		(([.blame[] | select(.holder > 0).waited_ns] | add) - (.$matrix | map(.waited_ns) | add) | fabs) <
			2 * (.blame | length) and
		(.$matrix | map(del(.waits, .waited_ns, .calls)) | length == (unique | length))" report.json)" true
done

why "$waiter" >thread.json || fail "why of a thread: $(cat why.err)"
[ "$(jq .why.waited_ns thread.json)" -ge 30000000 ] || fail "thread $waiter waited: $(jq -c .why thread.json)"
expect "rows about other threads" \
	"$(jq "[.blame[] | select(.waiter != $waiter and .holder != $waiter)] | length" thread.json)" 0
expect "the root" "$(jq -r '.root_blame[0] | "\(.root) \(.root_function) \(.cause)"' thread.json)" \
	"$holder cudaFree gpu"
why "$holder" >holder.json || fail "why of the holder: $(cat why.err)"
[ "$(jq .why.held_up_ns holder.json)" -ge 30000000 ] || fail "thread $holder held up: $(jq -c .why holder.json)"
why "$function" >function.json || fail "why of a function: $(cat why.err)"
[ "$(jq .why.held_up_ns function.json)" -ge 30000000 ] || fail "$function held up: $(jq -c .why function.json)"
# What the report has found in its calls, and no more.
same='del(.stack)'
expect "findings about $function" "$(jq -c "[.findings[] | $same]" function.json)" \
	"$(jq -c "[.findings[] | select(.function == \"$function\") | $same]" report.json)"
[ "$(jq '.findings | length' function.json)" -ge 1 ] || fail "no finding about $function: $(jq -c '.findings' report.json)"
"$tool" why "$function" "$(the_trace)" >why.txt 2>&1
number=$(jq '.findings[0].rank' function.json)
awk -v n="$number" '/^FINDINGS in its calls/ {at = 1} at == 1 && $1 == n {at = 2} at == 2 && /^THE / {at = 3} END {exit at < 2}' why.txt ||
	fail "finding $number is not in the answer, before the calls: $(cat why.txt)"
expect "its thread's finding" "$(jq -c ".findings | map(.id) | index($(jq -c '.findings[0].id' function.json)) != null" holder.json)" true
why "$lock" >lock.json || fail "why of a lock: $(cat why.err)"
expect "locks in an answer about one" "$(jq -r '[.locks[].name] | join(" ")' lock.json)" "$lock"
expect "worst calls of other locks" "$(jq "[.worst_calls[] | select(.lock and .lock != \"$lock\")] | length" lock.json)" 0
why gpu0 >gpu.json || fail "why of a GPU: $(cat why.err)"
[ "$(jq '.findings | length' gpu.json)" -ge 1 ] || fail "no finding on GPU 0"
[[ $(jq -r .why.subject lock.json) == "lock $lock, "[^\(]* ]] || fail "which lock? $(jq -c .why lock.json)"
expect "findings about a lock" "$(jq 'has("findings")' lock.json)" false
expect "rows about other GPUs" \
	"$(jq '[.blame[] | select(.waiter_device != 0 and .holder_device != 0)] | length' gpu.json)" 0
"$tool" why "$waiter" "$(the_trace)" | tr -s ' \n' ' ' | grep -q 'held by thread' || fail "no sentence about who held the lock"

for word in "$waiter" "$function" "$lock" gpu0; do
	fits "$tool" why "$word" "$(the_trace)"
done
# A finding by its number, and by where it is.
for word in 1 '#1' finding1; do
	why "$word" >finding.json || fail "why $word: $(cat why.err)"
	expect "why $word" "$(jq -c '.findings | map([.rank, .id, .cost_ns])' finding.json)" \
		"$(jq -c '.findings[:1] | map([.rank, .id, .cost_ns])' report.json)"
done
at=$(jq -r '[.findings[] | select(.file and .line > 0)][0] | "\(.rank) \(.file) \(.line) \(.function)"' report.json)
if [ "$at" != "null null null null" ]; then
	read -r number file line called <<<"$at"
	for word in "$(basename "$file"):$line" "$file:$line" "$(basename "$file")"; do
		why "$word" >place.json || fail "why $word: $(cat why.err)"
		jq -e --argjson n "$number" '[.findings[].rank] | index($n) != null' place.json >jq.out ||
			fail "why $word: without finding $number: $(jq -c '.findings' place.json)"
	done
	why "$(basename "$file"):$line" >place.json || fail "why of a line: $(cat why.err)"
	expect "calls at another place" "$(jq --arg f "$called" '[.worst_calls[] | select(.function != $f)] | length' place.json)" 0
	why "$(basename "$file"):99999" 2>said && fail "why of a line where nothing is"
	grep -q 'nothing was found there' why.err || fail "where nothing is: $(cat why.err)"
else
	fail "no finding has a line: $(jq -c '[.findings[] | {id, file, line}]' report.json)"
fi
why '#99' 2>said && fail "why of a finding that there is not"
grep -q 'there is no finding 99 in these traces' why.err || fail "no finding 99: $(cat why.err)"
why "${function}x" 2>said && fail "why of a function that there is not"
grep -q "did you mean '$function'?" why.err || fail "no suggestion: $(cat why.err)"
# A function that is only counted, one made only by others, and one that is recorded and waited for nobody.
called() {
	why "$1" >called.json || fail "why of $1: $(cat why.err)"
	"$tool" why "$1" "$(the_trace)" | tr -s ' \n' ' ' >called.txt
}
# Not the most counted one: what calls do inside may be that.
read -r getter times <<<"$(jq -r 'first(.counted[] | select(.function | test("Get"))) | "\(.function) \(.count)"' report.json)"
called "$getter"
expect "calls of $getter" "$(jq -c '[.why.calls, .why.counted, .why.waited_ns]' called.json)" "[0,$times,0]"
grep -q 'and only counted: it never waits, so there are no records' called.txt || fail "why of $getter: $(cat called.txt)"
inner=$("$tool" report --format=json --nested "$(the_trace)" |
	jq -r '[.nested_calls[].function] - [.calls[].function] - [.counted[].function] | .[0] // empty')
[ -n "$inner" ] || fail "each function inside others is counted, or called by itself, too"
called "$inner"
grep -q 'only inside other calls' called.txt || fail "why of $inner: $(cat called.txt)"
called "$(jq -r '[.calls[].function] - [.blame[] | .waiter_function, .holder_function] | .[0]' report.json)"
grep -q 'waited in no call for a lock that others held held up no thread in a call' called.txt || fail "$(cat called.txt)"
why cudaGraphicsUnregisterResource >/dev/null && fail "why of a function that nobody called"
grep -q 'was never called' why.err || fail "why of a function that nobody called says: $(cat why.err)"

for wrong in L99 gpu77 999999999 cudaNoSuchThing ''; do
	why "$wrong" >/dev/null
	expect "exit status for '$wrong'" $? 2
	grep -q '^cudaspy: why: ' why.err || fail "why '$wrong' says: $(cat why.err)"
done
why cudafree >/dev/null
grep -q 'cudaFree was called' why.err || fail "why cudafree says: $(cat why.err)"
why cuMemFree >/dev/null
grep -q 'never called .*; cuMemFree_v2 was called' why.err || fail "why cuMemFree says: $(cat why.err)"
"$tool" why 2>/dev/null
expect "exit status without a question" $? 2

# Killed in the middle of it. stuck: plays until somebody is seen waiting for a lock, and kills it there;
# it stands still while it is looked at. Fails if it came to its end, which a look at the wrong moment costs.
"$sim" "$bin/scene" --script free_under_kernel >script
stuck() {
	local pid seen=1
	rm -rf "$out"
	CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/script "$sim" env LD_PRELOAD="$first $shim $kernel" \
		"$bin/scene" free_under_kernel >play.out 2>play.err &
	pid=$!
	while [ $seen = 1 ] && grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null; do
		sleep 0.002
		kill -STOP $pid 2>/dev/null
		"$tool" report --format=json "$out" >live.json 2>/dev/null &&
			jq -e '.in_flight[] | select(.holder > 0)' live.json >/dev/null && seen=0
		kill -$([ $seen = 0 ] && echo KILL || echo CONT) $pid 2>/dev/null
	done
	wait $pid 2>/dev/null
	return $seen
}
for ((try = 1; ; try++)); do
	stuck && break
	again $try 6 || fail "nobody was ever seen waiting: $(jq -c .in_flight live.json)"
done
for when in live killed; do
	[ $when = live ] || "$tool" report --format=json "$(the_trace)" >killed.json 2>/dev/null ||
		fail "no report of the killed process"
	jq -e '.in_flight[] | select(.holder > 0) | .waiting | test("waiting for a lock, .* held by thread")' \
		$when.json >/dev/null || fail "in flight, $when: $(jq -c .in_flight $when.json)"
done
