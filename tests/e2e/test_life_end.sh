#!/bin/bash
# How processes end: return, exit, _exit, _Exit, exit from a thread while others call, quick_exit,
# abort, a fatal signal, _exit in a signal handler that interrupted malloc or us. Status as without the
# shim, nothing lost, and the closing line where the process got to say it.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet
ulimit -c 0

same main "$bin/life" calls 20
expect "main: closing line" "$(closing main.err)" "20 0 0"
for how in _exit _Exit exit quick_exit abort segv; do
	same "$how" "$bin/life" end $how
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaSetDevice=20
	case $how in
	_exit | _Exit | exit) expect "$how: closing line" "$(closing "$how.err")" "20 0 0" ;;
	esac
	readable "$trace"
done

# Libraries that call when the recording has ended, more than fits where they are.
after=$bin/libfarewell.so
export FAREWELL=40000
same farewell "$bin/life" calls 20
expect_records "$(the_trace)" cudaSetDevice=40020
unset FAREWELL after

same thread "$bin/life" end thread
trace=$(the_trace) || exit 1
readable "$trace"
read -r calls _ lost < <(closing thread.err)
[ "${calls:-0}" -ge 25 ] || fail "thread: closing line says ${calls:-nothing}"

# Only a run that hangs fails: the handler interrupts whatever it interrupts.
export CUDASPY_OUT=$out
for i in $(seq 60); do
	spied timeout -s KILL 5 "$bin/life" handler 2>/dev/null
	status=$?
	[ $status = 31 ] || fail "handler, run $i: status $status"
done
for trace in $(traces | head -n 5); do
	readable "$trace"
done
