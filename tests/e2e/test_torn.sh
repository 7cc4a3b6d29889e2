#!/bin/bash
# Files of a trace that somebody truncates, punches, removes or replaces while a program writes them: the program
# does what it does otherwise, what was lost is counted and said once, and what came after can be read. A SIGBUS
# that is not about these files is the program's.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

meet() {
	for _ in $(seq 400); do
		[ -e "$1" ] && return
		sleep 0.02
	done
	fail "the program does not get to $1"
}

spoil() {
	case $1 in
	zero) : >"$2" ;;
	half) truncate -s $(($(stat -c %s "$2") / 2)) "$2" ;;
	punch) fallocate -p -o 0 -l "$(stat -c %s "$2")" "$2" ;;
	middle) fallocate -p -o 4096 -l 4096 "$2" ;;
	remove) rm "$2" ;;
	replace)
		mv "$2" "$2.1"
		: >"$2"
		;;
	esac
}

# spoiled HOW FILES STEP...: runs them, stops at `touch:ready await:go` and spoils the files.
spoiled() {
	local how=$1 files=$2 file
	shift 2
	rm -rf "$out" ready go
	spied timeout 60 "$bin/steps" "$@" >spoiled.out 2>spoiled.err </dev/null &
	meet ready
	for file in "$(the_trace)"/$files; do
		spoil "$how" "$file"
	done
	touch go
	wait $!
	expect "$how $files: status" $? 0
	expect "$how $files: said" "$(grep -c 'truncated or removed' spoiled.err)" 1
}

# The stream's files and tails: each call is recorded or counted as lost.
fallocate -l 8192 probe && fallocate -p -o 0 -l 4096 probe 2>/dev/null && punches="punch middle"
for how in zero half remove ${punches:-}; do
	for files in 'stream_0001_tail' 'stream_0001'; do
		case $how,$files in remove,*_tail | punch,*1 | middle,*1) continue ;; esac
		spoiled $how "$files" calls:5000 touch:ready await:go calls:9000
		read -r calls _ lost < <(closing spoiled.err)
		expect "$how $files: calls and lost calls" $((calls + lost)) 14000
		[ "$lost" -ge 1000 ] && [ "$lost" -lt 5000 ] || fail "$how $files: $lost lost"
		trace=$(the_trace) || exit 1
		got=$("$tool" dump "$trace" 2>/dev/null | grep -c cudaSetDevice)
		# half a file ends inside a packet, of which the beginning is there
		[ "$got" -ge "$calls" ] && [ "$got" -lt 14000 ] || fail "$how $files: $got records, $calls calls"
		"$tool" report "$trace" >report.out 2>/dev/null || fail "$how $files: no report"
		grep -qi 'incomplete\|lost\|missing' report.out || fail "$how $files: the report does not say so"
	done
done

# The board, all files at once, in threads of all kinds.
for how in zero half remove replace ${punches:-}; do
	for files in '.board' '.board stream_*' 'stream_0000_tail'; do
		case $how,$files in remove,.board | replace,.board | middle,.board) continue ;; esac
		rm -rf "$out" ready go
		spied timeout 60 "$bin/steps" calls:5000 crowd:5 touch:ready await:go calls:100 more:9000 thread:10 \
			disperse blocked lowest >spoiled.out 2>spoiled.err </dev/null &
		meet ready
		trace=$(the_trace) || exit 1
		(cd "$trace" && for file in $files; do spoil $how "$file"; done)
		touch go
		wait $!
		expect "$how $files: status" $? 0
		expect "$how $files: output" "$(cat spoiled.out)" "$(bare "$bin/steps" blocked lowest </dev/null)"
		[ "$(grep -c 'truncated or removed' spoiled.err)" -le 1 ] || fail "$how $files: said again and again"
		"$tool" dump "$trace" >dump.out 2>/dev/null
		[ "$(grep -c cudaSetDevice dump.out)" -ge 20000 ] ||
			fail "$how $files: what came afterwards is not there: $(wc -l <dump.out) records"
	done
done

# A thread that blocks all signals survives, and still believes to block them.
rm -rf "$out"
spoiled zero '*' block calls:5000 touch:ready await:go blocked calls:9000 blocked thread:1000
expect "blocked: output" "$(sort -u spoiled.out)" "SIGBUS is blocked: 1 1"

# After a SIGKILL all that was complete behind the truncation is there.
rm -rf "$out" ready go
spied "$bin/steps" calls:5000 touch:ready await:go calls:5000 kill >spoiled.out 2>spoiled.err </dev/null &
meet ready
for file in "$(the_trace)"/stream_0001_tail; do : >"$file"; done
touch go
wait $! 2>/dev/null
got=$("$tool" dump "$(the_trace)" 2>/dev/null | grep -c cudaSetDevice)
[ "$got" -ge 8500 ] || fail "killed: only $got records"

# The program's own SIGBUS: as without us, whether it was there first or came later.
for first_step in "on-bus:sigaction calls:10" "calls:10 on-bus:sigaction" "on-bus:signal calls:10" \
	"calls:10 on-bus:signal" "block calls:10 on-bus:sigaction" "calls:10 block blocked on-bus:signal"; do
	case $first_step in
	*block*) steps="ask-bus blocked send-bus wait-bus blocked" ;;
	*) steps="bus ask-bus bus calls:5000 blocked bus ask-bus" ;;
	esac
	# shellcheck disable=SC2086
	same own "$bin/steps" $first_step $steps
	grep -q 'signal 7\|sigwaitinfo' own.out || fail "$first_step: no signal came"
done
# A handler that blocks it makes calls; afterwards it is not blocked, and a file that is torn is no harm.
same masked "$bin/steps" calls:10 on-bus:sigaction masked:9000 blocked bus masked:1 send-bus blocked bus
spoiled zero '*' calls:10 masked:9000 touch:ready await:go masked:9000 blocked calls:9000
expect "masked: output" "$(sort -u spoiled.out)" "SIGBUS is blocked: 0 0"
same sent "$bin/steps" calls:10 on-bus:sigaction send-bus calls:10 send-bus ask-bus
same switched "$bin/steps" calls:10 on-bus:sigaction bus on-bus:signal bus on-bus:ignore send-bus ask-bus on-bus:default ask-bus
for last in "bus" "on-bus:ignore bus" "send-bus" "block bus" "block on-bus:signal bus" "on-bus:sigaction on-bus:default send-bus"; do
	# shellcheck disable=SC2086
	same dies "$bin/steps" calls:10 $last
	readable "$(the_trace)"
done
exit 0
