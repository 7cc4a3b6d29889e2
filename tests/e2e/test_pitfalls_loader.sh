#!/bin/bash
# What goes wrong with other interposers: a library's own look-ups are answered with a wrapper; what a library opens is
# searched for as if the interposer had opened it; calls come before the interposer's constructor ran, or after its
# destructor.
. "$(dirname "$0")/lib.sh"

# libcuda gets its own functions, in the global scope or not; who uses it is recorded as ever.
same itself "$bin/ways" itself
grep -q '^elsewhere 0' itself.out || fail "libcuda looks itself up and finds: $(cat itself.out)"
expect_records "$(the_trace)" cuInit=1
after=$fakes/libcuda.so.1 same itself-global "$bin/ways" itself
grep -q '^elsewhere 0' itself-global.out || fail "libcuda in the global scope finds: $(cat itself-global.out)"
expect_records "$(the_trace)" cuInit=1

# DT_RUNPATH, DT_RPATH and $ORIGIN are those of the library that calls dlopen or dlmopen.
for library in "$bin/libopener_runpath.so" "$bin/libopener_rpath.so"; do
	same "${library##*/}" "$bin/ways" opener "$library" libfound.so '$ORIGIN/found/libfound.so' libnowhere.so
	expect "${library##*/}: found" "$(grep -c ': 4$' "${library##*/}.out")" 4
	expect "${library##*/}: not found" "$(grep -c ': -1$' "${library##*/}.out")" 2
done

# .preinit_array, constructors before ours, destructors behind ours: nine places.
export FAKE_MODE=quiet
same early "$bin/early"
expect "places" "$(grep -c ': 0 0$' early.out)" 9
trace=$(the_trace) || exit 1
expect_records "$trace" cudaSetDevice=9
expect_counts "$trace" cudaGetDevice=9
readable "$trace"
# Linked the other way round, and with another library between.
after=$bin/libearly.so same early-after "$bin/early"
before=$bin/libearly.so same early-before "$bin/early"

# More libraries than there is room for at first: each is in the trace.
mkdir libraries
many=
for i in $(seq 600); do
	cp "$bin/libours.so" "libraries/$i.so"
	many+=" $tmp/libraries/$i.so"
done
before=${many# } same libraries "$bin/early"
expect "libraries in the trace" "$("$tool" dump "$(the_trace)" | grep -c '/libraries/[0-9]*\.so')" 600
rm -r libraries

# Of our own there is one constructor and one destructor, beside the compiler's.
[ -z "$first" ] && need readelf && readelf -dW "$shim" | awk '
	/\((INIT|FINI)_ARRAYSZ\)/ && $3 + 0 > 16 { print "FAILED: " $0; bad = 1 }
	END { exit bad }' || [ -n "$first" ]
