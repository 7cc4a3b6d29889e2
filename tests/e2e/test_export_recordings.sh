#!/bin/bash
# `cudaspy export` of recorded programs: waits for locks, copies, times of GPUs, ranges, ranks, stacks; of parts of them, of a
# recording that was torn off, and of names that are none.
. "$(dirname "$0")/lib.sh"
. "$here/export.sh"
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
apps=$build/testapps
[ -x "$apps/contention" ] || skip "no test applications built: no CUDA toolkit"

# recorded NAME PROGRAM...: into the folder NAME.
recorded() {
	local name=$1
	shift
	CUDASPY_OUT=$tmp/$name CUDASPY_QUIET=1 "$sim" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" timeout -k 5 100 \
		"$@" >"$name.out" 2>"$name.err" || fail "$name: status $?: $(tail -n 3 "$name.err")"
}

# has WORD...: figures of the last comparison.
has() {
	local word
	for word in "$@"; do
		[[ $figures == *" $word"* ]] || fail "no $word: $figures"
	done
}

recorded contention "$apps/contention" --quick --csv
compare contention contention
has wait "nested call" outside arrows
[[ $figures != *" 0 arrows"* ]] || fail "contention: no arrows: $figures"
compare "contention, a GPU" --gpu=1 contention
compare "contention, a while" --from=20% --to=60% contention
compare "contention, functions" --function='cudaMalloc*,cudaFree' contention

recorded copies "$apps/copies" --quick --csv
compare copies copies
compare "copies, a phase" --from=phase --to=phase copies

if [ -e "$build/libcudaspy_gpu.so" ]; then
	CUDASPY_GPU=1 recorded starved "$apps/starved" --quick --csv --variant sleep
	compare starved starved
	has operation idle arrows
else
	without "times of GPUs: no cupti.h"
fi

recorded ranks "$apps/ranks" --quick --csv --ranks 3 --gpus 2 --straggler 1:cpu:2:20
compare ranks ranks
has collective
compare "ranks, one of them" --rank=1 ranks

recorded nvtx "$bin/nvtx" all
compare ranges nvtx
has range

# ---- torn off, and names that are none ---------------------------------------------------------------------
cp -r contention torn
for file in $(find torn -name 'stream_*' -size +20k | head -n 3); do
	truncate -s "$(($(stat -c %s "$file") * 2 / 3))" "$file"
done
compare torn torn
rm -rf gen
"$bench/gentrace" gen 3000 3 loop || fail "gentrace"
find gen -name metadata -exec sed -i "s|program = \"[^\"]*\"|program = \"/x/a\\\\\\\\\\\\\"b\x01\xff\xc3</script>\"|" {} +
compare "hostile names" gen

# ---- the holder's call may be over --------------------------------------------------------------------------
# Of the second wait the holder is concluded: thread 101 had the lock last, in cudaFreeHost, and makes another call by then.
cat >over.log <<'END'
trace app.100 pid=100 program="/app" clock_source="tsc" probes=1
slot 0
3us gpu device=0 cc_major=9 cc_minor=0 bytes=1000 name="G" uuid="GPU-a" pci="0"
slot 1 tid=101
10us thread tid=101 name="a"
1500us released kind=mutex fn=cuMemFreeHost outer_fn=cudaFreeHost object=0x1000 depth=1
2ms call cudaFreeHost duration=1ms device=0
9ms call cudaMallocHost duration=6ms device=0
slot 2 tid=102
10us thread tid=102 name="b"
1100us wait kind=mutex fn=cudaEventCreate duration=80us object=0x1000 device=0 holder=101 holder_fn=cudaFreeHost holder_device=0
1200us call cudaEventCreate duration=300us device=0
5ms wait kind=mutex fn=cudaEventCreate duration=2ms object=0x1000 device=0
5001us call cudaEventCreate duration=3ms device=0
END
mkdir over && "$bin/log_traces" over.log over || fail "no traces of over.log"
compare "a holder's call that is over" over
has "2 wait" "1 arrows"
