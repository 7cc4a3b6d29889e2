#!/bin/bash
# Another library that stands before the locks, preloaded before ours or after it: each sees the locks,
# the program works as without us, waits are recorded all the same, and the trace says who is there.
. "$(dirname "$0")/lib.sh"

[ -x "$tool" ] || skip "no $tool"
export FAKE_MODE=quiet WRAP_SAYS=1
other=$bin/libwraplocks.so

for order in before after; do
	before='' after=''
	declare "$order=$other"
	for what in mutex rwlock condition semaphore cancel fork signal; do
		same "$what" "$bin/probes" both "$what"
		grep -q 'wrapped many' "$what.err" || fail "$order: $what: the other library saw no locks"
	done
	rm -rf "$out"
	spied timeout 20 "$bin/waits" kinds >printed 2>kinds.err || fail "$order: waits kinds: status $?"
	trace=$(the_trace) || exit 1
	readable "$trace"
	"$tool" dump "$trace" >dump
	expect "$order: kinds of waits" \
		"$(sed -n 's/.* \[wait\] .* kind=\([a-z]*\) .*/\1/p' dump | sort -u | wc -l)" 11
	holders=$(awk '$3 > 0 { print $3 }' printed)
	expect "$order: holders" "$(sed -n 's/.* \[wait\] .* holder=\([0-9]*\) .*/\1/p' dump)" "$holders"
	case $order in
	before) note="locks pass through $other before they reach cudaspy" ;;
	after) note="locks pass through $other between cudaspy and the C library" ;;
	esac
	expect "$order: note" "$(notes "$trace" | sed -n 's/^[a-z]* \(locks pass.*\)/\1/p')" "$note"
done

# Nobody there, no note.
before='' after=''
same alone "$bin/waits" free
notes "$(the_trace)" | grep -q 'locks pass' && fail "a note of nobody"
exit 0
