#!/bin/bash
# Disks that are full or refuse: file size limits, small file systems, directories that are not there,
# not directories, not writable, or deleted under way. The program does what it does without the shim;
# what could not be recorded is counted, and said; what was recorded can be read.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# all_accounted NAME CALLS RECORDED: a trace whose calls, counts and losses add up, with so many records of
# cudaSetDevice (LEAST-MOST); "none": one line that says why there is no trace.
all_accounted() {
	local calls lost trace
	trace=$(traces)
	if [ "$3" = none ]; then
		expect "$1: lines on standard error" "$(grep -c '^cudaspy: ' "$1.err")" 1
		grep -q "^cudaspy: cannot write a trace to .*: \(File too large\|No space left on device\); " "$1.err" || fail "$1: $(cat "$1.err")"
		return
	fi
	read -r calls _ lost < <(closing "$1.err")
	[ -n "$calls" ] || fail "$1: nothing is recorded: $(cat "$1.err")"
	expect "$1: calls, counted and lost calls" $((calls + $(counts "$trace") + lost)) "$2"
	expect "$1: records" "$(records "$trace" cudaSetDevice)" "$calls"
	[ "$calls" -ge "${3%-*}" ] && [ "$calls" -le "${3#*-}" ] || fail "$1: $calls are recorded, expected $3"
	readable "$trace"
}

# A trace needs its metadata (40 KiB) and two tails (32 KiB, some 500 calls, growing to 128 KiB, some 3,500); what is
# full moves to the stream's own file. On a busy machine records of the scheduler take some of it. (The limit binds the files of the test itself, too: they are small.)
while read -r kib calls threads; do
	in_turn || continue
	(
		ulimit -f "$kib"
		same "fsize$kib" "$bin/life" calls 15000
	) || exit 1
	all_accounted "fsize$kib" 30000 "$calls"
	(
		ulimit -f "$kib"
		same "threads$kib" "$bin/life" threads 40 20
	) || exit 1
	all_accounted "threads$kib" 160 "$threads"
done <<-END
	1 none none
	8 none none
	32 none none
	64 1800-2700 80-80
	127 2800-5000 80-80
	128 6500-7500 80-80
	256 10000-11500 80-80
	1024 15000-15000 80-80
END

# Standard error, too, may be a file that cannot grow: the closing line is left out, and the program ends as it would.
head -c 4096 /dev/zero >full.err
rm -rf "$out"
(
	ulimit -f 1
	spied "$bin/life" calls 10 >/dev/null 2>>full.err
)
expect "standard error at its limit: status" $? 0
expect "standard error at its limit: bytes" "$(stat -c %s full.err)" 4096

# The same of the whole file system: what threads that come first have taken the others miss. Stacks of calls that
# a busy machine delays take room, too.
small=
mkdir small
if unshare -m true 2>/dev/null; then
	while read -r size calls threads; do
		in_turn || continue
		for run in "calls 15000" "threads 40 20"; do
			name=tmpfs-$size-${run%% *}
			cat >"$name.sh" <<-END
				mount -t tmpfs -o size=$size none $tmp/small || exit 99
				export CUDASPY_OUT=$tmp/small
				export CUDASPY_FLOOR=0
				LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$bin/life" $run
				status=\$?
				mkdir -p $out && cp -r $tmp/small/. $out
				exit \$status
			END
			rm -rf "$out"
			unshare -m bash "$name.sh" >"$name.out" 2>"$name.err" </dev/null
			status=$?
			[ $status = 99 ] && break 2
			expect "$name: status" $status 0
			expect "$name: said" "$(grep -c 'nearly full' "$name.err")" 0
			[ "$size" != 160k ] || grep -q 'stored: No space left' "$name.err" ||
				fail "$name: $(cat "$name.err")"
			if [ "${run%% *}" = threads ]; then
				all_accounted "$name" 160 "$threads"
			else
				all_accounted "$name" 30000 "$calls"
			fi
			small=tried
		done
	done <<-END
		4k none none
		64k none none
		96k 0-0 0-0
		160k 1000-2500 4-12
		256k 3000-4000 12-28
		400k 6500-7500 24-50
		1m 15000-15000 80-80
	END
fi

# Room again: what comes after a tenth of a second is recorded, and what was lost is counted.
same refill "$bin/life" refill
trace=$(the_trace) || exit 1
read -r calls _ lost < <(closing refill.err)
expect "refill: calls that are recorded or lost" $((calls + lost)) 20010
[ "$lost" -gt 10000 ] || fail "refill: only $lost were lost"
expect_records "$trace" cudaMalloc=10
expect_counts "$trace" cudaGetDevice=20000
readable "$trace"

