#!/bin/bash
# Who made whom wait, for how long and why: what cudaspy says of every scene (scene.c), and of scenes
# made up at random, held against what the simulator knows (judge.c). Simulated: no measurement.
#
#   BLAME_SEEDS   how many random scenes (30)
#   BLAME_FIRST   the first seed (1)
#   BLAME_KEEP    a directory that keeps truth, trace and report of every run
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
[ -e "$kernel" ] || skip "no simulated kernel module in this build"

# play NAME [SEED]: a line of judge to `lines`, what is wrong to `misses`.
play() {
	local name=$1${2:+_$2}
	rm -rf "$out" truth
	mkdir truth
	"$sim" "$bin/scene" --script "$@" >script || fail "$*: no script"
	CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/script SPYSIM_TRUTH=$tmp/truth \
		"$sim" env LD_PRELOAD="$first $shim $kernel" "$bin/scene" "$@" >play.out 2>play.err ||
		fail "$*: exit status $?: $(tail -n 3 play.err)"
	"$tool" report --format=json "$(the_trace)" >report.json 2>report.err
	[ -s report.json ] || fail "$*: no report: $(tail -n 3 report.err)"
	if [ -n "${BLAME_KEEP:-}" ]; then
		mkdir -p "$BLAME_KEEP/$name"
		cp -r script play.out truth report.json "$(the_trace)" "$BLAME_KEEP/$name/"
	fi
	jq -e 'has("blame")' report.json >/dev/null || skip "reports say nothing about blame yet"
	echo "$name:" >>misses
	"$bin/judge" -v --name="$name" truth report.json >>lines 2>>misses ||
		fail "$*: $(tail -n 1 misses)"
}

# A thread that loses its processor between two instructions of ours leaves a gap in what is known of a
# lock with several readers: who is blamed on a wrong device by that is not the next time.
replayed=0
settle() {
	local try lines_before misses_before
	lines_before=$(wc -l <lines) misses_before=$(wc -l <misses)
	for try in 1 2 3; do
		head -n "$lines_before" lines >lines.kept && mv lines.kept lines
		head -n "$misses_before" misses >misses.kept && mv misses.kept misses
		play "$@"
		tail -n 1 lines | grep -q ' wrong_device_ns=0 ' && return
		replayed=$((replayed + 1))
	done
}

touch lines misses
for name in $("$sim" "$bin/scene" --list); do
	settle "$name"
done
seeds=${BLAME_SEEDS:-30}
begin=${BLAME_FIRST:-1}
for ((seed = begin; seed < begin + seeds; seed++)); do
	settle random $seed
done
"$bin/judge" --sum lines >sum
status=$?
[ $status = 0 ] || grep -B1 '^judge' misses | grep -v '^--' | head -n 100
echo "every scene, and random ones with the seeds $begin to $((begin + seeds - 1)); $replayed played again:"
cat sum
[ $status = 0 ] || fail "see the targets above; BLAME_KEEP=dir keeps what a run left"
