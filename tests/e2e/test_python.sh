#!/bin/bash
# Lines of Python with the stacks of flagged calls: what the recorder reads without the interpreter's help is
# what the interpreter says itself, with its lock held (PyDLL) and without (CDLL), in functions, generators,
# coroutines, threads, behind C, in code that was optimised or instrumented, in a forked child; nothing of
# threads and programs without Python. For each Python that is installed here, and those in TEST_PYTHONS.
. "$(dirname "$0")/lib.sh"
. "$here/python_stacks.sh"
need jq python3
[ -x "$tool" ] || skip "no $tool"
sim=$CUDASPY_BUILD/sim/lib
[ -e "$sim/libcudart.so.12" ] || skip "no simulator"
script=$here/python_lines.py

# recorded PYTHON ARG...: runs it; its standard output goes to `wanted`.
recorded() {
	rm -rf "$out"
	CUDASPY_OUT=$out LD_LIBRARY_PATH=$sim LD_PRELOAD="$first $shim" timeout 60 "$@" >wanted 2>err ||
		fail "$*: status $?, $(tail -n 3 err)"
}

# told TRACE: the same from the trace.
told() {
	readable "$1"
	mv "$dump" dump
	python_stacks <dump
}

# check NAME: what was wanted was told.
check() {
	told "$(the_trace)" >got || exit 1
	[ -s wanted ] || fail "$1: the program told nothing"
	cmp -s wanted got || fail "$1: $(diff wanted got)"
}

# The interpreters: by what they are, for the names may be of scripts that choose one.
pythons=()
for name in python3 /usr/bin/python3 python3.{8..14} ${TEST_PYTHONS:-}; do
	path=$("$name" -c 'import sys, ctypes; sys.version_info >= (3, 8) and print(sys.executable)' 2>/dev/null) &&
		[ -n "$path" ] && pythons+=("$(realpath "$path")")
done
mapfile -t pythons < <(printf '%s\n' "${pythons[@]}" | sort -u)
[ -n "${pythons[0]}" ] || skip "no Python of 3.8 or later here"

for python in "${pythons[@]}"; do
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	case $version in 3.[89] | 3.1[0-4]) ;; *) continue ;; esac
	for run in "CDLL functions" "PyDLL functions" "PyDLL more" "CDLL more" "CDLL optimised" "PyDLL optimised" "PyDLL traced" "CDLL traced"; do
		in_turn || continue
		# shellcheck disable=SC2086 # two words
		recorded "$python" "$script" $run
		check "$version $run"
	done
	recorded "$python" "$script" CDLL stranger
	told "$(the_trace)" >got || exit 1
	grep -q ' \[stack\] .* of=cudaSetDevice .*failed' dump || fail "$version: a thread of C's has no stack"
	expect "$version: a thread of C's" "$(cat got)" ""
	if [ "${version#3.}" -ge 12 ]; then
		recorded "$python" -X perf "$script" CDLL functions
		check "$version -X perf"
		pid=$(the_trace) && pid=${pid%.cudaspy} && rm -f "/tmp/perf-${pid##*-}.map"
	fi
	CUDASPY_KEEP=1 recorded "$python" "$script" CDLL functions
	check "$version with a bound"
	recorded "$python" "$script" CDLL fork
	for trace in $(traces); do
		told "$trace"
	done | sort >got
	sort wanted | cmp -s - got || fail "$version fork: $(sort wanted | diff - got)"
done
echo "checked ${pythons[*]}"

# An interpreter that comes late, and goes: nobody calls what is gone. And one that is not what it says.
export FAKE_MODE=quiet FAKE_RESULT=2
same fake "$bin/python_fake" "$bin/libfake_python.so"
told "$(the_trace)" >got || exit 1
grep -qx 'more=0 7:f:fake.py' got || fail "an interpreter that comes late: $(head -n 3 got)"
grep -vx 'more=0 7:f:fake.py' got && fail "an interpreter that comes late: $(sort got | uniq -c)"
for version in 30b01f0 30a01f0 30d01f0 30e01f0 30f01f0 20712f0 0; do
	in_turn || continue
	FAKE_PYTHON=$version same fake "$bin/python_fake" "$bin/libfake_python.so"
	told "$(the_trace)" >got || exit 1
	expect "an interpreter that says it is $version" "$(cat got)" ""
	grep -q 'text="no lines of Python' dump || fail "nobody says why there are none of $version"
done
unset FAKE_RESULT

# Without Python nobody looks for its frames; and with stacks off, neither.
same stacks "$bin/stacks" made 100
"$tool" dump "$(the_trace)" | grep -q '\[python_' && fail "lines of Python in a program without"
CUDASPY_NOSTACKS=1 recorded "${pythons[-1]}" "$script" CDLL functions
"$tool" dump "$(the_trace)" | grep -q '\[python_' && fail "lines of Python, and stacks are off"
[ -z "$first" ] || exit 0

# In the report, in SARIF, and where somebody asks about a function: each line once.
line() {
	grep -n "# mark: $1\$" "$script" | cut -d: -f1
}
recorded "${pythons[-1]}" "$script" CDLL copies
trace=$(the_trace) || exit 1
"$tool" report --format=json "$trace" >report.json || fail "no report"
jq '.findings[] | select(.id == "pageable-copy")' report.json >finding
expect "report: lines" "$(jq -r .python finding)" \
	"from Python: python_lines.py:$(line large) in copies; also python_lines.py:$(line small) in copies"
expect "report: place" "$(jq -r '"\(.python_file):\(.python_line) \(.python_function)"' finding)" \
	"$script:$(line large) copies"
jq -r .where finding | grep -q "^cudaMemcpyAsync in copies, python_lines.py:$(line large), by .*ffi" || fail "report: where: $(jq .where finding)"
expect "report: stack" "$(jq -r '.stack[] | select(.interpreted == "yes") | "\(.function) \(.file)"' finding)" \
	"copies $script
<module> $script"
"$tool" report "$trace" >report.text || fail "no report"
grep -q "^ *from Python: python_lines.py:$(line large) in copies; also" report.text || fail "text: $(cat report.text)"
grep -q "^ *copies, python_lines.py:$(line large)\$" report.text || fail "text: $(cat report.text)"
"$tool" why cudaMemcpyAsync "$trace" >why.text || fail "no answer"
grep -q "^ *from Python: python_lines.py:[0-9]* in copies\$" why.text || fail "why: $(cat why.text)"
"$tool" report --format=sarif "$trace" | jq -r '.runs[0].results[] | select(.ruleId == "pageable-copy") |
	.locations[0].physicalLocation | "\(.artifactLocation.uri):\(.region.startLine)"' >got
expect "sarif" "$(cat got)" "file://$script:$(line large)"
exit 0
