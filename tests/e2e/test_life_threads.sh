#!/bin/bash
# Threads: ten thousand one after the other need few streams; 300 at once are all recorded; names;
# stacks of 16 KiB; signals; calls from thread keys' destructors; coroutines that change threads.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

n=$(many 10000)
same sequence "$bin/life" threads $n 1
trace=$(the_trace) || exit 1
expect "calls" "$(closing sequence.err)" "$n 0 0"
expect_records "$trace" cudaSetDevice=$n
expect_counts "$trace" cudaGetDevice=$n
expect "threads named" "$(events "$trace" | grep -c ' thread: ')" $n
streams=$(ls "$trace" | grep -c '^stream_')
[ "$streams" -le 8 ] || fail "$streams stream files for threads that came one after the other"
readable "$trace"

same together "$bin/life" threads 900 300
trace=$(the_trace) || exit 1
expect "calls" "$(closing together.err)" "1800 0 0"
expect_records "$trace" cudaSetDevice=1800
expect_counts "$trace" cudaGetDevice=1800
readable "$trace"

same names "$bin/life" names
trace=$(the_trace) || exit 1
for name in alpha '15 bytes \\"long\\"' 'back\\\\slash'; do
	events "$trace" | grep -q " thread: .*name = \"$name\"" || fail "no thread named $name: $(
		events "$trace" | grep ' thread: ')"
done
readable "$trace"

# A slot that serves a second thread has nothing of the first one's: device, name, number.
same devices "$bin/life" devices
trace=$(the_trace) || exit 1
expect "devices: streams of threads" "$(ls "$trace" | grep -c '^stream_000[1-9]_tail$')" 2
"$tool" dump "$trace" | sed -n 's/.* \(cudaS[a-zA-Z]*\) .* device=\([0-9]*\) .*/\1 \2/p' >got
expect "devices: of the calls" "$(tr '\n' ' ' <got)" "cudaSetDevice 2 cudaSetDevice 5 cudaStreamSynchronize 5 \
cudaStreamSynchronize 0 cudaSetDevice 1 cudaStreamSynchronize 1 cudaStreamSynchronize 2 "
expect "devices: names" "$(events "$trace" | grep ' thread: ' | grep -c 'name = "on \(five\|none\)"')" 2

same small "$bin/life" small
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=25000
readable "$trace"

# A call that ends on another thread than it began on is lost; the first thread is in it no more.
same migrate "$bin/life" migrate
trace=$(the_trace) || exit 1
expect "migrate: calls, lost" "$(closing migrate.err)" "5 0 1"
expect "migrate: calls at no depth" "$(events "$trace" | grep -c '"cudaSetDevice" .*depth = 0')" 5
readable "$trace"

same storm "$bin/life" storm
trace=$(the_trace) || exit 1
expect "calls" "$(closing storm.err)" "200000 0 0"
expect_counts "$trace" cudaGetDevice=200000
readable "$trace"

# What a handler on another stack interrupts is not overwritten, wherever that stack lies.
for how in above beside; do
	same $how "$bin/life" $how
	read -r _ _ lost < <(closing $how.err)
	[ "${lost:-0}" -gt 0 ] || fail "$how: no call of a handler's was seen to interrupt another one"
	[ -x "$tool" ] && "$tool" dump "$(the_trace)" 2>&1 >/dev/null | grep . && fail "$how: a damaged trace"
done

same destructors "$bin/life" destructors
trace=$(the_trace) || exit 1
# 10 threads: 1 + 3 * 3; main 1; atexit 2; the program's destructor 4
expect_records "$trace" cudaSetDevice=107
readable "$trace"
