#!/bin/bash
# Threads that get no CPU: beside busy programs that is a note, for the program's own time on CPUs is small; with too many threads of
# its own, and nobody else there, a problem. How busy this machine is otherwise nobody knows: the time that the program had decides.
. "$(dirname "$0")/lib.sh"
need jq taskset
cpu=$(taskset -pc $$ | sed 's/.*[ :]\([0-9]*\).*/\1/')

# lacks N: the program on one CPU, beside so many that keep it busy; its finding in found.json.
lacks() {
	local busy=() i
	rm -rf "$out"
	for ((i = 0; i < $1; i++)); do
		taskset -c "$cpu" sh -c 'while :; do :; done' &
		busy+=($!)
	done
	CUDASPY_OUT=$out timeout 60 taskset -c "$cpu" "$here/../sim/with-sim" env LD_PRELOAD="$first $shim" \
		"$build/tests/e2e/faults" oversubscribed-host >ran.out 2>ran.err
	status=$?
	[ ${#busy[@]} -eq 0 ] || kill "${busy[@]}"
	wait
	[ $status -eq 0 ] || fail "beside $1: exit status $status: $(tail -n 3 ran.err)"
	"$tool" report --format=json "$(the_trace)" >report.json || fail "beside $1: no report"
	jq -c '.findings[] | select(.id == "oversubscribed-host")' report.json >found.json
	[ -s found.json ] || fail "beside $1: not found"
	percent=$(jq -r '.what | capture("itself had (?<n>[0-9]+) %").n' found.json)
	[ "$(jq -r .severity found.json)" = "$([ "$percent" -ge 50 ] && echo problem || echo note)" ] ||
		fail "beside $1, with $percent % of the CPU: $(cat found.json)"
	expect "beside $1: the CPUs" "$(jq '.hosts[0].cpus' report.json)" 1
	echo "beside $1: $percent %, $(jq -r .severity found.json)"
}

lacks 0
jq -e '(.severity == "note") == (.what | test("other programs on the host had the CPUs"))' found.json >/dev/null ||
	fail "alone: $(cat found.json)"
lacks 12
jq -e '.severity == "note" and (.fix | test("quieter host"))' found.json >/dev/null || fail "beside 12: $(cat found.json)"
jq -e '.findings[0].id != "oversubscribed-host" or .summary.problems == 0' report.json >/dev/null ||
	fail "it comes first: $(jq -c '[.findings[] | {id, severity}]' report.json)"
