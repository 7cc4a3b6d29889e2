#!/bin/bash
# Another interposer preloaded before ours or after it: it sees each call once, we see it once, and
# the program sees what it would see without us; calls by linking, by dlsym and in the driver.
. "$(dirname "$0")/lib.sh"

other=$bin/libother.so
for order in before after; do
	before='' after=''
	declare "$order=$other"
	for program in use_rt11 use_rt12 use_rt13 use_rt_unversioned; do
		same "$program" "$bin/$program"
		expect "other $order ours: $program: other's calls" "$(grep -c '^other ' "$program.out")" 2
		trace=$(the_trace) || exit 1
		expect_records "$trace" cudaMalloc=1 cudaMemcpyAsync=1 cudaFree=1
		expect "$program: calls" "$(closing "$program.err")" "9 0 0"
		readable "$trace"
	done
	same driver "$bin/use_driver"
	expect_records "$(the_trace)" cuMemAlloc_v2=1 cuMemFree_v2=1
	same symbols "$bin/ways" symbols
	expect_records "$(the_trace)" cuMemAlloc_v2=1
	same handle "$bin/ways" handle "$fakes/libcudart.so.13" "$fakes/libcudart.so.12"
	expect_records "$(the_trace)" cudaMalloc=4
	same global "$bin/ways" global "$fakes/libcudart.so.13" cudaMalloc
	calls=$(grep -c '^cudart13 cudaMalloc' global.out)
	[ "$calls" -gt 0 ] || fail "global: no call"
	expect_records "$(the_trace)" cudaMalloc="$calls"
	same plugin "$bin/ways" plugin local "$bin/libuse12.so" use12 local "$bin/libuse13.so" use13
done

# What an interposer frees for itself inside a call of the program's is known for what it is.
[ -e "$build/sim/lib/libcuda.so.1" ] || { without "the simulator"; exit 0; }
fakes=$build/sim/lib before='' after=$bin/libhoard.so
rm -rf "$out"
spied "$bin/hoard" 2>/dev/null || fail "hoard"
kinds=$("$tool" dump "$(the_trace)" | sed -n 's/.* copy .* \(src=[a-z]*\).*/\1/p' | uniq | tr '\n' ' ')
expect "copies from the hoard and from what lies there afterwards" "$kinds" \
	"src=pinned src=pageable src=pinned src=pageable src=pinned src=pageable src=pinned src=pageable "
