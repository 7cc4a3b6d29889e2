#!/bin/bash
# Copies between GPUs that go through the host, and near twins that do not (peers.c): cudaspy says so of those of which
# the simulator knows that they did, and of no others.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
export SPYSIM_GPUS=2 SPYSIM_TRUTH=$tmp

# peers HABIT yes|no: do its copies go through the host?
peers() {
	local staged told
	rm -rf "$out" truth.*.tsv
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim" "$bin/peers" "$1" 2>err ||
		fail "peers $1: status $?: $(cat err)"
	staged=$(awk -F'\t' '$3 == 0 && $NF == "STAGED"' truth.*.tsv | wc -l)
	expect "$1: copies that the simulator staged" "$staged" "$([ "$2" = yes ] && echo 20 || echo 0)"
	"$tool" report --format=json "$out" >report.json || fail "no report: $1"
	told=$(jq '[.findings[] | select(.id == "staged-peer-copy") | .count] | add // 0' report.json)
	expect "$1: copies told of" "$told" "$staged"
}

# Access ends with the reset of either device, and with either of its two contexts.
peers not_reset no
peers reset yes
peers reset_peer yes
peers reset_and_again no
peers destroyed_other no
peers destroyed yes
peers destroyed_peer yes

# Mapped memory has a list of those who may reach it, to which peer access is nothing; nor it to other memory.
peers mapped_opened no
peers mapped yes
peers mapped_enabled yes
jq -e '.findings[] | select(.id == "staged-peer-copy") | .fix | test("cuMemSetAccess")' report.json >/dev/null ||
	fail "another cure for mapped memory: $(jq .findings report.json)"
peers enabled_beside no
peers opened_beside yes

# It lies where its handle says, whatever device was current, and outlives the contexts.
peers mapped_by_one yes
peers mapped_by_other yes
peers mapped_by_one_opened no
peers mapped_on_one no

# So it is with pools.
peers pooled_opened no
peers pooled_opened_named no
peers pooled yes
peers pooled_named yes
peers pooled_opened_to_own yes
peers pooled_enabled yes
jq -e '.findings[] | select(.id == "staged-peer-copy") | .fix | test("cudaMemPoolSetAccess")' report.json >/dev/null ||
	fail "another cure for pools: $(jq .findings report.json)"
peers half_pooled_enabled no
peers pool_opened_beside yes
peers own_pool yes
peers own_pool_opened no
