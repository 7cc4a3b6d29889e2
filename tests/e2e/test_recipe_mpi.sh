#!/bin/bash
# docs/recipes/mpi.md, as it stands there, with each launcher that is installed: which rank is which, that the ranks are one
# run, and who of them was late.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
# As root, and more ranks than CPUs; PMIx's memory in files of its own does not work in every container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
ran=0

# launched NAME: the page's blocks of that launcher, which is `mpirun` there.
launched() {
	local folder
	recipe mpi "$1"
	cp "$rank" app
	mkdir -p "$tmp/$1-bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "mpirun.$1")" >"$tmp/$1-bin/mpirun"
	chmod +x "$tmp/$1-bin/mpirun"
	PATH=$tmp/$1-bin:$PATH RANK_LATE=1 RANK_MEET=$PWD follows "$1"
	for folder in traces by-hand; do
		expect "$1: ranks in $folder" "$(ls -d $folder/*.cudaspy | sed 's/.*\.rank\([0-9]*\)-.*/\1/' | sort | tr '\n' ' ')" "0 1 2 3 "
	done
	expect "$1: reports that name the late rank" "$(grep -c 'rank 1 held the others up' "$1.out")" 2
	grep -q 'traces of . runs' "$1.out" "$1.err" && fail "$1: the ranks are several runs: $(grep -h 'traces of' "$1.err")"
	ran=1
	[ -x "$build/tests/mpi/cudaspy-mpi.$1" ] || { without "cudaspy-mpi for $1"; return; }
	ln -sf "$build/tests/mpi/cudaspy-mpi.$1" "$tmp/$1-bin/cudaspy-mpi"
	PATH=$tmp/$1-bin:$PATH follows reduce
	says 'rank 1 .*comes late' reduce.out
	[ -s job.html ] || fail "$1: no page"
	"$tool" digest -o all.digest traces 2>/dev/null && cmp all.digest job.digest || fail "$1: the digest is another one"
	PATH=$tmp/$1-bin:$PATH RANK_LATE=1 RANK_MEET=$PWD varied "$1"
}

# varied NAME: what people do instead. cudaspy around mpirun; a rank that makes no CUDA calls; one rank; cudaspy-mpi with more and with
# fewer ranks than there are traces.
varied() {
	local sim=$here/../sim/with-sim n
	timeout -k 5 60 "$sim" "$tool" run --no-report -o around -- mpirun -n 4 ./app >around.out 2>&1 || fail "$1, around: $(cat around.out)"
	expect "$1: ranks, around" "$(ls -d around/*.cudaspy | sed 's/.*\.rank\([0-9]*\)-.*/\1/' | sort | tr '\n' ' ')" "0 1 2 3 "
	# shellcheck disable=SC2016
	timeout -k 5 60 "$sim" mpirun -n 4 "$tool" run --no-report -o idle -- sh -c '
		rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
		[ "$rank" = 3 ] || RANK=$rank WORLD_SIZE=3 exec ./app' >idle.out 2>&1 || fail "$1, a rank without CUDA: $(cat idle.out)"
	expect "$1: traces, a rank without CUDA" "$(ls -d idle/*.cudaspy | wc -l)" 3
	timeout -k 5 60 "$sim" mpirun -n 1 "$tool" run --no-report -o alone -- ./app >alone.out 2>&1 || fail "$1, one rank: $(cat alone.out)"
	for n in 1 2 9; do
		timeout -k 5 60 mpirun -n $n cudaspy-mpi -o of$n.digest around alone >of.out 2>&1 || fail "$1, cudaspy-mpi of $n: $(cat of.out)"
		cmp of1.digest of$n.digest || fail "$1: $n ranks make another digest"
	done
	"$tool" report --format=json of9.digest 2>/dev/null | python3 -c 'import json, sys; assert json.load(sys.stdin)["job"]["ranks"] == 5' || fail "$1: other ranks"
}

for mpi in openmpi mpich; do
	if command -v mpirun.$mpi >/dev/null; then
		launched $mpi
	else
		without "$mpi"
	fi
done

# Of moreutils or GNU?
if parallel --version 2>/dev/null | grep -q '^GNU parallel'; then
	mkdir -p "$tmp/home"
	export HOME=$tmp/home
	recipe mpi parallel
	cp "$rank" app
	follows parallel
	for steps in 10 20 30 40; do
		expect "traces of $steps steps" "$(ls -d sweep/$steps/*.cudaspy | wc -l)" 1
		expect "copies of $steps steps" "$("$tool" dump sweep/$steps | grep -c ' cudaMemcpyAsync .* copy device=')" $steps
		[ -s sweep/$steps.json ] || fail "no report of $steps steps"
	done
	for i in 0 1 2 3; do
		RANK=$i WORLD_SIZE=4 LOCAL_RANK=$i RANK_LATE=1 RANK_MEET=$PWD "$here/../sim/with-sim" "$tool" run --no-report -o traces -- ./app >rank$i.out 2>&1 &
	done
	wait
	mkdir digests
	follows parallel-digests
	says 'rank 1 .*comes late' parallel-digests.out
	ran=1
else
	without "GNU parallel"
fi
[ $ran = 1 ] || skip "no Open MPI, no MPICH, no GNU parallel here"
exit 0
