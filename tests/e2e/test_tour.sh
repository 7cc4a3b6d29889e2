#!/bin/bash
# testapps/tour, the visit with all bundled applications, on the simulator: some stops, bare and recorded,
# with and without MPS; tables, reports and pictures come out, also from the archive. Simulated: no
# measurement.
. "$(dirname "$0")/lib.sh"
need jq gnuplot
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/nbody" ] || skip "the applications are not built (no CUDA toolkit?)"
unset CUDA_MPS_PIPE_DIRECTORY
tour=$here/../../testapps/tour
export TMPDIR=$tmp # by which a daemon that is left behind is known

"$tour" --sim --build "$build" --out "$tmp/visit" clean copies matmul-pin nbody-shares-mps copies-rate-mps contention \
	>tour.out 2>tour.err || fail "the tour: status $?: $(tail -n 5 tour.err)"
grep -q SIMULATED tour.out || fail "the tour does not say that it is simulated"
for stop in clean copies matmul-pin nbody-shares-mps copies-rate-mps contention; do
	sed -n "/^$stop: /,/^$/p" "$tmp/visit/tables.txt" >stop
	grep -q 'under cudaspy, times bare: [0-9.]* (median of [0-9]* rows)' stop || fail "$stop: nothing is compared: $(cat stop)"
	grep -q "^$stop: " tour.out || fail "$stop is not on the screen"
	grep -q 'WAITS: where the time inside calls went' stop || fail "$stop: no report: $(cat stop)"
done
# What the applications show is in the reports.
holds() {
	jq -e "$2" "$tmp/visit/reports/$1.shim.json" >/dev/null || fail "$1: not so: $2: $(head -n 30 "$tmp/visit/reports/$1.shim.txt")"
}
holds copies ".waits.lock_ns > 50e6 and any(.findings[]; .id == \"pageable-copy\" and .severity == \"problem\" and (.what | test(\"to pageable\")))"
# Where the threads have to share CPUs, one of them may be late now and then: a minor finding at most.
holds clean '(.waits.not_running_ns > 0.02 * .waits.total_ns) as $crowded |
	.waits.lock_ns + .waits.gpu_hidden_ns < 0.01 * .waits.total_ns and
	([.findings[] | select(.id != "oversubscribed-host" and ($crowded and .severity == "minor" | not))] == [])'
holds matmul-pin '.waits.cross_device_ns > 0.5 * .waits.lock_waited_ns'
holds nbody-shares-mps '[.sharing[] | select(.how == "MPS")] | length == 2'
for name in throughput contention nbody; do
	head -c 4 "$tmp/visit/pictures/$name.png" | grep -q PNG || fail "no picture $name.png"
	grep -q '</svg>' "$tmp/visit/pictures/$name.svg" || fail "no picture $name.svg"
done
for command in nbody:'testapps/nbody --mode mps --shares 30,70' throughput:'testapps/copies --throughput --workers 1,2,4,8,16,32'; do
	grep -q "under MPS: ${command#*:}" "$tmp/visit/pictures/${command%%:*}.svg" || fail "the picture does not tell its command: $command"
done
grep -q 'share 30 %' "$tmp/visit/pictures/nbody.svg" || fail "the picture does not tell the shares"

"$tour" --read "$tmp/visit" --build "$build" --out "$tmp/read" >read.out 2>read.err || fail "reading: status $?: $(cat read.err)"
diff <(grep -v '^pictures' "$tmp/visit/tables.txt") <(grep -v '^pictures' "$tmp/read/tables.txt") >read.diff ||
	fail "read from the archive, the tables differ: $(head -n 10 read.diff)"
cmp -s "$tmp/visit/pictures/nbody.png" "$tmp/read/pictures/nbody.png" || fail "read from the archive, a picture differs"

# Without gnuplot it says why there are no pictures; and with it, where nothing was run that has one.
mkdir poor
find /usr/bin /bin -maxdepth 1 ! -type d ! -name 'gnuplot*' -exec ln -sf -t poor {} +
PATH=$tmp/poor "$tour" --read "$tmp/visit" --build "$build" --out "$tmp/plain" >plain.out 2>plain.err || fail "without gnuplot: status $?: $(cat plain.err)"
grep -q '^no pictures: gnuplot is not installed here' plain.out || fail "without gnuplot: does not say why there are no pictures: $(tail -n 3 plain.out)"

