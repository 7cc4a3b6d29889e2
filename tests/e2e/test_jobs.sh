#!/bin/bash
# A set that several threads read gives the same report, to the last byte, warnings too, as one thread: of generated
# traces, of recordings, of damaged ones; by all verbs that read records. What is read in parts is read so, and what
# belongs together is not torn apart.
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

for log in "$here"/../golden/*.log; do
	name=$(basename "$log" .log)
	mkdir "$name"
	"$bin/log_traces" "$log" "$name" || fail "log_traces $name"
done
same_all sharing several # MPS
same_all turns several # likewise
same_all killed several

"$gentrace" processes 60000 7 processes || fail gentrace
same_all processes several
mkdir shapes
i=0
for shape in "loop 4" "threads 40" "waiters 6" "locks 30" "streams 8" "modules 20" "notes 9" "kernels 30" "stacks 50" "sites 90"; do
	i=$((i + 1))
	# shellcheck disable=SC2086
	"$gentrace" shapes/$i 6000 ${shape#* } ${shape% *} || fail "gentrace $shape"
	"$here/other_process.py" shapes/$i $((200 + i)) $i
done
compare report shapes --format=json
[ "$(sed -n 's/.*jobs: \([0-9]*\) processes.*/\1/p' more.parts)" = 10 ] || fail "shapes: not ten processes: $(cat more.parts)"
same_all shapes several
"$gentrace" functions 4000 2 functions || fail gentrace
mkdir unnamed
cp -r processes/process_000000 functions unnamed
same_all unnamed several
"$gentrace" gpu 6000 30 gpu || fail gentrace
same_all gpu none # one process
mkdir timed
for i in 1 2 3; do
	"$gentrace" timed/$i 6000 $((20 + 7 * i)) gpu || fail gentrace
	"$here/other_process.py" timed/$i $((300 + i)) $((0x77770000 + i))
done
same_all timed several

# ---- processes that share a GPU ----

# in_parts TRACES PROCESSES PARTS: as five threads read them.
in_parts() {
	CUDASPY_JOBS=5 CUDASPY_JOBS_TRACE=1 "$tool" report "$1" 2>in_parts.err >/dev/null
	grep -q "jobs: $2 processes in $3 parts by 5 threads$" in_parts.err || fail "$1: not $2 processes in $3 parts: $(grep jobs: in_parts.err)"
}
several="2 3 5 8"
"$gentrace" shared 30000 6 shared || fail gentrace
same_all shared several
in_parts shared 6 6
"$tool" report shared >out || fail "report shared"
grep -q "^  GPU 0 (6 processes)  *idle [1-9]" out || fail "the GPU is never idle: $(grep 'GPU 0' out)"
"$tool" report shared --format=json >out || fail "report shared --format=json"
grep -q '"holder_cause": "' out || fail "no holder of a lock is followed: $(grep -A3 '"cause": "lock"' out | head)"
same_digest shared
for option in --process=gentrace.1002 --gpu=0 --range=step --thread=1003 --function=cudaLaunchKernel; do
	compare report shared --format=json $option
done
"$gentrace" clients 12000 5 clients || fail gentrace # of MPS
same_all clients several
in_parts clients 5 5
several="2 5"
# Recorded by a version that says what threads did between their calls.
cp -r shared gaps
sed -i 's/trace_version = 5;/trace_version = 6;/' gaps/*/metadata
same_all gaps several
# Of two the other ones are not there; of one the end is missing, in another one's middle there is something else.
mkdir torn
cp -r shared/process_00000[1-4] torn
truncate -s -3000 torn/process_000001/stream_0001*
printf 'nothing of the kind' | dd of=torn/process_000003/stream_0002 bs=1 seek=5000 conv=notrunc status=none
rm torn/process_000004/stream_0001*
same_all torn several
# Together they are not more than an even part of the set, and are read together.
mkdir small
"$gentrace" tiny 600 3 shared || fail gentrace
for i in 0 1 2; do
	cp -r tiny/process_00000$i small/tiny_$i
	"$here/other_process.py" small/tiny_$i $((400 + i)) $((0x55550000 + i))
done
"$gentrace" large 160000 4 processes || fail gentrace
for i in 0 1 2 3; do
	cp -r large/process_00000$i small/large_$i
done
same_all small several
in_parts small 7 5

# ---- one process: a thread reads ahead, another one adds up waits ----

"$gentrace" nested 30000 5 nested || fail gentrace # of some calls, those inside them are left for later
same_all nested none
"$gentrace" contended 9000 8 waiters || fail gentrace
same_all contended none
"$gentrace" crowd 3000 300 waiters || fail gentrace # more pairs than are told apart
same_all crowd none
"$gentrace" loop 30000 70 loop || fail gentrace
same_all loop none
compare report nested --format=html
compare export nested --format=chrome -o -
compare dump contended
compare report loop --from=30% --to=60% --format=json

# Its streams are so long that the first reading has several runs of them; damaged ones, too.
"$gentrace" long 400000 5 loop || fail gentrace
compare report long --format=json
runs=$(sed -n 's/.*first reading: \([0-9]*\) runs .*/\1/p' more.parts)
[ "$runs" -ge 4 ] || fail "long: not read in several runs: $(cat more.parts)"
same_all long none
cp -r long long_damaged
python3 - <<'P'
import glob, random
random.seed(29)
for path in sorted(glob.glob("long_damaged/stream_*")):
    data = bytearray(open(path, "rb").read())
    for _ in range(20):
        at = random.randrange(64, len(data) - 8)
        data[at:at + 8] = random.randbytes(8)
    open(path, "wb").write(data)
