#!/bin/bash
# The driver reached by linking, by one dlsym for each function, through cuGetProcAddress_v2 as a
# static runtime does it (versions; flags 0 and 2), and through cudaGetDriverEntryPoint and
# ...ByVersion: the right function of the driver gets the right arguments, and each call is recorded
# once, under the exported name.
. "$(dirname "$0")/lib.sh"

same linked "$bin/use_driver"
trace=$(the_trace) || exit 1
expect_records "$trace" cuInit=1 cuMemAlloc_v2=1 cuMemcpyHtoDAsync_v2=1 cuMemcpyHtoDAsync_v2_ptsz=1 \
	cuLaunchKernel=1 cuStreamSynchronize=1 cuMemFree_v2=1
expect_counts "$trace" cuDriverGetVersion=1
readable "$trace"

same symbols "$bin/ways" symbols
grep -q '^brand new 5' symbols.out || fail "a function without a row does not pass through"
trace=$(the_trace) || exit 1
expect_records "$trace" cuInit=1 cuMemAlloc_v2=1 cuMemcpyHtoDAsync_v2=1 cuLaunchKernel=1 \
	cuStreamSynchronize=1
expect_counts "$trace" cuDriverGetVersion=1
notes "$trace" | grep -q 'cuBrandNew' || fail "no note names cuBrandNew"
readable "$trace"

same procaddress "$bin/ways" procaddress
trace=$(the_trace) || exit 1
expect_records "$trace" cuInit=4 cuMemAlloc_v2=2 cuMemAlloc=1 cuMemcpyHtoDAsync_v2=1 \
	cuMemcpyHtoDAsync_v2_ptsz=2 cuLaunchKernel=1 cuLaunchKernel_ptsz=2 cuStreamSynchronize=1 \
	cuStreamSynchronize_ptsz=2
expect_counts "$trace" cuDriverGetVersion=3
notes "$trace" | grep -q 'cuBrandNew' || fail "no note names cuBrandNew"
notes "$trace" | grep -q 'cuNoSuchFunction' && fail "a note about a function that does not exist"
readable "$trace"

for generation in 11.0 12 13; do
	same "entrypoint-$generation" "$bin/ways" entrypoint "$generation"
	grep -q '^alloc 0: ' "entrypoint-$generation.out" || fail "entry point of $generation: no call"
	trace=$(the_trace) || exit 1
	expect_records "$trace" "cuMemAlloc_v2=$(grep -c '^alloc' "entrypoint-$generation.out")" \
		cuStreamSynchronize_ptsz="$(grep -c 'synchronize 0' "entrypoint-$generation.out")"
	readable "$trace"
done
