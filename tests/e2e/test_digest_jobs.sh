#!/bin/bash
# The report of jobs that were made by a model (tests/scale/gendigest): it names exactly the ranks, hosts and GPUs that were
# planted, with their causes, and nobody in a clean job; for many seeds, at 3 to 1,000 ranks. And 1,000 files become one by trees
# of any form, of which the bytes are the same.
. "$(dirname "$0")/lib.sh"
need python3 jq
gen=$build/tests/scale/gendigest
judge=$here/../scale/judge_job.py

# judged SEED RANKS HOSTS STEPS [--clean]: all of them by one process, below.
reports=()
judged() {
	local name="seed $*"
	"$gen" x "$1" "$2" --hosts="$3" --steps="$4" "${@:5}" --job-file=job.digest >"$name" || fail "$name: not made"
	"$tool" report --format=json -o report.json job.digest 2>err || fail "$name: no report: $(cat err)"
	cp report.json "$name.json"
	reports+=("$name" "$name.json")
}

for seed in $(seq 1 16); do
	judged "$seed" 64 8 200
	judged "$seed" 24 3 120
done
for seed in $(seq 17 24); do
	judged "$seed" 64 8 200 --clean
	judged "$seed" 3 1 150
	judged "$seed" 8 8 150 --clean
done
for seed in $(seq 31 36); do # several operations in each step, of which the first one finds the ranks apart
	judged "$seed" 16 4 200 --ops=8
	judged "$seed" 16 4 200 --ops=8 --clean
done
# Few ranks: what is usual among them is unknown, and the pace of their hosts changes by itself for a while.
for seed in $(seq 41 46); do
	judged "$seed" 2 1 400 --clean --weather
	judged "$seed" 2 1 200 --clean
	judged "$seed" 4 2 100
	judged "$seed" 7 1 100
	judged "$seed" 7 1 400 --clean --weather
done
# Without collective operations ranks are compared by what their calls lose, again and again.
for seed in $(seq 51 58); do
	judged "$seed" 64 8 400 --alone
	judged "$seed" 12 2 100 --alone
	judged "$seed" 64 8 400 --alone --clean
	judged "$seed" 4 1 60 --alone --clean
done
# Hosts of one name, whose clocks are off by hours: who is named, and when, is as if they were not.
for seed in $(seq 61 66); do
	judged "$seed" 64 8 200 --odd
	jq -e '(.job.duration_ns + 1e9) as $most | all(.slow_steps[]; .at_ns < $most) and all(.ranks[]; .from_ns < 1e9 and .until_ns < $most) and
		all(.losses[]; .kind != "times") and ([.hosts[].host] | unique | length == 8 and all(.[]; test("^node .boot boot-[0-7].$")))' report.json >/dev/null ||
		fail "seed $seed, odd: $(jq -c '[.job, .losses, .hosts, (.slow_steps | map(.at_ns)), (.ranks | map(.from_ns))]' report.json)"
done
judged 25 1000 125 60
judged 26 1000 125 60 --clean
python3 "$judge" "${reports[@]}" 2>mistakes || fail "$(cat mistakes)"
expect "ranks of 1,000" "$(jq -c '[.job.ranks, .job.missing, .job.hosts, .job.gpus, .job.level]' report.json)" "[1000,0,125,1000,2]"

"$tool" report job.digest >text 2>err || fail "no text: $(cat err)"
tr -s ' \n' ' ' <text | grep -qF 'recording cost the programs 0.4 % of their time (median of 1,000 ranks that measured it; 0.5 % at most)' ||
	fail "what recording cost: $(head -n 12 text)"

# One rank, and two jobs of which each has a rank 0.
"$gen" x 28 1 --hosts=1 --steps=20 --clean --job-file=one.digest >/dev/null || fail "not made"
"$tool" report one.digest >text 2>err || fail "no report of one rank: $(cat err)"
tr -s ' \n' ' ' <text | grep -qF 'with one rank there is no other to compare it with' || fail "one rank: $(cat text)"
"$gen" x 28 2 --hosts=1 --steps=20 --clean --alone --job-file=alone.digest >/dev/null || fail "not made"
"$tool" report alone.digest >text 2>err || fail "no report of two ranks: $(cat err)"
tr -s ' \n' ' ' <text | grep -qF 'two ranks that have no collective operations in common are not compared' || fail "two ranks: $(cat text)"
"$gen" x 29 2 --hosts=1 --steps=20 --clean --job-file=two.digest >/dev/null || fail "not made"
"$tool" report --format=json -o report.json one.digest two.digest 2>err || fail "no report of two jobs: $(cat err)"
expect "names" "$(jq -c '[.ranks[].name] | sort' report.json)" '["rank 0 of job made-28","rank 0 of job made-29","rank 1 of job made-29"]'

# ---- 1,000 files ------------------------------------------------------------------------------
"$gen" files 27 1000 --hosts=125 --steps=20 >planted.json || fail "not made"
expect "files" "$(ls files | wc -l)" 1000
"$tool" merge -o flat.digest files 2>err || fail "flat: $(cat err)"
# A tree of 10 by 10 by 10, its leaves in another order.
ls files | sort -R --random-source="$gen" | sed 's|^|files/|' | split -l 10 - leaf.
for leaf in leaf.*; do
	"$tool" merge -o "$leaf.digest" --from-list="$leaf" 2>err || fail "$leaf: $(cat err)"
done
ls leaf.*.digest | split -l 10 - branch.
for branch in branch.*; do
	"$tool" merge -o "$branch.digest" --from-list="$branch" 2>err || fail "$branch: $(cat err)"
done
"$tool" merge -o tree.digest branch.*.digest leaf.aa.digest files/7.digest 2>err || fail "tree: $(cat err)"
cmp flat.digest tree.digest || fail "a tree, and other bytes"
"$gen" x 27 1000 --hosts=125 --steps=20 --job-file=once.digest >/dev/null || fail "not made at once"
cmp flat.digest once.digest || fail "made at once, and other bytes"
[ "$(stat -c %s flat.digest)" -le 16000000 ] || fail "1,000 ranks take $(stat -c %s flat.digest) bytes"

# One rank is not there, and one was killed.
rm files/500.digest
head -c 3000 files/7.digest >torn && mv torn files/7.digest
"$tool" merge -o rest.digest files 2>err
expect "status" $? 1
"$tool" report rest.digest >text 2>err || fail "no report of the rest: $(cat err)"
tr -s ' \n' ' ' <text | grep -q 'ranks 7, 500 .*missing: the job has 1000 ranks' || fail "not missing: $(head -n 20 text)"
exit 0
