#!/bin/bash
# The simulator: its own checks of what it promises about CUDA, and the samples, whose results are
# checked by themselves.
. "$(dirname "$0")/lib.sh"
sim="$here/../sim/with-sim"
"$sim" "$CUDASPY_BUILD/sim/selftest" >selftest.out 2>&1 || fail "selftest: $(tail -n 5 selftest.out)"
for sample in "$CUDASPY_BUILD"/sim/samples/*; do
	[ -x "$sample" ] && [[ $sample != *.* ]] || continue
	"$sim" "$sample" >sample.out 2>&1 || fail "$(basename "$sample"): $(tail -n 5 sample.out)"
	echo "$(basename "$sample"): right"
done

# What is built for the simulator finds it by itself: on a machine whose linker does not know the toolkit, too.
for source in $(grep -l 'include "sim_program.h"' "$here"/programs/*.c); do
	for program in "$bin/$(basename "$source" .c)"*; do
		[ -x "$program" ] && [[ $program != *static && $program != *.so ]] || continue
		wrong=$(ldd "$program" | grep 'libcuda' | grep -v " => $(realpath "$bin")/../../sim/lib/\| => $build/sim/lib/")
		[ -z "$wrong" ] || fail "$(basename "$program") finds another CUDA, or none: $wrong"
	done
done

# What breaks a capture, as an H200 has it (docs/CUDA_FACTS.md): by mode global, thread-local and relaxed, each by
# the thread that captures and by another, and global in a non-blocking stream.
if [ -x "$build/gpu/facts" ]; then
	"$sim" "$build/gpu/facts" captures >captures || fail "facts captures: status $?"
	sed '1,2d; s/.* \(other\|stream\|another\) //; s/^[a-zA-Z0-9]* //; s/  */ /g; s/^ //' captures >got
	unsafe="900 900 900 0 0 0 900" legacy="906 906 906 906 906 906 0" waits="900 900 900 900 900 900 900" none="0 0 0 0 0 0 0"
	printf '%s\n' "$unsafe" "$unsafe" "$unsafe" "$unsafe" "$legacy" "$legacy" "$waits" "$waits" "$waits" "$unsafe" \
		"$unsafe" "$unsafe" "$none" "$unsafe" "$none" >wanted
	diff wanted got || fail "captures: $(cat captures)"
else
	without "facts captures (no CUDA toolkit)"
fi

# A program with NVIDIA's own runtime inside cannot work here, and says why.
if [ -x "$build/testapps/copies-static" ]; then
	"$sim" "$build/testapps/copies-static" --quick >/dev/null 2>err
	grep -q "nvcc -cudart shared" err || fail "a runtime linked to the program: says $(cat err)"
	"$sim" "$build/testapps/copies" --quick >/dev/null 2>err
	[ -s err ] && fail "a shared runtime: says $(cat err)"
else
	without "copies-static (no CUDA toolkit)"
fi
exit 0
