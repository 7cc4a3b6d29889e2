#!/bin/bash
# The application's descriptors are its own: it may close all of them, or have none to begin with; its
# standard error may be gone or another file by the time we end; a closed pipe does not kill it.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

for what in high all; do
	same "close-$what" "$bin/life" close $what
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaSetDevice=20010
	readable "$trace"
done

cat >none.sh <<END
exec "$bin/life" calls 20000 <&- >&- 2>&-
END
same none bash none.sh
readable "$(the_trace)"

# A program whose second descriptor is its data by the time it ends.
same data "$bin/life" reuse "$tmp/data"
[ "$(cat data)" = "nothing but data" ] || fail "we wrote into the program's data: $(cat data)"

# The reader of standard error is gone.
rm -rf "$out"
mkfifo pipe
(exec 3<pipe; exec 3<&-) &
(spied "$bin/life" late 2>pipe; echo $? >status) &
wait
expect "status with standard error a closed pipe" "$(cat status)" 0
readable "$(the_trace)"

# Descriptors left open: none of ours.
same descriptors "$bin/life" descriptors

# Few descriptors: their numbers are the program's, whatever is written meanwhile.
cat >few.sh <<END
ulimit -n \$1
exec "$bin/steps" calls:10 lowest calls:9000 lowest thread:4000 lowest
END
for few in 16 64; do
	same few bash few.sh $few
	readable "$(the_trace)"
	read -r calls _ lost < <(closing few.err)
	expect "$few descriptors: calls and lost ones" "$calls $lost" "13010 0"
done
