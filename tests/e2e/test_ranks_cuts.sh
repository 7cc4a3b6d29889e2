#!/bin/bash
# test_ranks_cuts.sh [--seeds N] [--first SEED]: jobs of several ranks (ranks_scenario.py), whole, and with records of
# ranks left out of the same recordings; every tenth job is recorded so, too: with cost windows all the time, and in a
# window. No report has a finding that the one on the whole job has not. 200 seeds take ten minutes on two CPUs:
#   CUDASPY_BUILD=$PWD/build tests/e2e/test_ranks_cuts.sh --seeds 200
. "$(dirname "$0")/lib.sh"
need python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/ranks" ] || skip "no test applications built: no CUDA toolkit"

seeds=8 first_seed=1
while [ $# -gt 0 ]; do
	case $1 in
	--seeds) seeds=$2 && shift ;;
	--first) first_seed=$2 && shift ;;
	*) fail "$1?" ;;
	esac
	shift
done

# draw FOLDER VARIABLES...: the job of the seed
draw() {
	local folder=$1
	shift
	timeout -k 5 200 env "$@" python3 "$here/ranks_scenario.py" "$seed" "$folder" "${options[@]}" >drawn 2>drawn.err ||
		fail "seed $seed $*: status $?: $(cat drawn drawn.err)"
}

# compared: draws the job and compares. Who stands out just so depends on the load, which cuts leave more or less of.
compared() {
	rm -rf job
	draw job
	if [ $((seed % 10)) = 1 ]; then
		draw job/again.counting CUDASPY_MEASURE_COST=1
		draw job/again.window CUDASPY_DELAY=$((100 + seed))ms CUDASPY_DURATION=300ms
	fi
	python3 "$here/checks/cut_ranks.py" job "$seed" >compared
}

wrong=0
for ((seed = first_seed; seed < first_seed + seeds; seed++)); do
	options=(--buckets)
	[ $((seed % 3)) != 0 ] || options+=(--clean)
	for ((try = 1; ; try++)); do
		compared && break
		cat compared
		if [ $try = 3 ] || grep -q collective-order compared; then
			wrong=$((wrong + 1))
			break
		fi
	done
	tail -n 1 compared
done
expect "jobs whose cut recordings have other findings" "$wrong" 0
