#!/bin/bash
# Habits of a program's calls, recorded on the simulator: each is found, and nothing else of its kind; its near
# twin is not.
. "$(dirname "$0")/lib.sh"
need jq

# play HABIT: recorded, its findings in findings.json.
play() {
	rm -rf "$out"
	SPYSIM_SCRIPT=$tmp/script simulated "$bin/habits" "$1" 2>"$1.err" || fail "$1: status $?: $(tail -n 3 "$1.err")"
	"$tool" report --format=json "$(the_trace)" >report.json 2>report.err || fail "no report: $(cat report.err)"
	jq .findings report.json >findings.json
}

# found HABIT ID [CONDITION]: it is the only one of these detectors' findings. Three tries, as on a busy machine
# threads may get no processor when it matters.
ours='["pageable-copy", "sync-every-launch", "early-sync", "lazy-loading", "queue-full", "small-copies", "ignored-error", "capture-break"]'
found() {
	local try
	for ((try = 1; ; try++)); do
		play "$1"
		jq -e --arg id "$2" --argjson ours "$ours" '[.[] | select(.id as $i | $ours | index($i))] |
			length == 1 and .[0].id == $id and (.[0] | '"${3:-true}"')' findings.json >/dev/null && return
		again $try 3 || break
	done
	fail "$1: not $2 with ${3:-true}: $(jq -c '.[] | [.id, .what, .cost_ns, .count]' findings.json)"
}

# silent HABIT: none of these detectors says anything.
silent() {
	local try
	for ((try = 1; ; try++)); do
		play "$1"
		jq -e --argjson ours "$ours" 'all(.[]; .id as $i | $ours | index($i) | not)' findings.json \
			>/dev/null && return
		again $try 3 || break
	done
	fail "$1: not silent: $(jq -c '.[] | [.id, .what, .cost_ns, .count]' findings.json)"
}

echo 'kernel_us 20' >script
found sync-each sync-every-launch '.count > 100 and .gain_low_ns == 0 and .function == "cudaStreamSynchronize" and .caller == "sync_each"'
silent sync-some
silent sync-results
found early early-sync '.count >= 35 and .gain_low_ns == 0 and .cost_ns > 30e6 and .cost_ns < 60e6 and .function == "cudaDeviceSynchronize" and .caller == "early"'
found early-fetch early-sync '.count >= 35 and .function == "cudaStreamSynchronize" and .severity == "note"'
for habit in early-mapped late late-results late-fetched two-buffers two-streams measure; do
	silent $habit
done
# What the copy waited for, the wait behind it would have waited for: unless the host works in between.
found fetch-wait pageable-copy '.count == 40 and .cost_ns > 30e6 and .gain_high_ns < .cost_ns / 4'
found fetch-work pageable-copy '.count == 40 and .cost_ns > 30e6 and .gain_high_ns == .cost_ns'
found copy-pieces small-copies '(.what | test("200 times 64 copies in a row to the device, of 1.00 KiB each")) and .caller == "copy"'
silent copy-whole
echo 'queue 100' >script
found fill-queue queue-full '.cost_ns > 20e6 and .gain_low_ns == 0'
echo 'queue 1000' >script
silent fill-queue
echo 'lazy lazy_delay' >script
found load-late lazy-loading '.cost_ns > 50e6 and (.what | test("1 first launch of a kernel"))'
silent load-idle
: >script
silent load-late # a kernel that need not be loaded behind the work
found ignore-error ignored-error '.count == 1 and (.what | test("1 call returned cudaErrorInvalidMemcpyDirection"))'
"$tool" report "$(the_trace)" | grep -q 'cudaErrorInvalidMemcpyDirection' || fail "the text does not show the error"
silent give-up
found break-capture capture-break '.function == "cudaStreamSynchronize" and (.what | test("cudaErrorStreamCaptureUnsupported"))'
silent capture

# A getter that takes long is recorded from its first timed calls on, and has its price; one that does not is counted.
# asked COST CONDITION: what the report says of it.
asked() {
	printf 'cost cuMemGetInfo %s\n' "$1" >script
	play ask-memory
	jq -e '([.calls[] | select(.function == "cudaMemGetInfo").count] | add // 0) as $recorded |
		([.counted[] | select(.function == "cudaMemGetInfo").count] | add // 0) as $counted |
		[.findings[] | select(.function == "cudaMemGetInfo")] as $findings |
		$recorded + $counted == 40 and ('"$2"')' report.json >/dev/null ||
		fail "a getter of $1 us: not $2: $(jq -c '[.calls, .counted, .findings]' report.json)"
}
unset CUDASPY_NOGETTERS
asked 3000 '$recorded == 40 and ($findings | length == 1) and ($findings[0] | .id == "starved-by-calls" and .caller == "ask_memory" and
	.cost_ns > 39 * 3e6)'
CUDASPY_COUNT=cudaMemGetInfo asked 3000 '$recorded == 0 and $findings == []'
CUDASPY_NOGETTERS=1 asked 3000 '$recorded == 0 and $findings == []'
asked 0.1 '$findings == []'
