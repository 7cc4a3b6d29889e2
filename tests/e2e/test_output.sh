#!/bin/bash
# Where the words of a verb go: --output writes a file as a whole or leaves the old one, and says what is wrong with it;
# on a terminal the pager shows long text, and colours mean something; pipes that end and closed files do no harm.
. "$(dirname "$0")/lib.sh"
need python3 jq
FAKE_MODE=quiet spied "$bin/life" calls 3 2>err || fail "no trace to report: $(cat err)"
trace=$(the_trace)

# ---- --output ---------------------------------------------------------------------------------------
for line in "report" "report --format=json" "report --format=junit" "report --format=sarif" info "info -f json" \
	"dump" "dump -f tsv" "diff $trace"; do
	# shellcheck disable=SC2086
	"$tool" $line "$trace" >plain 2>err || fail "$line: $(cat err)"
	# shellcheck disable=SC2086
	"$tool" $line --output=file "$trace" >said 2>err || fail "$line --output: $(cat err)"
	[ -s said ] && fail "$line --output: writes to standard output, too"
	cmp -s plain file || fail "$line --output: another text than on standard output: $(diff plain file | head -n 5)"
	rm file
done
for line in "explain pageable-copy" "explain -f json" "help report" "help --format=man" "help --format=bash"; do
	# shellcheck disable=SC2086
	"$tool" $line >plain || fail "$line"
	# shellcheck disable=SC2086
	"$tool" $line -o file || fail "$line -o"
	cmp -s plain file || fail "$line -o: another text than on standard output"
	rm file
done
"$tool" report -o - "$trace" | grep -q '^CUDASPY REPORT' || fail "-o -: not to standard output"
[ -e - ] && fail "-o -: a file of that name"
head -n 1 <("$tool" dump -f tsv "$trace") | grep -q "^time	thread	" || fail "tsv: no line of names"

# The old file stays where there is no new one, and nothing else is left beside it.
echo old >kept
chmod 640 kept
"$tool" report -o kept /nonexistent 2>err
expect "nothing to report: status" $? 2
expect "nothing to report: the file" "$(cat kept)" old
"$tool" report -o kept --format=rhyme "$trace" 2>err
expect "no such format: the file" "$(cat kept)" old
"$tool" report -o kept "$trace" || fail "a file that is there already"
grep -q '^CUDASPY REPORT' kept || fail "the old file is still there"
expect "rights of a file that was there" "$(stat -c %a kept)" 640
ln -s kept link
"$tool" info -o link "$trace" || fail "to a link"
[ -L link ] && grep -q '^PROCESSES' kept || fail "the link is replaced, and not what it leads to"
[ "$(ls -A)" = "$(ls -A | grep -vE '\.......$')" ] || fail "something is left: $(ls -A)"

