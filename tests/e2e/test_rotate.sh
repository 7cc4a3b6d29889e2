#!/bin/bash
# A recording in parts: each record is in one of them, each of them is a trace, all of them together are the recording.
. "$(dirname "$0")/lib.sh"
need jq babeltrace2
export FAKE_MODE=quiet

# all_records NAME: in all parts together, as babeltrace2 reads them one by one.
all_records() {
	local trace sum=0
	for trace in $(traces); do
		sum=$((sum + $(records "$trace" "$1"))) || exit 1
	done
	echo "$sum"
}
reported() {
	"$tool" report --format=json "$@" >report.json 2>report.err || fail "no report of $*: $(cat report.err)"
	[ -s report.err ] && fail "the report of $* complains: $(head -n 3 report.err)"
}
summary() { jq -c ".summary | [$1]" report.json; }
n_parts() { traces | wc -l; }

# --- by size: threads that call all the time ---
CUDASPY_ROTATE_SIZE=1 same size "$bin/life" load 6 60000
[ "$(n_parts)" -ge 3 ] || fail "by size: $(n_parts) parts"
expect "by size: records" "$(all_records cudaSetDevice)" 360000
expect "by size: closing line" "$(closing size.err)" "360000 0 0"
# shellcheck disable=SC2046 # several directories
readable $(traces)
reported "$out"
expect "by size: the report" "$(summary .calls,.counted,.threads,.lost_records)" "[360000,360000,6,0]"
expect "by size: nothing is missing" "$(jq -c '[.losses[]?]' report.json)" '[]'
sum=0
for trace in $(traces); do
	reported "$trace"
	expect "${trace##*/}: losses" "$(jq -c '[.losses[]?]' report.json)" '[]'
	sum=$((sum + $(jq .summary.calls report.json)))
done
expect "each part's calls together" "$sum" 360000

# --- by time, threads that come and go: a part ends every few milliseconds ---
CUDASPY_ROTATE_EVERY=3ms same threads "$bin/life" threads 20000 16
[ "$(n_parts)" -ge 3 ] || fail "by time: $(n_parts) parts"
reported "$out"
expect "threads that come and go" "$(summary .calls,.lost_records)" "[$(sed -n 's/.*: \([0-9]*\) calls.*/\1/p' threads.err),0]"
expect "nothing of them is missing" "$(jq -c '[.losses[]?]' report.json)" '[]'
for trace in $(traces); do
	"$tool" dump "$trace" 2>err >>dumped || fail "no dump of $trace"
	[ -s err ] && fail "$trace: $(head -n 2 err)"
done

# --- the same program, in one part and in many: the same calls by function ---
by_function() { jq -c '[.calls[] | [.function, .count, .failed]], [.counted[]?]' report.json; }
same one "$bin/life" load 3 20000
reported "$out"
by_function >one.functions
CUDASPY_ROTATE_EVERY=2ms same many "$bin/life" load 3 20000
reported "$out"
by_function >many.functions
cmp -s one.functions many.functions || fail "calls by function: $(diff one.functions many.functions)"

# --- from outside: also while it is dormant; marks are in one part; a folder that has gone ---
sim=$CUDASPY_BUILD/sim/lib
if [ -e "$sim/libcudart.so.13" ]; then
	rm -rf "$out"
	env CUDASPY_OUT="$out" LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" timeout 120 "$bin/windows" \
		memory pin pageable stream push:outer copy:5 touch:here await:go pop exit 2>messages &
	program=$!
	until_there here
	live=$(the_trace)
	expect "rotate" "$("$tool" rotate "$live")" "$live: part 1 is finished: ${live%.cudaspy}.0001.cudaspy"
	"$tool" mark "only once" "$live" >/dev/null || fail "mark"
	"$tool" rotate "$live" >first & # two at a time
	"$tool" rotate "$live" >second || fail "rotate, at the same time: $(cat second)"
	wait $! || fail "rotate: $(cat first)"
	expect "two at a time" "$(sed 's/.*part \([0-9]*\) .*/\1/' first second | sort | paste -sd ' ')" "2 3"
	"$tool" stop "$live" >/dev/null || fail "stop"
	expect "while it is dormant" "$("$tool" rotate "$live" | sed 's/.*part/part/;s/:.*//')" "part 4 is finished"
	"$tool" ps >ps || fail "ps"
	grep -q "$live" ps || grep -q "${live##*/}" ps || grep -q windows ps || fail "ps does not know it any more"
	"$tool" start "$live" >/dev/null || fail "start"
	"$tool" rotate "$out" >/dev/null || fail "rotate of all in a folder"
	"$tool" rotate "${live%.cudaspy}.0001.cudaspy" >/dev/null 2>&1 && fail "a finished part is rotated"
	mv "$live" "$live.away"
	"$tool" rotate "$live.away" >out.away 2>err.away && fail "rotate of a folder that was moved: $(cat out.away)"
	grep -q 'the part goes on' err.away || fail "a folder that was moved: $(cat err.away)"
	mv "$live.away" "$live"
	touch go
	wait $program
	grep -q ' 0 lost' messages || fail "lost: $(cat messages)"
	reported "$out"
	expect "nothing is missing" "$(jq -c '[.losses[]?]' report.json)" '[]'
	"$tool" dump "$out" >dump || fail "no dump"
	expect "marks" "$(grep -c 'state=mark' dump)" 1
	expect "parts of which each repeats" "$(grep -c 'part state=begin' dump):$(grep -c 'part state=repeated' dump):$(grep -c 'part state=end' dump)" 5:5:5
	expect "modules are told once, where all parts are read" "$(grep ' module ' dump | sed 's/.* module //' | sort | uniq -d | wc -l)" 0
	"$tool" dump "${live%.cudaspy}.0003.cudaspy" >dump || fail "no dump of a part"
	grep -q ' module .*windows' dump || fail "a part does not know the program"
	grep -q ' gpu device=0' dump || fail "a part does not know the GPU"
	"$tool" dump "${live%.cudaspy}.0002.cudaspy" | grep -q ' range_value what=open' || fail "a part does not know the range that is open"
	whole_ns=$(jq .summary.recorded_ns report.json)
	# one part is away: what was in it is nobody's time
	mv "${live%.cudaspy}.0002.cudaspy" aside
	"$tool" report --format=json "$out" >report.json || fail "no report without a part"
	expect "a part that is not there" "$(jq -c '[.losses[] | [.kind, .count]]' report.json)" '[["parts",1]]'
	missing_ns=$("$tool" report --format=json aside | jq .summary.duration_ns)
	recorded_ns=$(jq .summary.recorded_ns report.json)
	# between its records and its neighbours' there may be much, on a busy machine
	[ "$recorded_ns" -le $((whole_ns - missing_ns / 2)) ] && [ $((2 * recorded_ns)) -ge $((whole_ns - missing_ns)) ] ||
		fail "recorded for $whole_ns ns, without a part of $missing_ns ns for $recorded_ns ns"
	"$tool" info "$out" | grep -q '0003.cudaspy' || fail "info does not list the parts"
	# while nothing is recorded no parts end: there would be 40, fewer where the disk is slow
	rm -rf "$out"
	mapfile -t rests < <(printf 'wait:25\ncopy:5\n%.0s' {1..40})
	env CUDASPY_OUT="$out" CUDASPY_CAPTURE_RANGE=cudaProfilerApi CUDASPY_ROTATE_EVERY=20ms LD_LIBRARY_PATH="$sim" LD_PRELOAD="$first $shim" \
		timeout 120 "$bin/windows" memory pin pageable stream start copy:5 stop "${rests[@]}" start copy:5 stop exit 2>messages
	[ "$(n_parts)" -le 6 ] || fail "a program that is dormant makes $(n_parts) parts"
	reported "$out"
	expect "of a dormant program" "$(summary .windows,.lost_records)" "[2,0]"
