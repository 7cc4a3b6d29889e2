#!/bin/bash
# `cudaspy export`: counts and sums of what is exported are those of the report, for several shapes of traces and for parts of
# them; a file has its name when it is complete, or not at all. test_export_recordings.sh has recordings.
. "$(dirname "$0")/lib.sh"
. "$here/export.sh"

# ---- shapes of traces ------------------------------------------------------------------------------
for shape in "loop 20000 4" "waiters 6000 4" "threads 4000 100" "gpu 12000 10" "processes 2000 5" "kernels 6000 40" "stacks 6000 40"; do
	read -r name records n <<<"$shape"
	rm -rf gen
	"$bench/gentrace" gen "$records" "$n" "$name" || fail "gentrace $shape"
	compare "$name" gen
	case $name in
	loop) compare "$name, a part" --function='*Memcpy*' --from=10% --to=60% gen ;;
	threads) compare "$name, a part" --thread=101,104 --from=20% gen ;;
	gpu) [[ $figures == *operation* ]] || fail "no operations: $figures" ;;
	waiters) [[ $figures == *wait* && $figures != *" 0 arrows"* ]] || fail "no waits: $figures" ;;
	esac
done

# ---- the file ----------------------------------------------------------------------------------------
mkdir empty
"$tool" export --format=chrome -o none.json empty 2>err && fail "an export of nothing"
[ ! -e none.json ] || fail "a file of nothing"
echo before >old.json
"$tool" export --format=chrome -o old.json empty 2>err && fail "an export of nothing"
expect "an older file" "$(cat old.json)" before
expect "files left" "$(find . -name '*.new*' | wc -l)" 0
ln -s old.json link.json
"$tool" export --format=chrome -o link.json gen || fail "through a link"
[ -L link.json ] && grep -q traceEvents old.json || fail "a link was replaced, not what it leads to"
"$tool" export --format=chrome gen >piped.json || fail "standard output"
cmp -s piped.json <("$tool" export --format=chrome -o - gen) || fail "-o - differs"
cmp -s piped.json old.json || fail "standard output differs from a file"
"$tool" export --format=chrome -o /dev/full gen 2>err
expect "status with a full disk" $? 2
grep -q 'No space left' err || fail "a full disk: $(cat err)"
"$tool" export --format=chrome -o no/such/folder gen 2>err
expect "status without a folder" $? 2
grep -q 'no/such/folder: No such file' err || fail "without a folder: $(cat err)"

# ---- files of no more than so much ---------------------------------------------------------------------
if [[ ${formats[*]} == *perfetto* ]]; then
	rm -rf gen
	"$bench/gentrace" gen 16000 4 loop || fail "gentrace"
	"$tool" report --nested --format=json gen >report.json || fail "no report"
	"$tool" export --format=perfetto --window=1 -o parts gen || fail "files of 1 MB"
	files=(parts parts.?)
	[ ${#files[@]} -ge 2 ] || fail "files of 1 MB: ${files[*]}"
	[ -z "$(find . -name 'parts*' -size +1000000c)" ] || fail "larger than 1 MB: $(ls -l parts*)"
	python3 "$check" perfetto parts report.json >out || fail "files of 1 MB: $(cat out)"
	"$tool" export --format=perfetto -o parts gen 2>err || fail "one file"
	grep -q "parts.2 is not of this export" err || fail "files of an older export: $(cat err)"
fi

# ---- the command line -----------------------------------------------------------------------------------
refused() {
	local text=$1
	shift
	"$tool" export "$@" >out 2>err
	expect "$*: status" $? 2
	grep -qF -- "$text" err || fail "$*: $(cat err)"
	[ ! -s out ] || fail "$*: writes"
}
refused "no format 'nonsense' (one of chrome" --format=nonsense -o x gen
refused "--format is missing" -o x gen
refused "--window=0:" --format=perfetto --window=0 -o x gen
refused "--window=1k:" --format=perfetto --window=1k -o x gen
refused "no thread 'nobody'" --format=chrome --thread=nobody -o x gen
[ ! -e x ] || fail "a file of nothing"
