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
