#!/bin/bash
# The report as a gate of a build, on the simulator: it fails on a new pageable copy, and passes once the
# buffer is pinned, or the finding suppressed with a reason. Suppressions expire, and those that do nothing
# are named; a baseline lets pass what was there before; budgets; each format is valid and says the same;
# what cannot be run is status 2, and named.
. "$(dirname "$0")/lib.sh"
need jq
app=$build/testapps/copies
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
schemas=$here/../schemas

# record NAME VARIANT: traces in NAME/
record() {
	CUDASPY_OUT=$tmp/$1 "$sim" env LD_PRELOAD="$shim $kernel" timeout 60 "$app" --csv --quick --variant "$2" \
		>table 2>err || fail "under cudaspy, $2: status $?: $(tail -n 2 err)"
}

# gate WANTED ARG...: the exit status of the report is as wanted; stdout, stderr in `said` and `err`.
gate() {
	local wanted=$1 status
	shift
	"$tool" report "$@" >said 2>err </dev/null
	status=$?
	expect "report $*: $(tail -n 3 err): exit status" "$status" "$wanted"
}

# says FILE WORDS
says() {
	local words
	read -r -d '' -a words <"$1"
	[[ " ${words[*]} " == *"$2"* ]] || fail "$1 does not say '$2': $(head -n 30 "$1")"
}

# holds WHAT FILTER: of the JSON report in `said`
holds() {
	jq -e "$2" said >/dev/null || fail "not so: $1: $(jq -c '.gate, .gate_failures, .suppressions, [.findings[] |
		{id, line, cost_ns, suppressed, compared, fails}]' said)"
}

record pageable pageable
record pinned pinned

# ---- the gate ---------------------------------------------------------------------------------------
gate 0 pageable
grep -q '^GATE' said && fail "a gate that nobody asked for: $(cat said)"
gate 1 --fail-on=pageable-copy pageable
says said "GATE verdict FAILED"
says said "WHY THE GATE FAILS"
says said "--fail-on=pageable-copy"
says err "cudaspy: the gate fails: --fail-on=pageable-copy"
says err "copies.c:"
gate 1 --fail-on=any pageable
gate 1 --fail-on problem pageable
gate 0 --fail-on=hidden-sync pageable
gate 0 --fail-on=pageable-copy,hidden-sync pinned
says said "GATE verdict passed"

# ---- suppressions -----------------------------------------------------------------------------------
gate 0 --format=json pageable
copy=$(jq -r '[.findings[] | select(.id == "pageable-copy")][0] | "copies.c:\(.line)"' said)
lines=$(jq '[.findings[] | select(.id == "pageable-copy")] | length' said)
[ "$lines" -ge 2 ] || fail "two places expected: $(jq -c '.findings[] | [.id, .line]' said)"

cat >accepted <<-EOF
	# what is known
	pageable-copy   work                       -- the vendor's loop, ticket 12 -- asked twice

	  pageable-copy $copy until 2999-12-31   -- and this line
EOF
gate 0 --fail-on=pageable-copy --suppress=accepted pageable
says said "suppressed $lines findings"
[ -s err ] && fail "complains: $(cat err)"
gate 0 --fail-on=pageable-copy --suppress=accepted --format=json pageable
holds "all copies are suppressed, with the reason of the first entry" '
	[.findings[] | select(.id == "pageable-copy")] | length > 1 and
	all(.[]; .suppressed == "the vendor'\''s loop, ticket 12 -- asked twice" and .fails == "no")'
holds "the gate counts them" '.gate | .verdict == "passed" and .suppressed == '"$lines"' and .suppressed_ns > 1e6'
holds "both entries are used" '[.suppressions[] | [.line, .state]] == [[2, "used"], [4, "used"]]'

# One place alone; the other one still fails.
echo "pageable-copy */$copy -- one line" >one
gate 1 --fail-on=pageable-copy --suppress=one --format=json pageable
holds "one is left" '.gate.suppressed == 1 and ([.findings[] | select(.fails == "yes")] | length) == '$((lines - 1))
for place in cudaMemcpyAsync 'cudaMem*' copies '*/copies' copies.c; do
	echo "pageable-copy $place -- everywhere" >place
	gate 0 --fail-on=pageable-copy --suppress=place pageable