refused() {
	local words=$1 status
	shift
	"$@" >said 2>err
	status=$?
	expect "$*: status" $status 2
	[ -s said ] && fail "$*: says on standard output: $(head -n 3 said)"
	grep -qF -- "$words" err || fail "$*: does not say '$words': $(cat err)"
}
mkdir dir
refused "dir: Is a directory" "$tool" report -o dir "$trace"
refused "none/file: No such file or directory" "$tool" report -o none/file "$trace"
refused "argument missing after '-o'" "$tool" report "$trace" -o
[ -c /dev/full ] && refused "/dev/full: No space left" "$tool" report -o /dev/full "$trace"
# What another user has put into a folder like /tmp is not written, nor where it leads.
if [ "$(id -u)" = 0 ]; then
	mkdir -m 1777 everybodys
	echo theirs >victim
	ln -s ../victim everybodys/link
	ln -s ../made everybodys/dangling
	echo old >everybodys/file
	mkfifo everybodys/pipe
	chown -h 65534 everybodys/*
	for name in link dangling file pipe; do
		refused "everybodys/$name: is another user's" "$tool" report -o everybodys/$name "$trace"
		refused "everybodys/$name: is another user's" "$tool" export -f perfetto -o everybodys/$name "$trace"
		"$tool" top --prom=everybodys/$name --once "$out" >said 2>err && fail "top --prom=$name: written"
		grep -q "everybodys/$name: is another user's" err || fail "top --prom=$name: $(cat err)"
	done
	expect "where a link leads" "$(cat victim) $(ls made 2>&1 >&-)" "theirs ls: cannot access 'made': No such file or directory"
	chown -h 0 everybodys/link
	"$tool" report -o everybodys/link "$trace" || fail "our own link in such a folder"
	grep -q '^CUDASPY REPORT' victim || fail "our own link is not followed"
	rm -r everybodys victim
fi

# A pipe's reader is there before the program ends, and gets the report.
mkfifo pipe
timeout 30 cat pipe >piped &
CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes timeout 30 "$tool" run --quiet -o piping --report=pipe "$bin/life" calls 3 >said 2>err ||
	fail "--report to a pipe: status $?: $(cat err)"
wait $! || fail "--report to a pipe: its reader"
grep -q '^CUDASPY REPORT' piped || fail "--report to a pipe: nothing came through: $(cat err)"

"$tool" report --fail-on=any -o judged --format=json "$trace" 2>err
status=$?
jq -e .gate judged >said || fail "a report that the gate looked at is not kept: $(cat err)"
expect "the gate's status" $status "$([ "$(jq '.findings | length' judged)" = 0 ] && echo 0 || echo 1)"

# ---- several runs in a folder -----------------------------------------------------------------------
for calls in 3 5; do
	CUDASPY_LIB=$shim LD_LIBRARY_PATH=$fakes "$tool" run --quiet --no-report -o two "$bin/life" calls $calls >said 2>err ||
		fail "run: $(cat err)"
done
"$tool" report two >both 2>err || fail "two runs: $(cat err)"
grep -q '^cudaspy: traces of 2 runs are read as one: life\..*; --run=last or' err || fail "two runs are not named: $(cat err)"
"$tool" diff two two >said 2>err
grep -q '^cudaspy: traces of 2 runs are read as one: life\.' err || fail "diff: two runs are not named: $(cat err)"
grep -q -e --run err && fail "diff: names an option that it does not have: $(cat err)"
tr -s ' \n' ' ' <both | grep -q 'note traces of 2 runs are shown as one: life\.' || fail "the report does not say so: $(cat both)"
for verb in "report -f json" "why -f json gpu0" dump info; do
	# shellcheck disable=SC2086
	"$tool" $verb --run=last two >last 2>err
	grep -q 'read as one' err && fail "$verb --run=last: names the others: $(cat err)"
done
"$tool" report -f json --run=last two | jq -e '.summary.runs == 1 and .summary.processes == 1' >said || fail "--run=last: more than that"
"$tool" export --format=csv --table=summary --run=last two >last 2>err || fail "export --run=last: $(cat err)"
[ -s err ] && fail "export --run=last: names the others: $(cat err)"
for process in two/*.cudaspy; do
	name=$(basename "$process" .cudaspy | sed 's/-\([0-9]*\)$/.\1/')
	expect "--run=$name" "$("$tool" report --run="$name" two | sed -n 's/^  program  *//p')" "$name"
done
refused "--run=nobody.1: no run is called so (there are: life." "$tool" report --run=nobody.1 two
"$tool" report "$trace" 2>err | grep -q 'runs are shown' && fail "one run is taken for several"
[ -s err ] && fail "one run: $(cat err)"

# ---- pipes and closed files -------------------------------------------------------------------------
(trap - PIPE; "$tool" dump "$trace" 2>err; echo $? >status) | head -n 1 >said
[ -s err ] && fail "| head: complains: $(cat err)"
[ -s said ] || fail "| head: nothing came"
expect "| head: status" "$(cat status)" 0
# Long enough not to fit the pipe: the status is the gate's, not that of a broken pipe.
for gate in "" --fail-on=any; do
	(trap - PIPE; "$tool" report --format=html $gate "$trace" 2>err; echo $? >status) | head -c 100 >said
	expect "report --format=html $gate | head: status" "$(cat status)" 0
done
FAKE_MODE=quiet FAKE_RESULT=2 CUDASPY_OUT=$tmp/fails spied "$bin/life" calls 3 2>err
"$tool" report "$tmp/fails" >said
grep -q '^  failed  *[0-9]* of these calls returned an error' said || fail "calls that fail: $(head -n 8 said)"
tr -s ' \n' ' ' <said | grep -Eq ' returned an error(:|, the last one) cu[A-Za-z_0-9]+, [A-Za-z_]*(MemoryAllocation|OUT_OF_MEMORY) ' ||
	fail "which call failed: $(head -n 8 said)"
