#!/bin/bash
# The shim built with ThreadSanitizer: the programs of the recorder's tests that record from many threads and look at each
# other.
. "$(dirname "$0")/lib.sh"
. "$here/sanitizer.sh"

variant tsan thread libtsan.so
export TSAN_OPTIONS=exitcode=88,halt_on_error=1,report_signal_unsafe=0
# (Not `forkmt`: the sanitizers' malloc of gcc 12 may be locked in the child of a process with threads for
# ever. Not `destructors`: TSan takes a thread to pieces before its last keys' destructors run.)
# TSan does not know addresses that are random in 32 bits.
FAKE_MODE=quiet CUDASPY_DISABLE=1 LD_PRELOAD="$CUDASPY_FIRST" LD_LIBRARY_PATH=$fakes setarch -R "$bin/life" calls 1 ||
	skip "TSan does not run here"
export FAKE_MODE=quiet CUDASPY_OUT=$out
for run in "threads 600 300" "threads 2000 4" "load 8 20000" "again spawn calls 10" names; do
	for keep in '' 1; do
		# several times: two threads meet in a first call or not
		for _ in 1 2; do
			CUDASPY_KEEP=$keep setarch -R timeout 60 env LD_LIBRARY_PATH=$fakes \
				LD_PRELOAD="$CUDASPY_FIRST $CUDASPY_SHIM" "$bin/life" $run >tsan.log 2>&1 ||
				fail "life $run under TSan: $(grep -v '^cudaspy:' tsan.log | head -n 60)"
		done
	done
done

# Parts that end every few milliseconds, by age and by size, and are removed.
while read -r variables; do
	for run in "load 6 15000" "threads 200 20"; do
		# shellcheck disable=SC2086 # several words
		setarch -R timeout 60 env $variables LD_LIBRARY_PATH=$fakes LD_PRELOAD="$CUDASPY_FIRST $CUDASPY_SHIM" \
			"$bin/life" $run >tsan.log 2>&1 ||
			fail "life $run, $variables, under TSan: $(grep -v '^cudaspy:' tsan.log | head -n 60)"
	done
done <<-END
	CUDASPY_ROTATE_EVERY=5ms
	CUDASPY_ROTATE_EVERY=2ms CUDASPY_KEEP=1 CUDASPY_KEEP_FOR=50ms
	CUDASPY_ROTATE_SIZE=1 CUDASPY_KEEP=4
END

# tsan NAME COMMAND...: leaves its output in tsan.out.
tsan() {
	local name=$1
	shift
	setarch -R timeout 60 env LD_LIBRARY_PATH=$fakes LD_PRELOAD="$CUDASPY_FIRST $CUDASPY_SHIM" \
		"$@" >tsan.out 2>tsan.log ||
		fail "$name under TSan: $(grep -v '^cudaspy:' tsan.log | head -n 60)"
}

# (TSan has its own opinion of what a program may do with a mutex or a condition, and keeps signals back
# until a mutex is had.)
for what in rwlock semaphore wait syscall cancel fork; do
	tsan "probes $what" "$bin/probes" both "$what"
	LD_LIBRARY_PATH=$fakes timeout 20 "$bin/probes" both "$what" >bare.out
	cmp -s bare.out tsan.out || fail "probes $what under TSan: $(diff bare.out tsan.out | head -n 5)"
done
for what in kinds free timeout moved rows stranger "flood 2000" left handler hot fork map map; do
	# shellcheck disable=SC2086
	tsan "waits $what" "$bin/waits" $what
done
tsan "stacks" "$bin/stacks" threads 8 5000
tsan "stacks on rubbish" "$bin/stacks" corrupt 1
if python=$(python3 -c 'import ctypes, sys; print(sys.executable)' 2>/dev/null); then
	fakes=$CUDASPY_BUILD/sim/lib tsan "lines of Python" "$python" "$here/python_lines.py" CDLL functions
fi
for what in threads full odd late fork fewer; do
	tsan "nccl $what" "$bin/nccl" 5 "$what"
done
if LD_LIBRARY_PATH=$fakes "$bin/nvtx"; then # there are headers of NVTX
	tsan "ranges" "$bin/nvtx" threads
	tsan "names" "$bin/nvtx" all
fi
FAKE_RESULT=2 tsan "a Python that goes" "$bin/python_fake" "$bin/libfake_python.so"
