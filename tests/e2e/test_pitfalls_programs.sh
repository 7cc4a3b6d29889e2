#!/bin/bash
# Programs that no recorder can be loaded into: statically linked ones, position independent or not, of the other
# C library (musl), of 32 bits, with more rights than their user, and scripts for them. They run, and `cudaspy run`
# says why there is no report.
. "$(dirname "$0")/lib.sh"
[ -x "$tool" ] || skip "no $tool"
need gcc
export LD_LIBRARY_PATH=$fakes

cat >hello.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	printf("hello %s, %s\n", argv[1] ? argv[1] : "", getenv("LD_PRELOAD") ? "preloaded" : "not preloaded");
	fflush(stdout);
	if (argc > 2)
		execv(argv[2], argv + 2);
	return 7;
}
END

# says NAME WORDS PROGRAM [ARGUMENT...]: status and output are the program's; run says why, before and after.
says() {
	local name=$1 words=$2 status
	shift 2
	CUDASPY_LIB=$shim "$tool" run --out="$out" "$@" >"$name.out" 2>"$name.err"
	status=$?
	expect "$name: exit status" $status 7
	grep -q "^hello $name, " "$name.out" || fail "$name: it printed $(cat "$name.out")"
	grep -q "^cudaspy run: $1 $words.*; " "$name.err" || fail "$name: before: $(cat "$name.err")"
	grep -q "^cudaspy run: no trace was written: $1 $words" "$name.err" || fail "$name: after: $(cat "$name.err")"
}

gcc -static -no-pie -o static hello.c || skip "no static C library here"
says static "is statically linked" ./static static
gcc -static-pie -o static-pie hello.c || fail "gcc -static-pie"
says static-pie "is statically linked" ./static-pie static-pie
mkdir -p there
cp static there/found-by-path
PATH=$PATH:$tmp/there says path "is statically linked" found-by-path path

# What it starts is recorded.
CUDASPY_LIB=$shim FAKE_MODE=quiet "$tool" run --out="$out" ./static starter "$bin/life" calls 3 >starter.out 2>starter.err
grep -q 'only programs that it starts can be recorded' starter.err || fail "starter: $(cat starter.err)"
expect_records "$(the_trace)" cudaSetDevice=3
rm -rf "$out"

# A program for musl: here a link to the loader of the GNU C library goes by the name of musl's.
loader=$(readelf -l /bin/true | sed -n 's/.*interpreter: \(.*\)]/\1/p')
ln -s "$loader" ld-musl-x86_64.so.1
gcc -o musl hello.c -Wl,--dynamic-linker="$tmp/ld-musl-x86_64.so.1"
says musl "is linked to musl" ./musl musl
grep -q 'hello musl, not preloaded' musl.out || fail "musl would be given a library that it cannot load"

printf '#!%s/static\n' "$tmp" >script
chmod +x script
CUDASPY_LIB=$shim "$tool" run --out="$out" ./script >script.out 2>script.err
grep -q 'script is statically linked' script.err || fail "script: $(cat script.err)"

# 32 bits: its header is enough.
{ printf '\177ELF\1\1\1'; head -c 200 /dev/zero; } >old
chmod +x old
CUDASPY_LIB=$shim "$tool" run --out="$out" ./old >/dev/null 2>old.err
grep -q 'old is a 32-bit program' old.err || fail "32 bits: $(cat old.err)"

# Files that are nothing of the kind are executed, or not, as ever.
echo 'exit 7' >text
chmod +x text
CUDASPY_LIB=$shim "$tool" run --out="$out" ./text >text.out 2>text.err
expect "a text without #!" $? 7
: >empty
chmod +x empty
for name in ./empty ./not-there not-there; do
	bash -c "env $name" >/dev/null 2>&1
	wanted=$?
	CUDASPY_LIB=$shim "$tool" run --out="$out" $name >/dev/null 2>odd.err
	expect "$name: status" $? $wanted
done

[ "$(id -u)" = 0 ] || skip "no root: set-user-ID programs were not tried"
need setpriv
gcc -o suid hello.c
chown root suid
chmod 4755 suid
chmod 755 "$tmp"
mkdir -m 777 open
run_suid() {
	CUDASPY_LIB=$tmp/libcudaspy.so setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/cudaspy" run \
		--out="$tmp/open" "$tmp/suid" suid >suid.out 2>suid.err
}
install -m 755 "$tool" "$shim" . # where everybody may read them
run_suid
expect "set-user-ID: status" $? 7
grep -q "suid gets more rights than its user has" suid.err || fail "set-user-ID: $(cat suid.err)"
