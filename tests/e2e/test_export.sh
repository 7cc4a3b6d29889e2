#!/bin/bash
# `cudaspy export`: counts and sums of what is exported are those of the report, for several kinds of recordings and for parts
# of them; a file has its name when it is complete, or not at all.
. "$(dirname "$0")/lib.sh"
need python3
bench=$CUDASPY_BUILD/bench
check=$here/check_export.py
formats="chrome"

# compare NAME [OPTION...] DIR: all formats against the report with the same options.
compare() {
	local name=$1 format
	shift
	timeout 120 "$tool" report --nested --format=json "$@" >report.json || fail "$name: no report"
	for format in $formats; do
		timeout 120 "$tool" export --format="$format" -o "$format.out" "$@" || fail "$name: no $format"
		python3 "$check" "$format" "$format.out" report.json >figures || fail "$name, $format: $(cat figures)"
	done
}

# ---- shapes of traces ------------------------------------------------------------------------------
for shape in "loop 20000 4" "threads 4000 100" "waiters 6000 4" "gpu 20000 10" "processes 2000 5" "kernels 6000 40" "stacks 6000 40"; do
	read -r name records n <<<"$shape"
	rm -rf gen
	"$bench/gentrace" gen "$records" "$n" "$name" || fail "gentrace $shape"
	compare "$name" gen
done

# ---- the file ----------------------------------------------------------------------------------------
mkdir empty
"$tool" export --format=chrome -o none.json empty 2>err && fail "an export of nothing"
[ ! -e none.json ] || fail "a file of nothing"
echo before >old.json
"$tool" export --format=chrome -o old.json empty 2>err && fail "an export of nothing"
expect "an older file" "$(cat old.json)" before
expect "files left" "$(ls | grep -c '\.new')" 0
"$tool" export --format=chrome gen >piped.json || fail "standard output"
cmp -s piped.json <("$tool" export --format=chrome -o - gen) || fail "-o - differs"
"$tool" export --format=chrome -o /dev/full gen 2>err
expect "status with a full disk" $? 2
grep -q 'No space left' err || fail "a full disk: $(cat err)"
"$tool" export --format=nonsense -o x gen 2>err
expect "status of an unknown format" $? 2
grep -q "no format 'nonsense' (one of chrome" err || fail "an unknown format: $(cat err)"
"$tool" export -o x gen 2>err
expect "status without a format" $? 2