P
compare report long_damaged --format=json
[ "$(wc -l <one.err)" -gt 5 ] || fail "long_damaged: little is said of it: $(cat one.err)"
same_all long_damaged none

# One process is larger than all others: the threads that have no part of their own help to read it.
mkdir uneven
cp -r processes/process_00000[0-2] uneven
cp -r nested uneven
same_all uneven several

# Where there can be no thread, all is read by one.
alone() {
	if [ "$(id -u)" = 0 ]; then
		timeout 60 setpriv --reuid=60001 --regid=60001 --clear-groups prlimit --nproc=0 "$@"
	else
		timeout 60 prlimit --nproc=0 "$@"
	fi
}
chmod -R go+rX "$tmp"
if alone "$tool" --version >alone.out 2>&1; then
	for set in nested contended processes; do
		"$tool" report --jobs=1 --format=json "$set" >one.out 2>one.err
		alone "$tool" report --jobs=4 --format=json "$set" >more.out 2>more.err || fail "$set: without threads: $(cat more.err)"
		cmp one.out more.out || fail "$set: not the same where there can be no threads"
		cmp one.err more.err || fail "$set: other warnings where there can be no threads: $(head -n 3 more.err)"
	done
else
	without "a limit of threads: $(head -n 1 alone.out)"
fi

# ---- given up, and read again as a whole ----

# Each of two processes makes other requests to the kernel module: of all together there are more than are told apart.
mkdir requests
for i in 0 1; do
	"$gentrace" requests/$i 1500 2 waiters || fail gentrace
	sed -i "s/pid = 100;/pid = $((300 + i));/; s/uuid = \"[0-9a-f]\{8\}/uuid = \"$(printf %08x $((i + 90)))/" requests/$i/metadata
	python3 - requests/$i "$i" <<'P'
import glob, re, struct, sys
uuid = bytes.fromhex(re.search(r'uuid = "([^"]+)"', open(sys.argv[1] + "/metadata").read()).group(1).replace("-", ""))
WAIT, IOCTL = 14, 7
n = 0
for path in sorted(glob.glob(sys.argv[1] + "/stream_*")):
    data = bytearray(open(path, "rb").read())
    at = data.find(struct.pack("<I", 0xc1fc1fc1))
    while at >= 0:
        data[at + 4:at + 20] = uuid
        at = data.find(struct.pack("<I", 0xc1fc1fc1), at + 20)
    # Waits have their type behind 8 bytes of time; one is known by the lock's address 0x7f0000001000.
    for found in re.finditer(re.escape(struct.pack("<Q", 0x7f0000001000)), bytes(data)):
        begin = found.start() - 24
        if struct.unpack_from("<H", data, begin + 8)[0] == WAIT:
            data[begin + 10] = IOCTL
            struct.pack_into("<Q", data, begin + 24, 0xc0000000 + 1000 * int(sys.argv[2]) + n % 200)
            n += 1
    open(path, "wb").write(data)
assert n > 200, n
P
done
same_all requests given_up

# One of two processes calls a function without a name inside another one, behind what is read beforehand: the main reading
# is given up while threads read ahead for it.
mkdir unnamed_late
cp -r requests/0 requests/1 unnamed_late
for i in 0 1; do
	rm -r unnamed_late/$i/stream_*
	"$gentrace" late 700000 2 nested || fail gentrace
	mv late/stream_* unnamed_late/$i
	rm -r late
	python3 - unnamed_late/$i "$i" <<'P'
