# tests/e2e/lib.sh: sourced first by every test here. Sets up a temporary directory (the current one
# from then on) and the words in which the tests are written.
#
#   CUDASPY_BUILD   absolute build directory
#   CUDASPY_SHIM    the libcudaspy.so to test (default: the build's)
#   CUDASPY_FIRST   libraries to preload before it: a sanitizer's runtime (sanitizer.sh)
#   CUDASPY_KEEP_TRACES   a folder for the traces that tests leave, in a folder for each (test_formats.sh --all)
set -u
: "${CUDASPY_BUILD:?is to name the build directory}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$CUDASPY_BUILD/tests/e2e
fakes=$bin/fakes
tool=$CUDASPY_BUILD/cudaspy
shim=${CUDASPY_SHIM:-$CUDASPY_BUILD/libcudaspy.so}
first=${CUDASPY_FIRST:-}
# many N: so many threads; where a sanitizer is beside the recorder, to which each thread is dear, an eighth of them.
many() { if [ "$first" ]; then echo $(($1 / 8)); else echo "$1"; fi; }
# in_turn: of a list of like cases each is one; where a sanitizer is beside the recorder, every other one.
turns=0
in_turn() { [ -z "$first" ] || [ $((turns++ % 2)) = 0 ]; }
keep=${CUDASPY_KEEP_TRACES:+$(realpath "$CUDASPY_KEEP_TRACES")}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cudaspy-e2e.XXXXXX")
trap clean_up EXIT
cd "$tmp" || exit 1

clean_up() {
	local status=$?
	[ -e "$tmp/.failed" ] && status=1
	[ "$status" != 0 ] || all_valid || status=1
	[ "$status" = 0 ] && [ -s "$tmp/.without" ] && echo "without $(sort -u "$tmp/.without" | paste -sd, | sed 's/,/, /g')"
	mps_stop
	chmod -R u+rwX "$tmp" 2>/dev/null
	[ -z "$keep" ] || keep_traces
	rm -rf "$tmp"
	exit $status
}

keep_traces() {
	local into
	into=$keep/$(basename "$0" .sh)
	mkdir -p "$into" && cd "$tmp" && find . -name '*.cudaspy' -type d -exec cp -r --parents -t "$into" {} + 2>/dev/null
}
build=$CUDASPY_BUILD
jobs=${CUDASPY_JOBS:-}            # how many threads read traces
compared=${CUDASPY_JOBS_COMPARE:-} # a file for differences: compared_tool
unset LD_PRELOAD LD_LIBRARY_PATH RANK SLURM_PROCID OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK PALS_RANKID "${!NCCL_@}" "${!CUDASPY_@}" "${!FAKE_@}" "${!SPYSIM_@}"
export CUDASPY_BUILD=$build CUDASPY_MEASURE_COST=0 # on a slow machine calls would only be counted from the tenth second on
export CUDASPY_NOGETTERS=1 # and getters have records where they took long
export LC_ALL=C # cudaspy's texts depend on no locale; grep takes ten times as long where characters are more than bytes
[ -z "$jobs" ] || export CUDASPY_JOBS=$jobs
[ -z "$compared" ] || export CUDASPY_JOBS_COMPARE=$compared
[ -z "$compared" ] || tool=$here/compared_tool
export CUDA_MPS_PIPE_DIRECTORY=$tmp/no_mps # not this machine's daemon, if it has one
out=$tmp/out