done

cat >old <<-EOF
	pageable-copy work until 2020-02-29 -- somebody hoped
	hidden-sync copies.c -- nothing there
EOF
gate 1 --fail-on=pageable-copy --suppress=old pageable
says err "old:1: expired on 2020-02-29: pageable-copy work"
says err "old:2: not used: hidden-sync copies.c"
says said "old:1 pageable-copy work expired on 2020-02-29; $lines findings"
says said "old:2 hidden-sync copies.c unused"
gate 0 --fail-on=pageable-copy --suppress=old --suppress=accepted pageable
says err "old:1: expired"

# ---- baseline ---------------------------------------------------------------------------------------
gate 0 --format=json pageable
cp said before.json
gate 0 --fail-on=any --baseline=before.json pageable
says said "baseline before.json: 0 new, 0 worse"
gate 0 --fail-on=any --baseline=pageable --format=json pageable
holds "traces are a baseline, too" '.gate.same == (.findings | length) and all(.findings[]; .compared == "same")'

gate 0 --format=json pinned
cp said pinned.json
gate 1 --fail-on=pageable-copy --baseline=pinned.json pageable
says said "pageable-copy, NEW: asynchronous copies"

jq '.findings |= map(select(.id == "pageable-copy"))[1:]' before.json >without.json
gate 1 --fail-on=pageable-copy --baseline=without.json --format=json pageable
holds "only the copy that was not there before counts, and is first" '
	.gate.added >= 1 and .findings[0].compared == "new" and
	[.findings[] | select(.fails == "yes") | .compared] == ["new"]'

jq '(.findings[] | .cost_ns) |= (. / 4 | floor) | (.findings[] | .line) += 7 | (.findings[] | .offset) = 1' before.json >cheap.json
gate 1 --fail-on=pageable-copy --baseline=cheap.json --format=json pageable
holds "what costs four times as much is worse, wherever its line has moved" '
	.gate.added == 0 and .gate.worse >= 1 and .findings[0].compared == "worse" and
	.findings[0].before_ns * 3 < .findings[0].cost_ns'
jq '(.findings[] | .cost_ns) |= (. / 1.1 | floor)' before.json >near.json
gate 0 --fail-on=any --baseline=near.json pageable
jq '.findings += [{id: "hidden-sync", cost_ns: 1}]' before.json >more.json
gate 0 --fail-on=any --baseline=more.json pageable
says said "1 gone"

# ---- budgets ----------------------------------------------------------------------------------------
gate 0 --budget=pageable-copy:1000s,all:100%,all:1000000x,hidden-sync:0 pageable
gate 1 --budget=pageable-copy:1 pageable
says err "--budget=pageable-copy:1:"
gate 1 --budget=hidden-sync:5ms,all:0.01% pageable
says said "--budget=all:0.01%"
gate 1 --budget=all:3x --format=json pageable
holds "calls were counted" '.gate_failures[0] | .unit == "calls" and .limit == 3 and .value > 3 and .id == null'
gate 0 --budget=pageable-copy:0 --suppress=accepted pageable

# ---- formats ----------------------------------------------------------------------------------------
valid_all() {
	local status=$1
	shift
	gate "$status" --format=json "$@"
	valid "$here/../../docs/report.schema.json" said
	gate "$status" --format=sarif "$@"
	valid "$schemas/sarif-2.1.0.json" said
	gate "$status" --format=junit "$@"
	command -v xmllint >/dev/null || { without "the schema of JUnit (no xmllint)"; return; }
	xmllint --noout --schema "$schemas/junit.xsd" said 2>wrong || fail "junit: $(head -n 5 wrong)"
}
valid_all 0 pageable
valid_all 0 --nested pinned
valid_all 1 --fail-on=any --budget=all:0 --suppress=old --baseline=cheap.json pageable
valid_all 0 --fail-on=pageable-copy --suppress=accepted --baseline=pinned.json pageable

# A schema that says yes to everything is none.
gate 0 --format=json pageable
jq 'del(.findings[0].cost_ns)' said >less.json
"$here/../validate" "$here/../../docs/report.schema.json" less.json >wrong && fail "a report that lacks a key is valid"

