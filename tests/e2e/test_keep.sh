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
# the session's own stream is outside the bound
[ "$bytes" -le $(((1 << 20) + (128 << 10))) ] || fail "one thread: $bytes bytes of streams"
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
CUDASPY_KEEP=8 same threads "$bin/life" threads 16000 8
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=32000
expect "threads: closing line" "$(closing threads.err)" "32000 0 0"
expect "threads: names" "$(events "$trace" | grep -c ' thread: .*name = "life"')" 16000
readable "$trace"

# Six threads share it: as much as fits, each packet with its thread's name, of the newest.
CUDASPY_KEEP=2 same loaded "$bin/life" load 6 30000
trace=$(the_trace) || exit 1
bytes=$(bytes_of "$trace")
[ "$bytes" -le $(((2 << 20) + (128 << 10))) ] || fail "six threads: $bytes bytes of streams"
[ "$bytes" -ge $((1700 << 10)) ] || fail "six threads: only $bytes bytes are kept"
kept=$(records "$trace" cudaSetDevice)
[ "$kept" -gt 38000 ] && [ "$kept" -lt 66000 ] || fail "six threads: $kept records kept"
expect "six threads: closing line" "$(closing loaded.err)" "180000 0 0"
expect "six threads: names" "$(events "$trace" | grep -c ' thread: .*name = "life"')" \
	"$(ls "$trace"/stream_* | grep -vc stream_0000)"
readable "$trace"
