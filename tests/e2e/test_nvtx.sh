#!/bin/bash
# Ranges and marks that the program announces by NVTX: what is recorded of them, and that nothing changes for the
# program and for another tool.
. "$(dirname "$0")/lib.sh"
nvtx=$bin/nvtx
another=$bin/libnvtx_tool.so
bare timeout 20 "$nvtx" >/dev/null
[ $? = 77 ] && skip "no headers of NVTX here (nvtx3/nvToolsExt.h)"

# ran CMD...: recorded; leaves output, messages, trace and its dump.
ran() {
	rm -rf "$out"
	spied timeout -k 1 60 "$@" >output 2>messages || fail "$*: status $?: $(tail -n 3 messages)"
	trace=$(traces | head -n 1)
	"$tool" dump "$trace" >dump
}

# of WHAT NAME: how many such records of a name there are.
of() {
	awk -v what="what=$1" -v name="name=\"$2\"" '
		/ range_name number=/ { match($0, /number=[0-9]+/)
			if (index($0, name)) number = "name=" substr($0, RSTART + 7, RLENGTH - 7) }
		/ range(_value)? what=/ { for (i = 1; i <= NF; i++) if ($i == what) w = NR
			for (i = 1; i <= NF; i++) if ($i == number && w == NR) n++ }
		END { print n + 0 }' dump
}

# --- each function, alone ---
ran "$nvtx" all
readable "$trace"
expect "depths" "$(sed -n 's/^pop //p' output | head -n 3 | paste -sd ' ')" "2 1 0"
expect "depths in domains" "$(grep -E '^(push|pop) ' output | sed -n '11,18p' | paste -sd ' ')" \
	"push 0 push 1 push 0 push 0 pop 1 pop 0 pop 0 pop 0"
expect "handles" "$(grep -c ' there$' output)" 7
expect "ids are different" "$(sed -n 's/^same id //p' output | sort -u)" 0
for name in "mark with a value" mark "wide ✓ mark" "push with a category" outer "innér" "😀 wide" started "started wide" \
	registered "in a domain" "régistered" "in none" "part's work" "part's mark"; do
	expect "'$name' is told" "$(grep -c " range_name .* name=\"$name\"$" dump)" 1