detectors=$("$tool" explain --format=json | jq '.detectors | length')
gate 1 --fail-on=pageable-copy --suppress=one --format=sarif pageable
says said '"ruleId": "pageable-copy"'
jq -e --arg copy "$copy" --argjson detectors "$detectors" '.runs[0] | (.tool.driver.rules | length) == $detectors and
	(.tool.driver.rules as $rules | all(.results[]; $rules[.ruleIndex].id == .ruleId)) and
	([.results[] | select(.suppressions[0].justification == "one line") |
		"copies.c:\(.locations[0].physicalLocation.region.startLine)"] == [$copy]) and
	any(.results[]; .level == "error" and (.suppressions | length) == 0 and
		(.locations[0].physicalLocation.artifactLocation.uri | endswith("copies.c")) and
		.locations[0].logicalLocations[0].name == "work")' said >/dev/null || fail "sarif: $(jq -c '.runs[0].results' said)"
gate 0 --format=sarif --baseline=cheap.json pageable
jq -e 'any(.runs[0].results[]; .baselineState == "updated")' said >/dev/null || fail "sarif: no baseline: $(cat said)"

gate 1 --fail-on=pageable-copy --format=junit pageable
says said "tests=\"$detectors\" failures=\"1\""
expect "junit: cases that failed, and skipped ones" "$(grep -c '<failure' said) $(grep -c '<skipped' said)" "1 0"
gate 0 --fail-on=pageable-copy --suppress=accepted --format=junit pageable
says said 'failures="0" errors="0" skipped="1"'
says said "ticket 12"
CUDASPY_LIB=$shim "$sim" "$tool" run --quiet --format=junit -o runs -- "$app" --quick --variant pageable >said 2>err ||
	fail "run: its exit status is the program's: $? $(cat err)"
grep -q '<' said && fail "run: the report is between what the program says: $(cat said)"
says err "the report is in $tmp/runs/cudaspy-report.junit"
says runs/cudaspy-report.junit '<failure message='
CUDASPY_LIB=$shim "$sim" "$tool" run --quiet --format=junit --report=- -o runs -- "$app" --quick --variant pageable >said 2>err ||
	fail "run --report=-: $? $(cat err)"
says said '<failure message='

# ---- what cannot be run -----------------------------------------------------------------------------
# refused WORDS ARG...
refused() {
	local words=$1
	shift
	gate 2 "$@"
	[ -s said ] && fail "report $*: a report: $(head -n 5 said)"
	says err "$words"
}
refused "--fail-on=copies: 'copies' is neither any nor problem nor a detector" --fail-on=any,copies pageable
refused "empty argument of '--fail-on='" --fail-on= pageable
refused "--budget=all: 'all' has no limit" --budget=all pageable
refused "--budget=copy:1ms: 'copy' is neither all nor a detector" --budget=all:1ms,copy:1ms pageable
refused "'min' is no unit" --budget=all:1min pageable
refused "'-5%' is no limit" --budget=all:-5% pageable
refused "no format 'rhyme' (text or json or html or junit or sarif)" --format=rhyme pageable
refused "nowhere: No such file" --suppress=nowhere pageable
refused "cudaspy: .: not a regular file" --suppress=. pageable
refused "nowhere: No such file" --baseline=nowhere pageable
refused "accepted:1: no JSON" --baseline=accepted pageable
echo '{"schema": "cudaspy-info-1"}' >info.json
refused "info.json: not a report of cudaspy" --baseline=info.json pageable
mkdir empty
refused "empty" --baseline=empty pageable
refused "no-such-place" --fail-on=any no-such-place
while IFS='|' read -r line words; do
	printf '# first\n%s\n' "$line" >bad
	refused "bad:2: $words" --suppress=accepted --suppress=bad pageable
done <<-EOF
	pageable-copy work|no reason
	pageable-copy work -- |the reason is empty
	pageable-copy work --|the reason is empty
	pageable work -- why|cudaspy explain lists the detectors; there is none called 'pageable'
	pageable-copy until 2026-02-30 -- why|no day YYYY-MM-DD: '2026-02-30'
	pageable-copy work until tomorrow -- why|no day YYYY-MM-DD: 'tomorrow'
	pageable-copy work until -- why|'until' without a day
