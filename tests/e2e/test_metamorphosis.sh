#!/bin/bash
# The same traces in another order, in other folders, twice, a day later, of another boot, with other numbers of processes
# and threads, of other hosts: the report says the same, all of it. Of known traces (tests/golden), and of such as have
# just been recorded, of several processes.
. "$(dirname "$0")/lib.sh"
need python3
sim="$here/../sim/with-sim"

# same_report NAME DIR...: is the report of DIR the one of $base? But for what $but says (same_report.py).
same_report() {
	local name=$1
	shift
	"$tool" report --nested --format=json "$@" >other.json 2>other.err || fail "$base $name: no report: $(cat other.err)"
	# shellcheck disable=SC2086
	"$here/checks/same_report.py" "$base.json" other.json $but >differs ||
		fail "$base $name: the report is another one: $(head -c 3000 differs)"
}

# rewritten NAME CHANGE...: all traces of $base, changed, in the folder NAME.
rewritten() {
	local name=$1 dir
	shift
	rm -rf "$name"
	mkdir "$name"
	for dir in "$base"/*/; do
		"$here/rewrite_trace.py" "$dir" "$name/$(basename "$dir")" "$@" || fail "$base $name: not rewritten"
	done
}

# frequency: of the clock of the process of $base that began first.
frequency() {
	local dir
	for dir in "$base"/*/; do
		echo "$(sed -n 's/.*start_realtime_ns = \([0-9]*\);/\1/p' "$dir/metadata") $(
			sed -n 's/.*freq = \([0-9]*\);/\1/p' "$dir/metadata")"
	done | awk '{ print NF == 1 ? 0 : $1, $NF }' | sort -n | awk 'NR == 1 { print $2 }'
}

# look BASE: the traces of that folder.
look() {
	local dirs backwards=() dir number=100 ids but=
	base=$1
	dirs=("$base"/*/)
	"$tool" report --nested --format=json "$base" >"$base.json" 2>base.err || fail "$base: no report: $(cat base.err)"
	for dir in "${dirs[@]}"; do
		backwards=("$dir" "${backwards[@]}")
	done
	same_report "in their order" "${dirs[@]}"
	same_report "backwards" "${backwards[@]}"
	same_report "named twice" "${dirs[@]}" "$base" "${backwards[@]}"

	rm -rf elsewhere
	mkdir elsewhere
	for dir in "${dirs[@]}"; do
		cp -r "$dir" "elsewhere/z$((number--))"
	done
	same_report "elsewhere" elsewhere
	same_report "with copies" "$base" elsewhere
	expect "$base with copies: traces said to be the same" "$(grep -c 'is the same trace as' other.err)" ${#dirs[@]}
	same_report "with copies first" elsewhere "$base"

	but=later=86400
	rewritten later shift=86400 && same_report "a day later" later
	but=
	rewritten boot uptime=3 frequency="$(frequency)" && same_report "of another boot" boot
	but=hosts
	rewritten host host=elsewhere && same_report "of another host" host
	for ids in ids=1000000 ids=-3000000; do
		but=$ids
		rewritten ids "$ids" && same_report "with other numbers, $ids" ids
	done
	but="$ids hosts"
	rewritten all shift=100 uptime=2 frequency="$(frequency)" "$ids" host=elsewhere && same_report "all at once" all
}

for log in "$here"/../golden/*.log; do
	name=$(basename "$log" .log)
	mkdir "$name"
	"$bin/log_traces" "$log" "$name" || fail "no traces of $log"
	look "$name"
done

# Four threads each of two processes, that wait for locks.
CUDASPY_OUT=$tmp/recorded && export CUDASPY_OUT
export CUDASPY_CLOCK=monotonic # ticks of a nanosecond: a shift rounds nothing
"$sim" "$bin/scene" --script ioctl_no_lock >script
for process in 1 2; do
	SPYSIM_SCRIPT=$tmp/script "$sim" env LD_PRELOAD="$first $shim" "$bin/scene" ioctl_no_lock >scene.out 2>&1 ||
		fail "scene: $(tail -n 3 scene.out)"
done
look recorded
