#!/bin/bash
# Programs linked to libcudart 11.0, 12 and 13, to 12 and 13 at once (each reaching its own), to one
# without versions, and with weak references only: arguments and results as without the shim, and
# each call recorded once.
. "$(dirname "$0")/lib.sh"

once="cudaSetDevice=1 cudaMalloc=1 cudaMemcpyAsync=1 cudaMemcpyAsync_ptsz=1 cudaMemPrefetchAsync=1
cudaLaunchKernel=1 cudaStreamSynchronize=1 cudaStreamSynchronize_ptsz=1 cudaFree=1"
counted="cudaGetDeviceCount=1 cudaRuntimeGetVersion=1 cudaCreateChannelDesc=1 cudaGetErrorName=1"

for program in use_rt11 use_rt12 use_rt13 use_rt_unversioned; do
	same "$program" "$bin/$program"
	trace=$(the_trace) || exit 1
	expect_records "$trace" $once
	expect_counts "$trace" $counted
	expect "$program: calls in the closing line" "$(closing "$program.err")" "9 0 0"
	readable "$trace"
	# results other than success
	FAKE_RESULT=46 same "$program-46" "$bin/$program"
	trace=$(the_trace) || exit 1
	expect "$program: results recorded" "$(events "$trace" | grep -c 'result = 46, .*depth = 0')" 9
done

same use_both "$bin/use_both"
grep -q '^cudart13 cudaMemPrefetchAsync(e00000, 42, ptr, 0, 78)' use_both.out ||
	fail "use_both: libcudart 13 did not get its own arguments"
expect "use_both: calls that reached libcudart 12" "$(grep -c '^cudart12 ' use_both.out)" 26
trace=$(the_trace) || exit 1
for pair in $once; do
	expect_records "$trace" "${pair%=*}=3"
done
readable "$trace"

# Stubs without a real function behind them say that there is no device; nothing crashes.
same weak "$bin/use_weak"
CUDASPY_DISABLE=1 same weak-disabled "$bin/use_weak"
no_trace
