#!/bin/bash
# `cudaspy export --format=sqlite` and `csv`: both have the report's tables, value by value; queries made as Nsight Systems' own reports make them give the counts and sums of the
# report, for several kinds of recordings, parts of them, and torn ones; names may be anything; a disk that is full leaves no file.
. "$(dirname "$0")/lib.sh"
need python3 jq sqlite3
bench=$CUDASPY_BUILD/bench
check=$here/checks/check_tables.py

# same_tables NAME [OPTION...] DIR: the export against the report with the same options; $said has what was compared.
same_tables() {
	local name=$1 operations=()
	shift
	timeout 120 "$tool" report --nested --format=json "$@" >report.json 2>report.err || fail "$name: no report: $(cat report.err)"
	timeout 120 "$tool" export --format=sqlite -o out.sqlite "$@" 2>export.err || fail "$name: no database: $(cat export.err)"
	[ $# -gt 1 ] || operations=("$("$tool" dump --fields=function "$1" 2>/dev/null | grep -c '\[gpu_op\]')")
	rm -rf out.csv
	timeout 120 "$tool" export --format=csv -o out.csv "$@" 2>export.err || fail "$name: no CSV: $(cat export.err)"
	said=$(python3 "$check" csv out.csv report.json) || fail "$name, csv: $said"
	said=$(python3 "$check" sqlite out.sqlite report.json "${operations[@]}") || fail "$name: $said"
}

# compared WORD LEAST: so many of these were there to compare.
compared() {
	local n
	n=$(sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" <<<"$said")
	[ "${n:-0}" -ge "$2" ] || fail "only ${n:-0} $1 were compared: $said"
}

# ---- made-up traces --------------------------------------------------------------------------------
for shape in "loop 20000 4" "waiters 6000 4" "locks 4000 40" "threads 6000 100" "processes 2000 5" "kernels 6000 40" "stacks 6000 40" "gpu 20000 10"; do
	read -r name records n <<<"$shape"
	"$bench/gentrace" "$name" "$records" "$n" "$name" >/dev/null || fail "gentrace $shape"
	same_tables "$name" "$name"
	case $name in
	waiters) compared waits 4000 ;;
	gpu) compared kernels 5000 && compared launched 5000 ;;
	loop) compared calls 10000 && compared nested_calls 500 ;;
	stacks) compared rows 200 ;;
	esac
done

# ---- what is written about it ----------------------------------------------------------------------
same_tables waiters waiters
for table in $(sqlite3 out.sqlite "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'report\_%' ESCAPE '\'"); do
	grep -q "\`$table\`" "$here/../../docs/EXPORTS.md" || fail "docs/EXPORTS.md does not name the table $table"
done
# The queries of docs/recipes/README.md, as they stand there.
python3 - "$here/../../docs/recipes/README.md" <<'END' || fail "a query of docs/recipes/README.md"
import re, sqlite3, sys
queries = re.findall(r"```sql\n(.*?)```", open(sys.argv[1]).read(), re.S)
assert len(queries) >= 2, queries
db = sqlite3.connect("out.sqlite")
for query in queries:
    assert db.execute(query).fetchall(), query
END

# ---- parts of them ---------------------------------------------------------------------------------
whole=$(jq .summary.calls <("$tool" report --format=json loop))
for filter in --function='cudaMemcpy*' --thread=101 --from=25% --to=60%; do
	same_tables "loop $filter" "$filter" loop
	compared calls 100
	[ "$(jq .summary.calls report.json)" -lt "$whole" ] || fail "$filter leaves nothing out"
done
same_tables "waiters" --thread=101,102 --from=10% waiters
compared waits 100
same_tables "gpu" --to=50% gpu

# ---- programs that run -----------------------------------------------------------------------------
sim="$here/../sim/with-sim"
# ran NAME PROGRAM...: on the simulator, into the folder NAME.
ran() {
	local name=$1
	shift
	timeout -k 5 100 "$sim" "$tool" run --no-report -o "$name" --gpu -- "$@" >"$name.out" 2>"$name.err" || fail "$*: $(tail -n 3 "$name.err")"
}
if [ -x "$build/testapps/contention" ] && [ -z "$first" ]; then
	ran contention "$build/testapps/contention" --quick --csv
	same_tables contention contention
	compared waits 50
	compared divided 200
	ran starved "$build/testapps/starved" --quick --csv --variant sleep
	same_tables starved starved
	compared gaps 20
	export SPYSIM_NCCL_WAIT_S=40 TMPDIR=$tmp
	ran ranks "$build/testapps/ranks" --quick --csv --straggler 1:cpu:2:20
	same_tables ranks ranks
	expect "collectives of two ranks" "$(sqlite3 out.sqlite "SELECT count(*) FROM (SELECT number FROM CUDASPY_COLLECTIVES GROUP BY number HAVING count(DISTINCT rank) = 2)")" \
		"$(jq '[.collectives[].count] | add' report.json)"
	[ "$(sqlite3 out.sqlite "SELECT sum(wait_ns) FROM CUDASPY_COLLECTIVES WHERE lastRank = 1 AND rank = 0")" -gt 0 ] || fail "rank 0 does not wait for rank 1"
else
	without "programs on the simulator"
fi
bare timeout 20 "$bin/nvtx" >/dev/null
if [ $? != 77 ]; then
	spied timeout 60 "$bin/nvtx" all >/dev/null 2>&1 || fail "nvtx"
	same_tables nvtx "$(the_trace)"
	compared ranges 15
else
	without "ranges: no headers of NVTX"
fi