else
	without "the simulator"
fi

# --- a bound: the oldest parts are deleted, what there is on the disk stays below it ---
CUDASPY_ROTATE_SIZE=1 CUDASPY_KEEP=4 same bound "$bin/life" load 4 150000
kib=$(du -sk "$out" | cut -f 1)
[ "$kib" -le 4096 ] || fail "a bound of 4 MiB: $kib KiB"
[ "$(find "$out" -name '.*.removed' | wc -l)" -le 1 ] || fail "deleted parts are there"
reported "$out"
kept=$(jq .summary.calls report.json)
removed=$(jq '[.losses[] | select(.kind == "removed") | .count] | add' report.json)
# a record in the making when a part ends is on one side or the other
[ $((removed + kept - 600000)) -le 8 ] && [ $((removed + kept - 600000)) -ge -8 ] || fail "$removed removed and $kept kept of 600000"
jq -e --argjson most $SECONDS '.losses[] | select(.kind == "removed") | .text | capture("parts?, (?<n>[0-9.]+) (?<unit>[mu]?s), which were removed by the recorder") |
	(.n | tonumber) / {s: 1, ms: 1e3, us: 1e6}[.unit] | . > 0 and . <= $most' report.json >/dev/null ||
	fail "what was removed, in $SECONDS s at most: $(jq -c .losses report.json)"
# Of several threads the one that ends a part may have no CPU meanwhile: then it is large, and deleted as a whole. One alone
# ends each in time.
CUDASPY_ROTATE_SIZE=1 CUDASPY_KEEP=4 same alone "$bin/life" load 1 300000
kib=$(du -sk "$out" | cut -f 1)
[ "$kib" -ge 2500 ] && [ "$kib" -le 4096 ] || fail "a bound of 4 MiB, one thread: $kib KiB are kept"

# --- a week in seconds: by time and size, with bounds (tests/bench/week.sh has the long one) ---
WEEK_SAMPLE=1 WEEK_PART=1 WEEK_KEEP=16 timeout 300 "$here/../bench/week.sh" 2000000 2 >week || fail "a week: $(cat week)"
grep -q '^made 2000000 .* simulated_h 168.0' week || fail "a week: $(cat week)"
read -r _ kept _ removed _ others <<<"$(grep '^kept' week)"
expect "a week: recorded" "$(grep '^recorded' week)" "recorded 2000000 lost 0"
expect "a week: other losses" "$others" 0
[ $((kept + removed - 2000000)) -le 8 ] && [ $((kept + removed - 2000000)) -ge -8 ] || fail "a week: $(cat week)"
read -r _ _ kib _ rss _ fds _ <<<"$(grep '^most' week)"
# an empty part has its metadata, too, which is not of the streams
[ "$kib" -le $((24 << 10)) ] && [ "$rss" -le $((64 << 10)) ] && [ "$fds" -le 64 ] || fail "a week is not bounded: $(cat week)"

# --- a kill at any moment: no record is lost or there twice ---
for i in 1 2 3 4 5; do
	rm -rf "$out"
	CUDASPY_ROTATE_EVERY=1ms spied timeout -s KILL 0.$((i * 2)) "$bin/life" load 4 100000000 >/dev/null 2>&1
	[ "$(n_parts)" -ge 1 ] || continue
	"$tool" report --format=json "$out" >report.json 2>err || fail "killed: no report: $(cat err)"
	expect "killed: nothing is missing" "$(jq -c '[.losses[]?]' report.json)" '[]'
done
exit 0
