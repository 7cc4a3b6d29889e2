#!/bin/bash
# docs/recipes/llama.md, on the simulator: llama.cpp's own library, closed, 159 MB, with a stand-in for cuBLAS.
. "$(dirname "$0")/lib.sh"
. "$here/../recipes/lib.sh"
need npm jq
recipe llama
# Fetched once for a build: it does not change.
fetched=$build/npm/llama
if [ ! -d "$fetched/package" ]; then
	HOME=$tmp timeout -k 5 120 bash fetch.sh >fetch.out 2>&1 || skip "no llama.cpp: npm: $(tail -n 1 fetch.out)"
	mkdir -p "${fetched%/*}"
	mv "$PWD/package" "$fetched.$$" 2>/dev/null
	mkdir -p "$fetched" && mv "$fetched.$$" "$fetched/package"
	rm -f ./*.tgz
fi
ln -sfn "$fetched/package" package
export LD_LIBRARY_PATH=$build/tests/recipes/blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$build/tests/recipes:$PATH
library=package/bins/linux-x64-cuda

# The same tokens as without the recorder; the place of each finding, and of what the thread did meanwhile, is a line of the program.
follows
"$here/../sim/with-sim" llama_loop $library --tokens 1000 --sort 3 >bare 2>bare.err || fail "without the recorder: $(cat bare.err)"
cmp -s bare tokens || fail "other tokens: $(cmp bare tokens)"
cudaspy report --format=json traces >report.json || fail "no report"
jq -e '[.findings[] | select(.severity != "minor") | .where // empty | select(test("llama_loop[.]c:[0-9]+") | not)] == []' report.json >/dev/null ||
	fail "places: $(jq -c '[.findings[].where]' report.json)"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] && ! cudaspy info traces | grep -q 'is not interrupted'; then
	jq -e '[.gpus[0].feeder_causes[].site // "" | select(test("^(by_logit|first_of_sorted), llama_loop[.]c:"))] | length >= 1' report.json >/dev/null ||
		fail "between calls: $(jq -c '[.gpus[0].feeder_causes[].site]' report.json)"
else
	without "places of C code between calls (refused)"
fi

# Two GPUs, each with work of its own; and what the library refuses is its own error.
follows split
"$here/../sim/with-sim" llama_loop $library --tokens 200 --split layer >bare 2>bare.err || fail "split, without the recorder: $(cat bare.err)"
cmp -s bare split-tokens || fail "split: other tokens: $(cmp bare split-tokens)"
expect "GPUs" "$(cudaspy report --format=json split-traces | jq '.gpus | length')" 2
"$here/../sim/with-sim" cudaspy run --quiet --no-report -o row -- llama_loop $library --split row >/dev/null 2>row.err
expect "status where the library refuses" $? 1
says 'does not support split buffers' row.err

# Threads that share the model.
"$here/../sim/with-sim" cudaspy run --quiet --no-report -o threads -- llama_loop $library --tokens 100 --threads 4 >recorded 2>threads.err || fail "threads: $(cat threads.err)"
"$here/../sim/with-sim" llama_loop $library --tokens 100 --threads 4 >bare 2>bare.err || fail "threads, without the recorder: $(cat bare.err)"
cmp -s bare recorded || fail "threads: other tokens"
exit 0
