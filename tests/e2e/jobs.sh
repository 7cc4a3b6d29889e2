# shellcheck shell=bash
# tests/e2e/jobs.sh: for tests that compare what several threads make of a set with what one makes. Needs $tool; $every: all verbs of
# every set. Sourced.

# compare VERB TRACES OPTIONS...: one thread and as many as $several says: the same output, warnings and status.
several="2 5"
compare() {
	local verb=$1 traces=$2 jobs status
	shift 2
	CUDASPY_JOBS=1 "$tool" "$verb" "$@" "$traces" >one.out 2>one.err
	status=$?
	for jobs in $several; do
		CUDASPY_JOBS=$jobs CUDASPY_JOBS_TRACE=1 "$tool" "$verb" "$@" "$traces" >more.out 2>more.all
		[ $? = $status ] || fail "$verb $* $traces: other status with $jobs threads"
		: >more.parts >more.err
		awk '{ print >(/^cudaspy: jobs:/ ? "more.parts" : "more.err") }' more.all
		cmp one.out more.out || fail "$verb $* $traces: not the same with $jobs threads: $(diff one.out more.out | head -n 5)"
		[ "$(<one.err)" = "$(<more.err)" ] || fail "$verb $* $traces: other warnings with $jobs threads: $(diff one.err more.err | head -n 5)"
	done
}

# same_all TRACES PARTS: compares the verbs; PARTS: "several", "one" or "given_up", as the report says; or "none": it is not
# read in parts at all.
same_all() {
	local traces=$1 parts=$2 is line
	compare report "$traces" --format=json
	is=none
	while read -r line; do
		case $line in
		*" parts by "*"given up"*) is=given_up ;;
		*" in 1 parts by "*) is=one ;;
		*" parts by "*) is=several ;;
		esac
	done <more.parts
	[ "$is" = "$parts" ] || fail "$traces: not read in '$parts' part(s): $(cat more.parts)"
	# The verbs share the reading: one other number of threads will do, and for each set three of them in turn (--all: all).
	local several=${several##* } i verb
	for ((i = 0; i < ${#verbs[@]}; i++)); do
		[ "${every:-}" ] || [ $(((i + n_sets) % ${#verbs[@]})) -lt 3 ] || continue
		read -ra verb <<<"${verbs[i]}"
		compare "${verb[0]}" "$traces" "${verb[@]:1}"
	done
	n_sets=$((n_sets + 3))
}
verbs=("report -v -n" "report --redact" "report --from=20% --to=80%" "report --format=sarif --fail-on=any" info "why 1" "export --format=csv -o -")
n_sets=0

# same_digest TRACES: the same of digests.
same_digest() {
	local jobs
	for jobs in 1 2 5; do
		CUDASPY_JOBS=$jobs "$tool" digest "$1" -o digest.$jobs >digest.out.$jobs 2>digest.err.$jobs || fail "digest $1: $(cat digest.err.$jobs)"
	done
	for jobs in 2 5; do
		cmp digest.1 digest.$jobs || fail "digest $1: not the same with $jobs threads"
		cmp digest.err.1 digest.err.$jobs || fail "digest $1: other warnings with $jobs threads"
	done
}
