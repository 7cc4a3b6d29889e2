#!/bin/bash
# tests/gpu/compare, which judges the runs on real GPUs, finds what differs: a call too few, a call that
# only a static runtime may explain, a copy of another kind; and is content with what agrees.
. "$(dirname "$0")/lib.sh"
explained=$here/../gpu/explained.tsv

# judge PROGRAM: status of comparing `dump` with `truth` as if they were of that program.
judge() {
	mkdir -p "audit/$1/truth"
	cp truth "audit/$1/truth/truth.tsv"
	"$here/../gpu/compare" dump "audit/$1/truth/truth.tsv" "$explained" >compare.out 2>&1
	echo $?
}

printf '%s\n' \
	'0.000001 1 0 cudaMalloc 0.000001 0' \
	'0.000002 1 0 cudaMemcpyAsync 0.000001 0 copy direction=h2d src=pageable dst=device bytes=64' \
	'0.000003 1 1 cuMemcpyHtoDAsync_v2 0.000001 0' >dump
printf 'call\truntime\tcudaMalloc\t1\ncall\truntime\tcudaMemcpyAsync\t1\ncall\tdriver\tcuMemcpyHtoDAsync_v2\t1\n' >truth
printf 'copy\tcudaMemcpyAsync\tcuMemcpyHtoDAsync_v2\tHtoD\tpageable\tdevice\t64\t1\t7\t0\n' >>truth
expect "the same" "$(judge mixed)" 0
cp truth same
sed 's/cudaMalloc\t1/cudaMalloc\t2/' same >truth
expect "a call of the runtime not seen" "$(judge mixed)" 1
expect "the same, with a static runtime" "$(judge mixed-static)" 0
sed 's/cuMemcpyHtoDAsync_v2\t1$/cuMemcpyHtoDAsync_v2\t2/' same >truth
expect "a call of the driver not seen, with a static runtime" "$(judge mixed-static)" 1
sed 's/pageable/pinned/' same >truth
expect "another kind of memory" "$(judge mixed)" 1
expect "another kind of memory, with a static runtime" "$(judge mixed-static)" 1