EOF
"$tool" info --format=sarif pageable >said 2>err
expect "info in a format for findings" "$?" 2
says err "no format 'sarif' (text or json)"

# ---- data that are not there ------------------------------------------------------------------------
# unjudged WORDS ARG...: a report, but no verdict, in each format. Of one reason the formats are the same, whatever the option.
valid_reasons=()
unjudged() {
	local words=$1
	shift
	gate 2 "$@"
	says said "GATE verdict CANNOT JUDGE: $words"
	says said "CUDASPY REPORT"
	says err "cudaspy: the gate cannot judge: $words"
	if [[ " ${valid_reasons[*]} " != *" $words "* ]]; then
		valid_reasons+=("$words")
		valid_all 2 "$@"
		says said 'errors="1"'
		says said '<error message="the gate cannot judge: '
	fi
	gate 2 --format=json "$@"
	jq -e '.gate | .verdict == "unknown" and .unjudged != null and .incomplete == "yes"' said >/dev/null ||
		fail "json: $(jq -c .gate said)"
	gate 2 --format=sarif "$@"
	jq -e '.runs[0].invocations[0] | .executionSuccessful == false and
		any(.toolExecutionNotifications[]; .level == "error")' said >/dev/null || fail "sarif: $(cat said)"
}
for option in --fail-on=hidden-sync --fail-on=any --budget=all:100% --baseline=pinned.json; do
	unjudged "1 directory named without a trace" $option pinned nosuch
done
says err "nosuch: No such file"
unjudged "2 directories named" --fail-on=hidden-sync pinned empty accepted
# Without a gate, as before: what there is.
gate 0 pinned nosuch
says said "directories that were named"
gate 0 --suppress=accepted pinned nosuch
grep -q JUDGE said && fail "no gate judges: $(cat said)"

cp -r pinned broken
sed -i 's/trace_version = [0-9]*;/trace_version = 99;/' broken/*/metadata
grep -q 'trace_version = 99;' broken/*/metadata || fail "the metadata has no version"
unjudged "1 trace cannot be read" --fail-on=hidden-sync pinned broken

# A trace that its reader may not look into, beside one that can be read; alone; and a directory that is no trace.
# Permissions do not stop root: then somebody else reads.
own_tool=$tool
mkdir -p locked/private
cp -r pinned/*.cudaspy locked
cp -r locked/*.cudaspy locked/secret-1.cudaspy
chmod -R go+rX "$tmp"
chmod 0 locked/private locked/secret-1.cudaspy
if [ "$(id -u)" = 0 ]; then
	cp "$tool" "$tmp/cudaspy-tool"
	printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups %s/cudaspy-tool "$@"\n' "$tmp" >as_other
	chmod 755 as_other
	tool=$tmp/as_other
fi
unjudged "1 trace cannot be read" --fail-on=hidden-sync locked
says err "cudaspy: locked/secret-1.cudaspy: Permission denied"
grep -q private err && fail "a directory that is no trace: $(cat err)"
gate 0 locked
says said "traces that could not be read at all"
chmod 0 locked/*
for traces in locked locked/secret-1.cudaspy; do
	gate 2 --fail-on=hidden-sync $traces
	says err "locked/secret-1.cudaspy: Permission denied"
	grep -q 'no trace' err && fail "there is a trace: $(cat err)"
done
chmod -R u+rwX locked
tool=$own_tool

# Of a trace nothing is left: files gone, or empty; alone, or among others (of other processes: a copy is read once).
cp -r pageable gone
rm gone/*/stream_*
unjudged "no call is left of gone/" --fail-on=hidden-sync gone
unjudged "no call is left of gone/" --fail-on=hidden-sync pinned gone
gate 0 gone
cp -r pinned hollow
for file in hollow/*/stream_*; do : >"$file"; done
unjudged "no call is left of hollow/" --fail-on=hidden-sync hollow
cp -r gone bare
rm bare/*/.board
unjudged "no call is left of bare/" --budget=all:1s bare

