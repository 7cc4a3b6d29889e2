#!/bin/bash
# What a program that runs for weeks makes more and more of: kernels with new names, plugins that come and go. What the
# recorder remembers of them has a bound; what is beyond it is counted, and `cudaspy info` shows both.
. "$(dirname "$0")/lib.sh"
[ -x "$tool" ] || skip "no $tool"
need jq
export FAKE_MODE=quiet

# memory KEY: of the recorder's own in the trace.
memory() {
	"$tool" info --format=json "$(the_trace)" | jq ".recorder_memory[0].$1"
}

same few "$bin/life" kernels 100
expect "kernels" "$(memory kernels)" 100
expect "left out" "$(memory left_out)" 0
few=$(memory heap_bytes)

same many "$bin/life" kernels 66000
trace=$(the_trace) || exit 1
expect "kernels" "$(memory kernels)" 65536
expect "left out" "$(memory left_out)" 465
expect_records "$trace" cudaLaunchKernel=66000
expect "launches of kernels beyond the bound" "$("$tool" dump "$trace" |
	grep -c 'cudaLaunchKernel .* kernel=\(65536\|"(kernels beyond\)')" 465
many=$(memory heap_bytes)
[ "$many" -gt "$few" ] && [ "$many" -le $((32 << 20)) ] || fail "memory: $few bytes for 100 kernels, $many for 66000"
"$tool" info "$trace" | grep -q '^RECORDER' || fail "cudaspy info does not show it"

same again "$bin/ways" again "$fakes/libcudart.so.13" "$fakes/second/libcudart.so.13" 100
[ "$(memory spare_stubs)" -le 12 ] || fail "$(memory spare_stubs) spare stubs for six functions"
once=$(memory heap_bytes)
same again "$bin/ways" again "$fakes/libcudart.so.13" "$fakes/second/libcudart.so.13" 1000
[ "$(memory heap_bytes)" -le $((once + 4096)) ] || fail "memory: $once bytes, after ten times as much $(memory heap_bytes)"
