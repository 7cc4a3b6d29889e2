# tests/e2e/sanitizer.sh: sourced by test_sanitizers_*.sh: what is built with a sanitizer, in folders of $CUDASPY_BUILD.
need make "${CC:=gcc}"

root=$(cd "$here/../.." && pwd)
log=$CUDASPY_BUILD/tests
mkdir -p "$log"
# Undefined behaviour is SIGILL: texts for each place where it may be are two thirds of the library, to be relocated in each
# process. What it was says a debugger, or a build without this option.
flags="-O1 -g1 -fsanitize-undefined-trap-on-error"

# variant NAME SAN LIBRARY: builds it; sets CUDASPY_SHIM, CUDASPY_FIRST for the tests.
variant() {
	local library
	make -s -C "$root" BUILD="$CUDASPY_BUILD/$1" SAN="$2" CFLAGS="$flags" "$CUDASPY_BUILD/$1/libcudaspy.so" \
		>"$log/$1.build" 2>&1 || fail "no build with SAN=$2: $(tail -n 5 "$log/$1.build")"
	library=$("$CC" -print-file-name="$3")
	[ -e "$library" ] || skip "no $3 here"
	export CUDASPY_SHIM=$CUDASPY_BUILD/$1/libcudaspy.so CUDASPY_FIRST=$library
}

# analyzer NAME SAN: builds $CUDASPY_BUILD/NAME/cudaspy. It reads little: to compile it optimized takes longer than that.
analyzer() {
	make -s -j2 -C "$root" BUNDLED=1 BUILD="$CUDASPY_BUILD/$1" SAN="$2" CFLAGS="$flags -O0" "$CUDASPY_BUILD/$1/cudaspy" \
		>"$log/$1.analyzer.build" 2>&1 || fail "no analyzer with SAN=$2: $(tail -n 5 "$log/$1.analyzer.build")"
}
