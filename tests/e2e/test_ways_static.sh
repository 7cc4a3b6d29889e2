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
	awk -F'\t' -v layers="$*" '!/^#/ && index(layers, $2) { n[$4 " " $5]++ }
		END { for (call in n) print call, n[call] }' truth/truth.*.tsv | sort
}

# The same from a trace: of rows that are recorded, calls inside others may only be counted, as if they succeeded; rows that are
# counted may have records.
seen() {
	"$tool" dump "$1" | awk '
		FILENAME != "-" { if (/^ENTRY/ && / TRACED,/) traced[substr($1, 7, length($1) - 7)] = 1; next }
		$4 in traced { n[$4 " " $6]++ }
		$4 == "[count]" {
			split($8, function_is, "=")
			split($9, count_is, "=")
			if (function_is[2] in traced) n[function_is[2] " 0"] += count_is[2]
		}
		END { for (call in n) print call, n[call] }' "$here/../../include/cudaspy/entrypoints.def" - | sort
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
	[ -x "$static" ] || { without "the samples (no CUDA toolkit)"; continue; }
	sample=${static##*/sample_}
	check "$build/sim/samples/${sample%_static}" "runtime driver"
	check "$static" driver
done

# inside NAME: how many calls of a driver's function inside others a trace has one by one, and how many counted.
inside() {
	"$tool" dump "$(the_trace)" | awk -v name="$1" '
		$3 == 1 && $4 == name { recorded++ }
		$4 == "[count]" && $8 == "function=" name { split($9, is, "="); counted += is[2] }
		END { print recorded + 0, counted + 0 }'
}

# They are counted there, unless somebody asks for them; what starts a device up is recorded.
rm -rf "$out"
spied "$build/sim/samples/vector_add" >/dev/null 2>&1
launches=$("$tool" dump "$(the_trace)" | grep -c ' 0 _*cudaLaunchKernel ')
[ "$launches" -gt 0 ] || fail "vector_add launched nothing"
expect "launches inside" "$(inside cuLaunchKernel)" "0 $launches"
expect "allocations inside" "$(inside cuMemAlloc_v2)" "0 3"
expect "contexts inside" "$(inside cuDevicePrimaryCtxRetain)" "1 0"
rm -rf "$out"
CUDASPY_TRACE='cuLaunchKernel,cuMem*' spied "$build/sim/samples/vector_add" >/dev/null 2>&1
expect "launches inside, asked for" "$(inside cuLaunchKernel)" "$launches 0"
expect "allocations inside, asked for" "$(inside cuMemAlloc_v2)" "3 0"
