#!/bin/bash
# Containers of traces: what is packed reads as it did in its directory, byte for byte, and becomes a directory again; wherever
# the machine stops the trace is there; containers that are cut off, damaged or made to deceive cost what is damaged in them.
. "$(dirname "$0")/lib.sh"
need python3
export FAKE_MODE=quiet HOME=$tmp COLUMNS=100
faults=$bin/libpack_faults.so
broken=$here/break_container.py
mkdir plain packed

# keep NAME: what was recorded in $out is a case: in plain/NAME as it is.
keep() {
	mv "$out" "plain/$1"
}

# shown WHERE WHAT...: what a verb says of a case, its messages, and its status, in said.WHERE.
shown() {
	local where=$1
	shift
	cd "$where" || exit
	timeout 120 "$tool" "$@" >"../said.$where" 2>&1
	echo "status $?" >>"../said.$where"
	cd "$tmp" || exit
}

# said_the_same: in both; SARIF names the folder it was called in.
said_the_same() {
	cmp -s said.plain said.packed ||
		{ sed -i "s|$tmp/packed/|$tmp/plain/|" said.packed && cmp -s said.plain said.packed; }
}

# The verbs share the reading: for each case these two, and three of the others in turn (--all: all).
every=$([ "${1:-}" != --all ] || echo yes)
verbs=("report --format=json --nested" "dump")
others=("report" "report --format=html" "report --format=sarif" "dump --stable" "info" "info --format=json"
	"export --format=folded --output=-" "export --format=chrome --output=-" "export --format=perfetto --output=-")
n_cases=0

