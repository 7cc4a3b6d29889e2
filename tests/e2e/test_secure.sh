#!/bin/bash
# A program with more rights than its caller (AT_SECURE): nothing is recorded, nothing written, and it
# works. The dynamic linker ignores a preloaded library with a path in its name there; one that lies,
# set-user-ID itself, in a directory of the system's it would load.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet
[ "$(id -u)" = 0 ] || skip "needs root, to make a set-user-ID program"
need setpriv unshare

chmod 755 "$tmp"
mkdir open
chmod 777 open
mkdir lib
cp "$fakes/libcudart.so.13" lib/
chmod 755 lib lib/*
mount_options=$(findmnt -no OPTIONS -T "$tmp" 2>/dev/null)
case $mount_options in *nosuid*) skip "$tmp is mounted nosuid" ;; esac
# A set-user-ID program gets no LD_LIBRARY_PATH either: one that has a run path.
make_program() {
	gcc -o "$1" -x c - -x none "$fakes/libcudart.so.13" -Wl,-rpath,"$tmp/lib" <<-END
		#include <dlfcn.h>
		#include <stdio.h>
		#include <sys/auxv.h>
		int cudaSetDevice(int device);
		int main(void)
		{
			for (int i = 0; i < 10; i++)
				cudaSetDevice(i);
			printf("secure %lu, the shim is %s\n", getauxval(AT_SECURE),
			       dlopen("libcudaspy.so", RTLD_NOLOAD | RTLD_NOW) ? "there" : "not there");
			return 0;
		}
	END
}
need gcc
make_program suid
chown root suid
chmod 4755 suid

run() {
	CUDASPY_OUT=$tmp/open LD_PRELOAD="$shim" setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$tmp/suid" >suid.out 2>suid.err
}
run || fail "the program fails: $(cat suid.err)"
grep -q 'secure 1' suid.out || skip "set-user-ID has no effect here"
[ -z "$(ls open)" ] || fail "something was written"

# By name, from a directory that the linker trusts: in a mount namespace of ours.
cat >trusted.sh <<END
mkdir -p $tmp/upper $tmp/work
dir=\$(dirname "\$(ldd $tmp/suid | sed -n 's/.*libc.so.6 => \([^ ]*\) .*/\1/p')")
dir=\$(realpath "\$dir")
mount -t overlay overlay -o lowerdir="\$dir",upperdir=$tmp/upper,workdir=$tmp/work "\$dir" || exit 99
install -m 4755 "$shim" "\$dir/libcudaspy.so"
CUDASPY_OUT=$tmp/open LD_PRELOAD=libcudaspy.so setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$tmp/suid" >trusted.out 2>trusted.err
END
status=99
unshare -m true 2>/dev/null && { unshare -m bash trusted.sh; status=$?; }
case $status in
99) skip "the linker does not load it by name; no mount namespace or overlay here for the rest" ;;
0)
	grep -q 'secure 1, the shim is there' trusted.out || fail "the program fails: $(cat trusted.out trusted.err)"
	[ -z "$(ls open)" ] || fail "a set-user-ID program was recorded"
	grep -q cudaspy: trusted.err && fail "a set-user-ID program said: $(cat trusted.err)"
	exit 0
	;;
*) fail "status $status of a set-user-ID program: $(cat trusted.out trusted.err)" ;;
esac
