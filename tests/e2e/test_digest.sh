#!/bin/bash
# Digests of a job's ranks: each made by itself, merged in any order to the same bytes, and reported: who holds the others up
# and why, as the job's traces tell it. What is torn, missing, of another version or not equal is named, and the rest goes on.
. "$(dirname "$0")/lib.sh"
need jq python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
app=$build/testapps/ranks
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=60 SPYSIM_NCCL_INTERFACE=5 SPYSIM_GPUS=16 CUDASPY_QUIET=1

# status WANTED WHAT CMD...: its standard error goes to err.
status() {
	local wanted=$1 what=$2 got
	shift 2
	"$@" >out 2>err
	got=$?
	[ "$got" = "$wanted" ] || fail "$what: exit status $got, not $wanted: $(tail -n 3 err)"
}

# said TEXT: in the last standard error.
said() {
	grep -qF -- "$1" err || fail "no word of '$1': $(cat err)"
}

# named REPORT: is it the planted rank, and for what it did?
named() {
	jq -e '.differences[0] | .about == "rank" and .rank == 2 and (.cause == "cpu" or .cause == "not-running") and (.evidence | test("ranks(_straggler)?[.]c:"))' "$1" >/dev/null
}

# On a busy machine another rank may be late as well, or the GPU's thread without a CPU.
try=0
until [ "$try" != 0 ] && "$tool" report --format=json -o report.json all.digest 2>/dev/null && named report.json; do
	[ "$try" = 0 ] || again "$try" 6 || break
	try=$((try + 1))
	rm -rf traces all.digest
	"$sim" "$tool" run --no-report -o traces -- timeout -k 5 100 "$app" --quick --csv --ranks=4 --gpus=4 --steps=30 --work-us=20000 \
		--bytes=2048 --straggler=2:cpu:2:40 >table.csv 2>run.err || fail "no job: $(cat run.err)"
	"$tool" digest -o all.digest traces 2>err || fail "no digest: $(cat err)"
done
expect "traces" "$(ls traces | wc -l)" 4