# the_same NAME [VERB...]: plain/NAME and packed/NAME.
the_same() {
	local name=$1 verb i
	shift
	if [ $# = 0 ]; then
		set -- "${verbs[@]}"
		for ((i = 0; i < ${#others[@]}; i++)); do
			[ "$every" ] || [ $(((i + n_cases) % 3)) = 0 ] || continue
			set -- "$@" "${others[i]}"
		done
		n_cases=$((n_cases + 1))
	fi
	for verb in "$@"; do
		# shellcheck disable=SC2086 # the verb's options
		shown plain $verb "$name"
		# shellcheck disable=SC2086
		shown packed $verb "$name"
		said_the_same || fail "$name: $verb differs: $(diff -a said.plain said.packed | head -c 1000)"
	done
}

# number DIR TEST...: how many of them there are in it.
number() {
	local dir=$1
	shift
	find "$dir" -mindepth 1 -maxdepth 1 "$@" -printf . | wc -c
}

# no_leftovers DIR: of packing.
no_leftovers() {
	local left
	left=$(find "$1" -name '.cudaspy-*' -o -name '*.new.*')
	[ -z "$left" ] || fail "left over: $left"
}

# --- every kind of recording ------------------------------------------------------------------------------------------

spied "$bin/life" threads 40 8 2>/dev/null && keep threads
CUDASPY_KEEP=1 spied "$bin/life" calls 100000 2>/dev/null && keep bounded
CUDASPY_REDACT=1 CUDASPY_CLOCK=monotonic spied "$bin/life" calls 9000 2>/dev/null && keep redacted
CUDASPY_NOPROBES=1 spied "$bin/life" fork >/dev/null 2>&1 && keep fork
spied timeout 60 "$bin/nccl" 5 all >/dev/null 2>&1 && keep nccl
spied "$bin/nvtx" all >/dev/null 2>&1 && keep nvtx
CUDASPY_OUT=$out LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$bin/steps" calls:7000 touch:ready await:go >/dev/null 2>&1 &
for _ in $(seq 500); do [ -e ready ] && break; sleep 0.02; done
"$tool" pack "$out" >alive.out 2>alive.err
expect "a program that runs: status" $? 2
grep -q 'is running: not packed' alive.err || fail "a program that runs: $(cat alive.err)"
[ -d "$(the_trace)" ] || fail "a program that runs was packed"
kill -KILL $!
wait $! 2>/dev/null
keep killed
simulated="$here/../sim/with-sim"
if [ -x "$build/testapps/contention" ] && [ -z "$first" ]; then
	for app in contention ranks starved; do
		gpu=0
		[ $app != starved ] || [ ! -e "$build/libcudaspy_gpu.so" ] || gpu=1
		CUDASPY_GPU=$gpu CUDASPY_OUT=$out CUDASPY_QUIET=1 "$simulated" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" timeout 100 \
			"$build/testapps/$app" --quick >/dev/null 2>&1
		keep $app
	done
else
	without "the test applications"
fi
if [ -e "$CUDASPY_BUILD/sim/lib/libcudart.so.13" ]; then
	CUDASPY_OUT=$out CUDASPY_CAPTURE_RANGE=cudaProfilerApi LD_LIBRARY_PATH=$CUDASPY_BUILD/sim/lib LD_PRELOAD="$first $shim" \
		timeout 60 "$bin/windows" memory pin pageable stream copy:3 start copy:5 stop copy:7 >/dev/null 2>&1
	keep windows
fi
cp -r plain/threads plain/torn
for dir in plain/torn/*; do
	truncate -s $(($(stat -c %s "$dir/stream_0001_tail") - 32000)) "$dir/stream_0001_tail"
	rm "$dir/metadata"
done
cp -r plain/threads plain/damaged
for dir in plain/damaged/*; do
	printf 'garbage' | dd of="$dir/stream_0002_tail" bs=1 seek=500 conv=notrunc status=none
	printf 'garbage' | dd of="$dir/.board" bs=1 conv=notrunc status=none
done
# names that people give to programs and folders
odd=$'a name\nof "two" lines'
cp "$bin/life" "$odd"
spied "./$odd" calls 100 2>/dev/null && keep "$odd"

for case in plain/*; do
	name=${case##*/}
	[ -n "$(ls "$case")" ] || fail "$name: nothing was recorded"
	cp -a "$case" packed/
	n=$(number "$case" -type d)
	timeout 60 "$tool" pack "packed/$name" >pack.out 2>pack.err || fail "$name: pack: status $?: $(cat pack.err)"
	expect "$name: packed" "$(cat pack.out)" "$n trace$([ "$n" = 1 ] || echo s) packed"
	expect "$name: files" "$(number "packed/$name" -type f) $(number "packed/$name" -type d)" "$n 0"
	no_leftovers packed
	the_same "$name"
done

# One by its own name, in words of other verbs, and as one side of a comparison.
for dir in plain/fork/*; do
	the_same "fork/${dir##*/}" "report" "why 1" "why cudaSetDevice" "diff plain/fork" "calibrate"
done
expect "diff of a directory with its container" "$("$tool" diff --format=json plain/threads packed/threads 2>&1 | sed "s/packed/plain/")" \
	"$("$tool" diff --format=json plain/threads plain/threads 2>&1)"
"$tool" report --baseline packed/threads plain/threads >/dev/null 2>baseline.err || fail "a container as a baseline: $(cat baseline.err)"
# Both of it in one folder: it is read once.
mkdir both && cp -a plain/threads/* both/ && for file in packed/threads/*; do cp "$file" "both/copy-${file##*/}"; done
"$tool" report both >both.out 2>both.err || fail "both: no report"
grep -q 'is the same trace as' both.err || fail "both: $(cat both.err)"

# --- what other tools make of one ------------------------------------------------------------------------------------

file=$(echo packed/threads/*)
python3 - "$file" <<-'END' || fail "a container is not as it has to be"
	import sys, zipfile
	with zipfile.ZipFile(sys.argv[1]) as file:
	    assert file.testzip() is None
	    with open(sys.argv[1], "rb") as raw:
	        for info in file.infolist():
	            assert info.compress_type == zipfile.ZIP_STORED, info
	            raw.seek(info.header_offset + 26)
	            n, extra = (int.from_bytes(raw.read(2), "little") for _ in "ab")
	            off = info.header_offset + 30 + n + extra
	            assert off % 4096 == 0, (info, off)
	            raw.seek(off)
	            assert raw.read(info.file_size) == file.read(info), info
END
if command -v unzip >/dev/null; then
	mkdir unzipped && (cd unzipped && unzip -q "../$file") || fail "unzip cannot read it"
	expect "unzip: folder" "$(ls unzipped)" "${file##*/}"
	! command -v babeltrace2 >/dev/null ||
		expect "unzip: babeltrace2" "$(babeltrace2 "unzipped/${file##*/}" 2>&1 | cksum)" "$(babeltrace2 plain/threads/* 2>&1 | cksum)"
else
	without "unzip"
fi
# Files that people made with zip itself; what was packed twice is the same.
cp -a plain/threads again && "$tool" pack -q again && cmp -s again/* "$file" || fail "packed twice, it is not the same"
(
	cd plain/threads && python3 - "$tmp/by_zip.cudaspy" * <<-'END'
		import os, sys, zipfile
		with zipfile.ZipFile(sys.argv[1], "w") as file:
		    for name in os.listdir(sys.argv[2]):
		        file.write(os.path.join(sys.argv[2], name))
	END
)
"$tool" dump by_zip.cudaspy 2>&1 | cmp -s - <("$tool" dump plain/threads 2>&1) || fail "a container that zip made reads differently"

# --- and back ----------------------------------------------------------------------------------------------------------

mkdir unpacked
for name in threads bounded killed "$odd"; do
	cp -a "packed/$name" "unpacked/$name"
	find "unpacked/$name" -type f -exec "$tool" unpack {} + || fail "$name: unpack: status $?"
	expect "$name: unpacked" "$(number "unpacked/$name" -type d)" "$(number "plain/$name" -type d)"
	expect "$name: files" "$(cd "unpacked/$name" && find . -type f -printf '%P %m\0' | sort -z | cksum)" \
		"$(cd "plain/$name" && find . -type f -printf '%P %m\0' | sort -z | cksum)"
	no_leftovers unpacked
	rm -rf "packed/$name.was" && mv "packed/$name" "packed.was" && mv "unpacked/$name" "packed/$name"
	the_same "$name" "report --format=json" "dump"
	rm -rf "packed/$name" && mv packed.was "packed/$name"
done

# --- one file for several, and elsewhere ------------------------------------------------------------------------------------

"$tool" pack -q -o all.cudaspy plain/threads plain/fork plain/nvtx packed/nccl || fail "several in one: status $?"
[ -d "$(echo plain/threads/*)" ] || fail "several in one: a directory has gone"
"$tool" dump all.cudaspy >all.dump 2>&1
"$tool" dump plain/threads plain/fork plain/nvtx plain/nccl 2>&1 | cmp -s - all.dump || fail "several in one: they read differently"
one=$(cd plain/fork && ls | head -n 1)
"$tool" dump "all.cudaspy/$one" 2>&1 | cmp -s - <("$tool" dump "plain/fork/$one" 2>&1) || fail "several in one: one of them reads differently"
"$tool" dump all.cudaspy/none >/dev/null 2>none.err && fail "a part that is not there"
grep -q 'all.cudaspy/none: ' none.err || fail "a part that is not there: $(cat none.err)"
"$tool" unpack -o parts all.cudaspy || fail "several in one: unpack: status $?"
expect "several in one: directories" "$(ls parts | wc -l)" "$(ls plain/threads plain/fork plain/nvtx plain/nccl | grep -c cudaspy)"
cp -a plain/fork removed && "$tool" pack -q --remove -o folder/ removed || fail "into a folder: status $?"
expect "into a folder" "$(ls folder | cksum) $(ls removed | wc -l)" "$(ls plain/fork | cksum) 0"
"$tool" pack -q -o "plain/fork/$one" plain/fork 2>into.err && fail "packed into a trace"
grep -q 'is a trace directory: nothing is packed into it' into.err || fail "into a trace: $(cat into.err)"
for verb in "start" "stop" "snapshot" "mark text"; do
	# shellcheck disable=SC2086 # the verb's text
	"$tool" $verb "packed/fork/$one" >verb.out 2>verb.err && fail "$verb of a container that nobody writes"
	[ -s verb.err ] || fail "$verb of a container: no word"
done
"$tool" pack -q -o folder/ plain/fork 2>there.err && fail "packed over files that are there"
grep -q 'is there already' there.err || fail "files that are there: $(cat there.err)"

# --- run --pack ---------------------------------------------------------------------------------------------------------------

LD_LIBRARY_PATH=$fakes LD_PRELOAD=$first "$tool" run --pack -o ran -- "$bin/life" fork >ran.out 2>ran.err
expect "run --pack: directories" "$(find ran -mindepth 1 -type d | wc -l)" 0
[ "$(find ran -name '*.cudaspy' -type f | wc -l)" -ge 2 ] || fail "run --pack: $(ls -l ran) $(cat ran.err)"
"$tool" report ran >/dev/null 2>ran.err || fail "run --pack: no report: $(cat ran.err)"

# --- a machine that stops -----------------------------------------------------------------------------------------------------

"$tool" report --format=json plain/threads >before.json 2>/dev/null || fail "no report of threads"
the_trace_is_there() {
	"$tool" report --format=json "$2" >after.json 2>after.err || fail "$1: no report: $(cat after.err)"
	sed "s|$2/|plain/threads/|; s|\.new\.cudaspy|.cudaspy|" after.json | cmp -s - before.json ||
		fail "$1: another report: $(diff before.json after.json | head -n 5)"
}
for how in exchange steps; do
	[ $how = exchange ] && unset PACK_EXCHANGE || export PACK_EXCHANGE=no
	rm -rf stops && cp -a plain/threads stops
	LD_PRELOAD="$first $faults" PACK_STEPS=$tmp/steps "$tool" pack -q stops || fail "$how: status $?"
	no_leftovers stops
	n=$(cat steps)
	[ "$n" -ge 5 ] || fail "$how: only $n steps"
	for stop in $(seq "$n"); do
		rm -rf stops && cp -a plain/threads stops
		{ LD_PRELOAD="$first $faults" PACK_STOP=$stop "$tool" pack -q stops; } 2>/dev/null
		[ $? = 137 ] || fail "$how, step $stop: it did not stop"
		the_trace_is_there "$how, step $stop" stops
	done
	LD_PRELOAD="$first $faults" PACK_STEPS=$tmp/steps "$tool" unpack stops/*.cudaspy || fail "$how: unpack: status $?"
	n=$(cat steps)
	for stop in $(seq "$n"); do
		rm -rf stops && cp -a packed/threads stops
		{ LD_PRELOAD="$first $faults" PACK_STOP=$stop "$tool" unpack stops/*.cudaspy; } 2>/dev/null
		the_trace_is_there "unpack, $how, step $stop" stops
	done
done
unset PACK_EXCHANGE

# Several at once: each of them finds it packed, or packs it.
cp -a plain/fork racers && (for _ in 1 2 3 4; do "$tool" pack -q racers 2>/dev/null & done; wait)
expect "several at once" "$(find racers -mindepth 1 -maxdepth 1 -type f -name '*.cudaspy' | wc -l)" "$(ls plain/fork | wc -l)"
no_leftovers racers
mv packed/fork packed.was && mv racers packed/fork && the_same fork dump && rm -rf packed/fork && mv packed.was packed/fork

# --- disks ----------------------------------------------------------------------------------------------------------------------

cp -a plain/threads limited
(
	ulimit -f 60
	"$tool" pack limited >limited.out 2>&1
) 2>/dev/null && fail "a limit of file sizes: packed"
diff -r plain/threads limited >/dev/null || fail "a limit of file sizes: the trace is another one"
no_leftovers limited
if unshare -m true 2>/dev/null; then
	mkdir small
	cat >full.sh <<-END
		mount -t tmpfs -o size=3m none small || exit 99
		cp -a plain/threads/. small/ && head -c 100m /dev/zero >small/ballast 2>/dev/null
		truncate -s -65536 small/ballast
		"$tool" pack small
		status=\$?
		rm small/ballast
		diff -r plain/threads small >&2 || exit 98
		[ -z "\$(find small -name '.cudaspy-*')" ] || exit 97
		mount -o remount,ro small || exit 99
		"$tool" pack small
		exit \$((status * 10 + \$?))
	END
	unshare -m bash full.sh >full.out 2>full.err </dev/null
	status=$?
	if [ $status = 99 ]; then
		without "file systems of its own"
	else
		expect "a full disk, and one that is read only: status" $status 22
		grep -q 'No space left on device' full.err || fail "a full disk: $(cat full.err)"
		grep -q 'small: no file can be made here: Read-only file system' full.err || fail "a disk that is read only: $(cat full.err)"
	fi
else
	without "file systems of its own"
fi

# --- what is not packed -----------------------------------------------------------------------------------------------------------

cp -a plain/threads stuffed && mkdir "$(echo stuffed/*)/folder"
"$tool" pack stuffed >/dev/null 2>stuffed.err && fail "a folder inside of a trace was packed"
grep -q 'folder: is no file, so ' stuffed.err || fail "a folder inside: $(cat stuffed.err)"
rmdir "$(echo stuffed/*)/folder" && diff -r plain/threads stuffed || fail "a folder inside: the trace is another one"
no_leftovers stuffed
# Killed on a host that this one is not.
cp -a plain/killed elsewhere
sed -i 's/boot_id = "[0-9a-f]\{8\}/boot_id = "00000000/' elsewhere/*/metadata
"$tool" pack elsewhere >/dev/null 2>elsewhere.err && fail "a process on another host was taken to be dead"
grep -q 'cannot be known here: not packed (--unfinished' elsewhere.err || fail "another host: $(cat elsewhere.err)"
"$tool" pack -q --unfinished elsewhere || fail "--unfinished: status $?"
expect "--unfinished" "$(find elsewhere -type f | wc -l)" 1
touch none.cudaspy
"$tool" pack none.cudaspy >/dev/null 2>none.err && fail "an empty file was packed"
grep -q 'none.cudaspy: offset 0: neither a trace directory nor a container of traces' none.err || fail "an empty file: $(cat none.err)"
"$tool" report none.cudaspy >/dev/null 2>none.err && fail "a report of an empty file"

# --- large ones: numbers of 64 bits ------------------------------------------------------------------------------------------------

cp -a plain/redacted large
truncate -s 4300m "$(echo large/*)/notes"
if [ "$(stat -c %b "$(echo large/*)/notes")" -lt 10000 ]; then
	timeout 300 "$tool" pack -q large || fail "more than 4 GiB: status $?"
	[ "$(du -m large | cut -f 1)" -lt 100 ] || fail "more than 4 GiB: holes are not kept: $(du -m large)"
	mv packed/redacted packed.was && mv large packed/redacted && the_same redacted report dump
	expect "more than 4 GiB: python's zipfile" "$(python3 -m zipfile -l packed/redacted/* | grep -c 'notes .* 4508876800$')" 1
	mv packed.was packed/large
	rm -rf packed/redacted
fi

# --- cut off -----------------------------------------------------------------------------------------------------------------------

file=$(echo packed/threads/*)
size=$(stat -c %s "$file")
calls() { grep -c ' call \| op \| copy ' || true; }
whole=$("$tool" dump "$file" 2>/dev/null | calls)
last=-1
mkdir cut
for part in $(seq 0 10 100); do
	head -c $((size * part / 100)) "$file" >"cut/${file##*/}"
	"$tool" dump cut >cut.out 2>cut.err
	status=$?
	[ $status = 0 ] || [ $status = 2 ] || fail "cut off at $part %: status $status"
	n=$(calls <cut.out)
	[ "$part" = 100 ] || grep -q "cut/${file##*/}: offset [0-9]*: " cut.err || fail "cut off at $part %: $(cat cut.err)"
	[ "$n" -ge "$last" ] || fail "cut off at $part %: $n calls, at less $last"
	last=$n
	[ "$n" = 0 ] || [ "$part" = 100 ] || "$tool" report cut 2>/dev/null | grep -qi 'incomplete\|missing\|lost\|unreadable' ||
		fail "cut off at $part %: the report does not say so"
done
expect "cut off nowhere: calls" "$last" "$whole"
[ "$whole" -gt 50 ] || fail "only $whole calls"
head -c $((size * 70 / 100)) "$file" >"cut/${file##*/}"
"$tool" unpack cut/* 2>cut.err && fail "what was cut off was unpacked and removed"
[ -f "cut/${file##*/}" ] || fail "what was cut off has gone"
"$tool" unpack -o rest cut/* 2>cut.err && fail "what was cut off was unpacked without a word"
"$tool" dump rest 2>/dev/null | calls >rest.calls
expect "what was cut off, unpacked" "$(cat rest.calls)" "$("$tool" dump cut 2>/dev/null | calls)"

# --- damaged, and made to deceive ---------------------------------------------------------------------------------------------------

mkdir evil
n=0
while read -r how says; do
	python3 "$broken" "$how" "$file" "evil/$how.cudaspy" || fail "$how cannot be made"
	timeout 60 "$tool" report "evil/$how.cudaspy" >evil.out 2>evil.err
	status=$?
	[ $status = 0 ] || [ $status = 2 ] || fail "$how: status $status: $(cat evil.err)"
	grep -q "evil/$how.cudaspy: offset [0-9]*: .*$says" evil.err || fail "$how: $(cat evil.err)"
	[ $status = 2 ] || grep -qi 'incomplete\|missing\|lost\|unreadable' evil.out || [ "$how" = no_end ] || [ "${how#*index}" != "$how" ] ||
		fail "$how: the report does not say that something is missing"
	rm -rf inside && mkdir -p inside/in/side
	timeout 60 "$tool" unpack -o inside/in/side "evil/$how.cudaspy" >/dev/null 2>&1
	expect "$how: nothing is written elsewhere" "$(find inside -mindepth 1 -not -path 'inside/in*' ; find inside/in -mindepth 1 -not -path 'inside/in/side*'; ls /xxxxxxxx* 2>/dev/null)" ""
	n=$((n + 1))
done < <(python3 "$broken" list)
[ $n -ge 20 ] || fail "only $n ways"
# A byte that is another one: reports may not tell, unpack does.
cp "$file" flipped.cudaspy
printf '\377' | dd of=flipped.cudaspy bs=1 seek=$((size * 60 / 100)) conv=notrunc status=none
"$tool" unpack -o flipped flipped.cudaspy 2>flipped.err && fail "a wrong checksum was not seen"
grep -q 'flipped.cudaspy: offset [0-9]*: .*checksum' flipped.err || fail "checksum: $(cat flipped.err)"
