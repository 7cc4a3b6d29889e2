#!/bin/bash
# Reports, answers and dumps of parts of a recording (--thread, --gpu, --rank, --process, --function, --range, --from, --to): the
# parts are the whole, what there is not is refused with what there is, and a holder that is left out is named.
. "$(dirname "$0")/lib.sh"
need jq python3
gentrace=$build/bench/gentrace
[ -x "$gentrace" ] || skip "no $gentrace: make test-build"

# parts NAME LEAST DIR...: of those traces, so many parts are looked at.
parts() {
	local name=$1 least=$2 looked_at
	shift 2
	looked_at=$(timeout 200 python3 "$here/checks/check_filters.py" "$tool" "$@") || fail "$name: $looked_at"
	[ "$looked_at" -ge "$least" ] || fail "$name: only $looked_at parts"
}

# refused STATUS TEXT VERB OPTION...: with that on standard error, and nothing shown.
refused() {
	local status=$1 text=$2
	shift 2
	timeout 60 "$tool" "$@" >refused.out 2>refused.err
	expect "$*: status" "$?" "$status"
	grep -qF -- "$text" refused.err || fail "$*: says '$(cat refused.err)', expected '$text'"
	[ -s refused.out ] && fail "$*: shows $(head -n 3 refused.out)"
}

# ---- made-up traces: a launch-bound loop, waits for a lock, processes, GPU times -------------------
for shape in loop waiters processes gpu; do
	"$gentrace" "$shape" 12000 4 "$shape" >/dev/null || fail "no trace $shape"
	parts "$shape" 15 "$shape"
done

# ---- what is not there -----------------------------------------------------------------------------
for verb in report dump "why 101"; do
	refused 2 "--thread=nobody: no thread 'nobody' (there are: worker)" $verb --thread=nobody loop
	refused 2 "--gpu=0,7-9: no GPU '7-9' (there are: 0)" $verb --gpu=0,7-9 loop
	refused 2 "--rank=3: no rank '3' (there are none in these traces)" $verb --rank=3 loop
	refused 2 "--process=no*: no process 'no*' (there are: gentrace (100))" $verb --process='no*' loop
	refused 2 "--function=cuInit: no function was called that is named 'cuInit' (there are: cudaLaunchKernel, " $verb --function=cuInit loop
	refused 2 "--range=step: no range 'step' (there are none in these traces)" $verb --range=step loop
	refused 2 "--from=100s: t = 100.0 s is behind the end" $verb --from=100s loop
	refused 2 "--to=0%: t = 0 ns is not behind the begin" $verb --to=0% loop
	refused 2 "--to=1us: t = 1.000 us is not behind --from" $verb --from=50% --to=1us loop
	refused 2 "--from=1.5: '1.5' has no unit" $verb --from=1.5 loop
	refused 2 "--rank=x: 'x' is no number" $verb --rank=x loop
	refused 2 "--thread=a,,b: '' is no name" $verb --thread=a,,b loop
done

# ---- the working phase; both ends of it are in -----------------------------------------------------
"$tool" report --format=json loop >whole.json
"$tool" report --format=json --from=phase --to=phase loop >phase.json || fail "no report of the phase"
valid "$here/../../docs/report.schema.json" phase.json
expect "the phase" "$(jq -c '[.phases[0].begin_ns, .phases[0].end_ns, .only.from_ns, .only.to_ns - 1]' phase.json)" \
	"$(jq -c '.phases[0] | [.begin_ns, .end_ns, .begin_ns, .end_ns]' whole.json)"
expect "its records" "$("$tool" dump --fields=time,depth --from=phase --to=phase loop | awk '$2 == 0' | wc -l)" "$(jq .summary.calls phase.json)"
"$tool" report --from=phase loop >phase.txt
grep -q '^  --from *phase: t = .*(the working phase begins); outside [0-9,]* calls\?,' phase.txt || fail "the header: $(cat phase.txt)"
grep -q '^  not limited  *what calls are expected to cost' phase.txt || fail "the header: $(cat phase.txt)"
"$tool" report loop | grep -q ONLY && fail "a header without an option"

# ---- a gate sees what is in, also of a baseline ----------------------------------------------------
"$tool" report --fail-on=any --function=cudaLaunchKernel loop >/dev/null 2>&1
expect "a gate with nothing of what is wrong" $? 0
"$tool" report --fail-on=any --function='cuda*' loop >/dev/null 2>&1
expect "a gate with what is wrong" $? 1
"$tool" report --fail-on=any --thread=101 --baseline=loop loop >/dev/null 2>baseline.err
expect "nothing new: $(cat baseline.err)" $? 0

# ---- who waited for whom -----------------------------------------------------------------------------
# Of each thread's waits the holders are the same as in the whole report, and they are left out.
"$tool" report --format=json waiters >whole.json
for tid in $(jq '[.blame[].waiter] | unique[:3][]' whole.json); do
	"$tool" report --format=json --thread="$tid" waiters >part.json || fail "no report on thread $tid"
	expect "whom thread $tid waited for" "$(jq -cS '[.blame[] | del(.rank)] | sort' part.json)" \
		"$(jq -cS "[.blame[] | select(.waiter == $tid) | del(.rank)] | sort" whole.json)"
	expect "threads in that report" "$(jq -c '[.threads[] | select(.count > 0).tid]' part.json)" "[$tid]"
	"$tool" why --format=json --thread="$tid" "$tid" waiters >why.json || fail "no answer on thread $tid"
	expect "why thread $tid waited" "$(jq -cS '.why.waited_ns, .only.calls' why.json)" \
		"$("$tool" why --format=json "$tid" waiters | jq -cS '.why.waited_ns, null' | sed "s/null/$(jq .summary.calls part.json)/")"
done
[ -e part.json ] || fail "nobody waits in the trace"

# ---- a job of several ranks, on the simulator --------------------------------------------------------
if [ -n "$first" ] || [ ! -x "$build/testapps/ranks" ]; then
	without "ranks"
	exit 0
fi
timeout -k 5 100 python3 "$here/ranks_scenario.py" 3 job >drawn 2>drawn.err || fail "scenario: $(cat drawn drawn.err)"
parts "ranks" 60 job/trace
"$tool" report --format=json --rank=1-2 job/trace >ranks.json || fail "no report of two ranks"
expect "their GPUs" "$(jq -c '[.gpus[].device]' ranks.json)" "[1,2]"
expect "all ranks are compared" "$(jq '.ranks | length' ranks.json)" "$(jq .ranks drawn)"
grep -q "RANKS" <<<"$(jq -r .only.not_limited ranks.json)" || fail "RANKS are limited: $(jq .only ranks.json)"
"$tool" why --format=json rank1 --from=25% --to=75% job/trace >why.json || fail "no answer on a rank"
expect "the header of an answer" "$(jq -c '[.only.options[].option]' why.json)" '["from","to"]'
