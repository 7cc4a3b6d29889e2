#!/bin/bash
# tests/gpu/waits, the visit to a machine with GPUs, on the simulator: tables come out, also from the
# archive. Simulated: no measurement.
. "$(dirname "$0")/lib.sh"
need jq
[ -x "$build/testapps/contention" ] || skip "the applications are not built (no CUDA toolkit?)"

[ -z "$first" ] || skip "programs that are not built for a sanitizer"
visit="$here/../gpu/waits"
export SPYSIM_GPUS=4 # threads enough that they always lose something
"$visit" --sim --build "$build" --out "$tmp/visit" malloc-host graph \
	>visit.out 2>visit.err || fail "the visit: status $?: $(cat visit.err)"
grep -q SIMULATED visit.out || fail "the visit does not say that it is simulated"

# row FILE CALL: the cells of the map, a line each: the call is the 1st, 'lost, told' the 8th.
row() {
	grep "^| $2 |" "$1" | tr '|' '\n' | sed '1d; s/^ *//; s/ *$//'
}
for call in malloc-host graph; do
	row visit.out $call >row
	[ -s row ] || fail "no row for $call: $(cat visit.out visit.err)"
	expect "$call: cells that are numbers" "$(sed -n 2,9p row | grep -c '^[0-9.]*$')" 8
	expect "$call: parts in per cent" "$(sed -n 10,15p row | grep -c '^[0-9]* %$')" 6
done
grep -q 'across GPUs' visit.out || fail "no heading: $(cat visit.out)"
row visit.out malloc-host | sed -n 16p | grep -q '^libcuda' || fail "malloc-host: no lock is named: $(row visit.out malloc-host)"

"$visit" --read "$tmp/visit" --build "$build" --out "$tmp/read" >read.out 2>read.err ||
	fail "reading: status $?: $(cat read.err)"
grep '^|' visit.out >visit.map
grep '^|' read.out | diff visit.map - >map.diff || fail "read from the archive, the map differs: $(cat map.diff)"
mkdir nolib
printf '#!/bin/sh\nexit 127\n' >nolib/cudaspy # what ld.so does where libdw is missing
chmod +x nolib/cudaspy
"$visit" --read "$tmp/visit" --build nolib >nolib.out 2>nolib.err || fail "without an analyzer: status $?: $(cat nolib.err)"
expect "without an analyzer: cells that are not known" "$(row nolib.out malloc-host | sed -n 8,15p | grep -c '^-$')" 8
"$here/../gpu/neutral" --build "$build" --rounds 1 --quick --threads 2 --calls event >neutral.out 2>neutral.err ||
	fail "neutral: status $?: $(cat neutral.err)"
grep -q SIMULATED neutral.out || fail "neutral does not say that it is simulated"
expect "neutral: four ways" "$(grep -cE '^event( +[0-9.e+]+ [0-9.e+]+ \([0-9.e+]+ [0-9.e+]+\)){4} *$' neutral.out)" 1
echo "the map, simulated:"
cat visit.map
