#!/bin/bash
# fork at the worst moments: beside dlopen, in a handler that interrupted us, inside a callback of dl_iterate_phdr
# (which holds the loader's lock), right after a slot was not to be had. Nobody waits for ever, children
# record, and SIGTERM ends a program that sits in such a callback.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# children CALLS: how many processes have so many calls of cudaSetDevice.
children() {
	dump_all
	records_by_process cudaSetDevice | grep -cx "$1"
}

# Without the loader's lock a child knows what its parent did: its libraries are in its trace.
same loader "$bin/forks" loader 30 "$bin/libother.so"
expect "loader: traces" "$(traces | wc -l)" 31
[ "$(children 10)" -ge 30 ] || fail "loader: $(children 10) children with 10 calls"
awk '
	{ split($2, id, "/"); pid = id[1] }
	$4 == "[module]" && /\.so/ { libraries[pid]++ }
	$7 ~ /^(inner|nested|call|op|launch|copy|memory)$/ { records[pid, $4]++; processes[pid] = 1 }
	END {
		for (pid in processes)
			if (records[pid, "cudaSetDevice"] == 10 && (libraries[pid] < 3 || records[pid, "cudaMalloc"] != 10 ||
				records[pid, "cudaDeviceSynchronize"] != 1))
				print pid ": " libraries[pid] + 0 " libraries, " records[pid, "cudaMalloc"] + 0 " calls of cudaMalloc"
	}' all.dump >wrong
[ ! -s wrong ] || fail "loader: $(<wrong)"

# A process that ends gives back what it has not used of its streams' tails.
truncate -s 32K hole && fallocate -l 32K hole && fallocate -p -o 4K -l 28K hole 2>/dev/null && [ "$(du -k hole | cut -f 1)" = 4 ] &&
	expect "loader: tails of more than three pages" "$(find "$out" -name 'stream_*_tail' -printf '%k\n' | awk '$1 > 12' | wc -l)" 0

same handler "$bin/forks" handler 150
same back "$bin/forks" back 60
# Those that were in the middle of something record when that is done, not yet in the handler.
expect "back: children that record" "$(($(children 10) + $(children 11)))" 60
readable "$(traces | head -n 1)"

for how in beside await; do
	same "$how" "$bin/forks" walk $how
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaSetDevice=18 cudaStreamCreate=8 cudaDeviceSynchronize=8
	readable "$trace"
done
same walkfork "$bin/forks" walkfork
expect "walkfork: children" "$(children 10)" 1
same slots "$bin/forks" slots
expect "slots: children" "$(children 5)" 1

# Threads' first calls do not keep SIGTERM away. (Not by `spied`: the signal is for the program, not for a subshell.)
rm -rf "$out"
CUDASPY_OUT=$out LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$bin/forks" walk stay >stay 2>&1 &
program=$!
for _ in $(seq 200); do
	grep -q inside stay && break
	sleep 0.1
done
kill -TERM $program
for _ in $(seq 100); do
	kill -0 $program 2>/dev/null || break
	sleep 0.1
done
kill -KILL $program 2>/dev/null
wait $program
expect "walk stay: status after SIGTERM" $? 143
grep -q inside stay || fail "walk stay: its threads' first calls did not return"