done
expect "domains" "$(sed -n 's/.* range_name .*domain="\([^"]*\)".*/\1/p' dump | sort -u | paste -sd,)" ",layers,part,wïde"
expect "values" "$(sed -n 's/.* what=mark .*\(double\|i32\|u64\|float\)=\(.*\)/\1 \2/p' dump | head -n 4 | paste -sd,)" \
	"double 2.5,i32 -7,u64 1099511627776,float 0.5"
expect "a category" "$(grep -c "what=push .*category=3" dump)" 2
expect "pushes" "$(of push outer)" 2
expect "pops" "$(of pop outer)" 2
expect "marks of the part" "$(of mark "part's mark")" 1
expect "ends" "$(grep -c "range_value what=end id=" dump)" 5
expect "named things" "$(sed -n 's/.* nvtx_name what=\([a-z]*\).* name="\(.*\)"/\1 \2/p' dump | sort -u | paste -sd,)" \
	"category I/O,category café,category layers/five,category layers/six,context context,device the first,event event,stream copies,stream kërnels,stream more copies,thread the main thread of all"

# --- another tool is asked as if it were alone, and its answers are the program's ---
for how in "" half several; do
	(NVTX_TOOL=$how NVTX_INJECTION64_PATH=$another bare timeout 20 "$nvtx" all) >wanted 2>wanted.err
	(export NVTX_TOOL=$how NVTX_INJECTION64_PATH=$another && ran "$nvtx" all) || exit 1
	trace=$(the_trace) || exit 1
	cmp -s wanted output || fail "tool '$how': output differs: $(diff wanted output | head -n 5)"
	expect "tool '$how' sees" "$(grep tool: messages)" "$(grep tool: wanted.err)"
	grep -q ", 0 wrong$" messages || fail "tool '$how': $(grep tool: messages)"
	expect "tool '$how': pushes are recorded" "$(of push outer)" 2
	expect "tool '$how': pops are recorded" "$(of pop outer)" 2
	[ "$how" = half ] || expect "tool '$how': domains are known" "$(grep -c 'range_name .*domain="layers"' dump)" 2
	expect "tool '$how': marks of the part" "$(of mark "part's mark")" "$([ "$how" = several ] && echo 0 || echo 1)"
done
# One that fails is none.
(export NVTX_TOOL=fails NVTX_INJECTION64_PATH=$another && ran "$nvtx" all) || exit 1
expect "a tool that fails sees nothing" "$(grep -c "tool: 2 inits, 0 marks, 0 pushes, 0 pops" messages)" 1
expect "and we do" "$(of push outer)" 2
(NVTX_INJECTION64_PATH=/nonexistent.so && export NVTX_INJECTION64_PATH && ran "$nvtx" all) || exit 1
expect "without the tool that is named" "$(of push outer)" 2

# --- off ---
for off in CUDASPY_NONVTX=1 CUDASPY_DISABLE=1; do
	rm -rf "$out"
	spied env "$off" timeout 20 "$nvtx" all >output 2>messages || fail "$off: $(cat messages)"
	bare timeout 20 "$nvtx" all | cmp -s - output || fail "$off: output differs"
	(export NVTX_INJECTION64_PATH=$another; spied env "$off" timeout 20 "$nvtx" all) 2>messages >/dev/null
	grep -q "tool: 2 inits, 14 marks.* 0 wrong$" messages || fail "$off: the other tool: $(cat messages)"
done

# --- programs that are started ---
# environment VARIABLES...: what of NVTX a program finds that the recorded one starts.
environment() {
	(export "$@"; spied "$nvtx" exec env 2>/dev/null) | grep -E '^(NVTX_INJECTION64_PATH|CUDASPY_NVTX_NEXT)=' | sort
}
expect "what a child finds" "$(environment HOME="$tmp")" "CUDASPY_NVTX_NEXT=
NVTX_INJECTION64_PATH=$(realpath "$shim")"
expect "what a child finds beside a tool" "$(environment NVTX_INJECTION64_PATH="$another")" "CUDASPY_NVTX_NEXT=$another
NVTX_INJECTION64_PATH=$(realpath "$shim")"
expect "what a child that is not recorded finds" \
	"$( (export NVTX_INJECTION64_PATH=$another; spied "$nvtx" exec env CUDASPY_DISABLE=1 env 2>/dev/null) | grep NVTX)" \
	"NVTX_INJECTION64_PATH=$another"
expect "and without a tool" "$(spied "$nvtx" exec env CUDASPY_NONVTX=1 env 2>/dev/null | grep -c 'NVTX.*=.*/')" 0
# A recorded child of a recorded program, and one whose LD_PRELOAD was taken away.
export NVTX_INJECTION64_PATH=$another
spied "$nvtx" exec "$nvtx" all 2>messages >/dev/null
grep -q "tool: 2 inits, 14 marks.* 0 wrong$" messages || fail "child: the other tool: $(cat messages)"
# (A sanitizer's library cannot be loaded without its runtime.)
if [ -z "$first" ]; then
	spied "$nvtx" exec env -u LD_PRELOAD "$nvtx" all 2>messages >/dev/null
	grep -q "tool: 2 inits, 14 marks.* 0 wrong$" messages || fail "child without LD_PRELOAD: the other tool: $(cat messages)"
fi
unset NVTX_INJECTION64_PATH
if [ -z "$first" ]; then
	spied "$nvtx" exec env -u LD_PRELOAD "$nvtx" all 2>messages | grep -v cudart >output
	bare "$nvtx" all | grep -v cudart | cmp -s - output || fail "child without LD_PRELOAD: output differs: $(cat messages)"
fi

# --- before the first call, and in a child ---
ran "$nvtx" early
expect "ranges open at a thread's first call" "$(of open "thread's") $(of open "first call") $(of open "gone before")" "1 1 0"
expect "and the main thread's" "$(of open step) $(of pop step)" "1 1"
expect "the thread's name" "$(grep -c 'nvtx_name what=thread object=[0-9]* name="worker"' dump)" 1
rm -rf "$out"
spied timeout 20 "$nvtx" fork >output 2>messages || fail "fork: $(cat messages)"
expect "child" "$(grep child output)" "child 0"
for trace in $(traces); do
	"$tool" dump "$trace" >dump
	counted=$("$tool" report "$trace" | tr -s ' \n' ' ' | grep -o '[0-9]* NVTX events by threads before a call of CUDA')
	if [ "$(of push "in the child")" = 1 ] || [ "$(of open "in the child")" = 1 ]; then
		expect "in the child" "$(of open "before fork") $(of pop "before fork") $counted" "1 1 "
	else
		expect "in the parent" "$(of open "before fork") $(of pop "before fork") $counted" \
			"1 1 128 NVTX events by threads before a call of CUDA"
	fi
done
expect "traces of a fork" "$(traces | wc -l)" 2

# --- threads, full packets, numbers in names ---
ran "$nvtx" threads
readable "$trace"
expect "pushes of all threads" "$(of push loop)" 80000
expect "pops of all threads" "$(of pop loop)" 80000
expect "one that another thread ends" "$(grep -c 'what=end id=' dump)" 1
numbered=$(grep -o 'range_name .* name="item [0-9]*"' dump | sort -u | wc -l)
[ "$numbered" -ge 64 ] && [ "$numbered" -lt 68 ] || fail "names with a number: $numbered, expected 64, or some more by threads that meet"
expect "one for all others" "$(grep 'range_name .*item #' dump | grep -c folded=1)" 1
expect "what is lost" "$(closing messages | cut -d ' ' -f 3)" 0
# Of a bounded trace each packet has the names that it needs, and what is open.
(export CUDASPY_KEEP=1 && ran "$nvtx" threads) || exit 1
trace=$(the_trace) || exit 1
readable "$trace"
[ "$(grep -c 'range_name .*name="loop"' dump)" -gt 4 ] || fail "bounded: names are told once"
[ "$(of open "all items")" -gt 4 ] || fail "bounded: what is open is told once"
expect "bounded: open ranges, and how long they are" "$("$tool" report --format=json "$trace" | python3 -c 'import json, sys
rows = json.load(sys.stdin)["ranges"]
print([r["count"] in (1, 2, 3, 4) for r in rows if r["name"] == "all items"], max(r["longest_ns"] for r in rows) < 60e9)')" "[True] True"
ran "$nvtx" deep 100
expect "depths" "$(grep -v cudart output | paste -sd ,)" "sum 0,one too many -1"
expect "recorded of a hundred" "$(of push deep) $(of pop deep)" "24 24"
expect "and the others are counted" "$("$bin/board" "$trace" nvtx)" "0 76"
ran "$nvtx" signals
expect "in signal handlers" "$(grep wrong output)" "wrong 0"
readable "$trace"

# --- the report ---
ran "$nvtx" steps 20
"$tool" report --format=json "$trace" >report.json 2>report.err || fail "report: $(cat report.err)"
valid "$here/../../docs/report.schema.json" report.json
"$tool" report "$trace" >report.txt
# row NAME KEY: of the ranges.
row() {
	python3 -c 'import json, sys
print([r[sys.argv[3]] for r in json.load(open(sys.argv[1]))["ranges"] if r["name"] == sys.argv[2]])' report.json "$@"
}
expect "steps are one" "$(row 'step #' count)$(row 'step #' names)" "[20][20]"
expect "calls in them" "$(row 'step #' calls)$(row wait calls)" "[40][20]"
grep -q "^  step #  *20 " report.txt || fail "the text has no ranges: $(cat report.txt)"
# only PATTERN: calls of a report on those ranges, and those left out.
only() {
	"$tool" report --format=json --range="$1" "$trace" | python3 -c 'import json, sys
r = json.load(sys.stdin)
print(r["summary"]["calls"], r["only"]["left_out"], sum(c["count"] for c in r["calls"]))'
}
expect "only waits" "$(only wait)" "20 40 20"
expect "only one step" "$(only 'step 7')" "2 58 2"
expect "all steps" "$(only 'step #')" "40 20 40"
"$tool" report --range='no such range' "$trace" >/dev/null 2>messages
expect "none" "$? $(grep -c "no range 'no such range' (there are: step #, wait)" messages)" "2 1"
ran "$nvtx" early
"$tool" report --verbose "$trace" >report.txt
grep -q worker report.txt || fail "a thread's name is not shown: $(cat report.txt)"
ran "$nvtx" deep 100
"$tool" report "$trace" | grep -q "^  76 ranges not followed" || fail "lost ranges are not said: $("$tool" report "$trace")"
