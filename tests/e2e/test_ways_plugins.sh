#!/bin/bash
# Libraries opened at run time that bring their own libcudart: RTLD_LOCAL, RTLD_GLOBAL, several
# generations in one process, RTLD_DEEPBIND and another link-map namespace (not seen, but said so),
# and closed and opened again at another address.
. "$(dirname "$0")/lib.sh"

for mode in local global; do
	for generation in 11 12 13; do
		same "$mode$generation" "$bin/ways" plugin $mode "$bin/libuse$generation.so" "use$generation"
		grep -q "^cudart$generation cudaFree" "$mode$generation.out" || fail "wrong libcudart"
		trace=$(the_trace) || exit 1
		expect_records "$trace" cudaMalloc=1 cudaMemcpyAsync=1 cudaMemPrefetchAsync=1 cudaFree=1
		readable "$trace"
	done
	same "$mode-all" "$bin/ways" plugin $mode "$bin/libuse12.so" use12 \
		$mode "$bin/libuse13.so" use13 $mode "$bin/libuse11.so" use11 \
		$mode "$bin/libuse_driver.so" use_driver
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaMalloc=3 cudaMemPrefetchAsync=3 cudaFree=3 cuMemAlloc_v2=1
	readable "$trace"
done

# A plugin's own libcudart beside the program's.
before="" after="$bin/libuse13.so" same mixed "$bin/ways" plugin local "$bin/libuse12.so" use12

# (RTLD_DEEPBIND and AddressSanitizer exclude each other.)
if [ -z "$first" ]; then
	# What goes through the plugin's own libcudart is not seen; the calls of the first plugin are.
	same deepbind "$bin/ways" plugin local "$bin/libuse13.so" use13 deepbind "$bin/libuse12.so" use12
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaMalloc=1
	notes "$trace" | grep -q 'blind .*libuse12.so.*DEEPBIND' || fail "no note about RTLD_DEEPBIND"
	readable "$trace"
	same deepbind-first "$bin/ways" plugin deepbind "$bin/libuse12.so" use12 local "$bin/libuse13.so" use13
	notes "$(the_trace)" | grep -q 'blind .*libuse12.so.*DEEPBIND' ||
		fail "no early note about RTLD_DEEPBIND"
fi

same namespace "$bin/ways" plugin namespace "$bin/libuse13.so" use13 local "$bin/libuse13.so" use13
trace=$(the_trace) || exit 1
expect_records "$trace" cudaMalloc=1
notes "$trace" | grep -q 'blind .*libuse13.so.*namespace' || fail "no note about dlmopen"
readable "$trace"

for library in libuse13.so:use13 libuse12.so:use12; do
	same reopen "$bin/ways" reopen "$bin/${library%:*}" "${library#*:}"
	grep -q 'still there' reopen.out && fail "the test did not close the library"
	trace=$(the_trace) || exit 1
	expect_records "$trace" cudaMalloc=3 cudaMemcpyAsync=3 cudaFree=3
	readable "$trace"
done

# A second copy comes and goes more often than there are spare stubs: each time its calls are seen.
FAKE_MODE=quiet same again "$bin/ways" again "$fakes/libcudart.so.13" "$fakes/second/libcudart.so.13" 200
trace=$(the_trace) || exit 1
expect_records "$trace" cudaMalloc=201
notes "$trace" | grep 'second copies' && fail "spare stubs are used up"
readable "$trace"
