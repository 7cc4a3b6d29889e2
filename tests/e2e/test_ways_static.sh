#!/bin/bash
# Programs on the simulator whose runtime is linked statically (it reaches the driver by dlopen, one
# dlsym and cuGetProcAddress_v2), and the same programs with libcudart 12 and 13: same output; every
# driver call that happened was seen, with its result, once; of the shared ones every runtime call.
. "$(dirname "$0")/lib.sh"
[ -e "$build/sim/lib/libcuda.so.1" ] || skip "no simulator in $build/sim"
[ -x "$tool" ] || skip "no $tool"
fakes=$build/sim/lib # what bare and spied put into LD_LIBRARY_PATH

# happened LAYER...: function, result and number of the recorded rows, from the simulator's truth.
happened() {
	awk -F'\t' -v layers="$*" '!/^#/ && index(layers, $2) { print $4, $5 }' truth/truth.*.tsv | sort | uniq -c
}

seen() {
	"$tool" dump "$1" | awk '$4 !~ /^\[/ { print $4, $6 }' | sort | uniq -c
}

# check PROGRAM LAYERS
check() {
	local program=$1 layers=$2 name trace
	name=$(basename "$program")
	rm -rf truth
	mkdir truth
	SPYSIM_HOST_SCALE=0 same "$name" "$program"
	rm -rf "$out"
	SPYSIM_HOST_SCALE=0 SPYSIM_TRUTH_ALL=0 SPYSIM_TRUTH=$tmp/truth spied "$program" >/dev/null 2>&1
	trace=$(the_trace) || exit 1
	happened $layers >happened
	seen "$trace" >seen
	[ -s happened ] || fail "$name: nothing happened"
	diff happened seen >seen.diff || fail "$name: happened (<), seen (>): $(head -n 10 seen.diff)"
	readable "$trace"
}

check "$bin/sim_mixed13" "runtime driver"
check "$bin/sim_mixed12" "runtime driver"
check "$bin/sim_mixed_static" driver
for static in "$bin"/sample_*_static; do
	[ -x "$static" ] || continue
	sample=${static##*/sample_}
	check "$build/sim/samples/${sample%_static}" "runtime driver"
	check "$static" driver
done
