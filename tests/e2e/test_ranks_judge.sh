#!/bin/bash
# The judge of reports about ranks, on drawn jobs on the simulator (ranks_scenario.py): what is true passes, and each
# kind of wrong report does not. Of reports themselves only those of ranks that are late in turn are judged here.
. "$(dirname "$0")/lib.sh"
need python3 jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
[ -x "$build/testapps/ranks" ] || skip "no test applications built: no CUDA toolkit"

draw() {
	timeout -k 5 200 python3 "$here/ranks_scenario.py" "$@" >drawn 2>drawn.err || fail "scenario $*: status $?: $(cat drawn drawn.err)"
}

# refused NAME: what jq makes of the right report is wrong to the judge.
refused() {
	jq "$2" right.json >"$1.json"
	python3 "$here/checks/judge_ranks.py" late "$1.json" >judged 2>wrong && fail "$1: the judge says nothing: $(cat judged)"
	[ -s wrong ] || fail "$1: the judge does not say what is wrong"
}

draw 5 late
python3 "$here/checks/judge_ranks.py" --as-report late >right.json || fail "no truth"
python3 "$here/checks/judge_ranks.py" late right.json >judged || fail "the truth is wrong to the judge"
expect "named and planted" "$(cut -d' ' -f1-3 judged)" "5 11 11:kernel"
refused silent '.findings = []'
refused other '.findings[0].title = "rank 3 holds the others up"'
refused cheap '.findings[0].idle_gpu_ns *= 0.8'
refused waits '.ranks[0].wait_ns *= 1.2'
refused blames '.ranks[11].caused_ns *= 0.9'
refused lost 'del(.ranks[2])'

draw 9 clean --clean
python3 "$here/checks/judge_ranks.py" --as-report clean >clean.json || fail "no truth of a clean run"
python3 "$here/checks/judge_ranks.py" clean clean.json >judged || fail "the truth of a clean run is wrong to the judge"
jq '.findings = [{id: "straggler-rank", title: "rank 1", idle_gpu_ns: 5e6}]' clean.json >false.json
python3 "$here/checks/judge_ranks.py" clean false.json >judged 2>wrong && fail "a straggler in a clean run, and the judge says nothing"

# Ranks that are late in turn, about as long, one of which does what the other one does not; and the twin, in which none does.
for options in "" --clean; do
	draw 4 "turns$options" --in-turn $options
	"$tool" report --format=json "turns$options/trace" >turns.json 2>turns.err || fail "no report of turns: $(cat turns.err)"
	python3 "$here/checks/judge_ranks.py" "turns$options" turns.json >judged 2>wrong || fail "turns $options: $(cat wrong judged)"
done
exit 0