# Slow-downs against slow-downs, of a visit whose numbers are known: times, and rates, of which less is slower.
mkdir -p known/{contention,nbody-mps}/{bare,shim}
echo "cpu: none" >known/machine.txt
echo testapps/contention | tee known/{contention,nbody-mps}/{bare,shim}/command >/dev/null
contention() {
	printf '%s\n' call,mode,workers,mean_us graph,one,1,2.0 "graph,threads,8,$1" event,one,1,1.0 "event,threads,8,$2"
}
contention 34.0 3.0 >known/contention/bare/stdout
contention 36.0 6.0 >known/contention/shim/stdout
printf '%s\n' mode,process,ginteractions_per_s alone,0,1000 alone,all,1000 shared,0,400 shared,1,600 shared,all,900 |
	tee known/nbody-mps/{bare,shim}/stdout >/dev/null
"$tour" --read "$tmp/known" --build "$build" --out "$tmp/of-known" >known.out 2>&1 || fail "the known visit: $(cat known.out)"
sed -n '/^  slow-down bare/,/^$/p' "$tmp/of-known/tables.txt" >slow-downs
diff - slow-downs >known.diff <<-'END' || fail "slow-downs of the known visit: $(cat known.diff)"
	  slow-down bare 2.00, under cudaspy 2.00 (1.00 times): shared, the largest of 1; means of ginteractions_per_s, against mode=alone
	  slow-down under cudaspy, times bare: 1.00 (median), 1.00 (shared) to 1.00 (shared); outside 0.8 to 1.25: 0
	    slow-down of                            bare  under cudaspy  times
	    shared                                  2.00           2.00   1.00

	  slow-down bare 17.00, under cudaspy 18.00 (1.06 times): graph/threads, the largest of 2; means of mean_us, against mode=one
	  slow-down under cudaspy, times bare: 1.53 (median), 1.06 (graph/threads) to 2.00 (event/threads); outside 0.8 to 1.25: 1
	  slow-down of                              bare  under cudaspy  times
	    graph/threads                          17.00          18.00   1.06
	  ! event/threads                           3.00           6.00   2.00

END
grep -q '^  ! event/threads ' known.out || fail "what is more than noise is not on the screen: $(cat known.out)"

# A build without the simulator's daemon: what needs no MPS is done.
mkdir -p nomps/sim
ln -s "$build"/* nomps/ 2>/dev/null
ln -s "$build"/sim/* nomps/sim/
rm nomps/sim/nvidia-cuda-mps-control
"$tour" --sim --build "$tmp/nomps" --out "$tmp/alone" nbody-mps nbody-shares-mps >alone.out 2>alone.err ||
	fail "without a daemon: status $?: $(tail -n 5 alone.err)"
grep -q '^tour: nbody-mps: without MPS' alone.err || fail "without a daemon: not said: $(cat alone.err)"
grep -q '^tour: nbody-shares-mps: skipped' alone.err || fail "without a daemon: not skipped: $(cat alone.err)"
expect "modes without a daemon" "$(sed -n 's/^    \(alone\|shared\|mps\)[ ,].*/\1/p' "$tmp/alone/tables.txt" | uniq | tr '\n' ' ')" "alone shared "

diff -r "$tmp/visit/csv" "$tmp/read/csv" >csv.diff || fail "read from the archive, the CSV files differ: $(head -n 5 csv.diff)"
for name in clean.bare clean.cudaspy copies-rate-mps.bare contention.cudaspy; do
	head -n 1 "$tmp/visit/csv/$name.csv" | grep -qE '^[a-z_,0-9]+$' || fail "no $name.csv: $(ls "$tmp/visit/csv")"
done
expect "CSV files of a visit" "$(cd "$tmp/of-known/csv" && echo *)" \
	"contention.bare.csv contention.cudaspy.csv nbody-mps.bare.csv nbody-mps.cudaspy.csv"

"$tour" --build "$build" nosuch >/dev/null 2>err
expect "status for a stop that is none" $? 2
grep -q 'no stop nosuch' err || fail "a stop that is none: $(cat err)"
left=$(grep -lzF nvidia-cuda-mps /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
	grep -qzF "CUDA_MPS_PIPE_DIRECTORY=$tmp/" "${file%cmdline}environ" 2>/dev/null && echo "$file"
done)
[ -z "$left" ] || fail "a daemon was left behind: $left"
grep 'under cudaspy' tour.out
