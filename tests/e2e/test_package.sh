#!/bin/bash
# make dist packs all that git has and nothing else; make deb builds a Debian package from it, where git has nothing. The
# package holds what make install does, works from where it is unpacked, and is removed without a trace.
. "$(dirname "$0")/lib.sh"
need make dpkg-buildpackage dpkg-checkbuilddeps
top=$(realpath "$here/../..")
(cd "$top" && dpkg-checkbuilddeps) >lacking 2>&1 || skip "$(tail -n 1 lacking | sed 's/.*: /to build the package lacks /')"
version=$("$tool" --version | sed 's/^cudaspy //')
name=cudaspy-$version

# What is in the package is looked at, not how fast it is. (The recorder without -O would be without the checks of its build, too.)
export BUNDLED=1 TOOL_OPT=-O0 DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" DEB_CFLAGS_APPEND="-O1 -g0 ${DEB_CFLAGS_APPEND:-}"
export DPKG_DEB_COMPRESSOR_TYPE=none # nor how small it is
make -s -C "$top" BUILD="$tmp/b" dist deb >make.log 2>&1 || fail "make dist deb: $(tail -n 15 make.log)"
tar -tf "b/$name.tar.gz" | sed "s,^$name/,," | sort >packed || fail "no tarball"
grep -qx debian/rules packed || fail "the tarball lacks debian/rules: $(head -n 3 packed)"
if git -C "$top" ls-files --error-unmatch Makefile >/dev/null 2>&1; then
	git -C "$top" ls-files | LC_ALL=C sort >known
	LC_ALL=C sort packed | diff known - >differ || fail "the tarball: $(head -n 5 differ)"
else
	without "git"
fi

package=$(echo b/deb/cudaspy_"${version}"_*.deb)
expect "version of the package" "$(dpkg-deb -f "$package" Version)" "$version"
dpkg-deb -f "$package" Depends | grep -q libdw1 || fail "depends on: $(dpkg-deb -f "$package" Depends)"
dpkg-deb -c "$package" >contents || fail "no package"
while read -r path; do
	grep -q " \./usr/$path\$" contents || fail "the package lacks $path: $(cat contents)"
done <<-END
	bin/cudaspy
	lib/cudaspy/libcudaspy.so
	share/man/man1/cudaspy-report.1.gz
	share/man/man5/cudaspy-suppressions.5.gz
	share/bash-completion/completions/cudaspy
	share/zsh/vendor-completions/_cudaspy
	share/doc/cudaspy/copyright
END
if command -v lintian >/dev/null; then
	lintian b/deb/cudaspy_*.changes >lintian.out 2>&1
	! grep '^[EW]:' lintian.out >said || fail "lintian: $(head -n 5 said)"
else
	without lintian
fi

# MPI is in a package of its own, so that nobody else needs it.
grep 'cudaspy-mpi' contents && fail "the package has cudaspy-mpi in it"
dpkg-deb -f "$package" Depends | grep -q mpi && fail "depends on: $(dpkg-deb -f "$package" Depends)"
mpi_package=$(echo b/deb/cudaspy-mpi_"${version}"_*.deb)
dpkg-deb -c "$mpi_package" >mpi_contents || fail "no package of cudaspy-mpi"
for path in bin/cudaspy-mpi share/man/man1/cudaspy-mpi.1.gz; do
	grep -q " \./usr/$path\$" mpi_contents || fail "the package of cudaspy-mpi lacks $path: $(cat mpi_contents)"
done
dpkg-deb -f "$mpi_package" Depends | grep -q mpi || fail "cudaspy-mpi depends on: $(dpkg-deb -f "$mpi_package" Depends)"

dpkg-deb -x "$package" root || fail "cannot be unpacked"
installed=$tmp/root/usr/bin/cudaspy
library=$tmp/root/usr/lib/cudaspy/libcudaspy.so
expect "its version" "$("$installed" --version)" "cudaspy $version"
expect "what is preloaded" "$("$installed" run --no-report -- sh -c 'echo $LD_PRELOAD')" "$library"
LD_LIBRARY_PATH=$fakes "$installed" run -o "$out" -- "$bin/use_rt13" >run.out 2>run.err ||
	fail "run: status $?: $(tail -n 3 run.err)"
grep -q '^CUDASPY REPORT' run.err || fail "no report: $(head -n 5 run.out run.err)"
grep -q '^  calls' run.err || fail "no calls: $(head -n 10 run.err)"
if command -v man >/dev/null; then
	MANPATH=$tmp/root/usr/share/man man -w cudaspy-run >man.out 2>&1 || fail "man: $(cat man.out)"
fi
# Both end the program, which the recorder never does; dpkg-buildflags and Ubuntu's gcc ask for them.
readelf --wide --dyn-syms "$library" | grep -E ' UND +__(stack_chk_fail|[a-z]+_chk)\b' >checks &&
	fail "the library is built with checks: $(cat checks)"

if [ "$(id -u)" = 0 ]; then
	mkdir -p other/var/lib/dpkg/updates other/var/lib/dpkg/info other/var/lib/dpkg/triggers
	touch other/var/lib/dpkg/status other/var/lib/dpkg/available
	in_other() { dpkg --root="$tmp/other" --log=/dev/null --force-depends "$@" >dpkg.log 2>&1 || fail "dpkg $*: $(tail -n 3 dpkg.log)"; }
	in_other -i "$package"
	expect "version as installed" "$(other/usr/bin/cudaspy --version)" "cudaspy $version"
	in_other -P cudaspy
	expect "files left" "$(find other -path other/var -prune -o ! -type d -print)" ""
else
	without "dpkg -i (not root)"
fi
exit 0
