#!/bin/bash
# Who called calls that are worth a look: the right functions and lines in C and C++, behind functions
# without frame pointers, from signal handlers, from code made at run time; nothing of other calls; not too
# often; and whatever the stack looks like, the program does what it does without the shim.
. "$(dirname "$0")/lib.sh"
need jq
[ -x "$tool" ] || skip "no $tool"
export FAKE_MODE=quiet

# record NAME ARG...: runs NAME with and without the shim; sets trace and dump.
record() {
	same "$1" "$bin/$1" "${@:2}"
	trace=$(the_trace) || exit 1
	readable "$trace"
	mv "$dump" dump
}

# stacks [PATTERN]: the records of stacks.
stacks() {
	grep ' \[stack\] ' dump | grep -E -- "${1:-}"
}

# line SOURCE MARK: of the line that ends in that mark.
line() {
	grep -n "mark: $2\( \*/\)\?$" "$here/programs/$1" | cut -d: -f1
}

# shown SOURCE WANTED...: the first finding's stack, innermost first; each is FUNCTION (of a marked line) or
# FUNCTION@MARK.
shown() {
	local source=$1 name wanted=
	shift
	"$tool" report --format=json "$trace" >report.json || fail "no report"
	for name in "$@"; do
		wanted="$wanted${name%@*}:$(line "$source" "${name#*@}")"$'\n'
	done
	jq -r '.findings[0].stack[] | select(.file // "" | endswith("'"$source"'")) | "\(.function | split("(")[0]):\(.line)"' \
		report.json >got
	expect "$source: stack" "$(cat got)" "${wanted%$'\n'}"
}

record stacks chain 3
expect "chain: stacks" "$(stacks ' of=cudaMemcpyAsync why=[a-z,]*pageable' | wc -l)" 1
shown stacks.c copy with_array compiled_in with_alloca aligned with_pointer main
valid "$here/../../docs/report.schema.json" report.json
jq 'del(.findings[0].stack[0].inlined)' report.json >less.json
"$here/../validate" "$here/../../docs/report.schema.json" less.json >wrong && fail "a stack that lacks a key is valid"
expect "chain: compiled in" "$(jq -r '.findings[0].stack[] | select(.inlined == "yes") | .function' report.json)" compiled_in

if [ -x "$bin/stacks_cc" ]; then
	record stacks_cc
	shown stacks_cc.cc "data::typed_loader<float>::fetch@fetch" "data::epoch@lambda" \
		"each<data::epoch@each" "data::epoch@each_in" main
	record stacks_cc thread
	"$tool" report --verbose "$trace" | sed -n '/^ *stack of a call/,/^    Pin/p' >stack.txt
	grep -q 'epoch' stack.txt || fail "in a thread: no stack: $(cat stack.txt)"
	grep -q 'std::\|libstdc' stack.txt && fail "the text shows what starts a thread: $(cat stack.txt)"
else
	without "C++"
fi

record stacks signal
shown stacks.c copy handler raise_it from_signal main@signal

record stacks coroutine
[ "$(stacks | wc -l)" -ge 8 ] || fail "coroutine: $(stacks | wc -l) stacks"
shown stacks.c copy small

for seed in $(seq "$((RANDOM))" 7 "$((RANDOM + 60))" | head -n 6) 1 2 3; do
	record stacks corrupt "$seed"
	[ "$(stacks | wc -l)" -ge 40 ] || fail "corrupt $seed: $(stacks | wc -l) stacks"
done

# The map is believed while it is there.
CUDASPY_OUT=$out; rm -rf "$out"
spied "$bin/stacks" jit >map 2>err || fail "jit: $(cat err)"
trace=$(the_trace) || exit 1
"$tool" report --format=json "$trace" | jq -r '.findings[0].stack[] | select(.module == null) | "\(.function) \(.file)"' >got
rm -f "$(cat map)"
expect "jit: functions" "$(cat got)" "py::inner /srv/train.py
py::middle /srv/train.py
compiled null"
"$tool" report --format=json "$trace" >report.json
expect "jit: without the map" "$(jq '[.findings[0].stack[] | select(.module == null and .function == null)] | length' report.json)" 3

# What is made a few times is no case; made again it is, but not at each time. (A call may take a millisecond, and
# the time before it, too, anywhere on a busy machine.)
record stacks made 4
expect "made 4 times: stacks" "$(stacks 'why=[a-z,]*made' | grep -c -v ' why=[a-z,]*\(long\|gap\)')" 0
record stacks made 1000
made=$(stacks 'why=made ' | wc -l)
[ "$made" -ge 8 ] && [ "$made" -le 60 ] || fail "made 1000 times: $made stacks"

# So is code that is loaded, however short the calls are; of the questions about it a sample.
record stacks loads 4
expect "loaded 4 times: stacks" "$(stacks 'why=[a-z,]*made' | grep -c -v ' why=[a-z,]*\(long\|gap\)')" 0
record stacks loads 1000
for function in cudaLibraryLoadData cudaLibraryUnload; do
	made=$(stacks " of=$function why=made " | wc -l)
	[ "$made" -ge 8 ] && [ "$made" -le 60 ] || fail "loaded 1000 times: $made stacks of $function"
done
stacks ' of=cudaLibraryGetKernel why=sampled ' >sampled
[ "$(wc -l <sampled)" -ge 2 ] && [ "$(wc -l <sampled)" -le 16 ] || fail "loaded 1000 times: $(wc -l <sampled) stacks of its use"

FAKE_RESULT=2 record stacks failed
expect "failed: stacks" "$(stacks ' of=cudaSetDevice why=[a-z,]*failed' | wc -l)" 1

# A launch is where the program has it, not where nvcc makes it, and the kernel is named.
FAKE_RESULT=9 record stacks launch 1
shown stacks.c scale@stub scale@scale first_layer@first_layer launch@first main@launch
expect "launch: place" "$(jq -r '.findings[0] | "\(.id) \(.function) \(.caller):\(.line)"' report.json)" \
	"ignored-error cudaLaunchKernel first_layer:$(line stacks.c first_layer)"
"$tool" report "$trace" >report.txt
grep -q "cudaLaunchKernel of scale(.*) in first_layer, stacks.c:$(line stacks.c first_layer) " report.txt || fail "launch: text: $(cat report.txt)"
grep -q 'stub' report.txt && fail "launch: the text shows nvcc's functions: $(cat report.txt)"
# (A call that loses its processor may make the other place one of which nobody speaks.)
for ((try = 1; ; try++)); do
	FAKE_RESULT=9 record stacks launch 2
	"$tool" report "$trace" >report.txt
	tr -s ' \n' ' ' <report.txt | grep -q 'cudaLaunchKernel of scale(.*) in [a-z]*_layer, stacks.c:[0-9]* (stacks+0x[0-9a-f]*) and elsewhere' && break
	again $try 3 || fail "launches at two places: $(cat report.txt)"
done
FAKE_RESULT=9 record stacks launch 3
expect "launches of several kernels: place" "$("$tool" report --format=json "$trace" |
	jq -r '.findings[0] | "\(.count) \(.where | test("_layer, stacks.c:[0-9]+ .* and elsewhere$"))"')" "8 true"

