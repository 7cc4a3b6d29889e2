#!/bin/bash
# cudaspy-mpi with each MPI that is installed: the digest of all ranks is, byte for byte, what `cudaspy digest` makes of all traces
# and `cudaspy merge` of all digests; what is torn, missing or not equal is named, the rest is reported, and nobody hangs;
# ranks on hosts with disks of their own read their own.
. "$(dirname "$0")/lib.sh"
need jq python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
rank=$build/tests/recipes/rank
gendigest=$build/tests/scale/gendigest
[ -x "$rank" ] && [ -x "$gendigest" ] || skip "no $rank or $gendigest: make test-build"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=60 SPYSIM_GPUS=8 CUDASPY_QUIET=1 RANK_MEET=$tmp RANK_LATE=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1

# status WANTED WHAT CMD...
status() {
	local wanted=$1 what=$2 got
	shift 2
	timeout -k 5 120 "$@" >out 2>err
	got=$?
	[ "$got" = "$wanted" ] || fail "$what: exit status $got, not $wanted: $(tail -n 5 err)"
}

said() {
	grep -qF -- "$1" err || fail "no word of '$1': $(cat err)"
}

# ---- a job, and jobs that a generator has made ------------------------------------------------
for i in 0 1 2 3; do
	RANK=$i WORLD_SIZE=4 LOCAL_RANK=$i "$sim" "$tool" run --no-report -o traces -- timeout -k 5 100 "$rank" 30 >rank$i.out 2>&1 &
done
wait
expect "traces" "$(ls traces | wc -l)" 4
"$tool" digest -o wanted.digest traces 2>err || fail "no digest: $(cat err)"
"$gendigest" many 7 120 --hosts=15 >planted.json 2>err || fail "no digests: $(cat err)"
"$tool" merge -o many.digest many 2>err || fail "no merge: $(cat err)"
"$gendigest" other 8 4 >/dev/null 2>err || fail "no digests: $(cat err)"

