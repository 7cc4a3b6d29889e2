#!/bin/bash
# dlsym and dlvsym: by handle (two files of one libcudart, each reaching its own), RTLD_DEFAULT, the
# program's handle, RTLD_NEXT, with and without a CUDA library that these may see: the same answers as
# without the shim, dlerror included, and each call recorded once.
. "$(dirname "$0")/lib.sh"

one=$fakes/libcudart.so.13 two=$fakes/second/libcudart.so.13
same handle "$bin/ways" handle "$one" "$two"
trace=$(the_trace) || exit 1
expect_records "$trace" cudaMalloc=4
readable "$trace"

same handles "$bin/ways" handle "$one" "$fakes/libcudart.so.12" "$two" "$fakes/libcudart.so.11.0"
trace=$(the_trace) || exit 1
expect_records "$trace" cudaMalloc=8

# Nobody in this process has these.
for how in default next; do
	same "no-$how" "$bin/ways" $how cudaMalloc cuInit cudaNoSuchFunction cuda _ c __cudaRegisterFatBinary
	grep -q '^[a-z]* cudaMalloc: none, undefined symbol: cudaMalloc' "no-$how.out" || fail "no dlerror"
	no_trace
done

for library in "$fakes"/libcudart.so.{11.0,12,13} "$fakes/libcuda.so.1"; do
	for how in local global; do
		same "$how-${library##*/}" "$bin/ways" $how "$library" cudaMalloc cuInit cudaGetErrorName printf
		calls=$(grep -c 'cudaMalloc: 0' "$how-${library##*/}.out")
		case $how-${library##*/} in
		local-* | *-libcuda.so.1) [ "$calls" = 0 ] || fail "cudaMalloc found: $how ${library##*/}" ;;
		*) [ "$calls" -gt 0 ] || fail "$how: no cudaMalloc in ${library##*/}" ;;
		esac
		[ "$calls" = 0 ] || expect_records "$(the_trace)" cudaMalloc="$calls"
	done
done

# A library of the program itself.
for library in libuse13.so libuse12.so; do
	for how in default next; do
		after=$bin/$library same "$how-after" "$bin/ways" $how cudaMalloc cuInit
		calls=$(grep -c 'cudaMalloc: 0' "$how-after.out")
		[ "$calls" -gt 0 ] || fail "$how after $library: not found"
		expect_records "$(the_trace)" cudaMalloc="$calls"
	done
done

for generation in 11.0 12 13; do
	for version in libcudart.so.11.0 libcudart.so.12 libcudart.so.13 NO_SUCH_VERSION; do
		same "version-$generation-$version" "$bin/ways" version "$fakes/libcudart.so.$generation" \
			cudaMalloc $version
		calls=$(grep -c '^dlvsym [0-9]' "version-$generation-$version.out")
		[ $version != libcudart.so.$generation ] || [ "$calls" -gt 0 ] || fail "$version is not found"
		[ "$calls" = 0 ] || expect_records "$(the_trace)" cudaMalloc="$calls"
	done
done
