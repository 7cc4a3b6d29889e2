#!/bin/bash
# What the trace has of the waits inside calls: each kind with its lock, its holder and what the holder
# was doing, for about as long as it lasted; nothing of locks that were free; and nothing is lost
# uncounted.
. "$(dirname "$0")/lib.sh"

[ -x "$tool" ] || skip "no $tool"
export FAKE_MODE=quiet

# play ARG...: runs waits with the shim and, where no sanitizer is, without; sets trace and dump.
play() {
	rm -rf "$out"
	[ "$first" ] || bare timeout 20 "$bin/waits" "$@" >/dev/null 2>&1 || fail "waits $*: status $? without the shim"
	spied timeout 20 "$bin/waits" "$@" >printed 2>err || fail "waits $*: status $?: $(cat err)"
	# the first: a child's comes later
	trace=$(traces | grep "/waits-$(sed -n 's/.*waits-\([0-9]*\)\.cudaspy.*/\1/p' err | sort -n | head -n 1)\.")
	readable "$trace"
	mv "$dump" dump
}

# waits [PATTERN]: the lines of its waits.
waits() {
	grep ' \[wait\] ' dump | grep -E -- "${1:-}"
}

# n_waits [PATTERN]: how many of them there are.
n_waits() {
	grep -cE -- " \[wait\] .*${1:-}" dump
}

moves() {
	grep -E -c " \[$1\] .*${2:-}" dump
}

# as_printed: for each wait that was printed one that is recorded, and no more than those.
as_printed() {
	awk '
		# value LINE KEY: of a number of nanoseconds.
		function value(line, key) { return match(line, " " key "=[0-9]+") ? substr(line, RSTART + length(key) + 2) + 0 : -1 }
		NR == FNR { n++; kind[n] = $1; object[n] = $2; holder[n] = $3; least[n] = $4 * 1e6; count[n] = $5; next }
		/ \[wait\] / { line[++n_lines] = $0 " " }
		END {
			if (n_lines != n)
				print n_lines + 0 " waits, expected " n
			for (i = 1; i <= n; i++) {
				found = 0
				for (j = 1; j <= n_lines; j++)
					if (index(line[j], " kind=" kind[i] " ") && index(line[j], " object=" object[i] " ") &&
						index(line[j], " count=" count[i] " ") && (holder[i] == 0 || index(line[j], " holder=" holder[i] " "))) {
						found++
						ns = value(line[j], "waited_ns")
						if (ns < least[i] || ns >= least[i] + 2e9 || value(line[j], "span_ns") < ns)
							print kind[i] ": not " least[i] " ns: " line[j]
					}
				if (found != 1)
					print found " waits of kind " kind[i] " for " object[i] " by " holder[i] ", " count[i] " times"
			}
		}' printed dump >wrong
	[ ! -s wrong ] || fail "$1: $(<wrong)"
}

play kinds
as_printed kinds
expect "kinds: holders in their calls" \
	"$(n_waits ' in=cudaLaunchHostFunc .* device=0 .*holder_in=cudaLaunchHostFunc holder_device=1 holder_stream=0x5')" 9
expect "kinds: held by readers" "$(n_waits ' kind=write .* flags=0x1 ')" 3
expect "kinds: ended without what they waited for" "$(n_waits ' flags=0x4')" 3
# each holder gave back what the other waited for
objects() { grep -o ' object=[^ ]*' | sort -u | tr -d '\n'; }
expect "kinds: released" "$(grep ' \[held\] ' dump | objects)" \
	"$(waits ' kind=(mutex|read|write|spin) ' | grep -v ' flags=0x[4-7]' | objects)"

play free
expect "free: waits" "$(n_waits)" 0
expect "free: moves" "$(moves held)" 0

play timeout
as_printed timeout
expect "timeout: without the lock" "$(n_waits ' flags=0x4 ')" 1

play moved
while read -r event kind object count; do
	expect "moved: $event $kind" "$(moves "$event" " kind=$kind .* object=$object")" "$count"
done <printed

# One thread takes a mutex again and again, another one sometimes: each time is told, that it is given back only where
# somebody sleeps for it.
for ((try = 1; ; try++)); do
	play again
	[ "$(moves taken ' kind=mutex ')" -ge 100 ] && break
	again $try 3 || fail "again: the lock was taken $(moves taken ' kind=mutex ') times"
done
[ "$(moves taken)" -gt "$(moves held)" ] || fail "again: it was given back $(moves held) times"

play rows
expect "rows: waits" "$(n_waits)" 6
sed -i '/^poll/d' printed # two calls have one
while read -r kind object _ _ count; do
	expect "rows: $kind $object" "$(n_waits " kind=$kind .* object=$object .* count=$count ")" 1
