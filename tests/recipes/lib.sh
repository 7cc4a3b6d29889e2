# tests/recipes/lib.sh: sourced by the tests of docs/recipes, behind tests/e2e/lib.sh. A test runs what the page says, as it
# stands there, where cudaspy is installed and CUDA is the simulator's.
#
#   SPY   libcudaspy.so, as the pages call it
need make python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
top=$(realpath "$here/../..")
rank=$build/tests/recipes/rank
[ -x "$rank" ] || skip "no $rank: make e2e"
prefix=$tmp/usr/local
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=60 SPYSIM_GPUS=8 COLUMNS=100

# install_into PREFIX: what `make install` puts there, less manual pages.
install_into() {
	install -D -m 755 "$tool" "$1/bin/cudaspy" && install -D -m 755 "$shim" "$1/lib/cudaspy/libcudaspy.so" ||
		fail "cannot install into $1"
}
install_into "$prefix"
SPY=$prefix/lib/cudaspy/libcudaspy.so
PATH=$prefix/bin:$PATH

# recipe PAGE [FOLDER]: the files and commands of docs/recipes/PAGE.md into a folder, which is the current one from then on.
recipe() {
	local folder=$tmp/${2:-$1}
	mkdir -p "$folder"
	"$here/../recipes/blocks" "$top/docs/recipes/$1.md" "$folder" || fail "docs/recipes/$1.md"
	cd "$folder" || exit 1
}

# follow [NAME]: runs the commands of the page (run.sh, or NAME.sh) on the simulator. Output into NAME.out and NAME.err.
follow() {
	local name=${1:-run}
	shift
	SPY=$SPY timeout -k 5 ${limit:-120} "$here/../sim/with-sim" bash "$@" "$name.sh" >"$name.out" 2>"$name.err"
}

# follows [NAME]: the same; all of them have to end well.
follows() {
	follow "${1:-run}" || fail "${PWD##*/}/${1:-run}.sh: status $?: $(tail -n 5 "${1:-run}.out" "${1:-run}.err")"
}

# says TEXT FILE...: an extended regular expression that stands there.
says() {
	local text=$1
	shift
	grep -Eq -e "$text" "$@" || fail "no '$text' in $*: $(head -n 40 "$@")"
}

# For pages about containers: roots of their own, with images below $tmp/engine, and the stand-in for `docker`.
containers_begin() {
	export STANDIN_DIR=$tmp/engine STANDIN_PREFIX=$prefix
	mkdir -p "$STANDIN_DIR/try"
	chmod 755 "$tmp" "$STANDIN_DIR"
	"$here/../recipes/in-root" "$STANDIN_DIR/try" -- true 2>why
	case $? in
	0) ;;
	77) skip "$(cat why)" ;;
	*) fail "in-root: $(cat why)" ;;
	esac
	PATH=$here/../recipes/standins:$PATH
}

# image NAME: one of the program, which is not changed.
image() {
	mkdir -p "$tmp/image"
	cp "$rank" "$tmp/image/app"
	printf 'FROM base\nCOPY --chmod=755 app /opt/app/\nCMD ["/opt/app/app"]\n' >"$tmp/image/Dockerfile"
	docker build -t "$1" "$tmp/image" || fail "no image $1"
}

# package FOLDER: a Debian package of what is installed, there.
package() {
	mkdir -p "$tmp/package/DEBIAN"
	install_into "$tmp/package/usr"
	printf 'Package: cudaspy\nVersion: %s\nArchitecture: amd64\nMaintainer: tests\nDescription: what is tested\n' \
		"$("$tool" --version | sed 's/^cudaspy //')" >"$tmp/package/DEBIAN/control"
	dpkg-deb --build --root-owner-group -Znone "$tmp/package" "$1" >made 2>&1 || fail "dpkg-deb: $(cat made)"
}

# at_end COMMAND...: when the test ends, also this; its status stays what it is.
at_end() {
	trap "keeping_status $*; clean_up" EXIT
}

keeping_status() {
	local status=$?
	"$@"
	return $status
}
