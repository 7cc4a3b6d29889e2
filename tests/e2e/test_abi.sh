#!/bin/bash
# Every function of the list, in each of its libraries, reached through the dynamic linker and through
# dlsym: all six argument registers, eight vector registers and the stack words arrive as they were
# passed, and rax, rdx, xmm0 and xmm1 come back. Then with the inspectors at work on words that they
# may take for addresses; and each call was seen, once. And while recording is dormant, when most calls
# take another path.
. "$(dirname "$0")/lib.sh"
export CUDASPY_NOFUNCTIONS=1 # else of functions on the host something else arrives: test_host_functions.sh

ways="link dlsym"
[ -z "$first" ] || ways=link # test_ways_dlsym is under a sanitizer, too
for pair in 0:libcuda.so.1 11:libcudart.so.11.0 12:libcudart.so.12 13:libcudart.so.13; do
	program=$bin/abi_${pair%:*} library=$fakes/${pair#*:}
	for way in $ways; do
		FAKE_MODE=hash CUDASPY_CAPTURE_RANGE=command same "abi_${pair%:*}_${way}_dormant" "$program" "$way" mixed "$library"
		expect "abi_${pair%:*}_${way}_dormant: records" "$(events "$(the_trace)" | grep -c 'depth = 0')" 0
		FAKE_MODE=hash CUDASPY_DISABLE=1 same "abi_${pair%:*}_$way" "$program" "$way" random "$library"
		for mode in hash:mixed hash0:mixed hash:null hash0:null; do
			[ "$way $mode" != "dlsym ${mode%:*}:null" ] || continue
			name=abi_${pair%:*}_${way}_$mode
			FAKE_MODE=${mode%:*} same "$name" "$program" "$way" ${mode#*:} "$library"
			trace=$(the_trace) || exit 1
			read -r _ _ traced _ counted _ <"$name.out"
			read_events "$trace"
			expect "$name: records" "$(grep -c 'depth = 0' "$text")" "$traced"
			expect "$name: counts" "$(counts "$trace")" "$counted"
			readable "$trace"
		done
	done
done