done <printed
expect "rows: polls" "$(waits ' kind=poll .* count=(20|1) ' | grep -vc flags)" 2

play crowd
expect "crowd: requests" "$(waits ' kind=ioctl ' | sed 's/.* count=\([0-9]*\) .*/\1/' | awk '{ n += $1 } END { print n }')" 5000
expect "crowd: a row for what had no room" "$(n_waits ' kind=ioctl .* object=0x0 ')" 1

CUDASPY_COUNT=cudaLaunchHostFunc play some 10
expect "counted calls: waits" "$(n_waits ' in=cudaLaunchHostFunc ')" 1
expect_records "$trace" cudaLaunchHostFunc=1
expect_counts "$trace" cudaLaunchHostFunc=9
line=$(grep 'cudaLaunchHostFunc' dump | grep -v ' \[wait\] \| \[count\] \| \[held\] \| \[host_function\] \| \[stack\] ')
expect "counted calls: the one that waited: $line" "$(grep -c . <<<"$line")" 1

# Calls of the driver's inside others: counted, and what they waited for has their name. The first of a function
# goes through the whole trampoline, and leaves a record if it waits or fails.
play inside 10
expect "inside: waits" "$(n_waits ' in=cuLaunchHostFunc of=cudaLaunchHostFunc ')" 1
expect_records "$trace" cudaLaunchHostFunc=1 cuLaunchHostFunc=0
expect_counts "$trace" cuLaunchHostFunc=10
FAKE_RESULT=1 play inside 10
expect_records "$trace" cudaLaunchHostFunc=1 cuLaunchHostFunc=1
expect_counts "$trace" cuLaunchHostFunc=9
expect "inside: that failed" "$(awk '$3 == 1 && $4 == "cuLaunchHostFunc" && $6 == 1' dump | wc -l)" 1
CUDASPY_TRACE=cuLaunchHostFunc play inside 10
expect "inside, asked for: waits" "$(n_waits ' in=cuLaunchHostFunc of=cudaLaunchHostFunc ')" 1
expect_records "$trace" cudaLaunchHostFunc=1 cuLaunchHostFunc=10

play stranger
expect "stranger: waits" "$(n_waits " flags=0x8 holder=$(awk '{ print $2 }' printed)")" 2
expect "stranger: names" "$(grep -c "non_cuda_thread\] .*tid=$(awk '{ print $2 }' printed) name=\"no calls here\"" dump)" 1
# Metadata of earlier versions has another name for that record.
sed -i 's/"non_cuda_thread"/"stranger"/' "$trace/metadata"
grep -q '"stranger"' "$trace/metadata" || fail "metadata has no such name"
expect "its earlier name: warnings" "$("$tool" dump "$trace" 2>&1 >/dev/null)" ""

# What has no record of its own any more is in the last one of its kind. The scheduler's account may be lost.
play flood 5000
read -r _ _ lost < <(closing err)
[ "$lost" -le 1 ] || fail "flood: $lost lost"
expect "flood: waits" "$(waits | grep -o ' count=[0-9]*' | awk -F= '{ n += $2 } END { print n }')" 5000
[ "$(n_waits)" -lt 3000 ] || fail "flood: a record for each of $(n_waits) waits"
expect "flood: waits for several locks of one thread" "$(n_waits " object=0x0 .* holder=$(cat printed) ")" 1
expect "flood: waits for several locks" "$(n_waits ' object=0x0 ')" 1
expect_records "$trace" cudaLaunchHostFunc=2 cudaSetDevice=3
play flood 5000 two
expect "flood of two holders: waits" "$(waits | grep -o ' count=[0-9]*' | awk -F= '{ n += $2 } END { print n }')" 5000
expect "flood of two holders: the last row's" "$(waits ' object=0x0 ' | grep -c ' holder=0\( \|$\)')" 1

play left
expect "left: waits" "$(n_waits)" 1
expect "left: its depth" "$(n_waits ' depth=0 ')" 1
expect "left: calls" "$(grep -c ' 0 cudaSetDevice ' dump)" 6

play handler
as_printed handler
expect_records "$trace" cudaSetDevice=3 cudaLaunchHostFunc=2

# Every call that was interrupted is there; a handler's is, or is counted as lost. Threads that hold the lock are
# named, and are those three.
play storm
read -r _ launched _ handled <printed
read -r calls _ lost < <(closing err)
expect_records "$trace" cudaLaunchHostFunc="$launched"
[ "$launched" -gt 1000 ] && [ "$handled" -gt 100 ] || fail "storm: $(cat printed)"
[ "$lost" -le "$handled" ] || fail "storm: $lost lost, of $handled calls in handlers"
expect "storm: calls, less those of handlers and the first ones, that are not counted as lost" \
	"$((calls + lost >= launched + handled + 4))" 1
