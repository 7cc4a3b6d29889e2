#!/bin/bash
# testapps/lazyload on the simulator, bare and recorded: where the one call waits for the device, as it did on
# an H200, another thread's copy waits as long, and elsewhere not; and the report says that the copy waited for a
# lock, who held it in which call, and that the GPU is at the root of it.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/lazyload
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
echo 'lazy needs_stack' >script # for this kernel local memory has to grow, however code is loaded
export SPYSIM_SCRIPT=$tmp/script

# cell LOADING TRIGGER COLUMN: of the table.
cell() {
	awk -F, -v loading="$1" -v trigger="$2" -v column="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		$at["loading"] == loading && $at["trigger"] == trigger { print $at[column] }' table
}

# On a busy machine a copy of thread C's may come late: most of the wait is asked for.
ms=150
triggers="none small big stack printf malloc limit"
"$sim" "$app" --csv --ms $ms --loading both >table 2>err || fail "bare: status $?: $(cat err)"
expect "rows" "$(sed 1d table | cut -d, -f 1,2 | tr '\n' ' ')" \
	"$(printf 'LAZY,%s ' $triggers)$(printf 'EAGER,%s ' $triggers)"
# as_measured LOADING TRIGGER: is that row of the table as an H200 had it?
as_measured() {
	local waited copy wanted
	waited=$(cell "$1" "$2" b_waited_ms) copy=$(cell "$1" "$2" c_copy_ms)
	case $1,$2 in
	LAZY,none|EAGER,none|EAGER,small|EAGER,big|EAGER,printf) wanted='waited < ms / 2 && copy < ms / 2' ;;
	*) wanted='waited > ms / 2 && copy > waited / 2' ;;
	esac
	awk -v ms=$ms -v waited="$waited" -v copy="$copy" "BEGIN { exit !($wanted) }" &&
		[ "$(cell "$1" "$2" c_rounds)" -gt 0 ]
}
# Threads have to have a CPU in time: a row that is not as it should be is measured again.
for loading in LAZY EAGER; do
	for trigger in $triggers; do
		for ((try = 1; ; try++)); do
			as_measured $loading $trigger && break
			again $try 3 || fail "$loading, $trigger: $(grep "^$loading,$trigger," table)"
			"$sim" "$app" --csv --ms $ms --loading ${loading,,} --trigger $trigger >table || fail "$trigger again: status $?"
		done
	done
done
"$sim" "$app" --json --ms 50 --loading both --trigger none,limit >some.json || fail "some triggers: status $?"
expect "rows of some triggers" "$(jq -r '[.[] | .loading + " " + .trigger] | join(", ")' some.json)" \
	"LAZY none, LAZY limit, EAGER none, EAGER limit"
expect "loading, given with --quick" \
	"$("$sim" "$app" --csv --quick --loading eager --trigger none | sed 1d | cut -d, -f 1,2)" "EAGER,none"

# recorded TRIGGER: a run of it under the shim, and its report.json.
recorded() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
		"$app" --ms $ms --loading lazy --trigger "$1" >recorded.out 2>recorded.err ||
		fail "$1 recorded: status $?: $(cat recorded.err)"
	"$tool" report --format=json "$(the_trace)" >report.json || fail "$1: no report"
}

# waited CALL: does the report say that a copy waited for a lock, for which call of whom, and for the GPU at the root? The
# other thread copies and launches in turn: a busy machine may have it at its first launch then, which waits, too.
waited() {
	jq -e --arg call "$1" --argjson least $((ms * 500000)) '
		(.blame[0] | (.waiter_function | IN("cudaMemcpyAsync", "cudaLaunchKernel")) and .holder_function == $call and
			.holder > 0 and .holder != .waiter and .waited_ns > $least and .how == "measured") and
		(.root_blame[0] | .root_function == $call and .cause == "gpu" and .waited_ns > $least) and
		.blame[0].holder == .root_blame[0].root and
		([.worst_calls[] | select(.function == $call and .lost_ns > $least)] | length) == 1 and
		([.findings[] | select(.id == "same-device-stall" and .own_ns > $least)] | length) == 1' \
		report.json >/dev/null
}
for trigger in small:__cudaLaunchKernel stack:__cudaLaunchKernel malloc:cudaFree limit:cudaDeviceSetLimit; do
	for ((try = 1; ; try++)); do
		recorded ${trigger%:*}
		waited ${trigger#*:} && break
		again $try 3 || fail "${trigger%:*}: the report says $(jq -c '.blame[0], .root_blame[0], .worst_calls[0]' report.json)"
	done
done
for ((try = 1; ; try++)); do
	recorded none
	[ "$(jq '[.blame[] | select(.waited_ns > 10e6)] | length' report.json)" = 0 ] && break
	again $try 3 || fail "nobody waits for a lock if nothing happens: $(jq -c .blame report.json)"
done

# Three runs in one folder: that each of them waited makes the wait no price of a first launch.
three_runs() {
	local run
	rm -rf "$out"
	for run in 1 2 3; do
		CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
			"$app" --ms 80 --loading lazy --trigger small >recorded.out 2>recorded.err ||
			fail "run $run recorded: status $?: $(cat recorded.err)"
	done
	"$tool" report --format=json "$out" >report.json || fail "three runs: no report"
	"$tool" report "$out" | grep -q 'lazy-loading, a note (once a run)' &&
		jq -e '[.findings[] | select(.id == "lazy-loading" and .severity == "note" and (.recurrence | IN("once", "end")))] |
		length == 1 and .[0].own_ns > 120e6 and .[0].others_ns > 120e6' report.json >/dev/null &&
		jq -e '[.root_blame[] | select(.root_function == "__cudaLaunchKernel" and .cause == "gpu") | .waited_ns] |
			add > 120e6' report.json >/dev/null
}
for ((try = 1; ; try++)); do
	three_runs && break
	again $try 3 ||
		fail "three runs: the report says $(jq -c '[.findings[] | {id, severity, own_ns, others_ns}], .root_blame[0]' report.json)"
done

# What it must refuse and notice.
for wrong in "--trigger nosuch" "--trigger small,nosuch" "--loading sometimes" "--ms 0" "--nosuch"; do
	"$sim" "$app" $wrong >/dev/null 2>err
	expect "status for $wrong" $? 2
	grep -q '^lazyload: ' err || fail "$wrong: says $(cat err)"
done
echo 'broken first' >>script
"$sim" "$app" --quick --trigger small >/dev/null 2>err
expect "status for a wrong sum" $? 1
grep -q 'sum is wrong' err || fail "a wrong sum: says $(cat err)"
SPYSIM_INIT=100 "$sim" "$app" --quick >/dev/null 2>err
expect "status without a GPU" $? 1