# Some of it is left: judged, and said.
cp -r pageable torn
rm torn/*/stream_0001* # of one of four threads that copy
for detector in hidden-sync pageable-copy; do
	want=$([ $detector = pageable-copy ] && echo 1 || echo 0)
	gate "$want" --fail-on=$detector torn
	says said ", on incomplete data"
	says said "data incomplete: "
	says err "the gate judges incomplete data: "
	valid_all "$want" --fail-on=$detector torn
	says said "name=\"complete-data\""
	says said "<skipped message=\"the gate $([ "$want" = 1 ] && echo failed || echo passed) on incomplete data: "
	gate "$want" --fail-on=$detector --format=json torn
	holds "it is judged, and incomplete" '.gate | .incomplete == "yes" and .lost_records > 0 and .unjudged == null'
done
rm torn/*/.board # and nobody knows how much is lost
gate 0 --fail-on=hidden-sync --format=json torn
holds "it is not known how much is lost" '.gate | .incomplete == "yes" and .lost_records == 0 and .verdict == "passed"'
says err "the gate judges incomplete data: "
gate 0 --fail-on=hidden-sync --format=json pinned
holds "nothing is lost" '.gate | .incomplete == "no" and .lost_records == 0 and .verdict == "passed"'

# ---- the program is not the one that ran ------------------------------------------------------------
cp "$app" ran
app=$tmp/ran
record named pageable
gate 0 --format=json named
cp said named.json
holds "the file is there" '.files == []'
place=$(jq -r '[.findings[] | select(.id == "pageable-copy" and .line > 0)][0] | "\(.file | split("/") | last):\(.line)"' said)
echo "pageable-copy $place -- accepted" >accepted
gate 0 --suppress=accepted --format=json named
holds "the place is known" '(.suppressions[0].state == "used") and .gate.unnamed == null'

# not_named STATE SAYS: what the report and the gate say of it
not_named() {
	gate 0 --format=json named
	holds "$1: the file" '[.files[] | select(.file == "'"$app"'")] | length == 1 and .[0].state == "'"$1"'" and .[0].recorded != null'
	valid "$here/../../docs/report.schema.json" said
	holds "$1: places are offsets" '[.findings[] | select(.id == "pageable-copy")] | length > 0 and
		all(.line == 0 and .caller == null and (.where | test("^cuda[A-Za-z0-9]* in ran[+]0x[0-9a-f]+$")))'
	grep -q 'functions and lines' err && fail "$1: said without need: $(cat err)"
	gate 0 named
	says said "FILES that differ from those that ran"
	says said "$app $2"
	"$tool" info named >said || fail "info: $?"
	says said "$app $2"
	gate 0 --suppress=accepted named
	says err "not used: pageable-copy $place"
	says err "$app $2"
	says said "$app $2"
	gate 0 --baseline=named.json --format=json named
	says err "$app $2"
	holds "$1: the gate says so" '.gate.unnamed | startswith("'"$app"' ")'
}
mv ran moved
not_named missing "is not there"
cp "$bin/board" ran
not_named other "has build id "
cp moved ran
gate 0 --suppress=accepted --format=json named
holds "it is there again" '.files == [] and .suppressions[0].state == "used"'

# ---- explain ----------------------------------------------------------------------------------------
"$tool" explain >said || fail "explain: $?"
for verb in run report explain why diff dump info calibrate help; do
	fits "$tool" help $verb
done
fits "$tool" --help
fits "$tool" explain
fits "$tool" report --verbose --nested --budget=all:3x --suppress=accepted --baseline=pinned.json pageable
for id in $("$tool" explain --format=json | jq -r '.detectors[].id'); do
	says said "$id"
	"$tool" explain "$id" >text || fail "explain $id: $?"
	fits "$tool" explain "$id"
	# Nothing of it is cut.
	"$tool" explain --format=json "$id" | jq -r '.detector | .title, .sees, .blind, .fix | gsub("[ \n]+"; " ") | sub(" *$"; "")' >parts
	expect "explain $id: parts" "$(grep -c . parts)" 4
	tr -s ' \n' ' ' <text >line
	while read -r part; do
		grep -qF -- "$part" line || fail "explain $id does not say '$part'"
	done <parts
done
"$tool" explain no-such >said 2>err
expect "explain what there is not" "$?" 2
says err "no detector 'no-such'"
