#!/bin/bash
# A finding's place is the program's own line, whatever lies between that and the call: what nvcc makes of <<<>>>, a framework's library,
# ctypes. What does lie there is named behind it. Code of the program's own is not skipped.
. "$(dirname "$0")/lib.sh"
need jq
[ -x "$tool" ] || skip "no $tool"
sim="$here/../sim/with-sim"

# line SOURCE MARK: of the line that ends in that mark.
line() {
	grep -n "mark: $2\( \*/\)\?$" "$here/programs/$1" | cut -d: -f1
}

# launched PROGRAM WHICH ROUNDS QUEUE: with waits for room in the stream's queue, far below a millisecond each.
launched() {
	rm -rf "$out"
	printf 'queue %s\nkernel_us 300\n' "$4" >script
	SPYSIM_SCRIPT=script CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim" "$bin/$1" "$2" "$3" 2>err || fail "$1 $2: status $?: $(cat err)"
	"$tool" report --format=json "$out" >report.json || fail "no report of $1 $2"
	valid "$here/../../docs/report.schema.json" report.json
}

# How nvcc comes from a line to the call depends on what it optimises.
for program in launches launches_G; do
	[ -x "$bin/$program" ] || { without "$program"; continue; }
	for ((try = 1; ; try++)); do # (A busy machine may keep the queue from being full.)
		launched $program one 600 80
		jq -e '[.findings[] | select(.id == "queue-full")] | length == 1' report.json >/dev/null && break
		again $try 3 || fail "$program: no queue was full: $(jq -c '[.findings[].id]' report.json)"
	done
	expect "$program: place" "$(jq -r '.findings[] | select(.id == "queue-full") | "\(.where | sub(" \\([^()]*\\)$"; "")) \(.elsewhere)"' report.json)" \
		"__cudaLaunchKernel of (anonymous namespace)::shift(int) in shift_once(), launches.cu:$(line launches.cu shift) no"
	expect "$program: frames named as nvcc does" "$(jq '[.findings[].stack[].function // "" | select(test("^__device_stub__"))] | length' report.json)" 0
	launched $program all 600 80
	"$tool" dump "$out" >dump
	# Each kernel has a stack though all are launched by one function, or by one that is compiled into several.
	jq -r '[.findings[] | select(.id == "queue-full")] | .[].where' report.json >got
	grep -q ' of .*anonymous namespace.* in .*_once.*, launches.cu:[0-9]* ' got || fail "$program: places: $(cat got)"
	[ "$(grep -c ' \[stack\] .* of=__cudaLaunchKernel ' dump)" -ge 6 ] || fail "$program: $(grep -c ' \[stack\] ' dump) stacks"
done

# The holder of a lock, those who wait for it, and what is written down of single calls: the same place everywhere.
for program in launches launches_G; do
	[ -x "$bin/$program" ] || continue
	held='.findings[] | select(.id == "held-lock")'
	for ((try = 1; ; try++)); do # (A busy machine may keep the other thread from waiting.)
		launched $program locked 8 20
		jq -e "[$held] | length == 1" report.json >/dev/null && break
		again $try 3 || fail "$program: nobody waited for a lock: $(jq -c '[.findings[].id]' report.json)"
	done
	shift="of (anonymous namespace)::shift(int) in shift_once(), launches.cu:$(line launches.cu shift)"
	expect "$program: holder" "$(jq -r "$held | .where | sub(\" \\\\([^()]*\\\\)\$\"; \"\")" report.json)" "__cudaLaunchKernel $shift"
	jq -r "$held | .what" report.json | grep -q "in stand_in_line(), launches.cu:$(line launches.cu lock) (" ||
		fail "$program: who waits: $(jq -r "$held | .what" report.json)"
	jq -r "$held | .what" report.json | grep -q "; the lock is the variable lock\(;\|$\)" ||
		fail "$program: which lock: $(jq -r "$held | .what" report.json)"
	jq -e '.own_lock_blame[0] | .waiter != .holder and .holder > 0 and .waits > 0 and .waited_ns > 0 and (.site | test("^stand_in_line")) and (.lock | test("^launches"))' \
		report.json >/dev/null || fail "$program: by waiter and holder: $(jq -c .own_lock_blame report.json)"
	"$tool" why "launches.cu:$(line launches.cu lock)" "$out" | grep -q "held-lock" || fail "$program: why does not know who waits"
	"$tool" export --format=chrome -o exported "$out" || fail "$program: no export"
	# Of 50 MB, an event in a line, what is looked at.
	grep -E '"ph":"s"|"holder_call":' exported | sed 's/,$//' | jq -es '(map(select(.ph == "s") | [.tid, .ts])) as $arrows | map(select(.cat? == "outside" and .args.holder_call? != null)) |
		length > 0 and all(.[]; . as $wait | any($arrows[]; .[0] == $wait.tid and .[1] == $wait.ts))' >/dev/null ||
		fail "$program: no arrow from a wait for the lock to the call that its holder was in"
	grep -qF "$shift (" exported || fail "$program: no launch in the timeline has its place, whose stack is known"
	rm -f exported
	command -v sqlite3 >/dev/null || { without sqlite3; continue; }
	"$tool" export --format=sqlite -o exported "$out" || fail "$program: no database"
	[ "$(sqlite3 exported "SELECT count(*) FROM CUDASPY_CALLS JOIN StringIds ON StringIds.id = placeId WHERE value LIKE '$shift (%'")" -ge 1 ] ||
		fail "$program: no launch in the database has its place, whose stack is known"
	rm -f exported