cp -r traces torn
find torn/*.rank2-* -type f -delete
cp -r traces packed
"$tool" pack packed >/dev/null 2>err || fail "cannot pack: $(cat err)"
# Processes without a rank, one of them recorded in parts.
"$sim" "$tool" run --no-report --rotate-every=100ms -o alone -- timeout -k 5 100 "$rank" 1000 >alone.out 2>&1 || fail "no parts: $(cat alone.out)"
[ "$(ls alone | wc -l)" -ge 3 ] || fail "no parts: $(ls alone)"
"$sim" "$tool" run --no-report -o alone -- timeout -k 5 100 "$rank" 30 >alone.out 2>&1 || fail "not recorded: $(cat alone.out)"
"$tool" digest -o alone.digest alone 2>err || fail "no digest: $(cat err)"
mkdir empty
cp -r many torn-many
head -c 2000 many/60.digest >torn-many/60.digest

# with MPI N ARGUMENT...: so many ranks of cudaspy-mpi, as a command to be run.
with() {
	local mpi=$1 ranks=$2
	shift 2
	echo mpirun.$mpi -n $ranks $build/tests/mpi/cudaspy-mpi.$mpi "$@"
}

tried=
for mpi in openmpi mpich; do
	[ -x "$build/tests/mpi/cudaspy-mpi.$mpi" ] && command -v mpirun.$mpi >/dev/null || { without "$mpi"; continue; }
	tried="$tried $mpi"
	for ranks in 1 3 4 6; do
		status 0 "$mpi, $ranks ranks" $(with $mpi $ranks -o got.digest traces)
		cmp got.digest wanted.digest || fail "$mpi: $ranks ranks make another digest"
		grep -q 'rank 1 .*comes late' out || fail "$mpi: not named: $(cat out)"
		grep -q $'\e' out && fail "$mpi: colours in a file: $(cat -v out)"
	done
	status 0 "$mpi: digests" $(with $mpi 8 -o got.digest --format=json --report=report.json --statistics many)
	cmp got.digest many.digest || fail "$mpi: digests make another one"
	"$here/../scale/judge_job.py" planted.json report.json >judged 2>&1 || fail "$mpi: the report: $(cat judged)"
	said "8 ranks: reading"

	status 0 "$mpi: packed" $(with $mpi 3 -o got.digest packed)
	cmp got.digest wanted.digest || fail "$mpi: packed traces make another digest"

	status 0 "$mpi: parts" $(with $mpi 3 -o got.digest alone)
	cmp got.digest alone.digest || fail "$mpi: a recording in parts makes another digest"

	# Torn, missing, nothing.
	status 1 "$mpi: a torn trace" $(with $mpi 4 -o got.digest torn)
	said "left out: rank 2: cannot be read"
	grep -q 'ranks  *3 of 4' out || fail "$mpi: the rest: $(cat out)"
	status 1 "$mpi: a torn digest" $(with $mpi 7 -o got.digest torn-many)
	said "left out: torn-many/60.digest: cannot be read"
	grep -q 'ranks  *119 of 120' out || fail "$mpi: the rest: $(cat out)"
	status 1 "$mpi: a folder that is not there" $(with $mpi 3 -o got.digest traces nosuch)
	said nosuch
	cmp got.digest wanted.digest || fail "$mpi: a missing folder makes another digest"
	rm -f none.digest
	status 2 "$mpi: nothing" $(with $mpi 3 -o none.digest empty)
	[ ! -e none.digest ] || fail "$mpi: a digest of nothing"
	# Two digests of one rank that differ: the job of the generator, once more with another seed and the same name.
	"$gendigest" differ 7 120 --hosts=15 --steps=9 --from=5 --to=6 >/dev/null 2>err || fail "no digest: $(cat err)"
	status 2 "$mpi: digests that differ" $(with $mpi 5 -o none.digest many differ)
	[ ! -e none.digest ] || fail "$mpi: a digest of what differs"
	said "differ"
	status 2 "$mpi: no place" $(with $mpi 3 -o nowhere/got.digest traces)
	[ "$(grep -c nowhere err)" = 1 ] || fail "$mpi: said more than once: $(cat err)"
	status 2 "$mpi: an option" $(with $mpi 3 --nosuch -o got.digest traces)
	[ "$(grep -c nosuch err)" = 1 ] || fail "$mpi: said more than once: $(cat err)"
	status 2 "$mpi: no number" $(with $mpi 3 --jobs=none -o got.digest traces)
	[ "$(grep -c none err)" = 1 ] || fail "$mpi: said more than once: $(cat err)"
	status 0 "$mpi: threads" $(with $mpi 1 --jobs=4 -o got.digest traces)
	cmp got.digest wanted.digest || fail "$mpi: threads make another digest"
	status 0 "$mpi: html" $(with $mpi 2 -o got.digest --format=html --report=page.html traces)
	grep -qi '<!doctype html>' page.html || fail "$mpi: no page"
done
[ -n "$tried" ] || skip "no MPI here"

# ---- hosts with disks of their own: MPICH's launcher, and a remote shell that is none ------------
if [[ $tried == *mpich* ]] && unshare -u -m true 2>/dev/null; then
	mkdir -p hosts/first hosts/second disk
	cp -r traces/*.rank[03]-* hosts/first
	cp -r traces/*.rank[12]-* hosts/second
	cat >remote <<-END
		#!/bin/bash
		while [[ \$1 == -* ]]; do shift; done
		exec unshare -u -m --propagation private bash -c 'hostname "\$1"; mount --bind "$tmp/hosts/\$1" "$tmp/disk"; shift; exec bash -c "\$*"' remote "\$@"
	END
	chmod +x remote
	status 0 "two hosts" mpirun.mpich -launcher rsh -launcher-exec "$tmp/remote" -hosts first,second -n 5 \
		"$build/tests/mpi/cudaspy-mpi.mpich" -o got.digest disk
	cmp got.digest wanted.digest || fail "two hosts make another digest"
else
	without "hosts with disks of their own"
fi

"$build/tests/mpi/cudaspy-mpi.${tried##* }" --manual >manual.1 2>err || fail "no manual page: $(cat err)"
grep -q '^\.TH CUDASPY.*MPI 1' manual.1 || fail "manual page: $(head -n 5 manual.1)"
exit 0