# Also out of a command substitution: the EXIT trap of the script finds the mark.
fail() {
	echo "FAILED: $*" >&2
	touch "$tmp/.failed"
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# without WHAT: a part of the test is left out; its last line says which, and tests/run shows that line.
without() {
	echo "$*" >>"$tmp/.without"
}

need() {
	local name
	for name in "$@"; do
		command -v "$name" >/dev/null || skip "no $name here"
	done
}

# preloaded LIBRARIES CMD...: a timeout at its head has none of them: to begin a program under a sanitizer takes as long as all
# else that most of them do.
preloaded() {
	local libraries=$1 limit=()
	shift
	if [ "$1" = timeout ]; then
		while [[ $2 == -* ]]; do
			limit+=("$2" "$3")
			set -- "$1" "${@:4}"
		done
		limit=(timeout "${limit[@]}" "$2" env)
		shift 2
		"${limit[@]}" LD_LIBRARY_PATH="$fakes" LD_PRELOAD="$libraries" "$@"
	else
		LD_LIBRARY_PATH=$fakes LD_PRELOAD=$libraries "$@"
	fi
}

# bare CMD...: without the shim, and without a sanitizer. $before and $after are preloaded around it, as here.
bare() {
	preloaded "${before:-} ${after:-}" "$@"
}

# spied CMD...: with it; traces go to $out.
spied() {
	CUDASPY_OUT=${CUDASPY_OUT-$out} preloaded "$first ${before:-} $shim ${after:-}" "$@"
}

# simulated CMD...: with it on the simulator, for at most 60 s, as tests/sim/with-sim has it, but without a process for that.
simulated() {
	LD_LIBRARY_PATH=$CUDASPY_BUILD/sim/lib PATH=$CUDASPY_BUILD/sim:$PATH SPYSIM=1 CUDASPY_OUT=${CUDASPY_OUT-$out} \
		timeout -k 1 60 env LD_PRELOAD="$first $shim $CUDASPY_BUILD/sim/libsimkernel.so" "$@"
}

# same NAME CMD...: runs CMD bare and spied (at most 60 s, for sanitizers): standard output, standard error less
# our own lines, and exit status are the same. Leaves NAME.out, NAME.err (spied) for further looks.
same() {
	local name=$1 bare_status status
	shift
	[ ! -e "$out" ] || rm -rf "$out"
	{ bare timeout -k 1 60 "$@"; } >"$name.bare" 2>"$name.bare_err"
	bare_status=$?
	{ spied timeout -k 1 60 "$@"; } >"$name.out" 2>"$name.err"
	status=$?
	[ "$status" = "$bare_status" ] ||
		fail "$name: exit status $status, without the shim $bare_status; $(tail -n 3 "$name.err")"
	cmp -s "$name.bare" "$name.out" ||
		fail "$name: output differs: $(diff "$name.bare" "$name.out" | head -n 5)"
	# bash itself reports processes that died, ASan stacks that it does not understand
	awk '/lib.sh: line|==WARNING: ASan|^False positive|^For details see|^cudaspy: / { next }
		FILENAME == ARGV[1] { bare[++n] = $0; next }
		$0 != bare[++m] { differs = 1 }
		END { exit differs || n != m }' "$name.bare_err" "$name.err" ||
		fail "$name: standard error differs: $(diff "$name.bare_err" "$name.err" | head -n 9)"
}

# mps_start: the simulator's MPS daemon, in $tmp/mps, and GPUs that processes share. It ends with the test.
mps_start() {
	export CUDA_MPS_PIPE_DIRECTORY=$tmp/mps SPYSIM_SHARE=$tmp/share
	mkdir -p -m 777 "$SPYSIM_SHARE"
	chmod 755 "$tmp"
	"$CUDASPY_BUILD/sim/nvidia-cuda-mps-control" -d || fail "no daemon could be started"
}

mps_stop() {
	[ -e "$tmp/mps/control" ] || return 0
	echo quit -t 0 | CUDA_MPS_PIPE_DIRECTORY=$tmp/mps "$CUDASPY_BUILD/sim/nvidia-cuda-mps-control"
}

# for_other_users: what a test runs as other users, from then on in places that they can reach: a build below somebody's
# home, as a container's root has it, is not one. Only for root.
for_other_users() {
	local file
	chmod 755 "$tmp"
	mkdir "$tmp/build"
	for file in sim/lib sim/libsimkernel.so sim/nvidia-cuda-mps-control sim/nvidia-cuda-mps-server libcudaspy.so "$@"; do
		mkdir -p "$tmp/build/$(dirname "$file")"
		cp -R "$CUDASPY_BUILD/$file" "$tmp/build/$file" || fail "no $file to copy"
	done
	[ "$shim" != "$CUDASPY_BUILD/libcudaspy.so" ] || shim=$tmp/build/libcudaspy.so
	export CUDASPY_BUILD=$tmp/build
	setpriv --reuid=60001 --regid=60001 --clear-groups test -x "$tmp/build/libcudaspy.so" ||
		fail "other users cannot reach $tmp: set TMPDIR to a folder that they can"
}

# children PID: the processes that it has begun and that are still there.
children() {
	cat /proc/[0-9]*/status 2>/dev/null | awk -v parent="$1" '$1 == "Pid:" { pid = $2 } $1 == "PPid:" && $2 == parent { print pid }'
}

# until_there FILE: a program makes it when it has come so far. It must not be there from before.
until_there() {
	local i
	for ((i = 0; i < 600; i++)); do
		[ -e "$1" ] && return
		sleep 0.1
	done
	fail "no $1 after a minute: $(cat messages 2>/dev/null)"
}

# traces [PARENT]: the trace directories, oldest first.
traces() {
	local found=("${1:-$out}"/*.cudaspy)
	if [ ${#found[@]} -gt 1 ]; then
		ls -dtr "${found[@]}"
	elif [ -e "${found[0]}" ]; then
		echo "${found[0]}"
	fi
}

# the_trace: the one there has to be.
the_trace() {
	local found=("$out"/*.cudaspy)
	[ ${#found[@]} = 1 ] && [ -e "${found[0]}" ] || fail "one trace expected in $out, found: $(traces)"
	echo "${found[0]}"
}

no_trace() {
	! compgen -G "$out/*.cudaspy" >/dev/null || fail "unexpected trace: $(traces)"
}

# dumped TRACE: one line an event, as `cudaspy dump` shows them, in the file $dump. 1 if it complains, or has none.
dumped() {
	dump=$tmp/.dump-${1##*/}
	[ "$dump" -nt "$1/.board" ] || "$build/cudaspy" dump "$1" >"$dump" 2>"$dump.err"
	[ -s "$dump" ] && [ ! -s "$dump.err" ]
}

# read_dump TRACE: the same; complaints fail the test.
read_dump() {
	dumped "$1" || fail "cudaspy dump ${1##*/}: $(head -n 3 "$dump.err")"
}

# babeltrace2 compares each name of an enumeration with all others, for 0.15 s of each trace: of the functions only those are
# left that the trace has a record of, and number 0, which a wait's holder has that is in no function. Not in the first trace of a test
# (without a sanitizer), nor where anything about one is unusual.
trimmed() {
	local dump into=$tmp/.trimmed-${1##*/}
	[ "$first" ] || [ -e "$tmp/.first" ] || { : >"$tmp/.first" && return 1; }
	[[ $1 == /* ]] || set -- "$PWD/$1"
	dumped "$1" && mkdir -p "$into" && ln -sf "$1"/stream_* "$into" || return 1
	awk '
		NR == FNR {
			while (match($0, /_*cu[A-Za-z0-9_]+/)) {
				used["\t\"" substr($0, RSTART, RLENGTH) "\","] = 1
				$0 = substr($0, RSTART + RLENGTH)
			}
			next
		}
		/^typealias enum/ && !first { first = NR; inside = 1; print; next }
		/^}/ { inside = 0 }
		!inside { print; next }
		$0 in used || !number { sub(/,$/, " = " number + 0 ","); print }
		{ number++ }' "$dump" "$1/metadata" >"$into/metadata"
}

# as_text TRACE FILE: as babeltrace2 reads it. It takes 16 MB, which are few page faults in large pages. (65535 is no function.)
as_text() {
	local -x GLIBC_TUNABLES=glibc.malloc.hugetlb=1
	trimmed "$1" && babeltrace2 --clock-cycles --no-delta "$tmp/.trimmed-${1##*/}" >"$2" 2>"$2.err" &&
		! grep -qE '<unknown> : container = [0-9]{1,4}\b' "$2" ||
		babeltrace2 --clock-cycles --no-delta "$1" >"$2" 2>"$2.err"
}

# read_events TRACE: one line an event, as babeltrace2 reads them, in the file $text; complaints fail the test, other than that
# records were lost where the trace says so.
read_events() {
	text=$tmp/.events-${1##*/}
	if ! [ "$text" -nt "$1/.board" ]; then
		as_text "$1" "$text" || fail "babeltrace2 $1: $(tail -n 5 "$text.err")"
		if [ -s "$text.err" ]; then
			sed -i '/WARNING: Tracer \(may have \)\?discarded .*events\? /d' "$text.err"
			[ -s "$text.err" ] && fail "babeltrace2 $1 complains: $(head -n 5 "$text.err")"
		fi
	fi
	return 0
}

# events TRACE: the same, to standard output.
events() {
	local text
	read_events "$1"
	cat "$text"
}

# records TRACE NAME: how many records of calls of NAME there are.
records() {
	local dump
	read_dump "$1"
	grep -cE "^[^ ]* [^ ]* [^ ]* $2 [^ ]* [^ ]* (inner|nested|call|op|launch|copy|memory)\b" "$dump"
}

# dump_all: the records of all traces in $out, in the file all.dump; complaints fail the test.
dump_all() {
	"$build/cudaspy" dump "$out" >all.dump 2>all.err && [ -s all.dump ] && [ ! -s all.err ] || fail "cudaspy dump: $(head -n 3 all.err)"
}

# records_by_process NAME: how many records of calls of NAME each process has, in all.dump, a line each.
records_by_process() {
	awk -v name="$1" '
		{ split($2, id, "/"); records[id[1]] += $4 == name && $7 ~ /^(inner|nested|call|op|launch|copy|memory)$/ }
		END { for (pid in records) print records[pid] }' all.dump
}

# counts TRACE [NAME]: how often NAME (any counted function) was called: the sum of the count records
# and of what is still on the board.
counts() {
	local on_board dump
	on_board=$("$bin/board" "$1" count ${2:+"$2"}) || exit 1
	read_dump "$1"
	awk -v name="${2:-}" -v sum="$on_board" '
		$4 == "[count]" && match($0, / function=[^ ]* count=/) && (name == "" || index($0, " function=" name " ")) {
			sum += substr($0, RSTART + RLENGTH) }
		END { print sum + 0 }' "$dump"
}

# expect WHAT GOT WANTED
expect() {
	[ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

# expect_records TRACE NAME=COUNT...
expect_records() {
	local trace=$1 dump
	shift
	read_dump "$trace"
	awk -v all="$*" '
		$7 ~ /^(inner|nested|call|op|launch|copy|memory)$/ { records[$4]++ }
		END {
			n = split(all, pairs, " ")
			for (i = 1; i <= n; i++) {
				split(pairs[i], wanted, "=")
				if (records[wanted[1]] + 0 == wanted[2])
					continue
				print "records of " wanted[1] ": " records[wanted[1]] + 0 ", expected " wanted[2]
				wrong = 1
			}
			exit wrong
		}' "$dump" >.wrong || fail "${trace##*/}: $(<.wrong)"
}

expect_counts() {
	local trace=$1 pair
	shift
	for pair in "$@"; do
		expect "${trace##*/}: count of ${pair%=*}" "$(counts "$trace" "${pair%=*}")" "${pair#*=}"
	done
}

# notes TRACE: the texts of its notes.
notes() {
	local dump
	read_dump "$1"
	sed -n 's/^[^ ]* [^ ]* - \[note\] .* note=\([A-Za-z_]*\) text="\(.*\)"$/\1 \2/p' "$dump"
}

# readable TRACE...: babeltrace2 is content, and cudaspy dump sees as many events, which it leaves in $dump. Under a sanitizer's
# runtime the second only: the test without has shown the first.
readable() {
	local trace text
	[ $# -gt 0 ] || fail "no trace to read"
	for trace in "$@"; do
		read_dump "$trace"
		[ -z "$first" ] || continue
		read_events "$trace"
		awk 'NR == FNR { events++; next } { lines++ } END { exit !events || lines != events }' "$text" "$dump" ||
			fail "${trace##*/}: $(wc -l <"$dump") lines of cudaspy dump, $(wc -l <"$text") events of babeltrace2"
	done
}

# closing NAME.err: the closing line's numbers: calls, pageable, lost.
closing() {
	local line
	while read -r line; do
		[[ $line =~ ^cudaspy:\ .*:\ ([0-9]+)\ calls\ \(nested\ ones\ included\),\ ([0-9]+)\ pageable\ async\ cop[iesy]+,\ ([0-9]+)\ lost ]] &&
			echo "${BASH_REMATCH[@]:1}"
	done <"$1"
	return 0
}

# valid SCHEMA FILE: is the JSON file as the schema says? Found out when the test ends, of all files at a time: the checker takes 0.1 s
# to begin. Without a checker nobody can tell, and that is a failure: the packages of `make deps` have it.
valids=0
valid() {
	local files=$tmp/.valid/${1##*/}
	[ -d "$files" ] || { mkdir -p "$files" && echo "$1" >"$files.is"; }
	cp "$2" "$files/line-${BASH_LINENO[0]}-$BASHPID-$((valids++))-${2##*/}" || fail "no $2 to check"
}

all_valid() {
	local schema
	for schema in "$tmp"/.valid/*.is; do
		[ -e "$schema" ] || continue
		"$here/../validate" "$(<"$schema")" "${schema%.is}"/* >"$tmp/.wrong" 2>&1 && continue
		echo "FAILED: not as $(<"$schema") says: $(head -n 5 "$tmp/.wrong")" >&2
		return 1
	done
}

# crowded: has this machine other work? By the kernel's account of ourselves, who do some right now: for more than a
# quarter of that time we were ready and had no CPU.
crowded() {
	local ran delayed ran_before delayed_before i
	read -r ran_before delayed_before _ <"/proc/$BASHPID/schedstat" || return 1
	for ((i = 0; i < 100000; i++)); do
		:
	done
	read -r ran delayed _ <"/proc/$BASHPID/schedstat"
	[ $((4 * (delayed - delayed_before))) -gt $((ran - ran_before)) ]
}

# again TRY USUAL: may what did not come out right in that try have another one? Threads have to meet in time, so it
# has the usual number; while the machine has other work four times as many.
again() {
	[ "$1" -lt "$2" ] || { [ "$1" -lt $((4 * $2)) ] && crowded; }
}

# fits COMMAND...: no line of what it says is wider than the screen, however narrow that is.
fits() {
	local width
	for width in 40 60 80 160; do
		COLUMNS=$width "$@" 2>/dev/null | LC_ALL=C.UTF-8 grep -E "^.{$((width + 1)),}" >.wide &&
			fail "$*: wider than $width columns: $(head -n 3 .wide)"
	done
}