grep -q '^  found  *no problem$' said && fail "a program whose calls failed is said to have no problem"
(trap - PIPE; "$tool" report --format=html --fail-on=any "$tmp/fails" 2>err; echo $? >status) | head -c 100 >said
expect "a gate that fails | head: status" "$(cat status)" "$("$tool" report --fail-on=any "$tmp/fails" >/dev/null 2>&1; echo $?)"
"$tool" report --fail-on=any "$tmp/fails" >/dev/null 2>err
expect "a program that died of its first call, --fail-on=any: status" $? 1
grep -q 'the gate fails: --fail-on=any: .*returned an error' err || fail "why the gate fails: $(cat err)"
# What answers a question is no error.
FAKE_MODE=quiet FAKE_RESULT=704 CUDASPY_OUT=$tmp/answers spied "$bin/life" calls 3 2>err
"$tool" report "$tmp/answers" >said
grep -q '^  failed' said && fail "answers are said to be errors: $(head -n 8 said)"
grep -q '^  found  *no ' said || fail "answers: $(head -n 8 said)"
"$tool" report --fail-on=any "$tmp/answers" >/dev/null 2>err
expect "answers, --fail-on=any: status ($(cat err))" $? 0
"$tool" report "$trace" >&- 2>err
expect "standard output is closed: status" $? 2
grep -q 'standard output: Bad file' err || fail "standard output is closed: $(cat err)"
"$tool" report -o file "$trace" >&- 2>err || fail "standard output is closed, and not needed: $(cat err)"
grep -q '^CUDASPY REPORT' file || fail "standard output is closed: another file"
"$tool" report "$trace" 2>&- <&- | grep -q '^CUDASPY REPORT' || fail "standard error is closed"

# ---- terminals --------------------------------------------------------------------------------------
cat >terminal.py <<'END'
# terminal.py COMMAND...: runs it on a terminal of 30 lines of 100 columns, prints what that shows.
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
END
on_terminal() {
	TERM=xterm timeout -k 1 60 python3 terminal.py "$@"
}
printf '#!/bin/sh\necho "PAGED $LESS"\nexec cat\n' >pager
chmod +x pager
export PAGER=$tmp/pager
unset LESS NO_COLOR
escape=$(printf '\033')
on_terminal "$tool" report "$trace" >shown || fail "on a terminal: $? $(cat shown)"
head -n 1 shown | grep -q '^PAGED FRX' || fail "no pager: $(head -n 3 shown)"
grep -q "$escape\[" shown || fail "no colours on a terminal"
on_terminal "$tool" report --format=html "$trace" >shown
expect "a page on a terminal: status" $? 2
grep -q -- '--output=FILE' shown || fail "a page on a terminal: $(head -c 300 shown)"
LESS=S on_terminal "$tool" report "$trace" | grep -q '^PAGED S' || fail "the pager's own options are not kept"
for line in "report --no-pager" "report --fail-on=pageable-copy" "report --format=json"; do
	# shellcheck disable=SC2086
	on_terminal "$tool" $line "$trace" >shown || fail "$line: $?"
	grep -q PAGED shown && fail "$line: paged"
done
PAGER='' on_terminal "$tool" report "$trace" | grep -q '^.*CUDASPY REPORT' || fail "an empty PAGER"
PAGER=no-such-pager on_terminal "$tool" report "$trace" >shown || fail "a pager that is not there: $?"
grep -q 'PAGER=no-such-pager: there is no such' shown && grep -q 'CUDASPY REPORT' shown || fail "a pager that is not there: $(cat shown)"
PAGER='sed -n 1p' on_terminal "$tool" dump "$trace" >shown || fail "a pager with arguments: $?"
expect "a pager with arguments" "$(wc -l <shown)" 1
PAGER=true on_terminal "$tool" dump "$trace" >shown || fail "a pager that reads nothing: $? $(cat shown)"
"$tool" report "$trace" | grep -q PAGED && fail "paged into a pipe"
NO_COLOR=1 on_terminal "$tool" report "$trace" | grep -q "$escape\[" && fail "NO_COLOR: colours"
NO_COLOR=1 on_terminal "$tool" report --color=always "$trace" | grep -q "$escape\[" || fail "--color=always: none"
on_terminal "$tool" report --color=never "$trace" | grep -q "$escape\[" && fail "--color=never: colours"
"$tool" report --color=always "$trace" | grep -q "$escape\[" || fail "--color=always into a pipe: none"
"$tool" report "$trace" | grep -q "$escape\[" && fail "colours in a pipe"
refused "--color=alwys is none of auto, always and never; did you mean 'always'?" "$tool" report --color=alwys "$trace"
exit 0
