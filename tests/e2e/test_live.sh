#!/bin/bash
# snapshot and ps, on the simulator: what hangs is named rightly while it hangs, its twin is not, and whoever is looked at
# does not notice. testapps/hang has the situations.
. "$(dirname "$0")/lib.sh"
need jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
app=$build/testapps/hang
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=300 CUDASPY_QUIET=1
running=

# start OPTION...: hang, recorded, in the background; it stays until stop.
start() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" "$app" --quick --seconds 200 "$@" \
		>hang.out 2>hang.err &
	running=$!
}

# Its processes end with it.
stop() {
	[ -z "$running" ] || kill -KILL "$running" 2>/dev/null
	wait "$running" 2>/dev/null
	running=
}
trap 'stop; clean_up' EXIT

# look STATUS [WORD...]: a snapshot, as JSON in snapshot.json and as text in snapshot.
look() {
	local wanted=$1 status
	shift
	"$tool" snapshot --json --after=400ms "$@" >snapshot.json 2>snapshot.err
	status=$?
	[ $status = "$wanted" ] || fail "snapshot $*: status $status, expected $wanted: $(cat snapshot.err; jq -c .verdicts snapshot.json)"
	[ -s snapshot.err ] && fail "snapshot $*: complains: $(cat snapshot.err)"
	"$tool" snapshot --after=400ms "$@" >snapshot 2>/dev/null
	[ "$(jq length snapshot.json)" -gt 0 ]
}

# until_it KIND [TEXT]: looks until that is the verdict: machines may be busy.
until_it() {
	local i
	for i in $(seq 300); do
		"$tool" snapshot --json --after=400ms "$out" >snapshot.json 2>snapshot.err
		[ "$(jq -r '.verdicts[0].kind' snapshot.json 2>/dev/null)" = "$1" ] &&
			jq -r '.verdicts[0].text' snapshot.json | grep -qE -- "${2:-.}" && return
		kill -0 "$running" 2>/dev/null || fail "hang has ended: $(cat hang.err)"
		sleep 0.1
	done
	fail "no verdict '$1': $(jq -c .verdicts snapshot.json) $(cat snapshot.err)"
}

# says TEXT...: the text of the first verdict, with its lines put together.
says() {
	local text
	for text; do
		jq -r '.verdicts[0].text' snapshot.json | grep -qE -- "$text" || fail "the verdict has no '$text': $(jq -r '.verdicts[0].text' snapshot.json)"
	done
}

# that JQ WHAT
that() {
	jq -e "$1" snapshot.json >/dev/null || fail "$2: $(jq -c . snapshot.json)"
}

