#!/bin/bash
# docs/recipes/slurm.md, as it stands there, on a Slurm of one node that the test starts: which rank is which, that the ranks
# are one run, and who of them was late.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need munged slurmctld slurmd srun sbatch
. "$here/../recipes/slurm.sh"
at_end slurm_stop
trap 'exit 1' INT TERM
slurm_start

recipe slurm
cp "$rank" app
export RANK_LATE=1 RANK_MEET=$PWD
follows
says '^CUDASPY REPORT' run.out
says 'rank 1 held the others up' run.out
says 'waited for other ranks|waited [0-9]+ %.* for rank 1' run.out
grep -q 'traces of . runs' run.out && fail "the ranks are several runs: $(grep 'traces of' run.out)"
expect "ranks of the batch job" "$(ls -d traces-*/*.cudaspy | sed 's/.*\.rank\([0-9]*\)-.*/\1/' | sort | tr '\n' ' ')" "0 1 2 3 "
expect "the program's output" "$(grep -c '^rank [0-3] of 4: 10$' run.out)" 4

follows digests
says 'rank 1 .*comes late' digests.out
says 'ranks +4 of 4' digests.out
expect "packed traces" "$(find digested-* -type f | wc -l)" 4
expect "digests" "$(ls digests/[0-3].digest | wc -l)" 4

if [ -x "$build/tests/mpi/cudaspy-mpi.openmpi" ] && command -v mpirun.openmpi >/dev/null; then
	mkdir "$tmp/mpi"
	ln -s "$build/tests/mpi/cudaspy-mpi.openmpi" "$tmp/mpi/cudaspy-mpi"
	ln -s "$(command -v mpirun.openmpi)" "$tmp/mpi/mpirun"
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	PATH=$tmp/mpi:$PATH follows reduce
	says 'rank 1 .*comes late' reduce.out
	cmp job.digest reduced.digest || fail "the reduced digest is another one"
else
	without "cudaspy-mpi in a job (no Open MPI)"
fi

follows preload
says 'rank 1 held the others up' preload.out
grep -q 'traces of . runs' preload.out preload.err && fail "the ranks are several runs: $(grep -h 'traces of' preload.out preload.err)"
expect "ranks by hand" "$(ls -d by-hand/*.cudaspy | wc -l)" 4

unset RANK_LATE
follows killed
expect "ranks of the killed step" "$(ls -d killed/*.cudaspy | wc -l)" 4
says '^CUDASPY REPORT' killed.out
says 'app\.rank2|rank 2' killed.out
# Nothing but the program's calls is in the traces: neither srun nor a shell has left one.
for trace in traces-*/*.cudaspy by-hand/*.cudaspy killed/*.cudaspy; do
	[[ $trace == */app.rank* ]] || fail "a trace of another program: $trace"
done
slurm_stop
exit 0
