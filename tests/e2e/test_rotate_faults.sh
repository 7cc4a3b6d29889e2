#!/bin/bash
# What may happen while one part of a recording ends and the next one begins: the process forks, ends in any way, is killed; the
# disk is full; the folder is removed or moved. The program never notices; what can be read is read, what is lost is counted.
. "$(dirname "$0")/lib.sh"
need jq
export FAKE_MODE=quiet

reported() { # DIR [complaints are allowed]
	"$tool" report --format=json "$1" >report.json 2>report.err || fail "no report of $1: $(cat report.err)"
	[ -n "${2:-}" ] || [ ! -s report.err ] || fail "the report complains: $(head -n 3 report.err)"
}
losses() { jq "[.losses[]? | select(.kind == \"$1\") | .count] | add // 0" report.json; }
# sum MESSAGES N: of the Nth number of all closing lines
sum() { closing "$1" | awk -v n="$2" '{ sum += $n } END { print sum + 0 }'; }

# --- forks while four threads call and parts end every millisecond: parent and children lose nothing ---
for parts in CUDASPY_ROTATE_EVERY=1ms "CUDASPY_ROTATE_SIZE=1 CUDASPY_KEEP=2"; do
	# shellcheck disable=SC2086 # several variables
	same forks env $parts "$bin/life" forkmt 20 busy
	reported "$out"
	expect "forks, $parts: closing lines" "$(closing forks.err | wc -l)" 21
	expect "forks, $parts: lost" "$(sum forks.err 3)" 0
	missing=$(($(sum forks.err 1) - $(jq .summary.calls report.json) - $(losses removed)))
	[ "$missing" -ge -8 ] && [ "$missing" -le 8 ] || fail "forks, $parts: $missing calls are missing"
	expect "forks, $parts: other losses" "$(jq -c '[.losses[]? | select(.kind != "removed")]' report.json)" '[]'
done

# --- the end, in whatever way, at any moment ---
for how in exit:23 _exit:21 quick_exit:25 abort:134 segv:139 kill:137 exec:0; do
	rm -rf "$out"
	CUDASPY_ROTATE_EVERY=1ms spied timeout -k 1 60 "$bin/life" busy "${how%:*}" 71 >/dev/null 2>messages
	status=$?
	expect "${how%:*}: status" $((status > 192 ? status - 128 : status)) "${how#*:}"
	[ -n "$(find "$out" -name metadata)" ] || continue # it ended before a recording had begun
	reported "$out"
	# threads that still call while the process ends lose calls, which is said
	expect "${how%:*}: losses" "$(jq -c '[.losses[]? | select(.kind != "records")]' report.json)" '[]'
	[ "$(jq .summary.calls report.json)" -ge "$(sum messages 1)" ] || fail "${how%:*}: calls are missing: $(cat messages)"
done

# --- a kill right behind the exchange of the two names: the board is in the new folder, the records in the old one ---
rm -rf "$out"
spied "$bin/life" until-killed 1000 >said 2>messages &
program=$!
for ((i = 0; i < 600; i++)); do
	grep -q waiting said && break
	sleep 0.05
done
live=$(the_trace)
kill -KILL "$(sed 's/.*-\([0-9]*\)\.cudaspy$/\1/' <<<"$live")"
wait $program 2>/dev/null
reported "$out"
jq -S '[.calls, .counted, .losses, .threads]' report.json >before
mv "$live" "${live%.cudaspy}.0001.cudaspy"
mkdir "$live"
mv "${live%.cudaspy}.0001.cudaspy/.board" "$live"
sed 's/^\tpart = 1;/\tpart = 2;/' "${live%.cudaspy}.0001.cudaspy/metadata" >"$live/metadata"
reported "$out"
jq -S '[.calls, .counted, .losses, .threads]' report.json >after
diff before after >difference || fail "killed right behind the exchange: $(head -n 5 difference)"

# --- removed, or moved, while it runs ---
# meddled NAME DIR COMMAND: runs COMMAND when there are two finished parts; the program goes on with its calls, and ends as ever.
# Its calls are in $made.
meddled() {
	rm -rf "$out" moved go
	CUDASPY_ROTATE_EVERY=10ms spied timeout -k 1 60 "$bin/life" load-until go >said 2>messages &
	program=$!
	for ((i = 0; i < 3000; i++)); do
		[ -e "$(echo "$out"/*.0002.cudaspy)" ] && break
		sleep 0.01
	done
	live=$(traces | grep -v '\.[0-9]*\.cudaspy$')
	eval "$3"
	touch go
	wait $program || fail "$1: status $?: $(cat messages)"
	made=$(cat said) calls=$(sum messages 1) lost=$(sum messages 3)
	[ $((calls + lost)) -eq "$made" ] || [ $((calls + lost)) -eq $((made + lost / 2)) ] || fail "$1: $calls recorded, $lost lost of $made"
	reported "$2" complaints
}
meddled moved moved 'mv "$out" moved'
expect "moved: nothing is missing" "$(jq -c '[.summary.calls, .losses]' report.json)" "[$made,[]]"
meddled "live part removed" "$out" 'for i in {1..100}; do rm -rf "$live" 2>/dev/null && [ ! -e "$live" ] && break; done'
[ "$lost" -gt 0 ] || fail "the live part is removed, and nothing is lost"
[ "$(jq .summary.calls report.json)" -gt 0 ] || fail "nothing is left of the parts that are there"
meddled "finished part removed" "$out" 'rm -rf "$out"/*.0001.cudaspy'
expect "finished part removed" "$lost $(losses parts)" "0 1"
meddled "files removed" "$out" 'rm -f "$live"/stream_* "$live"/metadata'
grep -q 'truncated or removed' messages || [ "$lost" -eq 0 ] || fail "files removed: $(cat messages)"