import glob, os, re, struct, sys
uuid = bytes.fromhex(re.search(r'uuid = "([^"]+)"', open(sys.argv[1] + "/metadata").read()).group(1).replace("-", ""))
paths = sorted(glob.glob(sys.argv[1] + "/stream_*"), key=os.path.getsize)
INNER, NO_NAME = 13, 0x7f00
for path in paths:
    data = bytearray(open(path, "rb").read())
    at = data.find(struct.pack("<I", 0xc1fc1fc1))
    while at >= 0:
        data[at + 4:at + 20] = uuid
        at = data.find(struct.pack("<I", 0xc1fc1fc1), at + 20)
    if path == paths[-1] and sys.argv[2] == "1":  # the function comes before the duration, which all of them have
        late = re.compile(re.escape(struct.pack("<H", INNER)) + b".." + re.escape(struct.pack("<I", 200)), re.S)
        struct.pack_into("<H", data, late.search(bytes(data), len(data) * 9 // 10).start() + 2, NO_NAME)
    open(path, "wb").write(data)
P
done
compare report unnamed_late --format=json
grep -q "given up: an unnamed function" more.parts || fail "unnamed_late: not given up: $(cat more.parts)"

# ---- recorded ----

[ -e "$build/sim/lib/libcuda.so.1" ] || { without "recordings: no simulator"; exit 0; }
record() {
	local device=$1 app=$2
	shift 2
	SPYSIM_GPUS=4 CUDA_VISIBLE_DEVICES=$device timeout 100 "$here/../sim/with-sim" "$build/cudaspy" run --no-report -o recorded -- \
		"$build/testapps/$app" "$@" >/dev/null 2>"$app.$device.err" || fail "$app: $(cat "$app.$device.err")"
}
record 0 contention &
record 1 starved &
record 2 copies &
record 3 syncs &
wait
[ -e .failed ] && exit 1
same_all recorded several
# On one GPU.
for app in contention starved copies; do
	SPYSIM_GPUS=1 timeout 100 "$here/../sim/with-sim" "$build/cudaspy" run --no-report -o one_gpu -- \
		"$build/testapps/$app" >/dev/null 2>"$app.err" || fail "$app: $(cat "$app.err")" &
done
wait
[ -e .failed ] && exit 1
same_all one_gpu several
in_parts one_gpu '\([0-9]*\)' '\1'
# GPU times, of which two processes share one GPU.
for i in 0 1 1; do
	SPYSIM_GPUS=4 CUDA_VISIBLE_DEVICES=$i timeout 100 "$here/../sim/with-sim" "$build/cudaspy" run --gpu --no-report -o exact -- \
		"$build/testapps/starved" >/dev/null 2>&1 || fail "starved --gpu" &
done
wait
[ -e .failed ] && exit 1
same_all exact several
in_parts exact 3 2
# Of one of two that share a GPU.
for gpu in --gpu ""; do
	# shellcheck disable=SC2086
	timeout 100 "$here/../sim/with-sim" "$build/cudaspy" run $gpu --no-report -o half -- "$build/testapps/starved" >/dev/null 2>&1 || fail "starved $gpu" &
done
wait
[ -e .failed ] && exit 1
same_all half one
timeout 100 "$here/../sim/with-sim" "$build/cudaspy" run --no-report --gpu -o ranks -- "$build/testapps/ranks" >/dev/null 2>&1 || fail "ranks"
same_all ranks several
cp -r ranks all
cp -r recorded/* all
same_all all several

# ---- damaged ----

# Where random bytes fall in the files depends on how long these are. They may hit the number of a function: then it has no
# name, and the parts may be given up. So sets are damaged until there is one in which all functions have names.
damage() { # SEED
	rm -rf damaged
	cp -r recorded damaged
	python3 - "$1" <<'P'
import glob, os, random, sys
random.seed(int(sys.argv[1]))
for path in sorted(glob.glob("damaged/*/stream_*")):
    size, dice = os.path.getsize(path), random.random()
    if size < 200:
        continue
    with open(path, "r+b") as f:
        if dice < 0.3:
            for _ in range(3):
                f.seek(random.randrange(64, size))
                f.write(random.randbytes(8))
        elif dice < 0.5:
            f.truncate(random.randrange(100, size))
        elif dice < 0.6:
            f.write(random.randbytes(32))
os.remove(sorted(glob.glob("damaged/*/metadata"))[1])
P
	compare report damaged --format=json
	[ -s one.err ] || fail "damaged, seed $1: nothing is said of it"
}
for seed in {23..53}; do
	damage "$seed"
	"$tool" dump damaged >dumped 2>/dev/null
	grep -q 'function [0-9]' dumped || break
done
same_all damaged several

# ---- options ----

for n in 0 x -1 2000 ""; do
	"$tool" report --jobs="$n" processes >/dev/null 2>err && [ -n "$n" ] && fail "--jobs=$n is taken"
	[ -z "$n" ] || grep -q -e "--jobs=$n: not a number" err || fail "--jobs=$n: $(cat err)"
done
"$tool" report --jobs=3 processes >three || fail "--jobs=3"
"$tool" report -j 1 processes >one || fail "-j 1"
cmp one three || fail "--jobs"
CUDASPY_JOBS=7x "$tool" report processes >/dev/null 2>err && fail "CUDASPY_JOBS=7x is taken"
grep -q "CUDASPY_JOBS=7x: not a number" err || fail "CUDASPY_JOBS: $(cat err)"
exit 0
