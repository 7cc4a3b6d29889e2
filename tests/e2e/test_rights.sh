#!/bin/bash
# Programs that change who and where they are between their calls, as daemons do: another user, another root, other
# mounts, no descriptors left. All of it is recorded; what cannot be is counted and said once.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet
chmod 755 "$tmp"
mkdir jail

# all_there NAME CALLS
all_there() {
	expect "$1: closing line" "$(closing "$1.err")" "$2 0 0"
	expect_records "$(the_trace)" cudaSetDevice="$2"
	readable "$(the_trace)"
	grep -q "command_line = \"$bin/steps " "$(the_trace)/metadata" || fail "$1: its command line is forgotten"
}

# The program has all numbers it wants, finds the lowest ones free, and what it put there stays.
for steps in closefrom:3 "closefrom:3 take:900" "take:3"; do
	# shellcheck disable=SC2086
	same descriptors "$bin/steps" lowest calls:1000 $steps lowest calls:20000 thread:10000 lowest taken
	all_there descriptors 31000
done

[ "$(id -u)" = 0 ] || skip "needs root to change its root and its user; descriptors are right"
for steps in chroot:$tmp/jail setuid:65534 "seteuid:65534" "chroot:$tmp/jail setgid:65534 setuid:65534" \
	"setgid:65534 seteuid:65534 calls:9000 seteuid:0" "chroot:$tmp/jail closefrom:2000 setuid:65534" \
	"calls:40000 setuid:65534"; do
	# shellcheck disable=SC2086
	same rights "$bin/steps" calls:1000 $steps calls:60000 thread:10000 lowest
	all_there rights $((71000 + $(grep -o 'calls:[0-9]*' <<<"$steps" | awk -F : '{ n += $2 } END { print n + 0 }')))
	case $steps in
	*" seteuid:0") ;;
	*uid:65534) expect "$steps: not the new user's" "$(find "$(the_trace)" ! -uid 65534)" "" ;;
	esac
done
CUDASPY_KEEP=1 same bounded "$bin/steps" calls:1000 "chroot:$tmp/jail" setuid:65534 calls:100000 thread:10
expect "bounded: closing line" "$(closing bounded.err)" "101010 0 0"
readable "$(the_trace)"

# A child that becomes another user before it is another program is none of ours.
rm -rf "$out"
cat >child.sh <<END
"$bin/steps" calls:10 setuid:65534 calls:10
END
same child bash child.sh
expect_records "$(the_trace)" cudaSetDevice=20

if unshare -m true 2>/dev/null; then
	same unshare "$bin/steps" calls:1000 unshare calls:60000
	all_there unshare 61000
fi

# What cannot be stored: by the system call alone; a new user whose root is another and who closed the folder.
for steps in raw-setuid:65534 "chroot:$tmp/jail closefrom:3"; do
	# shellcheck disable=SC2086
	same lost "$bin/steps" calls:1000 $steps calls:60000 thread:1000
	read -r calls _ lost < <(closing lost.err)
	expect "$steps: calls and lost calls" $((calls + lost)) 62000
	[ "$lost" -gt 50000 ] || fail "$steps: $lost lost?"
	expect "$steps: said" "$(grep -c 'nothing can be stored' lost.err)" 1
	readable "$(the_trace)"
done
exit 0
