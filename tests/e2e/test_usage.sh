#!/bin/bash
# What a user does wrong is named, with the option, the file or the variable, and the status is 2: options
# and arguments of every verb, places that cannot be written, paths that LD_PRELOAD cannot name.
. "$(dirname "$0")/lib.sh"
FAKE_MODE=quiet spied "$bin/life" calls 3 2>err || fail "no trace to report: $(cat err)"

# wrong WORDS COMMAND...: it says so, and only on standard error.
wrong() {
	local words=$1 status
	shift
	CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$@" >said 2>err </dev/null
	status=$?
	expect "$*: status ($(tail -n 2 err))" $status 2
	[ -s said ] && fail "$*: says on standard output: $(head -n 3 said)"
	grep -qF -- "$words" err || fail "$*: does not say '$words': $(cat err)"
}

# ---- options and arguments --------------------------------------------------------------------------
for verb in run report explain why diff dump info digest merge calibrate ps snapshot top; do
	wrong "no such option '--nothing'" "$tool" $verb --nothing
done
for option in --format --profile --fail-on --budget --suppress --baseline; do
	wrong "empty argument of '$option='" "$tool" report $option= "$out"
done
wrong "no verb 'reprot'; did you mean 'report'?" "$tool" reprot
wrong "this option takes no argument '--verbos=1'" "$tool" report --verbos=1 "$out"
wrong "no such option '--bugdet'; did you mean --budget?" "$tool" report --bugdet=1 "$out"
wrong "there are several options '--f'; --format or --function or --from or --fail-on" "$tool" report --f=text "$out"
wrong "no format 'jsn' (text or json or html or junit or sarif); did you mean 'json'?" "$tool" report -f jsn "$out"
wrong "no format 'sarif' (text or json)" "$tool" info -f sarif "$out"
wrong "no format 'csv' (text or tsv); did you mean 'tsv'?" "$tool" dump -f csv "$out"
wrong "there is no column 'tme' (there are time," "$tool" dump --fields=tme "$out"
wrong "no format 'mna' (text, man, bash or zsh); did you mean 'man'?" "$tool" help --format=mna
wrong "no detector 'pagable-copy', nor such a cause; did you mean 'pageable-copy'?" "$tool" explain pagable-copy
wrong "no verb 'repot'; did you mean 'report'?" "$tool" help repot
wrong "'info' is one too many" "$tool" help report info
expect "-V" "$("$tool" -V)" "$("$tool" --version)"
wrong "no detector 'no-such'" "$tool" explain no-such hidden-sync
wrong "'hidden-sync' is one too many" "$tool" explain pageable-copy hidden-sync
wrong "a finding, thread, function, lock, GPU, rank or place to explain is missing" "$tool" why
wrong "to explain is missing before $out" "$tool" why "$out"
for keep in 0 -1 abc 1.5 99999999999999999999; do
	wrong "--keep=$keep: this is no number of MiB" "$tool" run --keep=$keep "$bin/life" calls 3
done
# Of the recording: before the program begins.
begun() {
	local words=$1
	shift
	wrong "$words" "$tool" run "$@" -- touch begun
	[ -e begun ] && fail "run $*: the program has begun"
}
begun "--trace=no_such: there is no CUDA function 'no_such'" --trace=no_such
begun "--trace=cudaMalloc,cudaFre: there is no CUDA function 'cudaFre'; did you mean 'cudaFree'?" --trace=cudaMalloc,cudaFre
begun "--count=cudoo*: there is no CUDA function 'cudoo*'" --count='cudoo*'
begun "--trace=,: there is no name in this list" --trace=,
begun "--clock=tsc: the only clock" --clock tsc
begun "--gpu=3x: this is neither 1 nor a window" --gpu=3x
begun "--floor=x: this is no number of MiB" --floor=x
begun "--group=no-such-group: there is no such group" --group=no-such-group
begun "--quiet=no: this is neither 0 nor 1" --quiet=no
begun "--report" --report=
begun "none/report: No such file" --report=none/report
begun "--color=alwys is none of" --color=alwys
begun "no format 'jsn'" --format=jsn
wrong "'64' (0 to 63" "$tool" calibrate --device=64
for width in -5 0 abc; do
	COLUMNS=$width "$tool" report "$out" | cmp -s - <("$tool" report "$out") || fail "COLUMNS=$width: another width than 80"