# ---- digests, and merges of them --------------------------------------------------------------
i=0
for trace in traces/*; do
	status 0 "a digest" "$tool" digest -o $i.digest "$trace"
	[ "$(stat -c %s $i.digest)" -le 100000 ] || fail "a digest of $(stat -c %s $i.digest) bytes"
	i=$((i + 1))
done
status 0 "a digest of all" "$tool" digest -o all.digest traces
status 0 "again" "$tool" digest -o again.digest traces
cmp all.digest again.digest || fail "the same traces, and another digest"
status 0 merge "$tool" merge -o merged.digest 0.digest 1.digest 2.digest 3.digest
cmp all.digest merged.digest || fail "digests of ranks, merged, are not that of all of them"
status 0 merge "$tool" merge -o left.digest 3.digest 1.digest
status 0 merge "$tool" merge -o right.digest 2.digest 0.digest 3.digest
status 0 "a tree" "$tool" merge -o tree.digest right.digest left.digest right.digest
cmp all.digest tree.digest || fail "another tree, and another digest"
printf '%s\n' 3.digest @more >list
printf '%s\n' left.digest "$tmp/0.digest" 2.digest >more
status 0 "a list" "$tool" merge -o list.digest --from-list=list
cmp all.digest list.digest || fail "of a list another digest"
"$tool" merge -o - @- <list >piped.digest 2>err || fail "by pipes: $(cat err)"
cmp all.digest piped.digest || fail "by pipes another digest"
mkdir folder && cp [0-3].digest folder
status 0 "a folder" "$tool" merge -o folder.digest folder
cmp all.digest folder.digest || fail "of a folder another digest"

# ---- the report -------------------------------------------------------------------------------
status 0 report "$tool" report --format=json -o report.json all.digest
jq -e '.schema == "cudaspy-job-1" and .job.ranks == 4 and .job.missing == 0 and .job.compared > 10 and (.losses | length == 0)' report.json >/dev/null ||
	fail "job: $(jq -c .job report.json)"
named report.json || fail "not named: $(jq -c .differences report.json)"
jq -e '[.ranks[] | .calls] | add > 100' report.json >/dev/null || fail "ranks: $(jq -c .ranks report.json)"
"$tool" report --format=json traces >traces.json 2>err || fail "no report of traces: $(cat err)"
jq -e '.findings[0].id == "straggler-rank"' traces.json >/dev/null || fail "the traces' own report names nobody"
expect "calls" "$(jq .job.calls report.json)" "$(jq .summary.count traces.json 2>/dev/null | grep -v null || jq '[.accounts[].calls] | add' traces.json)"
status 0 "of the folder" "$tool" report --format=json -o folder.json folder
cmp report.json folder.json || fail "the report of a folder is another one"
status 0 "of traces and digests" "$tool" report --format=json -o mixed.json 0.digest 1.digest 2.digest traces/*rank3*
cmp report.json mixed.json || fail "the report of digests and traces is another one"
valid "$here/../../docs/job.schema.json" report.json
status 0 text "$tool" report all.digest
grep -q 'rank 2 .*comes late' out || fail "text: $(cat out)"
status 0 html "$tool" report --format=html -o report.html all.digest
grep -q '^<!DOCTYPE html>' report.html && grep -q 'comes late to collectives' report.html || fail "html: $(head -c 300 report.html)"
status 0 "one rank" "$tool" report 2.digest
grep -q 'ranks  *1 of 4' out || fail "one rank: $(cat out)"

status 0 dump "$tool" dump all.digest
expect "dumped ranks" "$(grep -c '^# rank' out)" 4
grep -q '^functions function="cudaStreamSynchronize" count=' out || fail "dump: $(head -n 20 out)"
status 0 "dump as JSON" "$tool" dump --format=json -o dump.json all.digest
jq -e '.ranks[2].rank[0] | .rank_1 == 3 and .world_size == 4' dump.json >/dev/null || fail "dump: $(head -c 500 dump.json)"
expect "calls, by rank and by function" "$(jq '[.ranks[].rank[0].calls] | add' dump.json)" "$(jq '[.ranks[].roles[].calls] | add' dump.json)"

# ---- other reasons ----------------------------------------------------------------------------
# caused STRAGGLER CAUSE ABOUT: or the machine that the test runs on had no CPU for it.
caused() {
	"$sim" "$tool" run --no-report -o "$1" -- timeout -k 5 100 "$app" --quick --csv --ranks=3 --gpus=3 --steps=30 --work-us=20000 \
		--bytes=2048 --straggler="1:$1:2:40" >table.csv 2>run.err || fail "$1: no job: $(cat run.err)"
	status 0 "$1" "$tool" digest -o "$1.digest" "$1"
	status 0 "$1" "$tool" report --format=json -o "$1.json" "$1.digest"
	jq -e --arg cause "$2" --arg about "$3" '.differences[0] | (.cause == $cause or .cause == "not-running") and (.about == $about or .cause == "not-running")' "$1.json" >/dev/null ||
		fail "$1: $(jq -c '[.differences, .ranks]' "$1.json")"
}
caused load pipe rank
caused sync cuda-wait rank
caused kernel slow-gpu gpu

# Two ranks that are slow by turns, as hosts are by themselves: the one that was last more often is no straggler. Its near
# twin is late in all of the run.
for cause in turns cpu; do
	"$sim" "$tool" run --no-report -o "few-$cause" -- timeout -k 5 100 "$app" --quick --csv --ranks=2 --gpus=2 --steps=120 --work-us=4000 \
		--bytes=2048 --straggler="1:$cause:1:8" >table.csv 2>run.err || fail "$cause: no job: $(cat run.err)"
	status 0 "$cause" "$tool" digest -o "few-$cause.digest" "few-$cause"
	status 0 "$cause" "$tool" report --format=json -o "few-$cause.json" "few-$cause.digest"
	status 0 "$cause" "$tool" report --format=json -o "few-$cause.traces.json" "few-$cause"
done
expect "by turns" "$(jq -c .differences few-turns.json)" "[]"
expect "by turns, the traces" "$(jq -c '[.findings[].id | select(. == "straggler-rank" or . == "slow-gpu")]' few-turns.traces.json)" "[]"
jq -e '[.ranks[] | select(.rank == 1)][0] as $r | $r.last * 10 > $r.met * 5' few-turns.json >/dev/null || fail "by turns: $(jq -c .ranks few-turns.json)"
expect "all the time" "$(jq -c '.differences[0].rank' few-cpu.json)" 1
expect "all the time, the traces" "$(jq -r '[.findings[] | select(.id == "straggler-rank") | .what | capture("(?<r>^rank [0-9]+) ").r] | join(" ")' few-cpu.traces.json)" "rank 1"

# ---- sums, and two jobs ------------------------------------------------------------------------
jq -e '.functions | length > 10 and (map(.count) | add) > 100' report.json >/dev/null || fail "functions: $(jq -c .functions report.json | head -c 500)"
jq -e '[.causes[] | select(.cause == "cpu")] | length > 0' report.json >/dev/null || fail "causes: $(jq -c .causes report.json | head -c 500)"
"$sim" "$tool" run --no-report -o clean -- timeout -k 5 100 "$app" --quick --csv --ranks=4 --gpus=4 --steps=30 --work-us=20000 \
	--bytes=2048 >table.csv 2>run.err || fail "no job: $(cat run.err)"
status 0 "a second job" "$tool" digest --redact -o clean.digest clean
"$tool" dump clean.digest | grep -E "$tmp|/home/|/root/|ranks\.c" | grep -q "/" && fail "paths in a redacted digest: $("$tool" dump clean.digest | grep -E "$tmp")"
status 0 diff "$tool" diff --format=json -o diff.json all.digest clean
jq -e '.schema == "cudaspy-job-diff-1" and (.jobs | map(.ranks) == [4, 4]) and any(.differences[]; .change == "vanished" and .about == "rank")' diff.json >/dev/null ||
	fail "diff: $(jq -c '[.jobs, .differences]' diff.json)"
status 0 "diff with itself" "$tool" diff --format=json -o diff.json all.digest all.digest
jq -e 'all(.differences[], .findings[]; .change == "same")' diff.json >/dev/null || fail "diff with itself: $(jq -c .findings diff.json)"
for verb in "why 1" info "export --format=csv -o x"; do
	status 2 "$verb" "$tool" $verb all.digest
	said "all.digest: a digest: this needs the traces"
done

# ---- ranks that share a GPU --------------------------------------------------------------------
# Each is digested alone; the report of all tells that they took turns, for as long as the report of their traces does.
SPYSIM_GPUS=1 TORCHELASTIC_RUN_ID=shared "$sim" "$tool" run --no-report -o shared -- timeout -k 5 100 "$app" --quick --csv --ranks=3 --gpus=1 \
	--steps=60 --work-us=4000 --bytes=2048 >table.csv 2>run.err || fail "shared: no job: $(cat run.err)"
for trace in shared/*; do
	status 0 "shared" "$tool" digest -o "$(basename "$trace").digest" "$trace"
done
status 0 "shared" "$tool" merge -o shared.digest ranks.rank*.digest
status 0 "shared" "$tool" report --format=json -o shared.json shared.digest
status 0 "shared" "$tool" report --format=json -o shared.traces.json shared
expect "shared" "$(jq -c '[.sharing[] | [.rank[0:6], .how, .others]] | sort' shared.json)" \
	'[["rank 0","time slices",2],["rank 1","time slices",2],["rank 2","time slices",2]]'
# But for the rounding of clocks, which are read alone here.
jq -e --slurpfile traces shared.traces.json '[[.sharing[].shared_ns] | sort, ([$traces[0].sharing[].shared_ns] | sort)] | transpose |
	all(.[]; (.[0] - .[1] | fabs) < 20000 and .[0] > 50e6)' shared.json >/dev/null ||
	fail "how long: $(jq -c .sharing shared.json), in the traces $(jq -c .sharing shared.traces.json)"
expect "a finding" "$(jq -c '[.findings[] | select(.id == "time-slicing") | .ranks, .severity]' shared.json)" '[3,"note"]'
expect "nobody shares" "$(jq -c '[.sharing, [.findings[].id | select(. == "time-slicing")]]' report.json)" "[[],[]]"

# The same in parts that are digested one by one: a process is one, in how many parts it may be.
SPYSIM_GPUS=1 TORCHELASTIC_RUN_ID=shared "$sim" "$tool" run --no-report --rotate-every=100ms -o shared-parts -- timeout -k 5 100 "$app" --quick --csv \
	--ranks=3 --gpus=1 --steps=60 --work-us=4000 --bytes=2048 >table.csv 2>run.err || fail "shared, in parts: no job: $(cat run.err)"
mkdir shared-pieces
for trace in shared-parts/*; do
	status 0 "shared, in parts" "$tool" digest -o "shared-pieces/$(basename "$trace").digest" "$trace"
done
status 0 "shared, in parts" "$tool" report --format=json -o shared-pieces.json shared-pieces
[ "$(ls shared-pieces | wc -l)" -gt 4 ] || fail "no parts: $(ls shared-pieces)"
expect "shared, in parts" "$(jq -c '[.sharing[] | [.rank[0:6], .how, .others]] | sort' shared-pieces.json)" \
	'[["rank 0","time slices",2],["rank 1","time slices",2],["rank 2","time slices",2]]'

# Of the version before tables of tenants: its ranks are read, merged and shown beside others.
earlier=$here/../golden/version-1.0.digest
status 0 "an earlier version" "$tool" merge -o earlier.digest "$earlier" shared.digest
status 0 "an earlier version" "$tool" report --format=json -o earlier.json earlier.digest
expect "ranks of both" "$(jq -c '[.job.ranks, (.sharing | length)]' earlier.json)" "[5,3]"
status 0 "an earlier version alone" "$tool" report "$earlier"

# ---- parts, and other runs -----------------------------------------------------------------------
"$sim" "$tool" run --no-report --rotate-every=200ms -o parts -- timeout -k 5 100 "$app" --quick --csv --ranks=2 --gpus=2 \
	--steps=400 --work-us=1000 --bytes=2048 >table.csv 2>run.err || fail "parts: no job: $(cat run.err)"
status 0 "all parts" "$tool" digest -o whole.digest parts
first=$(ls -d parts/*rank0*.0001.*)
status 0 "one part" "$tool" digest -o part.digest "$first"
n=$(ls -d parts/*rank0* | wc -l)
status 2 "a part and the whole" "$tool" merge -o none.digest whole.digest part.digest
said "rank 0 is in whole.digest and in part.digest, and differs"
said "they overlap: of its recording the first one has parts 1-$n, and the second one part 1"
# Each part is digested by itself: together they are the rank, in any order; a part says that it is one.
i=0
for part in parts/*rank0* parts/*rank1*; do
	status 0 "a part" "$tool" digest -o "piece.$i.digest" "$part"
	i=$((i + 1))
done
status 0 "all pieces" "$tool" merge -o pieces.digest piece.*.digest
status 0 "all pieces, the other way" "$tool" merge -o pieces2.digest $(ls -r piece.*.digest) pieces.digest
cmp pieces.digest pieces2.digest || fail "pieces in another order, and other bytes"
status 0 "all pieces" "$tool" report --format=json -o pieces.json pieces.digest
status 0 "the whole" "$tool" report --format=json -o whole.json whole.digest
same='[.job.ranks, .job.calls, .losses, ([.functions[] | [.function, .count, .ranks]] | sort), ([.ranks[] | [.name, .calls, .operations, .parts, .parts_of]] | sort)]'
expect "pieces and the whole" "$(jq -c "$same" pieces.json)" "$(jq -c "$same" whole.json)"
jq -e --slurpfile whole whole.json '.job.compared > $whole[0].job.compared * 0.9' pieces.json >/dev/null ||
	fail "compared: $(jq -c .job pieces.json), in the whole $(jq -c .job whole.json)"
status 0 "one part" "$tool" report --format=json -o part.json part.digest
valid "$here/../../docs/job.schema.json" part.json
expect "one part" "$(jq -c '.ranks[0] | [.parts, .parts_of]' part.json)" '["part 1",null]'
expect "one part" "$(jq -r '.losses[] | select(.kind == "parts") | .text' part.json)" "recorded in parts, and not all are here: rank 0 has part 1 of 2 or more"
status 0 "one part" "$tool" report part.digest
tr -s ' \n' ' ' <out | grep -q 'part 1 of 2 or more: from 0 ns to' || fail "text of one part: $(cat out)"
status 0 "one part" "$tool" report --format=html -o part.html part.digest
grep -q 'rank 0 has part 1 of 2 or more' part.html || fail "no word of the part in the page"
# A rank that has only some of the time of the other one.
status 0 "some parts" "$tool" report --format=json -o some.json piece.0.digest $(ls piece.*.digest | grep -v "piece\.[0-$((n - 1))]\.")
jq -e '[.losses[].kind] == ["parts", "times"] and (.losses[1].text | test("^ranks cover different times .*: rank 0 from .* to .*; rank 1 from "))' some.json >/dev/null ||
	fail "different times: $(jq -c .losses some.json)"
rm -rf gap && mkdir gap && cp -r "$first" "$(ls -d parts/*rank0* | tail -n 1)" gap
status 0 "a gap" "$tool" digest -o gap.digest gap
status 0 "a gap" "$tool" report --format=json -o gap.json gap.digest
[ "$n" -lt 3 ] || expect "a gap" "$(jq -c '.ranks[0] | [.parts, .parts_of]' gap.json)" "[\"parts 1, $n\",$n]"
status 2 "another run" "$tool" merge -o none.digest whole.digest 0.digest
said "they are of two runs of the program"
[ ! -e none.digest ] || fail "digests that differ became one"
cp -r parts packed
status 0 "packed" "$tool" pack packed/*
status 0 "packed" "$tool" digest -o packed.digest packed
cmp whole.digest packed.digest || fail "packed, and another digest"

# ---- what is not there, or not right ----------------------------------------------------------
status 0 "three of four" "$tool" merge -o three.digest 0.digest 1.digest 2.digest
status 0 "three of four" "$tool" report three.digest
grep -q 'rank 3 .*missing: the job has 4 ranks' out || fail "not missing: $(cat out)"
head -c 5000 1.digest >torn.digest
status 1 "a torn one" "$tool" merge -o rest.digest 0.digest torn.digest 2.digest
said "torn.digest: torn: it ends at byte 5000 of $(stat -c %s 1.digest)"
said "1 of 3 could not be read"
status 0 "the rest" "$tool" merge -o two.digest 2.digest 0.digest
cmp rest.digest two.digest || fail "what is left beside a torn one is something else"
status 0 "the rest" "$tool" report torn.digest 0.digest 2.digest
said "torn.digest: torn"
python3 -c "
data = bytearray(open('1.digest', 'rb').read()); data[8] = 2; open('later.digest', 'wb').write(data)
data[8] = 1; data[3000] ^= 1; open('damaged.digest', 'wb').write(data)"
status 1 "another version" "$tool" merge -o rest.digest 0.digest later.digest damaged.digest 2.digest
said "later.digest: a digest of version 2, and this cudaspy reads version 1"
said "damaged.digest: damaged: bytes 40 to $(stat -c %s 1.digest) do not fit their checksum"
cmp rest.digest two.digest || fail "what is left beside another version is something else"
status 2 "nothing to read" "$tool" merge -o none.digest torn.digest later.digest
[ ! -e none.digest ] || fail "a merge of nothing"
: >empty.digest
status 2 "an empty one" "$tool" report empty.digest
said "empty.digest: torn: it ends at byte 0, in its head"
status 2 "an empty list" "$tool" merge -o none.digest @empty.digest
said "empty.digest: no names of digests in it"
status 2 "no such file" "$tool" merge -o none.digest nothing.digest

# The same rank, of other traces.
cp -r traces/*rank1* changed.rank1-1.cudaspy
rm -f "$(ls changed.rank1-1.cudaspy/stream_* | tail -n 1)"
status 0 "a changed one" "$tool" digest -o changed.digest changed.rank1-1.cudaspy
status 2 "two that differ" "$tool" merge -o differ.digest 0.digest 1.digest changed.digest
said "rank 1"
said "is in 1.digest and in changed.digest, and differs"
[ ! -e differ.digest ] || fail "something was written of digests that differ"
status 2 "two that differ" "$tool" report 1.digest changed.digest
said "differs"
status 0 "with losses" "$tool" report changed.digest
grep -q 'LOSSES' out || fail "no losses: $(cat out)"

# ---- usage ------------------------------------------------------------------------------------
status 2 "no place" "$tool" digest traces
said "-o FILE"
status 2 "no digests" "$tool" merge -o x.digest
status 2 "a gate" "$tool" report --fail-on=any all.digest
said "--fail-on is for traces"
status 2 "a form of gates" "$tool" report --format=junit all.digest
said "--format=junit is for traces"
status 2 "full" "$tool" merge -o /dev/full 0.digest 1.digest
exit 0
