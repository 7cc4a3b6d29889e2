#!/bin/bash
# The ranks of a job are read by several threads, and all that is said of them is what one thread says, to the last byte: of
# jobs with a rank that is late, of clean ones, of several hosts, of damaged traces, of jobs beside other programs; reports
# and digests.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need python3
gentrace=$build/bench/gentrace
[ -x "$gentrace" ] || skip "no $gentrace: make test-build"
tool=$build/cudaspy
every=$([ "${1:-}" != --all ] || echo yes)
# shellcheck source=tests/e2e/jobs.sh
source "$here/jobs.sh"

# ---- generated ----

"$gentrace" job 60000 6 ranks || fail gentrace
same_all job several
same_digest job
"$tool" report --format=json job >job.json
python3 - job.json <<'P' || fail "job: not the rank that is late"
import json, sys
found = [f for f in json.load(open(sys.argv[1]))["findings"] if "rank 3" in json.dumps(f)]
sys.exit(not found)
P

# Every second rank is on another host, whose clock is behind.
cp -r job hosts
for rank in 1 3 5; do
	sed -i 's/hostname = "node"/hostname = "other"/; s/boot_id = "0123/boot_id = "9123/; s/offset_s = 1700000000/offset_s = 1699999999/' \
		hosts/process_00000$rank/metadata
done
grep -q '"other"' hosts/process_000001/metadata || fail "hosts: metadata has no host"
same_all hosts several
same_digest hosts

# So many stacks that those of no use are forgotten while others read.
mkdir stacks
for i in 1 2 3; do
	"$gentrace" stacks/$i 24000 9000 stacks || fail "gentrace stacks"
	"$here/other_process.py" stacks/$i $((700 + i)) $((0x77770000 + i))
done
compare report stacks --format=json
grep -q "3 processes in 3 parts" more.parts || fail "stacks: $(cat more.parts)"

# Records are missing in one rank, another one ends early, one has no times of its GPU.
cp -r job torn
python3 - <<'P'
import os
size = os.path.getsize("torn/process_000001/stream_0001")
with open("torn/process_000001/stream_0001", "r+b") as f:
    f.seek(size // 2)
    f.write(bytes(range(64)))
os.truncate("torn/process_000002/stream_0001", size // 3)
os.truncate("torn/process_000004/stream_0002", 100)
P
same_all torn several
same_digest torn

# More places than are told apart: which ones are depends on all ranks, so that the set is read again by one thread.
"$gentrace" places 90000 3 places || fail gentrace
compare report places --format=json
grep -q "given up: too many places of ranks" more.parts || fail "places: $(cat more.parts)"

# ---- recorded ----

[ -e "$build/sim/lib/libcuda.so.1" ] || { without "recordings: no simulator"; exit 0; }
for seed in 7 11; do
	mkdir "planted.$seed"
	python3 "$here/ranks_scenario.py" $seed "planted.$seed" >/dev/null || fail "ranks_scenario $seed"
	same_all "planted.$seed/trace" several
	same_digest "planted.$seed/trace"
done
mkdir clean
python3 "$here/ranks_scenario.py" 3 clean --clean >/dev/null || fail "ranks_scenario 3 --clean"
same_all clean/trace several
# Two jobs, and one of generated traces.
mkdir all
cp -r planted.7/trace all/a
cp -r clean/trace all/b
cp -r job all/c
same_all all several
exit 0
