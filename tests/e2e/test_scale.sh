#!/bin/bash
# What a report costs does not depend on of how many things a trace's records tell: a hundred times as many threads,
# streams, modules, notes, processes or ranks in as many records may not cost a hundred times as much. By CPU time, with room for a
# machine that does much else: what is quadratic takes a hundred times as long, and is far beyond that. And memory: by
# what each thing may take, and of traces that are nothing but new things.
. "$(dirname "$0")/lib.sh"
bench=$CUDASPY_BUILD/bench
export CUDASPY_JOBS=1 # the bounds are those of one thread

# CPU milliseconds and peak MiB of a report: cost RECORDS N SHAPE
cost() {
	"$bench/gentrace" "$tmp/gen" "$1" "$2" "$3" || fail "gentrace $*"
	"$bench/spawn" --quiet -- "$tool" report "$tmp/gen" |
		awk '$4 == 0 { printf "%d %d\n", $5, $3 / 1024 }'
	rm -rf "$tmp/gen"
}

# scales SHAPE RECORDS FEW MIB: what a hundred times FEW may take at most
scales() {
	local few many ms mib
	read -r few mib <<<"$(cost "$2" "$3" "$1")"
	read -r many mib <<<"$(cost "$2" $((100 * $3)) "$1")"
	ms=$((20 * few + 500))
	echo "$1: $3: $few ms; $((100 * $3)): $many ms, $mib MiB"
	[ -n "$few" ] && [ -n "$many" ] || fail "$1: no report"
	[ "$many" -le $ms ] || fail "$1: $many ms with $((100 * $3)), more than $ms"
	[ "$mib" -le "$4" ] || fail "$1: $mib MiB with $((100 * $3)), more than $4"
}

scales waiters 60000 10 80
scales streams 60000 200 24
scales modules 80000 200 60
scales notes 60000 200 16
scales processes 20000 5 45
CUDASPY_JOBS=2 scales processes 20000 5 90 # times threads
scales threads 80000 200 64
scales locks 60000 100 40
scales kernels 60000 200 16
scales stacks 60000 200 16
scales functions 40000 5 200
scales members 400000 1000 200
scales gpu 60000 100 16
# A digest has the same size and takes the same memory however many collectives there were; and it waits for no other rank: a
# communicator more is a few operations that are kept.
digested() { # digested RECORDS N SHAPE MIB
	local mib bytes
	"$bench/gentrace" "$tmp/gen" "$1" "$2" "$3" || fail "gentrace $*"
	mib=$("$bench/spawn" --quiet -- "$tool" digest -o "$tmp/x.digest" "$tmp/gen" | awk '$4 == 0 { print int($3 / 1024) }')
	rm -rf "$tmp/gen"
	bytes=$(stat -c %s "$tmp/x.digest")
	echo "digest of $3, $1 records, $2: $mib MiB, $bytes bytes"
	[ -n "$mib" ] && [ "$mib" -le "$4" ] || fail "a digest of $3, $2: $mib MiB, more than $4"
	[ "$bytes" -le 200000 ] || fail "a digest of $bytes bytes"
}
digested 100000 1 collectives 30
digested 1500000 1 collectives 30
digested 1000000 1000 communicators 110

echo "all of them"
