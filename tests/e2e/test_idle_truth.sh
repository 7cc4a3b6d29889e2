#!/bin/bash
# test_idle_truth.sh [--seeds N] [--first SEED] [--busy N] [--bounds] [--table]: threads that keep GPUs waiting for reasons made up from a seed; the
# report's bounds hold, and what it charges it charges to the right cause. With CUPTI's records, all of the time.
# All of it beside load: --seeds 300 --busy 4 --bounds: N programs take CPUs meanwhile; only whether bounds hold, for what is
# charged depends on the load.
. "$(dirname "$0")/lib.sh"
need jq python3
[ -e "$build/sim/libsimkernel.so" ] || skip "no simulated kernel module in this build"

seeds=10 first_seed=1 table= busy=0 bounds=
while [ $# -gt 0 ]; do
	case $1 in
	--seeds) seeds=$2 && shift ;;
	--first) first_seed=$2 && shift ;;
	--busy) busy=$2 && shift ;;
	--bounds) bounds=1 ;;
	--table) table=--table ;;
	*) fail "$1?" ;;
	esac
	shift
done

# judged SEED [GPU]: plays it; the judge's lines in the file `judged`. GPU: with CUPTI's records.
judged() {
	local seed=$1 gpu=${2:-}
	rm -rf truth "$out"
	mkdir truth
	"$bin/feeders" --script "$seed" >script || fail "seed $seed: no script"
	SPYSIM_SCRIPT=script SPYSIM_TRUTH=truth CUDASPY_OUT=$out CUDASPY_GPU=$gpu LD_LIBRARY_PATH=$build/sim/lib \
		LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" timeout 60 \
		"$bin/feeders" "$seed" notes "$bin/libfake_python.so" 2>err || fail "seed $seed: $(tail -n 3 err)"
	trace=$(the_trace) || exit 1
	"$tool" report --format=json "$trace" >report.json || fail "seed $seed: no report"
	"$tool" dump "$trace" >dump || fail "seed $seed: cannot be dumped"
	"$tool" export --format=chrome -o timeline "$trace" || fail "seed $seed: no timeline"
	python3 "$here/checks/judge_idle.py" truth notes report.json dump timeline $table >judged 2>wrong ||
		fail "seed $seed${gpu:+ with GPU records}: $(cat wrong judged)"
	[ -z "$table" ] || cat judged
	[ -z "$gpu" ] || ! grep -v '^ ' judged | grep -qv ' exact ' || fail "seed $seed: not exact: $(cat judged)"
}

# all_judged PERCENT [GPU]: plays all seeds; of what was charged, so much to the right cause?
all_judged() {
	local seed gpu=${2:-}
	rm -f "charged$gpu"
	for ((seed = first_seed; seed < first_seed + seeds; seed++)); do
		judged "$seed" "$gpu"
		grep -v '^ ' judged | sed "s/^/$seed /" | tee -a "charged$gpu" | awk '{
			printf "seed %s GPU %s (%s): idle %.1f ms, known %.1f to %.1f; right cause %.1f %%\n",
				$1, $2, $3, $4 / 1e3, $5 / 1e3, $6 / 1e3, $7 ? 100 * $8 / $7 : 100 }'
	done
	awk -v least="$1" '{ all += $7; right += $8; idle += $4 }
		END { printf "charged %.1f %% of the idle time, of that %.2f %% to the right cause\n", 100 * all / idle,
			100 * right / all; exit !(all > 0 && right * 100 >= all * least) }' "charged$gpu"
}

# right PERCENT [GPU]: the same, with another try where threads had no CPU when they should have; beside other work the last one
# has to be right for 90 %.
right() {
	local try
	for ((try = 1; ; try++)); do
		all_judged "$@" && return
		again $try 2 && continue
		crowded && all_judged 90 "${@:2}" && return
		fail "too much is charged to a wrong cause"
	done
}

# Programs that take CPUs, and end with this one.
take_cpus() {
	local i

	for ((i = 0; i < $1; i++)); do
		bash -c "while [ -e /proc/$$/exe ]; do for ((i = 0; i < 100000; i++)); do :; done; done" &
		hogs+=($!)
	done
}
give_cpus_back() {
	[ ${#hogs[@]} = 0 ] || kill "${hogs[@]}"
	hogs=()
}
hogs=()
take_cpus "$busy"
if [ -n "$bounds" ]; then
	all_judged 0 || fail "nothing was charged"
	give_cpus_back
	exit 0
fi

# However late threads get a CPU: those seeds in which several feeders share a GPU and its streams.
under_load() {
	local seeds=2 first_seed=5

	take_cpus 3
	all_judged 0 || fail "nothing was charged"
	give_cpus_back
}
[ "$busy" != 0 ] || under_load
right 90

# The judge: the truth is right, and each kind of mistake is noticed. Of the last seed.
judge() {
	python3 "$here/checks/judge_idle.py" truth notes "$@" dump timeline
}
share() {
	awk '{ all += $6; right += $7 } END { print all ? int(100 * right / all) : 0 }'
}
judge report.json --as-report >true.json || fail "the truth cannot be told as a report"
expect "the truth against itself" "$(judge true.json | share)" 100
noticed() {
	jq "$2" true.json >false.json
	judge false.json >lines 2>complaint && fail "not noticed: $1"
	grep -q "$1" complaint || fail "not what the judge complains about: $1: $(cat complaint)"
}
noticed "causes are" '.gpus[0].idle_causes[0].ns += 100'
noticed "in truth" '.gpus[0] |= (.idle_ns += 1000000 | .idle_causes[0].ns += 1000000)'
noticed "at most" '.gpus[0].idle_max_ns -= 1000000'
noticed "busy" '.gpus[0].busy_ns += 3000000'
noticed "GPUs" '.gpus[0].device = 7'
jq '.gpus[].idle_causes[].cause = "collective"' true.json >false.json
[ "$(judge false.json | share)" -lt 30 ] || fail "not noticed: other causes: $(judge false.json)"

if [ -e "$build/libcudaspy_gpu.so" ]; then
	right 95 1
fi
exit 0