# ---- names may be anything -------------------------------------------------------------------------
cat >names.log <<'END'
trace app.100 pid=100 program="/bin/a'b\";--"
slot 0 tid=101
3us gpu device=0 cc_major=9 cc_minor=0 bytes=1000 name="'); DROP TABLE StringIds; --" uuid="GPU-a" pci="0"
4us kernel kernel=1 name="k'\"<b>é"
5us range_name number=1 domain="d'" name="'; DELETE FROM \"PROCESSES\", x; --"
slot 1 tid=101
10us thread tid=101 name="x'\";\x01"
11us range what=push name=1
70us launch cudaLaunchKernel duration=2us kernel=1 stream=0x55 caller=0x401050
80us range what=pop name=1
END
python3 - <<'END'
text = open("names.log", "rb").read()
open("names.log", "wb").write(text.replace(b"\\x01", b"\x01").replace(b"DELETE", b"\xff\xfeDEL"))
END
mkdir made && "$bin/log_traces" names.log made || fail "no traces of names.log"
same_tables "hostile names" made
odd=$(jq -r '.ranges[0].name' report.json)
case $odd in
"'; ??DEL FROM "*\"*,*) ;;
*) fail "the report's range is called $odd" ;;
esac
expect "a range's name" "$(python3 -c 'import sqlite3; print(sqlite3.connect("out.sqlite").execute("SELECT text FROM NVTX_EVENTS WHERE eventType = 59").fetchone()[0])')" "$odd"

# ---- a torn trace ----------------------------------------------------------------------------------
file=$(find loop -name 'stream_*' -size +100k | sort | head -n 1)
truncate -s $(($(stat -c %s "$file") * 2 / 3)) "$file"
rm "$(find loop -name 'stream_*' -size +100k | sort | tail -n 1)"
same_tables torn loop
compared calls 2000
[ "$(sqlite3 out.sqlite 'SELECT count(*) FROM report_losses')" -gt 0 ] || fail "losses of a torn trace"

# ---- memory does not grow with records -------------------------------------------------------------
if [ -z "$first" ]; then
	"$bench/gentrace" long 1000000 8 loop >/dev/null || fail "gentrace"
	mib=$("$bench/spawn" --quiet -- "$tool" export --format=sqlite -o long.sqlite long | awk '$4 == 0 { print int($3 / 1024) }')
	[ "${mib:-1000}" -lt 64 ] || fail "a million records: ${mib:-no export} MiB, 64 at most (45 are usual, 32 of them SQLite's cache)"
	rm -rf long long.sqlite
fi

# ---- the file --------------------------------------------------------------------------------------
"$tool" export --format=sqlite gpu >piped 2>err
expect "status on standard output" $? 2
[ ! -s piped ] || fail "something on standard output"
"$tool" export --format=sqlite -o /dev/full gpu 2>err
expect "status on a device" $? 2
mkdir small
(trap '' XFSZ && ulimit -f 200 && exec "$tool" export --format=sqlite -o small/out.sqlite stacks) 2>err
expect "status without room" $? 2
grep -q 'small/out.sqlite: .*\(full\|disk\)' err || fail "without room: $(cat err)"
expect "files left" "$(ls small)" ""
echo before >small/old.sqlite
(trap '' XFSZ && ulimit -f 200 && exec "$tool" export --format=sqlite -o small/old.sqlite stacks) 2>err
expect "an older file" "$(cat small/old.sqlite)" before
"$tool" export --format=sqlite -o small/old.sqlite stacks || fail "over an older file"
expect "files" "$(ls small)" old.sqlite
sqlite3 small/old.sqlite 'SELECT 1 FROM PROCESSES' >/dev/null || fail "over an older file"

# ---- CSV -------------------------------------------------------------------------------------------
"$tool" export --format=csv -o folder stacks || fail "csv"
echo mine >folder/mine.txt
cp folder/calls.csv calls.before
"$tool" export --format=csv -o folder/ waiters || fail "csv over an older one"
expect "another's file" "$(cat folder/mine.txt)" mine
cmp -s folder/calls.csv calls.before && fail "the older table is still there"
(cd folder && "$tool" export --format=csv -o . ../stacks) || fail "csv into the current folder"
cmp -s folder/calls.csv calls.before || fail "csv into the current folder is another one"
expect "files left" "$(find . -name '*.new-*' | wc -l)" 0
"$tool" export --format=csv --table=calls stacks >one.csv || fail "one table"
cmp -s one.csv folder/calls.csv || fail "one table is another one"
"$tool" export --format=csv --table=calls -o one.csv stacks && cmp -s one.csv folder/calls.csv || fail "one table in a file"
# refused TEXT OPTION...: with status 2 and these words.
refused() {
	local text=$1
	shift
	"$tool" export "$@" >refused.out 2>refused.err
	expect "$*: status" $? 2
	grep -q "$text" refused.err || fail "$*: $(cat refused.err)"
	[ ! -s refused.out ] || fail "$*: writes $(head -n 2 refused.out)"
}
refused "no table 'nonsense' (there are: losses, " --format=csv --table=nonsense stacks
refused "chrome has no tables" --format=chrome --table=calls stacks
refused "output is missing" --format=csv stacks
refused "No space left" --format=csv --table=calls -o /dev/full stacks
echo file >plain
refused "folder: Is a directory" --format=sqlite -o folder stacks
refused "plain: Not a directory" --format=csv -o plain stacks
expect "the file" "$(cat plain)" file
(trap '' XFSZ && ulimit -f 1 && exec "$tool" export --format=csv -o small/csv stacks) 2>err
expect "status without room for CSV" $? 2
expect "files" "$(ls small)" old.sqlite
# The odd names from above.
expect "a range's name in CSV" "$("$tool" export --format=csv --table=ranges made | python3 -c 'import csv, sys; print(list(csv.DictReader(sys.stdin))[0]["name"])')" "$odd"
