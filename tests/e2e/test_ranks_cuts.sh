#!/bin/bash
# test_ranks_cuts.sh [--seeds N] [--first SEED]: jobs of several ranks (ranks_scenario.py), whole, and with records of
# ranks left out of the same recordings: no report has a finding that the one on the whole job has not. 200 seeds take
# ten minutes on two CPUs.
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

wrong=0
for ((seed = first_seed; seed < first_seed + seeds; seed++)); do
	rm -rf job
	clean=$((seed % 3 == 0))
	options=(--buckets)
	[ "$clean" = 0 ] || options+=(--clean)
	timeout -k 5 200 python3 "$here/ranks_scenario.py" "$seed" job "${options[@]}" >drawn 2>drawn.err ||
		fail "seed $seed: status $?: $(cat drawn drawn.err)"
	python3 "$here/checks/cut_ranks.py" job "$seed" >compared || wrong=$((wrong + 1))
	cat compared
done
expect "jobs whose cut recordings have other findings" "$wrong" 0
