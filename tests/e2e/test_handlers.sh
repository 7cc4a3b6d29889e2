#!/bin/bash
# Little stack: first calls, and the end, in a handler on an alternate stack of 8 KiB; how much more stack calls take with
# the recorder than without. Calls that are left: by siglongjmp out of a wait or out of whatever the recorder is at, by
# cancellation: no lock of ours stays taken, nobody is counted as waiting who does not.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

same altstack "$bin/handlers" altstack 8192
expect "altstack: calls" "$(closing altstack.err)" "20 0 0"
readable "$(the_trace)"
same ends "$bin/handlers" ends 8192
expect "ends: calls" "$(closing ends.err)" "10 0 0"
readable "$(the_trace)"

# What is rare has a stack of its own: a kilobyte is for the trampoline, the call's record, and the way there.
for what in first thread next failed; do
	[ $what = failed ] && export FAKE_RESULT=2
	without=$(bare "$bin/handlers" least $what)
	with=$(CUDASPY_QUIET=1 spied "$bin/handlers" least $what)
	[ "$with" -le $((without + 1024)) ] ||
		fail "$what: a call needs $with bytes of stack, without the shim $without"
done
unset FAKE_RESULT

same jump "$bin/handlers" jump 3
trace=$(the_trace) || exit 1
expect "jump: what a mutex leaves that nobody waits for" "$(events "$trace" | grep -c ' \(taken\|held\): ')" 0
expect_records "$trace" cudaSetDevice=3 cudaLaunchHostFunc=300
readable "$trace"
same cancel "$bin/handlers" cancel 3
trace=$(the_trace) || exit 1
expect "cancel: what a mutex leaves that nobody waits for" "$(events "$trace" | grep -c ' \(taken\|held\): ')" 0
readable "$trace"
same storm "$bin/handlers" storm 500
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=2
readable "$trace"
