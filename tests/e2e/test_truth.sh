#!/bin/bash
# What the recorder says of programs it has never seen is what the simulator knows to be true: every
# call of every function, and every copy with its size and both kinds of memory. The truth comes from
# a run without the shim. Also: each trace is clean for babeltrace2 and has as many events as dump.
. "$(dirname "$0")/lib.sh"
need awk babeltrace2
sim="$here/../sim/with-sim"

# What cudaspy counted or recorded, and what it does on purpose neither: TRANSPARENT rows.
transparent=$(sed -n 's/^ENTRY(\([A-Za-z0-9_]*\),.*TRANSPARENT.*/\1/p' "$here/../../include/cudaspy/entrypoints.def" | tr "\n" " ")
transparent="$transparent cudaCreateChannelDesc" # the simulator does not write that one down

# From lines of a name and a number.
sum_up() {
	awk -v skip="$transparent" '
		BEGIN { n = split(skip, names, " "); for (i = 1; i <= n; i++) hidden[names[i]] = 1 }
		!hidden[$1] { count[$1] += $2 }
		END { for (f in count) print f, count[f] }' | sort
}

true_calls() {
	awk -F'\t' '!/^#/ { print $4, 1 }' truth/truth.*.tsv | sum_up
}

our_calls() {
	"$tool" dump "$out" | awk '
		$4 !~ /^\[/ { print $4, 1 }
		$4 == "[count]" {
			for (i = 5; i <= NF; i++) { split($i, p, "="); v[p[1]] = p[2] }
			print v["function"], v["count"]
		}' | sum_up
}

# Copies the application made itself, those of a graph being captured included.
true_copies() {
	awk -F'\t' '!/^#/ && $3 == 0 && $4 ~ /Memcpy/ && $8 > 0 && $5 == 0 { print $4, $8, $9, $10 }' \
		truth/truth.*.tsv | sort
}

our_copies() {
	"$tool" dump "$out" | awk '
		$3 == 0 && / copy / {
			delete v
			for (i = 7; i <= NF; i++) { split($i, p, "="); v[p[1]] = p[2] }
			if ($6 == 0) print $4, v["bytes"], v["src"], v["dst"]
		}' | sort
}

checked=0
for program in "$CUDASPY_BUILD/testapps/copies --quick" "$CUDASPY_BUILD/gpu/mixed" \
	"$CUDASPY_BUILD"/sim/samples/*; do
	name=$(basename "${program%% *}")
	[ -x "${program%% *}" ] && [[ $name != *.* ]] || continue
	rm -rf truth "$out"
	mkdir truth
	# shellcheck disable=SC2086
	SPYSIM_TRUTH=$tmp/truth "$sim" $program >bare.out 2>&1 || fail "$name: exit status $? on the simulator"
	# shellcheck disable=SC2086
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim" $program >spied.out 2>spied.err ||
		fail "$name: exit status $? under the shim: $(tail -n 3 spied.err)"
	true_calls >calls.true
	[ -s calls.true ] || fail "$name: the simulator wrote no call down"
	our_calls >calls.ours
	diff calls.true calls.ours >calls.diff ||
		fail "$name: calls that happened (<) and calls seen (>): $(head -n 8 calls.diff)"
	true_copies >copies.true
	our_copies >copies.ours
	diff copies.true copies.ours >copies.diff ||
		fail "$name: copies that happened (<) and copies seen (>): $(head -n 8 copies.diff)"
	readable $(traces)
	echo "$name: $(awk '{ n += $2 } END { print n }' calls.true) calls, $(wc -l <copies.true) copies: all as they were"
	checked=$((checked + 1))
done
[ $checked -gt 0 ] || skip "no program to try: they need the CUDA toolkit"