done

# A library of a framework, with its own names or without, is not the program, wherever it was installed.
export FAKE_MODE=quiet
mkdir -p torch/lib lib/python3.99/site-packages/other
cp "$bin/libours.so" torch/lib/libtorch_cuda.so
cp "$bin/libours.so" lib/python3.99/site-packages/other/kernels.so
for library in torch/lib/libtorch_cuda.so lib/python3.99/site-packages/other/kernels.so; do
	same stacks "$bin/stacks" library "$PWD/$library" 100
	"$tool" report --format=json "$(the_trace)" >report.json || fail "no report of $library"
	place='.findings[] | select(.id == "steady-state" and .function == "cudaMalloc")'
	jq -r "$place | .where" report.json | grep -q "^cudaMalloc in request, stacks.c:$(line stacks.c create), by cublasCreate_v2 (${library##*/})\$" ||
		fail "$library: place: $(jq "$place | .where" report.json)"
	expect "$library: fields" "$(jq -r "$place"' | "\(.module | split("/") | last) \(.library) \(.library_caller):\(.line)"' report.json)" \
		"${library##*/} null request:$(line stacks.c create)"
done
# Somebody's library that came without lines is one that the program calls, if the program has lines; else it is a place of its own.
same stacks "$bin/stacks" library "$bin/libours.so" 100
"$tool" report --format=json "$(the_trace)" | jq -r "$place | .where" >got
expect "a library without lines" "$(cat got)" "cudaMalloc in request, stacks.c:$(line stacks.c create), by cublasCreate_v2 (libours.so)"
strip -g -o plain "$bin/stacks"
same plain ./plain library "$bin/libours.so" 100
"$tool" report --format=json "$(the_trace)" | jq -r "$place | .where" >got
grep -q '^cudaMalloc in libours.so+0x[0-9a-f]*$' got || fail "no lines anywhere: $(cat got)"

# Debug sections that are compressed with zstd; and where nothing reads them, a word.
if objcopy --compress-debug-sections=zstd "$bin/stacks" packed 2>/dev/null && ! cmp -s "$bin/stacks" packed; then
	same packed ./packed library "$bin/libcublas.so.13" 100
	trace=$(the_trace) || exit 1
	"$tool" report --format=json "$trace" >report.json || fail "no report of zstd"
	expect "zstd: line" "$(jq -r "$place | .line" report.json)" "$(line stacks.c create)"
	expect "zstd: files" "$(jq '.files | length' report.json)" 0
	mkdir -p without && echo none >without/libzstd.so.1
	LD_LIBRARY_PATH=$PWD/without "$tool" report --format=json "$trace" >report.json || fail "no report without libzstd"
	valid "$here/../../docs/report.schema.json" report.json
	expect "zstd cannot be read: files" "$(jq -r '.files[] | "\(.file | split("/") | last) \(.state)"' report.json)" "packed compressed"
	expect "zstd cannot be read: place" "$(jq -r "$place | .line" report.json)" 0
else
	without "objcopy with zstd"
fi
