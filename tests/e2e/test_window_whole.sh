#!/bin/bash
# A report of a window says what a report of a full recording says of the same rounds of the program, all of it: the calls, who
# waited for whom and for how long, findings, shares, which memory was pageable though it was made before the window.
. "$(dirname "$0")/lib.sh"
need python3 jq
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libcudart.so.13" ] || skip "no simulator"
first_round=4 last_round=6 rounds=3
# A round takes 130 ms, as its kernels do. One that takes longer by more than late_ms says something of the machine, not of the
# recorder: such a recording is made again.
round_ms=130 late_ms=35 tries=25

# recorded NAME VARIABLE...: a recording whose rounds went as planned; leaves their begins and ends in nanoseconds in NAME.times.
recorded() {
	local name=$1 try longest
	shift
	for ((try = 1; try <= tries; try++)); do
		rm -rf "$name"
		env CUDASPY_OUT="$name" LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" "$@" timeout 60 "$bin/rounds" 8 2>messages ||
			fail "$name: status $?: $(cat messages)"
		"$tool" dump "$name" >"$name.dump" 2>/dev/null || fail "$name: no dump"
		awk '/ range what=(push|pop|open) / {sub(/[.]/, "", $1); print $1 + 0}' "$name.dump" >"$name.times"
		longest=$(awk -v from="$from" -v to="$to" 'NR % 2 {begin = $1}
			NR % 2 == 0 && NR / 2 >= from && NR / 2 <= to && $1 - begin > longest {longest = $1 - begin}
			END {print int(longest / 1e6)}' "$name.times")
		[ "$longest" -ge $round_ms ] || fail "$name: the longest round took $longest ms"
		[ "$longest" -gt $((round_ms + late_ms)) ] || return 0
	done
	without "a machine on which a round of $round_ms ms takes less than $((round_ms + late_ms)) ms"
	exit 0
}

# The whole run, and of it what is reported of those rounds.
record_full() {
	from=$first_round to=$last_round
	recorded full A=1
	expect "full: begins and ends" "$(wc -l <full.times)" 16
	begin=$(sed -n "$((2 * first_round - 1))p" full.times)
	end=$(sed -n "$((2 * last_round))p" full.times)
	"$tool" report --format=json "--from=${begin}ns" "--to=${end}ns" full >full.json || fail "no report of a part"
	# What is compared is something: three findings that cost, a thread that waits for another one's copy.
	expect "full: calls" "$(jq -c '.summary.calls' full.json)" 51
	expect "full: findings that cost" "$(jq -c '[.findings[] | select(.severity == "problem" and .cost_ns > 25e6) | .id] | sort' full.json)" \
		'["hidden-sync","pageable-copy","same-device-stall"]'
	expect "full: who waits for whom" "$(jq -c '[.blame[] | .waiter != .holder]' full.json)" '[true]'
}

record_steps() {
	from=1 to=3
	recorded steps CUDASPY_CAPTURE_RANGE=nvtx:step CUDASPY_STEPS=$first_round-$last_round
	"$tool" report --format=json steps >steps.json 2>report.err || fail "steps: no report: $(cat report.err)"
	expect "steps: a window" "$(jq -c '.summary | [.windows, .calls]' steps.json)" "$(jq -c '.summary | [1, .calls]' full.json)"
}

# Where a thread comes a moment too late to wait, for how long its GPU worked in that round is not known, in one recording of
# twenty (simulated, with nothing else to do): two others are then compared. What is wrong is so in each.
for pair in 1 2 3; do
	record_full
	record_steps
	python3 "$here/checks/same_window.py" full.json steps.json $late_ms $rounds >said && break
	[ $pair -lt 3 ] || fail "steps: $(head -n 40 said)"
done
# Made before the window opened: each copy's memory is known.
expect "copies to pageable memory" "$(grep -c ' copy .* direction=d2h .* src=device dst=pageable ' steps.dump)" $((2 * rounds))
expect "copies from pageable memory" "$(grep -c ' copy .* direction=h2d .* src=pageable dst=device ' steps.dump)" $rounds
expect "copies from pinned memory" "$(grep -c ' copy .* direction=h2d .* src=pinned dst=device ' steps.dump)" $((5 * rounds))
expect "copies of unknown memory" "$(grep -c ' copy .*=unknown ' steps.dump)" 0

# The recording came to a program under way: but for kernels, nothing in it is the first of its kind.
expect "calls that are taken for first ones" "$(jq '[.expectations[] | select(.class | test("first one"))] | length' steps.json)" 1
