#!/bin/bash
# Who made whom wait, for how long and why: what cudaspy says of every scene (scene.c), and of scenes
# made up at random, held against what the simulator knows (judge.c). Simulated: no measurement.
#
#   BLAME_SEEDS   how many random scenes (15)
#   BLAME_FIRST   the first seed (1)
#   BLAME_KEEP    a directory that keeps truth, trace and report of every run
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
[ -e "$build/sim/libsimkernel.so" ] || skip "no simulated kernel module in this build"

# play NAME [SEED]: a line of judge to lines/NAME, what is wrong to misses/NAME.
play() {
	local name=$1${2:+_$2}
	rm -rf "$out" truth
	mkdir -p truth lines misses
	"$sim" "$bin/scene" --script "$@" >script || fail "$*: no script"
	SPYSIM_SCRIPT=$tmp/script SPYSIM_TRUTH=$tmp/truth simulated "$bin/scene" "$@" >play.out 2>play.err ||
		fail "$*: exit status $?: $(tail -n 3 play.err)"
	"$tool" report --format=json "$(the_trace)" >report.json 2>report.err
	[ -s report.json ] || fail "$*: no report: $(tail -n 3 report.err)"
	if [ -n "${BLAME_KEEP:-}" ]; then
		mkdir -p "$BLAME_KEEP/$name"
		cp -r script play.out truth report.json "$(the_trace)" "$BLAME_KEEP/$name/"
	fi
	"$bin/judge" -v --name="$name" truth report.json >"lines/$name" 2>"misses/$name" ||
		fail "$*: $(tail -n 1 "misses/$name")"
}

# disturbed LINE: by how many millionths of its calls' time the work in them ended late: what the machine did to that run.
disturbed() {
	sed -E 's/.* calls_ns=([0-9]+) .*late_ns=([0-9]+) .*/\1 \2/' "$1" | awk '{ printf "%d", 1e6 * $2 / ($1 + 1) }'
}
too_much=10000

# A thread that loses its processor between two instructions of ours leaves a gap in what is known of a
# lock with several readers: who is blamed on a wrong device by that is not the next time.
runs=()
replayed=0
settle() {
	local name=$1${2:+_$2} try
	runs+=("$*")
	for ((try = 1; ; try++)); do
		[ $try = 1 ] || replayed=$((replayed + 1))
		play "$@"
		[[ $(<"lines/$name") == *' wrong_device_ns=0 '* ]] && return
		again $try 3 || return
	done
}

# total RUN...: the verdict on these runs, to `sum`.
total() {
	local run
	for run; do
		cat "lines/${run/ /_}"
	done >all
	"$bin/judge" --sum all >sum
}

for name in $("$sim" "$bin/scene" --list); do
	settle "$name"
done
seeds=${BLAME_SEEDS:-15}
begin=${BLAME_FIRST:-1}
for ((seed = begin; seed < begin + seeds; seed++)); do
	settle random $seed
done

# A machine that gives a thread no CPU, most of all while it has a lock, makes a run another one than its script says. If that
# costs a target, such runs are played again, and the one that the machine disturbed least counts; whether it is right does
# not matter. What it disturbs each time is left out, if most runs are left.
total "${runs[@]}"
status=$?
quiet=()
if [ $status != 0 ]; then
	for run in "${runs[@]}"; do
		name=${run/ /_}
		for ((try = 1; try <= 3; try++)); do
			least=$(disturbed "lines/$name")
			! "$bin/judge" --sum "lines/$name" >/dev/null && [ "$least" -gt $too_much ] || break
			replayed=$((replayed + 1))
			cp "lines/$name" line && cp "misses/$name" miss
			# shellcheck disable=SC2086
			play $run
			[ "$(disturbed "lines/$name")" -lt "$least" ] || { mv line "lines/$name" && mv miss "misses/$name"; }
		done
		[ "$(disturbed "lines/$name")" -gt $too_much ] || quiet+=("$run")
	done
	total "${runs[@]}"
	status=$?
	if [ $status != 0 ] && [ $((2 * ${#quiet[@]})) -gt ${#runs[@]} ] && [ ${#quiet[@]} -lt ${#runs[@]} ]; then
		echo "left out, for they got no CPU: $((${#runs[@]} - ${#quiet[@]}))"
		runs=("${quiet[@]}")
		total "${runs[@]}"
		status=$?
	fi
fi
if [ $status != 0 ]; then
	for run in "${runs[@]}"; do
		[ ! -s "misses/${run/ /_}" ] || { echo "${run/ /_}: $(disturbed "lines/${run/ /_}") millionths late"; cat "misses/${run/ /_}"; }
	done | head -n 100
fi
echo "every scene, and random ones with the seeds $begin to $((begin + seeds - 1)); $replayed played again:"
cat sum
[ $status = 0 ] || fail "see the targets above; BLAME_KEEP=dir keeps what a run left"
