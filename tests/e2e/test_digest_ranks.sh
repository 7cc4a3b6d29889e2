#!/bin/bash
# What digests of a job's ranks say of them, each made by itself, is what the job's traces say: the same rank holds the others
# up, by the same time, or none does. Drawn jobs on the simulator (ranks_scenario.py), with ranks that are late for different
# reasons, beside other work of their GPUs and not, with several collectives in a step; and clean ones.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
need python3 jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/ranks" ] || skip "no test applications built: no CUDA toolkit"

# same SEED FOLDER [OPTION...]: draws a job, and compares both reports. What was said goes to `said`.
same() {
	local folder=$2 trace i=0
	timeout -k 5 200 python3 "$here/ranks_scenario.py" "$@" >drawn 2>drawn.err || fail "scenario $*: status $?: $(cat drawn drawn.err)"
	mkdir "$folder/digests"
	for trace in "$folder"/trace/*; do
		"$tool" digest -o "$folder/digests/$i.digest" "$trace" 2>err || fail "$folder: no digest: $(cat err)"
		i=$((i + 1))
	done
	"$tool" report --format=json -o "$folder/traces.json" "$folder/trace" 2>err || fail "$folder: no report: $(cat err)"
	"$tool" report --format=json -o "$folder/digests.json" "$folder/digests" 2>err || fail "$folder: no report of digests: $(cat err)"
	python3 "$here/checks/compare_ranks.py" "$folder/traces.json" "$folder/digests.json" >said 2>differ ||
		fail "$folder ($(cat drawn)): $(cat differ)"
}

# Who is named is a matter of test_ranks_judge.sh, and of the machine: here, that both name the same.
same 4 late-beside # cpu, beside the all-reduce
same 7 late-work   # free, beside it, of six ranks
same 14 late-two   # sync, of two ranks
same 5 buckets --buckets
same 3 clean --clean

# The comparison itself: another rank, or another time, is a difference.
same 13 late
jq '.ranks |= map(.rank = 3 - .rank) | .differences[0].rank = 3 - (.differences[0].rank // 1)' late/digests.json >other.json
python3 "$here/checks/compare_ranks.py" late/traces.json other.json >said 2>differ && fail "another rank is named, and nothing is said: $(cat said)"
jq '.ranks |= map(.late_ns += 50e6)' late/digests.json >other.json
python3 "$here/checks/compare_ranks.py" late/traces.json other.json >said 2>differ && fail "50 ms more, and nothing is said: $(cat said)"
exit 0
