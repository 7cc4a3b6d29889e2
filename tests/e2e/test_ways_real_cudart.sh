#!/bin/bash
# The toolkit's own libcudart, shared and static, over a driver whose cuInit returns 100: it looks all
# its functions up through us, and every call still says cudaErrorNoDevice.
. "$(dirname "$0")/lib.sh"
[ -x "$bin/real_shared" ] || skip "no CUDA toolkit when this was built"
nodevice=$build/sim/nodevice
[ -e "$nodevice/libcuda.so.1" ] || skip "no driver without devices in $nodevice"
fakes=$nodevice # what bare and spied put into LD_LIBRARY_PATH

same shared "$bin/real_shared"
grep -q '^malloc: 100 cudaErrorNoDevice' shared.out || fail "not cudaErrorNoDevice: $(cat shared.out)"
trace=$(the_trace) || exit 1
expect_records "$trace" cudaMalloc=1 cudaFree=1 cudaStreamCreate=1 cudaMemcpyAsync=1 cudaMemset3D=1 \
	cudaMalloc3DArray=1 cudaDeviceSynchronize=1 cudaGetDeviceCount=1
expect_counts "$trace" cudaGetDeviceCount=0 cudaCreateChannelDesc=1 # the driver begins in the former, so that it has a record
events "$trace" | grep '"cudaMalloc"' | grep -q 'result = 100,' || fail "the result is not in the trace"
[ "$(records "$trace" cuInit)" -ge 1 ] || fail "the runtime's cuInit was not seen"
readable "$trace"

same static "$bin/real_static"
grep -q '^malloc: 100 cudaErrorNoDevice' static.out || fail "not cudaErrorNoDevice: $(cat static.out)"
trace=$(the_trace) || exit 1
[ "$(records "$trace" cuInit)" -ge 1 ] || fail "the static runtime's cuInit was not seen"
expect_records "$trace" cudaMalloc=0
readable "$trace"

for how in shared static; do
	same "launch_$how" "$bin/real_launch_$how"
	readable "$(the_trace)"
done
expect_records "$(the_trace)" cudaLaunchKernel=0

# No driver at all: as without the shim.
fakes=
for how in shared static launch_shared launch_static; do
	same "no-driver-$how" "$bin/real_$how"
done