# Some of the disk stays free: recording stops, is said to, and goes on when there is room again.
if unshare -m true 2>/dev/null; then
	cat >floor.sh <<-END
		mount -t tmpfs -o size=16m none $tmp/small || exit 99
		head -c 9m /dev/zero >$tmp/small/ballast
		export CUDASPY_OUT=$tmp/small
		free() { echo \$((\$(stat -f -c '%a * %S' $tmp/small))); }
		LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" CUDASPY_FLOOR=4 "$bin/steps" calls:200000 touch:ready \
			await:go calls:20000 thread:100 &
		until [ -e ready ]; do sleep 0.02; done
		free
		rm $tmp/small/ballast
		touch go
		wait \$!
		status=\$?
		mkdir -p $out && cp -r $tmp/small/. $out
		exit \$status
	END
	rm -rf "$out"
	unshare -m bash floor.sh >floor.out 2>floor.err </dev/null
	expect "floor: status" $? 0
	left=$(head -n 1 floor.out)
	[ "$left" -ge $((4 << 20)) ] && [ "$left" -lt $((5 << 20)) ] || fail "floor: $left bytes were free"
	expect "floor: said" "$(grep -c 'nearly full' floor.err)" 1
	read -r calls _ lost < <(closing floor.err)
	expect "floor: calls and lost calls" $((calls + lost)) 220100
	[ "$lost" -gt 50000 ] && [ "$lost" -lt 200000 ] || fail "floor: $lost lost"
	events "$(the_trace)" | tail -n 300 | grep -q cudaSetDevice || fail "floor: recording did not go on"
	readable "$(the_trace)"
fi
CUDASPY_FLOOR=1000000000 same floor "$bin/life" calls 20
expect "floor: lines on standard error" "$(grep -c '^cudaspy: cannot write.*nearly full' floor.err)" 1

# Nowhere to write.
touch file
mkdir -p unwritable
chmod 555 unwritable
for where in "$tmp/file/no/such" "$tmp/file" "$tmp/file/below" /proc /dev/null; do
	CUDASPY_OUT=$where same nowhere "$bin/life" calls 20
	expect "$where: lines on standard error" "$(grep -c '^cudaspy: cannot write' nowhere.err)" 1
	CUDASPY_OUT=$where CUDASPY_QUIET=1 same nowhere-quiet "$bin/life" calls 20
	grep -q cudaspy nowhere-quiet.err && fail "not quiet"
done
rm -rf made
CUDASPY_OUT=$tmp/made/by/us same made "$bin/life" calls 20
expect "traces in a directory that was not there" "$(find made/by/us -name metadata | wc -l)" 1
if [ "$(id -u)" != 0 ]; then
	CUDASPY_OUT=unwritable same unwritable "$bin/life" calls 20
	expect "unwritable" "$(grep -c '^cudaspy: cannot write' unwritable.err)" 1
else
	without "a directory that is not writable (root)"
fi

# No descriptor to be had, no memory (without which AddressSanitizer gives up).
limits="files memory"
[ -n "$first" ] && limits=files && without "no memory (a sanitizer)"
for what in $limits; do
	same "no-$what" "$bin/life" limit $what
	expect "no $what: $(cat "no-$what.err")" "$(grep -c '^cudaspy: ' "no-$what.err")" 1
	grep -q "^cudaspy: cannot write .*: \(Too many open files\|Cannot allocate memory\); " "no-$what.err" ||
		fail "no $what: $(cat "no-$what.err")"
done

# Deleted while it is being written: a thread has its stream.
rm -rf "$out"
spied timeout 20 "$bin/life" calls 2000000 >deleted.out 2>deleted.err &
for _ in $(seq 200); do
	compgen -G "$out/*/stream_0001*" >/dev/null && break
	sleep 0.01
done
until rm -rf "$out" 2>/dev/null; do :; done
wait $! || fail "trace deleted: exit status $?"
read -r calls _ lost < <(closing deleted.err)
[ "${lost:-0}" -gt 0 ] || fail "trace deleted: nothing was lost? $(cat deleted.err)"
expect "trace deleted: calls that are recorded or lost" $((calls + lost)) 2000000

# A directory is made where only its last part is missing.
CUDASPY_OUT=$tmp/fresh same fresh "$bin/life" calls 20
[ -n "$(traces fresh)" ] || fail "no directory was made"

# Relative: to where the program was started, wherever it went before its first call.
mkdir elsewhere
CUDASPY_OUT=relative same relative "$bin/life" chdir "$tmp/elsewhere"
[ -n "$(traces relative)" ] || fail "relative CUDASPY_OUT: no trace; $(cat relative.err)"
CUDASPY_OUT='' same default "$bin/life" chdir "$tmp/elsewhere"
[ -n "$(traces .)" ] || fail "the default directory is not where the program was started"
[ -n "$small" ] || without "small file systems (no mounting here)"
