#!/bin/bash
# Live control beside boards that are not what a recorder makes (hostile_board.py): each verb ends in time and by itself, says which
# file is at fault, and serves the program that is recorded beside them as if they were not there.
. "$(dirname "$0")/lib.sh"
need jq python3
header=$here/../../include/cudaspy/trace_format.h
magic=$(awk '$2 == "SPY_BOARD_MAGIC" {sub("ull", "", $3); print $3}' "$header")
version=$(awk '$2 == "SPY_TRACE_VERSION" {print $3}' "$header")
kinds="lock cut holes random packet fifo folder link hidden swap"
programs=()
trap 'kill "${programs[@]}" 2>/dev/null; wait 2>/dev/null; clean_up' EXIT

for kind in $kinds; do
	"$here/hostile_board.py" "$out" "$kind" "$magic" "$version" >"$kind.pid" &
	programs+=($!)
done
env CUDASPY_OUT="$out" LD_LIBRARY_PATH="$build/sim/lib" LD_PRELOAD="$first $shim" timeout 300 "$bin/windows" memory pin pageable stream touch:here await:go exit 2>messages &
honest=$!
programs+=($honest)
for file in here $(printf '%s.pid ' $kinds); do
	for ((i = 0; i < 600; i++)); do
		[ -s "$file" ] || [ "$file" = here -a -e here ] && break
		sleep 0.1
	done
	[ -e "$file" ] || fail "$file: did not start: $(cat messages)"
done
trace=$(echo "$out"/windows-*.cudaspy)
[ -d "$trace" ] || fail "no honest trace: $(ls "$out")"

# ends VERB ARGUMENT...: in less than 25 s (machines may be busy), without a signal; what it prints is in said and err.
ends() {
	local status
	timeout -k 1 25 "$tool" "$@" >said 2>err
	status=$?
	[ $status -le 2 ] || fail "$*: status $status: $(tail -n 3 err)"
	grep -q $'\e' said err && fail "$*: prints what controls a terminal"
	return 0
}

# blames KIND TEXT: an error names that kind's file
blames() {
	grep -qE "/$1-[0-9]+\.cudaspy/$2" err || fail "nothing is said of $1: $(cat err)"
}

# ---- who asks ----
ends mark "a mark" "$out"
grep -qxF "$trace: marked" said || fail "mark beside hostile boards: $(cat said err)"
blames lock '\.board: another process keeps it locked'
blames fifo '\.board: not a regular file'
blames folder '\.board: Is a directory'
blames link '\.board: Too many levels of symbolic links'
if [ "$(id -u)" = 0 ]; then
	without "an unreadable board (root)"
else
	blames hidden '\.board: Permission denied'
fi
ends rotate "$out"
grep -qF "$trace: part 1 is finished" said || fail "rotate beside hostile boards: $(cat said err)"
for verb in stop start; do
	ends $verb "$out"/lock-* "$trace"
	grep -q "^$trace: [dr]" said || fail "$verb beside a locked board: $(cat said err)"
	blames lock '\.board: another process keeps it locked'
done

# ---- who looks ----
serves() {
	jq -e --arg dir "$(basename "$trace")" "$1" said >/dev/null || fail "$2 does not show the honest program: $(cat said err)"
}
ends ps --json
serves 'any(.processes[]; .directory | endswith($dir))' ps
ends top --json --interval=200ms "$out"
serves 'any(.processes[]; .directory | endswith($dir))' top
blames random '\.board: damaged: [0-9]+ slots'
ends snapshot --json "$out"
serves 'any(.processes[]; .directory | endswith($dir))' snapshot
jq -e 'all(.threads[]; .thread <= 4194304)' said >/dev/null || fail "threads that no system has: $(jq -c .threads said | head -c 300)"

# ---- the twin: without them nothing is complained about ----
ends mark "another" "$trace"
expect "mark of the honest one alone" "$(cat said err)" "$trace: marked"
touch go
wait $honest
expect "its status" $? 0