# So is a call that a wrapper of CUDA's headers makes, which has no line of the program's.
record stacks_cc wrapped
expect "wrapped: place" "$("$tool" report --format=json "$trace" | jq -r '.findings[0] | "\(.caller):\(.line) \(.count) \(.elsewhere)"')" \
	"first_load():$(line stacks_cc.cc first_load) 3 no"
record stacks_cc wrapped-twice
expect "wrapped: places" "$("$tool" report --format=json "$trace" |
	jq -r '.findings[0] | "\(.count) \(.elsewhere) \(.where | test("_load\\(\\), stacks_cc.cc:[0-9]+ .* and elsewhere$"))"')" "6 yes true"

record stacks_cc wrapped-deep
"$tool" report --format=json "$trace" | jq -r '.findings[] | "\(.caller):\(.line) \(.count) \(.elsewhere)"' >got
grep -qxF "third_load():$(line stacks_cc.cc third_load) 3 no" got || fail "wrapped by Thrust: $(cat got)"

# Without debug information, as nvcc builds by default, by the names alone.
cp "$bin/stacks_cc" plain && strip --strip-debug plain || fail "no strip"
same plain ./plain wrapped-deep
"$tool" report --format=json "$(the_trace)" | jq -r '.findings[] | "\(.caller) \(.count) \(.elsewhere)"' >got
grep -qxF "third_load() 3 no" got || fail "wrapped by Thrust, no debug information: $(cat got)"

# What one of NVIDIA's libraries calls is where the program calls the library, and the cure is for its handles.
record stacks library "$bin/libcublas.so.13" 100
"$tool" report --format=json "$trace" >report.json
valid "$here/../../docs/report.schema.json" report.json
place='.findings[] | select(.id == "steady-state" and .function == "cudaMalloc")'
expect "library: place" "$(jq -r "$place | .where" report.json)" \
	"cudaMalloc in request, stacks.c:$(line stacks.c create), by cublasCreate_v2 (libcublas.so.13)"
expect "library: fields" "$(jq -r "$place"' | "\(.module | split("/") | last) \(.caller) \(.library) \(.library_caller) \(.line)"' report.json)" \
	"libcublas.so.13 cublasCreate_v2 libcublas.so.13 request $(line stacks.c create)"
