#!/bin/bash
# make install puts a command and a library where they find each other, and their manual pages; make uninstall leaves nothing.
# And the whole way of a user: cudaspy run on a program, its exit status passed on, the report.
. "$(dirname "$0")/lib.sh"
need make
top=$here/../..
in_top() {
	make -s -C "$top" BUILD="$CUDASPY_BUILD" DESTDIR="$tmp/root" PREFIX=/opt/spy "$@" >make.log 2>&1 ||
		fail "make $*: $(tail -n 5 make.log)"
}
# Other tests run what would be built here.
make -q -C "$top" BUILD="$CUDASPY_BUILD" installable >/dev/null 2>&1 || fail "the sources have changed since they were built: make test-build"
in_top install
installed=$tmp/root/opt/spy/bin/cudaspy
[ -x "$installed" ] || fail "no command"
for page in man1/cudaspy.1 man1/cudaspy-run.1 man5/cudaspy-suppressions.5; do
	[ -s "$tmp/root/opt/spy/share/man/$page" ] || fail "no manual page $page"
done
expect "pages of verbs" "$(ls "$tmp/root/opt/spy/share/man/man1" | grep cudaspy- | grep -vc cudaspy-mpi)" \
	"$("$installed" help | sed -n '/^Verbs:/,/^$/p' | grep -c '^  [a-z]')"

LD_LIBRARY_PATH=$fakes "$installed" run -o "$out" -- "$bin/use_rt13" >run.out 2>run.err ||
	fail "run: status $?: $(tail -n 3 run.err)"
grep -q "^CUDASPY REPORT" run.err || fail "no report: $(head -n 5 run.out run.err)"
"$installed" report "$out" >report.out || fail "report: status $?"
grep -q cuda report.out || fail "the report knows no call: $(cat report.out)"
"$installed" run -o "$out" --no-report -- sh -c 'exit 42' 2>run.err
expect "exit status" $? 42
(ulimit -c 0; "$installed" run -o "$out" --no-report -- sh -c 'kill -TERM $$') 2>run.err
expect "exit status after SIGTERM" $? 143
# What was ignored (nohup) stays ignored, what was not does not become so.
mask() { "$installed" run -o "$out" --no-report -- sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status; }
expect "ignored signals" "$(mask)" "$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)"
expect "ignored signals after nohup" "$(trap '' HUP; mask)" "$(trap '' HUP; sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)"
"$installed" run --no-such-option true 2>usage.err
expect "exit status of wrong usage" $? 2
grep -q no-such-option usage.err || fail "the error does not name the option: $(cat usage.err)"

in_top uninstall
expect "files left" "$(find "$tmp/root" -type f | wc -l)" 0
