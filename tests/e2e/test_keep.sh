#!/bin/bash
# CUDASPY_KEEP=1: the trace stays under its bound, what is there is the newest, and it can be read.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

bytes_of() {
	cat "$1"/stream_* | wc -c
}

CUDASPY_KEEP=1 same one "$bin/life" calls 100000
trace=$(the_trace) || exit 1
bytes=$(bytes_of "$trace")
[ "$bytes" -le $((1 << 20)) ] || fail "one thread: $bytes bytes of streams"
[ "$bytes" -gt $((700 << 10)) ] || fail "one thread: only $bytes bytes are kept"
kept=$(records "$trace" cudaSetDevice)
[ "$kept" -gt 15000 ] && [ "$kept" -lt 40000 ] || fail "one thread: $kept records kept"
readable "$trace"
# The packet that named the thread is gone: each of those that are kept does.
expect "one thread: names" "$(events "$trace" | grep -c ' thread: .*name = "life"')" "$(ls "$trace"/stream_0001_* | wc -l)"
expect "one thread: closing line" "$(closing one.err)" "100000 0 0"

# The newest are there: the last records are followed by the end of the process at once.
CUDASPY_KEEP=1 FAKE_MODE=quiet same mark "$bin/life" mark 100000
trace=$(the_trace) || exit 1
events "$trace" | grep 'cudaSetDevice\|cudaFree' | tail -n 1 | grep -q cudaFree ||
	fail "the last call is not in the trace"
events "$trace" | grep -q cudaMalloc && fail "the first call is still in the trace"

# Less than the bound: all of it.
n=$(many 16000)
CUDASPY_KEEP=8 same threads "$bin/life" threads $n 8
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=$((2 * n))
expect "threads: closing line" "$(closing threads.err)" "$((2 * n)) 0 0"
names=$(events "$trace" | grep -c ' thread: .*name = "life"')
# again where a packet changed between a thread's calls
[ "$names" -ge $n ] && [ "$names" -le $((n + $(ls "$trace"/stream_* | wc -l))) ] || fail "threads: $names names"
readable "$trace"

# Six threads share it: as much as fits, each packet with its thread's name, of the newest.
CUDASPY_KEEP=2 same loaded "$bin/life" load 6 30000
trace=$(the_trace) || exit 1
bytes=$(bytes_of "$trace")
[ "$bytes" -le $((2 << 20)) ] || fail "six threads: $bytes bytes of streams"
# The bound is one of pages: beside a thread whose tail has grown, others store packets that do not fill their one page.
pages=$(stat -c %s "$trace"/stream_* | awk '{ pages += int(($1 + 4095) / 4096) } END { print pages }')
[ "$pages" -ge $((1700 / 4)) ] || fail "six threads: only $pages pages are kept, $bytes bytes"
kept=$(records "$trace" cudaSetDevice)
[ "$kept" -gt 38000 ] && [ "$kept" -lt 66000 ] || fail "six threads: $kept records kept"
expect "six threads: closing line" "$(closing loaded.err)" "180000 0 0"
names=$(events "$trace" | grep -c ' thread: .*name = "life"')
packets=$(ls "$trace"/stream_* | grep -vc stream_0000)
# a thread that begins when another has ended goes on in its packet
[ "$names" -ge "$packets" ] && [ "$names" -le $((packets + 5)) ] || fail "six threads: $names names in $packets packets"
readable "$trace"

# However many threads there are: all that is there, the board included, stays below the bound, or 8 KiB for each thread.
# The metadata is not of the streams.
on_disk() {
	echo $(($(du -k "$1" | cut -f 1) - $(du -k "$1/metadata" | cut -f 1)))
}
for threads in 20 100 500; do
	limit=$((threads * 8 > 1024 ? threads * 8 : 1024))
	rm -rf "$out" ready go
	CUDASPY_KEEP=1 spied "$bin/steps" crowd:$threads touch:ready await:go more:50 disperse calls:20000 \
		>crowd.out 2>crowd.err </dev/null &
	for _ in $(seq 400); do
		[ -e ready ] && break
		sleep 0.02
	done
	trace=$(the_trace) || exit 1
	[ "$(on_disk "$trace")" -le $((limit + 64)) ] || fail "$threads threads: $(on_disk "$trace") KiB on the disk"
	touch go
	wait $! || fail "$threads threads: status $?"
	[ "$(bytes_of "$trace")" -le $((limit << 10)) ] || fail "$threads threads: $(bytes_of "$trace") bytes of streams"
	expect "$threads threads: closing line" "$(closing crowd.err)" "$((threads * 51 + 20000)) 0 0"
	readable "$trace"
done

# They come and go by the thousands.
rm -rf "$out"
n=$(many 4800) # in both cases a multiple of those at once
CUDASPY_KEEP=1 same thousands "$bin/life" threads $n 200
trace=$(the_trace) || exit 1
[ "$(bytes_of "$trace")" -le $((1600 << 10)) ] || fail "thousands: $(bytes_of "$trace") bytes of streams"
expect "thousands: closing line" "$(closing thousands.err)" "$((2 * n)) 0 0"