# --- a full disk: parts begin while there is room; then all is lost that has no place, and counted ---
if unshare -m true 2>/dev/null; then
	mkdir small
	while read -r size variables; do
		cat >full.sh <<-END
			mount -t tmpfs -o size=$size none $tmp/small || exit 99
			export CUDASPY_OUT=$tmp/small CUDASPY_FLOOR=0 $variables
			LD_LIBRARY_PATH=$fakes LD_PRELOAD="$first $shim" "$bin/life" load 4 30000
			status=\$?
			mkdir -p $out && cp -r $tmp/small/. $out
			exit \$status
		END
		rm -rf "$out"
		unshare -m bash full.sh >/dev/null 2>messages </dev/null
		status=$?
		[ $status = 99 ] && without "a small file system" && break
		expect "a disk of $size, $variables: status" $status 0
		reported "$out" complaints
		for trace in $(traces); do
			compgen -G "$trace/stream_0000*" >/dev/null || fail "a disk of $size, $variables: ${trace##*/} says nothing of the process"
		done
		calls=$(sum messages 1) lost=$(sum messages 3)
		[ "$lost" -gt 0 ] || [ "${variables#*KEEP}" != "$variables" ] || fail "a disk of $size: nothing was lost"
		missing=$((calls - $(jq .summary.calls report.json) - $(losses removed)))
		[ "$missing" -ge -8 ] && [ "$missing" -le 8 ] || fail "a disk of $size, $variables: $missing calls are missing"
		expect "a disk of $size, $variables: parts, or calls, of which nothing is known" "$(losses parts) $(losses calls)" "0 0"
		[ $((calls + lost)) -ge 119992 ] || fail "a disk of $size, $variables: $calls recorded and $lost lost of 120000"
	done <<-END
		600k CUDASPY_ROTATE_EVERY=5ms
		2m CUDASPY_ROTATE_EVERY=5ms
		2m CUDASPY_ROTATE_SIZE=1
		2m CUDASPY_ROTATE_EVERY=2ms CUDASPY_KEEP=1
		6m CUDASPY_ROTATE_SIZE=1 CUDASPY_KEEP=2
	END
else
	without "a small file system"
fi

# --- a bound of next to nothing, parts by the millisecond, threads that come and go: what is there stays below what it says ---
CUDASPY_ROTATE_EVERY=1ms CUDASPY_KEEP=1 CUDASPY_KEEP_FOR=50ms same tiny "$bin/life" threads 600 30
expect "tiny: nothing is said" "$(grep -c stored tiny.err)" 0
read -r calls _ lost < <(closing tiny.err)
expect "tiny: calls" $((calls + lost)) 1200
reported "$out"
missing=$((calls - $(jq .summary.calls report.json) - $(losses removed)))
[ "$missing" -ge -32 ] && [ "$missing" -le 32 ] || fail "tiny: $missing calls are missing"
CUDASPY_ROTATE_EVERY=1ms CUDASPY_KEEP=16 same bound "$bin/life" load 2 300000
kib=$(du -sk "$out" | cut -f 1)
[ "$kib" -le $((17 << 10)) ] || fail "many small parts: $kib KiB, the bound is 16 MiB" # and directories

# --- requests: many, at once, to programs that have ended, from several sides ---
rm -rf "$out"
for i in 1 2 3; do
	spied timeout 200 "$bin/life" for-ever >/dev/null 2>messages.$i &
done
for ((i = 0; i < 600; i++)); do
	[ "$(find "$out" -name stream_0001_tail | wc -l)" = 3 ] && break
	sleep 0.05
done
mapfile -t programs < <(traces | sed 's/.*-\([0-9]*\)\.cudaspy$/\1/')
"$tool" rotate "$out" >rotated || fail "rotate of three: $(cat rotated)"
expect "rotate of three" "$(grep -c 'part 1 is finished: .*\.0001\.cudaspy$' rotated)" 3
live=$out/life-${programs[0]}.cudaspy
askers=()
for i in 1 2 3; do
	(for j in 1 2 3 4 5 6 7 8 9 10; do "$tool" rotate "$live/" >rotated.$i 2>&1 || fail "rotate, three at a time: $(cat rotated.$i)"; done) &
	askers+=($!)
done
wait "${askers[@]}"
expect "parts" "$(find "$out" -maxdepth 1 -name "life-${programs[0]}.*.cudaspy" | wc -l)" 31
for i in 1 2 3 4 5; do
	"$tool" stop "$live" >/dev/null & # a window closes meanwhile
	"$tool" rotate "$live" >rotated || fail "rotate beside stop: $(cat rotated)"
	wait $!
	"$tool" mark "mark $i" "$live" >/dev/null || fail "mark"
	"$tool" start "$live" >/dev/null || fail "start"
done
kill -KILL "${programs[1]}"
for ((i = 0; i < 600; i++)); do
	kill -0 "${programs[1]}" 2>/dev/null || break
	sleep 0.05
done
"$tool" rotate "$out" >rotated 2>&1 || fail "rotate, one was killed: $(cat rotated)"
grep -q "life-${programs[1]}.cudaspy: .*no process of yours" rotated || fail "nothing is said of the one that was killed: $(cat rotated)"
expect "the others" "$(grep -c 'is finished' rotated)" 2
"$tool" rotate "$out/life-${programs[1]}.cudaspy" >rotated 2>&1
expect "rotate of one that was killed" "$?" 2
kill "${programs[0]}" "${programs[2]}"
wait 2>/dev/null
reported "$out"
expect "nothing is missing" "$(jq -c '[.losses[]?]' report.json)" '[]'
"$tool" dump "$out" >dump 2>err || fail "no dump"
expect "marks" "$(grep -c 'state=mark' dump)" 5
exit 0