# what of a process must not change when it is looked at
untouched() {
	grep -E '^(TracerPid|SigPnd|ShdPnd):' "/proc/$1/status"
	cat /proc/"$1"/task/*/status | grep -E '^(SigPnd|State):'
}

# ---- a lock cycle of the program's own locks, between calls ------------------------------------------
start --variant lock-cycle
until_it deadlock
pid=$(jq '.processes[0].pid' snapshot.json)
untouched "$pid" >before
look 1 "$pid"
untouched "$pid" >after
cmp before after || fail "the snapshot was noticed: $(diff before after)"
says '^DEADLOCK: thread [0-9]+ .*lock_for_some_time, hang.c:[0-9]+.* waits for lock L1, held by thread [0-9]+' \
	'which waits for lock L2, held by thread [0-9]+' 'none of them can go on'
that '[.threads[] | select(.doing == "lock")] | length == 2 and .[0].holder != .[1].holder and
	all(.wait_kind == "mutex" and .wait_ns > 0 and (.where | test("hang.c")))' "two threads that wait for each other"
that '(.locks | length) == 2 and all(.locks[]; .waiters == 1 and .lies == "hang" and (.holder | test("^thread ")))' "two locks"
that '.chains[0].threads == 2' "a chain of two"
head -n 1 snapshot | grep -q '^DEADLOCK: thread' || fail "the first line is $(head -n 1 snapshot)"
grep -q 'asleep' snapshot || fail "no state of the system's: $(cat snapshot)"
# Without arguments: all recorded programs of this user; others' tests may run.
"$tool" snapshot --json --after=400ms >all.json 2>/dev/null
jq -e --argjson pid "$pid" 'any(.processes[]; .pid == $pid)' all.json >/dev/null || fail "without arguments: $(jq -c .processes all.json)"
# The same on another node: nothing is known of the system's threads, times are those of the day.
rm -rf elsewhere
cp -R "$out" elsewhere
sed -i 's/boot_id = "[^"]*"/boot_id = "01234567-89ab-cdef-0123-456789abcdef"/' elsewhere/*/metadata
"$tool" snapshot --json --after=400ms elsewhere >node.json 2>node.err
status=$?
expect "on another node: status ($(cat node.err) $(jq -c . node.json))" $status 1
jq -e '.verdicts[0] | .kind == "deadlock" and .lasted_ns > 0 and .lasted_ns < 600e9' node.json >/dev/null || fail "on another node: $(jq -c .verdicts node.json)"
jq -e 'all(.threads[]; .system == null) and .processes[0].user == null' node.json >/dev/null || fail "on another node: $(jq -c .threads node.json)"
# Nowhere to write to.
for line in ps "ps --json" "snapshot $pid" "snapshot --json $pid" "top --once --interval=100ms $pid" "top --json --interval=100ms $pid"; do
	# shellcheck disable=SC2086
	"$tool" $line >/dev/full 2>err
	expect "$line, nowhere to write to: status" $? 2
	grep -q 'standard output: No space left' err || fail "$line, nowhere to write to: $(cat err)"
done
in_columns() {
	local width
	for width in 60 80 160; do
		COLUMNS=$width "$tool" snapshot "$pid" | LC_ALL=C.UTF-8 grep -E "^.{$((width + 1)),}" >wide &&
			fail "wider than $width columns: $(head -n 3 wide)"
	done
}
in_columns

# ---- ps -----------------------------------------------------------------------------------------------
"$tool" ps >ps || fail "ps: status $?"
grep -qE "^ +$pid  hang .* 0 +3 " ps || fail "ps has no process $pid with GPU 0 and 3 threads: $(cat ps)"
"$tool" ps --json >ps.json || fail "ps --json: status $?"
jq -e --argjson pid "$pid" --arg out "$out" '.processes[] | select(.pid == $pid) | .program == "hang" and .threads == 3 and
	.waiting == 2 and .calls_per_s == 0 and .rank == null and .gpus == "0" and .started_ns > 0 and
	(.directory | startswith($out))' ps.json >/dev/null || fail "ps --json: $(cat ps.json)"
"$tool" report --format=json "$out" >report.json 2>report.err || fail "report on a running program: $(cat report.err)"
jq -e '.summary.calls > 10 and (.losses | length) == 0' report.json >/dev/null || fail "report on a running program: $(jq -c .summary report.json)"

# Another user's processes are not shown, but to root.
if [ "$(id -u)" = 0 ]; then
	(
		for_other_users cudaspy
		setpriv --reuid=60001 --regid=60001 --clear-groups "$tmp/build/cudaspy" ps --json >other.json || fail "ps of another user: $?"
		jq -e --argjson pid "$pid" 'all(.processes[]; .pid != $pid)' other.json >/dev/null || fail "another user sees $pid"
		setpriv --reuid=60001 --regid=60001 --clear-groups "$tmp/build/cudaspy" snapshot "$pid" >other 2>other.err
		expect "snapshot of another user's process: status" $? 2
		grep -q "process $pid is not recorded by cudaspy" other.err || fail "another user's process: $(cat other.err)"
	) || exit 1
else
	without "another user (not root)"
fi

# A killed one is not running.
stop
for i in $(seq 100); do
	"$tool" ps --json | jq -e --argjson pid "$pid" 'all(.processes[]; .pid != $pid)' >/dev/null && break
	sleep 0.1
done
expect "ps of a killed process: tries" "$((i < 100))" 1
"$tool" snapshot "$out" >snapshot 2>snapshot.err
expect "snapshot of a killed process: status" $? 2
grep -q 'nothing of it is running any more' snapshot.err || fail "a killed process: $(cat snapshot.err)"
# Its report knows the cycle, once the system has forgotten the process: until then it might run.
for i in $(seq 100); do
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.1
done
"$tool" report --format=json "$out" >report.json
jq -e '[.findings[] | select(.id == "lock-cycle")] | length == 1 and (.[0].file | endswith("hang.c")) and (.[0].what |
	test("stood in a cycle.*: thread [0-9]+ .* waits, between CUDA calls, in lock_for_some_time, hang.c:[0-9]+ .* for the lock at hang.0x[0-9a-f]+ .(queue|cache)_lock., held by thread"))' \
	report.json >/dev/null || fail "the report on a killed process: $(jq -c .findings report.json) $(jq -c .summary report.json)"

# ---- a cycle of the driver's locks, inside calls ------------------------------------------------------
cat >script <<-'END'
	hold cuMemcpyHtoDAsync mutex:one 3000 whole
	hold cuMemcpyHtoDAsync mutex:two 3000 whole
	hold cuLaunchKernel mutex:two 3000 whole
	hold cuLaunchKernel mutex:one 3000 whole
END
SPYSIM_SCRIPT=$tmp/script start --variant clean
until_it deadlock
says '^DEADLOCK: thread ' 'in cuda(LaunchKernel|MemcpyAsync)' 'held by thread [0-9]+.*held by thread [0-9]+'
that '[.threads[] | select(.doing == "lock" and .function != null)] | length >= 2 and
	(map(.function | sub("^_*"; "")) | unique) == ["cudaLaunchKernel", "cudaMemcpyAsync"]' "a launch and a copy"
