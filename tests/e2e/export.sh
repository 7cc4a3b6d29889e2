# tests/e2e/export.sh: sourced by test_export*.sh: a recording in all formats, compared with its report.
need python3
bench=$CUDASPY_BUILD/bench
[ -x "$bench/gentrace" ] || skip "no $bench/gentrace: make test-build"
check=$here/checks/check_export.py
formats=("folded" "folded --by=cause" "chrome")
command -v protoc >/dev/null && formats+=("perfetto") || without "Perfetto's schema: no protoc here"

# compare NAME [OPTION...] DIR: all formats (of a part of a recording all but perfetto, which takes the longest to read) against
# the report with the same options. Leaves $figures of the last format.
compare() {
	local name=$1 format
	shift
	timeout 120 "$tool" report --nested --format=json "$@" >report.json 2>report.err || fail "$name: no report: $(cat report.err)"
	for format in "${formats[@]}"; do
		[ "$format" != perfetto ] || [ $# = 1 ] || continue
		timeout 120 "$tool" export --format=$format -o exported "$@" 2>export.err || fail "$name: no $format: $(cat export.err)"
		figures=$(python3 "$check" "$format" exported report.json 2>&1) || fail "$name, $format: $figures"
	done
}