done

# ---- places that cannot be written ------------------------------------------------------------------
touch file
wrong "file: Not a directory (--out" "$tool" run -o file "$bin/life" calls 3
wrong "file/below: Not a directory" "$tool" run -o file/below/it "$bin/life" calls 3
CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run --quiet -o made/for/it "$bin/life" calls 3 >said 2>err ||
	fail "a place that is not there yet: $? $(cat err)"
grep -q '^CUDASPY REPORT' err || fail "no report: $(cat said err)"
grep -q CUDASPY said && fail "the report is between what the program says: $(cat said)"
if [ "$(id -u)" -ne 0 ]; then
	mkdir -m 555 closed
	wrong "closed: Permission denied" "$tool" run -o closed "$bin/life" calls 3
else
	without "a directory that is not writable (root)"
fi
if [ -c /dev/full ]; then
	for line in "report $out" "report --format=json $out" "report --format=junit $out" "report --format=sarif $out" \
		"info $out" "dump $out" "diff $out $out" explain "explain pageable-copy" help "help report" --help \
		--version "why --help"; do
		# shellcheck disable=SC2086
		"$tool" $line >/dev/full 2>err
		expect "$line, nowhere to write to: status" $? 2
		expect "$line, nowhere to write to" "$(cat err)" "cudaspy: standard output: No space left on device"
	done
	# The program's status is passed on, whatever becomes of the report.
	CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run -o "$out" --report=- -- "$bin/life" calls 3 >/dev/full 2>err
	expect "run, nowhere to report to: status" $? 0
	grep -q '^cudaspy: standard output: No space' err || fail "run does not say that the report is lost: $(cat err)"
fi

# ---- what others have left --------------------------------------------------------------------------
mkdir left left/other.cudaspy
touch left/other.cudaspy/metadata
CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run --quiet -o left "$bin/life" calls 3 >said 2>err || fail "run: $? $(cat err)"
grep -q '^CUDASPY REPORT' err || fail "no report: $(cat said err)"
grep other.cudaspy said err && fail "another run's trace is complained about"
"$tool" report left 2>&1 | grep -q 'other.cudaspy/metadata: empty' || fail "report does not say that it is empty"

# A file that is named like one of a trace's hides none of those beside it.
echo x >left/metadata
"$tool" report left 2>err | grep -q '^  calls  *[1-9]' || fail "a stray file hides traces: $(cat err)"
"$tool" report --fail-on=hidden-sync left 2>&1 | grep -q 'judge: 1 trace cannot be read' || fail "a stray file is a trace for the gate"
rm left/metadata
# Of metadata that was cut off, and without a board, the streams are read all the same.
mv left/life-*.cudaspy cut
"$tool" report --format=json cut | jq .summary.calls >calls
truncate -s 20000 cut/metadata
rm cut/.board
"$tool" report --format=json cut 2>err | jq .summary.calls | cmp -s - calls || fail "metadata cut off: $(cat err)"
grep -q '^cudaspy: cut/metadata: ' err || fail "metadata cut off, and nothing is said"

# An empty CUDASPY_OUT is as good as none, for the recorder too.
(cd left && CUDASPY_OUT='' CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run --no-report "$bin/life" calls 3) >said 2>err || fail "run, CUDASPY_OUT empty: $? $(cat err)"
ls -d left/life-*.cudaspy >said || fail "run, CUDASPY_OUT empty: no trace"

# ---- where the recorder is --------------------------------------------------------------------------
mkdir 'a folder'
cp "$shim" 'a folder/libcudaspy.so'
CUDASPY_LIB='a folder/libcudaspy.so' LD_LIBRARY_PATH=$fakes "$tool" run -o "$out" "$bin/life" calls 3 >said 2>err
expect "a recorder that LD_PRELOAD cannot name: status" $? 2
grep -q 'a folder/libcudaspy.so: LD_PRELOAD cannot name' err || fail "not said: $(cat err)"
CUDASPY_LIB=$tmp/none.so "$tool" run true 2>err
expect "no recorder: status" $? 2
grep -q "CUDASPY_LIB=$tmp/none.so: No such file" err || fail "the variable is not named: $(cat err)"