expect "storm: records of cudaSetDevice" "$(records "$trace" cudaSetDevice)" $((calls - launched))
[ "$(moves held)" -gt 0 ] || fail "storm: nobody gave the lock back"
[ "$(n_waits ' kind=mutex .* holder=[1-9]')" -gt 0 ] || fail "storm: no wait has a holder"
expect "storm: threads that wait or are waited for" "$(waits | awk '{ split($2, of, "/"); print of[2] }
	match($0, / holder=[1-9][0-9]*/) { print substr($0, RSTART + 8, RLENGTH - 8) }' | sort -u | wc -l)" 3

# Followed in bursts, again and again, and not all the time; the record of the long wait says so, that of a lock that
# does not change hands does not. And all of it, if that is wanted.
play hot 1000
bursts() { grep ' \[held\] ' dump | grep -c ' in=cudaLaunchHostFunc'; }
n=$(bursts)
[ "$n" -lt 500000 ] || fail "hot: $n of 1,000,000 moves are recorded"
[ "$n" -gt 128 ] || fail "hot: $n moves are recorded: less than three bursts"
expect "hot: waits" "$(waits ' kind=write .* count=1 ' | grep -o ' flags=[^ ]*' | sort | tr -d '\n')" " flags=0x1 flags=0x41"
"$tool" report --format=json "$trace" >report.json 2>err || [ $? = 1 ] || fail "hot: $(cat err)"
CUDASPY_ALL_LOCKS=1 play hot 60
expect "hot, all: moves and what was lost" "$(($(bursts) + $(closing err | cut -d ' ' -f 3) >= 60000))" 1
expect "hot, all: waits" "$(waits ' kind=write .* count=1 ' | grep -o ' flags=[^ ]*' | tr -d '\n')" " flags=0x1 flags=0x1"

# More than fits: what is there can be read, and no packet is longer than it may be.
CUDASPY_ALL_LOCKS=1 play above
[ "$(stat -c %s "$trace"/stream_*_tail | sort -n | tail -n 1)" -le 131072 ] || fail "above: a packet is too long"
read -r calls _ lost < <(closing err)
# 60 calls with one inside them, and the one that wants the lock; 2600 to 2659 moves in each, most of which fit.
# (The scheduler's account may be lost, too.)
sum=$((calls + $(moves held) + lost))
[ "$sum" -ge 157770 ] && [ "$sum" -le 158100 ] || fail "above: $sum moves and calls"
[ "$(moves held)" -gt 100000 ] || fail "above: the lock was given back $(moves held) times"
[ "$(records "$trace" cudaLaunchHostFunc)" -ge 61 ] || fail "above: $(records "$trace" cudaLaunchHostFunc) calls"
expect "above: who waits for the readers" "$(n_waits ' kind=write .* count=1 .* flags=0x1 ') $(n_waits)" "1 1"

# An allocator with locks: nobody waits for ever. (The sanitizers bring an allocator of their own.)
if [ -z "$first" ]; then
	same allocator "$bin/allocator"
	readable "$(the_trace)"
fi

play fork
expect "fork: waits" "$(n_waits)" 1
child=$(traces | grep -vF "$trace")
"$tool" dump "$child" >dump
expect "fork: what a child that waits for nobody records" "$(n_waits) $(moves held)" "0 0"
expect_records "$child" cudaLaunchHostFunc=1

# Many at a time: each wait is some call's, and has an end.
play map
expect "map: lost" "$(closing err | cut -d ' ' -f 3)" 0
expect_records "$trace" cudaLaunchHostFunc=800
expect "map: calls in which waits happened" "$(n_waits ' in=cudaLaunchHostFunc of=cudaLaunchHostFunc ')" \
	"$(n_waits)"
"$tool" report "$trace" >report 2>&1 || fail "map: no report: $(tail -n 3 report)"

# And without probes nothing.
for what in kinds moved "some 3"; do
	# shellcheck disable=SC2086
	CUDASPY_NOPROBES=1 play $what
	expect "$what without probes" "$(n_waits) $(moves '(held|non_cuda_thread|sched)')" "0 0"
	grep -q 'probes = 0;' "$trace/metadata" || fail "the metadata does not say that there are no probes"
done
CUDASPY_NOPROBES=0 play kinds
as_printed "kinds, probes not off"
grep -q 'probes = 1;' "$trace/metadata" || fail "the metadata does not say that there are probes"
