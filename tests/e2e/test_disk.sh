#!/bin/bash
# Disks that are full or refuse: file size limits, small file systems, directories that are not there,
# not directories, not writable, or deleted under way. The program does what it does without the shim;
# what could not be recorded is counted, and said; what was recorded can be read.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# all_accounted NAME CALLS: a trace, whose calls, counts and losses add up; or one line that says why
# there is none.
all_accounted() {
	local calls lost trace
	trace=$(traces)
	if [ -z "$(closing "$1.err")" ]; then
		expect "$1: lines on standard error" "$(grep -c '^cudaspy: ' "$1.err")" 1
		grep -q '^cudaspy: cannot write' "$1.err" || fail "$1: $(cat "$1.err")"
		return
	fi
	read -r calls _ lost < <(closing "$1.err")
	expect "$1: calls, counted and lost calls" $((calls + $(counts "$trace") + lost)) "$2"
	expect "$1: records" "$(records "$trace" cudaSetDevice)" "$calls"
	readable "$trace"
}

for kib in 1 4 8 32 64 100 128 256 1024; do
	# (the limit binds the files of the test itself, too: they are small)
	(
		ulimit -f $kib
		same "fsize$kib" "$bin/life" calls 15000
	) || exit 1
	all_accounted "fsize$kib" 30000
	(
		ulimit -f $kib
		same "threads$kib" "$bin/life" threads 40 20
	) || exit 1
	all_accounted "threads$kib" 160
done

mkdir small
if unshare -m true 2>/dev/null; then
	for size in 4k 64k 96k 160k 256k 400k 1m; do
		for run in "calls 15000" "threads 40 20"; do
			name=tmpfs-$size-${run%% *}
			cat >"$name.sh" <<-END
				mount -t tmpfs -o size=$size none $tmp/small || exit 99
				export CUDASPY_OUT=$tmp/small
				LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$bin/life" $run
				status=\$?
				mkdir -p $out && cp -r $tmp/small/. $out
				exit \$status
			END
			rm -rf "$out"
			unshare -m bash "$name.sh" >"$name.out" 2>"$name.err"
			status=$?
			[ $status = 99 ] && break 2
			expect "$name: status" $status 0
			calls=30000
			[ "${run%% *}" = threads ] && calls=160
			all_accounted "$name" $calls
		done
	done
fi

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
fi

# No descriptor to be had, no memory (without which AddressSanitizer gives up).
limits="files memory"
[ -n "$first" ] && limits=files
for what in $limits; do
	same "no-$what" "$bin/life" limit $what
	[ "$(grep -c '^cudaspy: ' "no-$what.err")" -le 1 ] || fail "no $what: $(cat "no-$what.err")"
done

# Deleted while it is being written.
rm -rf "$out"
spied timeout 20 "$bin/life" calls 2000000 >deleted.out 2>deleted.err &
for _ in $(seq 200); do
	[ -n "$(traces)" ] && break
	sleep 0.01
done
until rm -rf "$out" 2>/dev/null; do :; done
wait $! || fail "trace deleted: exit status $?"
read -r calls _ lost < <(closing deleted.err)
[ "${lost:-0}" -gt 0 ] || fail "trace deleted: nothing was lost? $(cat deleted.err)"

# A directory is made where only its last part is missing.
CUDASPY_OUT=$tmp/fresh same fresh "$bin/life" calls 20
[ -n "$(traces fresh)" ] || fail "no directory was made"

# Relative: to where the program was started, wherever it went before its first call.
mkdir elsewhere
CUDASPY_OUT=relative same relative "$bin/life" chdir "$tmp/elsewhere"
[ -n "$(traces relative)" ] || fail "relative CUDASPY_OUT: no trace; $(cat relative.err)"
CUDASPY_OUT='' same default "$bin/life" chdir "$tmp/elsewhere"
[ -n "$(traces .)" ] || fail "the default directory is not where the program was started"