jq -r "$place | .fix" report.json | grep -q 'Make a handle of cuBLAS ' || fail "library: cure: $(jq "$place | .fix" report.json)"
expect "library: given back" "$(jq -r '.findings[] | select(.function == "cudaFree") | .where' report.json)" \
	"cudaFree in request, stacks.c:$(line stacks.c destroy), by cublasDestroy_v2 (libcublas.so.13)"
"$tool" report --format=sarif "$trace" | jq -r '.runs[0].results[].locations[0] |
	"\(.physicalLocation.artifactLocation.uri | split("/") | last):\(.physicalLocation.region.startLine) \(.logicalLocations[0].name)"' |
	sort >got
expect "library: sarif" "$(cat got)" "$(printf 'stacks.c:%s request\n' "$(line stacks.c create)" "$(line stacks.c destroy)" | sort)"
"$tool" why cudaMalloc "$trace" >why.text || fail "no answer"
grep -q '^ *cublasCreate_v2, libcublas.so.13+0x' why.text || fail "library: stack: $(cat why.text)"
expect "library: functions without a name in the text" "$(grep -c '^ *libcublas.so.13+0x' why.text)" 0
# Every other library without lines is one that the program calls, too, but not one of NVIDIA's.
record stacks library "$bin/libours.so" 100
"$tool" report --format=json "$trace" >report.json
expect "another library" "$(jq -r "$place | .where" report.json)" "cudaMalloc in request, stacks.c:$(line stacks.c create), by cublasCreate_v2 (libours.so)"
expect "another library: fields" "$(jq -r "$place"' | "\(.caller) \(.library) \(.library_caller)"' report.json)" "cublasCreate_v2 null request"
jq -r "$place | .fix" report.json | grep -q '^Allocate once' || fail "another library: cure: $(jq "$place | .fix" report.json)"

# So many at a place, so many a second, and so many at once.
record stacks many 20000
[ "$(stacks | wc -l)" -ge 8 ] || fail "many: $(stacks | wc -l) stacks"
[ "$(stacks | wc -l)" -le 80 ] || fail "many: $(stacks | wc -l) stacks"
record stacks start
seconds=$(awk '{ s = int($1) } NR == 1 { first = s } END { print s - first + 1 }' dump)
[ "$(stacks | wc -l)" -ge 200 ] || fail "start: $(stacks | wc -l) stacks"
[ "$(stacks | wc -l)" -le $((200 + 50 * seconds)) ] || fail "start: $(stacks | wc -l) in $seconds s"
record stacks threads 8 5000
[ "$(stacks | wc -l)" -le 80 ] || fail "threads: $(stacks | wc -l) stacks"

# (A call may take a millisecond anywhere on a busy machine.)
record stacks clean
expect "clean: stacks" "$(stacks | grep -c -v ' why=[a-z,]*\(long\|sampled\|gap\)')" 0
sampled=$(stacks ' of=cudaMemcpyAsync why=[a-z,]*sampled ' | wc -l)
[ "$sampled" -ge 1 ] && [ "$sampled" -le 8 ] || fail "clean: $sampled stacks of a sample"
# Short calls of which there may be too many: a sample of them, and fewer the more there are.
record stacks waits 20000
stacks ' of=cudaStreamSynchronize why=sampled ' >sampled
[ "$(wc -l <sampled)" -ge 2 ] || fail "waits: $(wc -l <sampled) stacks"
[ "$(wc -l <sampled)" -le 16 ] || fail "waits: $(wc -l <sampled) stacks"
# A sample takes nothing from what is worth a look at the same place.
record stacks behind 5000
[ "$(stacks 'why=[a-z,]*pageable' | wc -l)" -ge 8 ] ||
	fail "pageable copies behind others: $(stacks 'why=[a-z,]*pageable' | wc -l) stacks"
# Where only the last records are kept, places are told of again.
CUDASPY_KEEP=1 record stacks pause 400000
[ "$(wc -l <dump)" -lt 300000 ] || fail "all of a bounded trace was kept"
[ "$(stacks 'why=sampled ' | wc -l)" -ge 1 ] || fail "a bounded trace has no stack any more"
CUDASPY_NOSTACKS=1 record stacks many 1000
expect "switched off: stacks" "$(stacks | wc -l)" 0
expect "switched off: pageable copies" "$(closing stacks.err)" "1000 1000 0"
grep -q '	stacks = 0;' "$trace/metadata" || fail "metadata does not say that stacks are off"
"$tool" report --format=json "$trace" | jq -e '[.findings[].stack | length] | add == 0' >/dev/null ||
	fail "switched off, and the report has a stack"
