#!/bin/bash
# The analyzer built with ThreadSanitizer, reading sets by several threads: one process and many, some of them on one GPU,
# with waits, calls inside others, ranks; torn ones.
. "$(dirname "$0")/lib.sh"
. "$here/sanitizer.sh"

analyzer tsan_analyzer thread
export TSAN_OPTIONS=exitcode=88,halt_on_error=1
# TSan does not know addresses that are random in 32 bits.
setarch -R "$CUDASPY_BUILD/tsan_analyzer/cudaspy" help >/dev/null || skip "TSan does not run here"
generate=$CUDASPY_BUILD/bench/gentrace
while read -r records n shape; do
	"$generate" "$shape" "$records" "$n" "$shape" >/dev/null || fail "no trace of $shape"
done <<-END
	60000 8 loop
	100000 8 nested
	20000 6 waiters
	60000 8 processes
	30000 6 shared
	20000 4 ranks
END
cp -r processes torn
for stream in torn/*/stream_0001; do
	truncate -s -1000 "$stream"
done

for set in loop nested waiters processes shared ranks torn; do
	"$tool" report "$set" --format=json --jobs=1 >one.json 2>one.err
	for jobs in 2 3 5; do
		setarch -R timeout 120 "$CUDASPY_BUILD/tsan_analyzer/cudaspy" report "$set" --format=json --jobs=$jobs >more.json 2>more.err
		[ $? != 88 ] || fail "$set by $jobs threads: $(head -n 60 more.err)"
		cmp one.json more.json || fail "$set by $jobs threads: another report: $(head -n 5 more.err)"
		cmp one.err more.err || fail "$set by $jobs threads: other warnings: $(diff one.err more.err | head -n 5)"
	done
done
