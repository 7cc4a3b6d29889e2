#!/bin/bash
# docs/recipes/pytorch.md: two ranks from torchrun to one report, and a program that waits for its loader. On the simulator, with
# stand-ins for PyTorch's programs: variables pass to the ranks, workers and the launcher leave nothing, lines of Python are named.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
recipe pytorch
for page in train.py loader.py; do
	python3 -m py_compile $page || fail "$page of the page is no Python"
	cp "$here/../recipes/standins/python/$page" "$here/../recipes/standins/python/calls.py" .
done
PATH=$here/../recipes/standins:$PATH
export RANK_MEET=$tmp GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192
without "PyTorch (stand-ins make its calls)"

follows torchrun
expect "traces, of the ranks alone" "$(ls -d traces/*.cudaspy | sed 's/.*\.rank\([0-9]*\)-.*/\1/' | sort | tr '\n' ' ')" "0 1 "
cat torchrun.out torchrun.err >both
says 'rank 1 held the others up' both
says 'running Python: train\.py:1[1-4] in checkpoint' both
says '^rank 1: done' both
grep -q 'traces of . runs' both && fail "the ranks are several runs"
[ -s report.html ] || fail "no page"
"$tool" report --format=json traces >report.json 2>/dev/null || fail "no report"
says 'pageable-copy' report.json
# Where the machine is busy, the reason may be that the rank got no CPU, which has no line.
line=$(python3 -c 'import json; print([f["python_line"] for f in json.load(open("report.json"))["findings"] if f["id"] == "straggler-rank"][0])')
echo "straggler-rank$([ "$line" = 0 ] || echo " train.py:$line") -- checkpoint, every hour" >accepted.txt
"$tool" report --fail-on=straggler-rank traces >said 2>&1 && fail "a rank that holds the others up passes"
"$tool" report --fail-on=straggler-rank --suppress=accepted.txt traces >said 2>&1 || fail "it is not accepted: $(cat said)"

follows loader
expect "traces of one worker" "$(ls -d loader-1/*.cudaspy | wc -l)" 1
expect "traces of eight workers" "$(ls -d loader-8/*.cudaspy | wc -l)" 1
says 'starved-by-(loader|host)' loader.out
says 'waiting for a pipe: calls\.py' loader.out
exit 0