that 'all(.chains[]; .threads <= 4)' "chains end where they have been"
sleep 1.2 # so long it has to last to be one afterwards
stop
# Afterwards, in the recording of a process that was killed.
"$tool" report --format=json "$out" >report.json
jq -e '[.findings[] | select(.id == "lock-cycle")] | length == 1 and .[0].severity == "problem" and
	(.[0].what | test("stood in a cycle.*: thread [0-9]+ .* waits inside .*, held by thread [0-9]+ .*, which waits inside .*, held by thread"))' \
	report.json >/dev/null || fail "the report: $(jq -c .findings report.json)"

# ---- a kernel that does not end -----------------------------------------------------------------------
start --variant kernel
until_it gpu 'kernel delay.*cudaFree'
for i in $(seq 100); do
	look 1 "$out"
	[ -s snapshot.json ] && jq -e '[.threads[] | select(.in_call or .function != null)] | length == 3' snapshot.json >/dev/null 2>&1 && break
	sleep 0.1
done
says '^GPU 0 has work that does not end.*kernel delay, launched .* ago by thread' 'cudaFree' 'free_block, hang.c:[0-9]+' 'Behind it: 2 other threads'
that 'any(.chains[]; .threads == 2 and (.chain | test("cudaMemcpyAsync.*copy_some, hang.c.*waits for lock L1, held by thread.*cudaFree.*free_block.*waits for GPU 0: kernel delay")))' \
	"the chain from the copy to the kernel"
that '.gpus | length == 1 and .[0].outstanding >= 1 and .[0].waiting == 2' "GPU 0"
that 'any(.threads[]; .function == "cudaFree" and .stack != null)' "the last recorded stack"
grep -q 'not the call it is in now\|not the call$' snapshot || fail "the last stack is not said to be that: $(cat snapshot)"
"$tool" snapshot --no-stacks "$out" | grep -q 'last recorded' && fail "--no-stacks has stacks"
stop

# ---- a function on the host that waits for who waits for it --------------------------------------------
start --variant callback
until_it gpu
says '^GPU 0 has work that does not end' 'behind it a function on the host \(callback_work, hang.c:[0-9]+\)' 'cudaStreamSynchronize'
stop

# ---- a rank that does not come ------------------------------------------------------------------------
start --variant rank --ranks 3
until_it collective '#4.*read_batch'
look 1 "$out"
says '^rank 2 has not entered ncclAllReduce #4, which ranks 0 and 1 submitted .* ago' 'of rank 2 .*read_batch, hang_rank.c:[0-9]+.*waits for a read'
that '.ranks | length == 3 and (map(.rank) == [0, 1, 2]) and .[2].state == "has not entered ncclAllReduce #4" and
	.[2].operation == "ncclAllReduce #3" and .[0].state == "has submitted ncclAllReduce #4 behind other work" and .[0].ranks == 3' "ranks"
that '.verdicts | length == 1' "one verdict, and not one for each GPU"
that '(.processes | length) == 3 and (map(.rank)? // [.processes[].rank] | sort) == ["0", "1", "2"]' "three processes"
pid=$(jq '.processes[] | select(.rank == "0") | .pid' snapshot.json)
look 1 "$pid"
says '^ncclAllReduce #4 has been open for .*: rank 0 has submitted it' 'Of 3 ranks 1 are known here'
stop

# ---- nothing hangs ------------------------------------------------------------------------------------
start --variant clean
for i in $(seq 300); do
	"$tool" snapshot --json "$out" >snapshot.json 2>/dev/null
	[ -s snapshot.json ] && jq -e '[.threads[] | select(.name != null)] | length == 4' snapshot.json >/dev/null 2>&1 && break
	sleep 0.1
done
for i in 1 2 3; do
	"$tool" snapshot --json --after=5s "$out" >snapshot.json 2>snapshot.err
	status=$?
	expect "the twin: status ($(jq -c .verdicts snapshot.json))" $status 0
	that '.verdicts | length == 1 and .[0].kind == "fine" and (.[0].text | test("^nothing hangs"))' "the twin hangs"
done
stop

# ---- what is wrong is said ----------------------------------------------------------------------------
wrong() {
	local words=$1
	shift
	"$tool" "$@" >said 2>err
	expect "$*: status" $? 2
	grep -qF -- "$words" err || fail "$*: does not say '$words': $(cat err)"
}
wrong "there is no process 999999999" snapshot 999999999
wrong "process $$ is not recorded by cudaspy" snapshot $$
wrong "no-such" snapshot no-such
wrong "not a time" snapshot --after=soon
wrong "ps has no arguments" ps 1
exit 0
