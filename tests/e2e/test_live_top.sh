#!/bin/bash
# top, on the simulator: once, as JSON, as metrics, and on a terminal: what is on the screen, keys, sizes, and that the
# terminal is as it was in the end.
. "$(dirname "$0")/lib.sh"
need jq python3
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
app=$build/testapps/hang
[ -x "$app" ] || skip "$app is not built (no CUDA toolkit?)"
sim="$here/../sim/with-sim"
export TMPDIR=$tmp CUDASPY_QUIET=1
# A name that would break a label, and a terminal.
name=$'ha"ng\\\e[31mx'
cp "$app" "$tmp/$name"
CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" "$tmp/$name" --seconds 300 --variant kernel >hang.out 2>hang.err &
running=$!
trap 'kill -KILL $running 2>/dev/null; screen kill-server 2>/dev/null; wait 2>/dev/null; clean_up' EXIT
screen() {
	tmux -f /dev/null -S "$tmp/tmux" "$@"
}

for i in $(seq 300); do
	"$tool" top --json --interval=100ms --after=300ms --prom=top.prom "$out" >top.json 2>err
	[ -s top.json ] && jq -e '.verdicts[0].kind == "gpu" and ([.threads[] | select(.function != null)] | length) == 3' top.json >/dev/null 2>&1 && break
	sleep 0.1
done
that() {
	jq -e "$1" top.json >/dev/null || fail "$2: $(jq -c . top.json) $(cat err hang.err)"
}
that '.schema == "cudaspy-top-1" and (.processes | length) == 1 and .processes[0].threads == 4 and .processes[0].waiting == 3' "processes"
that '(.threads | length) == 4 and (.locks | length) == 1 and .locks[0].waiters == 1' "threads and locks"
that 'any(.costs[]; .function == "cudaFree" and .ns > 10e6) and any(.costs[]; .function == "cudaMemcpyAsync" and (.what | test("for a .* lock in libcuda")))' "costs"
that '.gpus[0].outstanding >= 1 and .gpus[0].waiting == 2' "GPUs"
# What NVML says, as soon as it was asked; its clock is the simulator's.
for i in $(seq 100); do
	"$tool" top --json --interval=100ms --after=300ms --prom=top.prom "$out" >top.json 2>err
	jq -e '.gpus[0].clock_mhz != null' top.json >/dev/null 2>&1 && break
done
that '.gpus[0] | .clock_mhz == 1980 and .clock_most_mhz == 1980 and .busy_percent <= 100 and .other_processes == 0 and .temperature_c == null and
	(.nvml | test("clock 1980 of 1980 MHz$"))' "NVML"
"$tool" top --once --interval=100ms --after=300ms "$out" >top.text || fail "--once: status $?"
for text in 'GPU 0 has work that does not end' 'NVML: a kernel runs for' PROCESSES COSTLIEST LOCKS GPUS THREADS cudaFree; do
	grep -q "$text" top.text || fail "--once has no '$text': $(cat top.text)"
done

# ---- metrics ------------------------------------------------------------------------------------------
pid=$(jq '.processes[0].pid' top.json)
"$here/checks/check_prom.py" top.prom >samples || fail "the metrics: $(cat top.prom)"
# sample METRIC LABELS VALUE
sample() {
	grep -qF "$1"$'\t'"$2"$'\t'"$3" samples || fail "no $1 $2 $3: $(cat samples)"
}
labels='pid='$pid',program=ha\"ng\\'$'\e''[31mx,rank='
sample cudaspy_processes "" 1
sample cudaspy_hangs kind=gpu 1
sample cudaspy_hangs kind=deadlock 0
sample cudaspy_threads "$labels,state=gpu" 2
sample cudaspy_threads "$labels,state=lock" 1
sample cudaspy_gpu_clock_hertz "gpu=0,$labels" 1980000000
sample cudaspy_calls_per_second "$labels" 0
sample cudaspy_gpu_waiting_threads "gpu=0,$labels" 2
expect "mode of the metrics" "$(stat -c %a top.prom)" 644
# As a service: without a terminal, again and again, always complete, until it is told to end.
"$tool" top --prom=service.prom --interval=100ms "$out" >service.out 2>&1 </dev/null &
service=$!
seen=0 last=
for i in $(seq 300); do
	if [ -e service.prom ]; then
		cp service.prom now.prom
		"$here/checks/check_prom.py" now.prom >samples || fail "the metrics of a service: $(cat now.prom)"
		now=$(grep ^cudaspy_looked_at samples)
		[ "$now" = "$last" ] || seen=$((seen + 1))
		last=$now
	fi
	[ $seen -ge 3 ] && break
	sleep 0.05
done
kill -TERM $service
wait $service
status=$?
expect "a service that is told to end: status ($(cat service.out))" $status 0
[ $seen -ge 3 ] || fail "a service wrote $seen times"
[ -z "$(ls service.prom.* 2>/dev/null)" ] || fail "something is left beside it: $(ls service.prom.*)"
"$tool" top --once --interval=100ms --prom=no/such/folder/x.prom "$out" >said 2>err
expect "metrics that cannot be written: status" $? 2
grep -q 'no/such/folder/x.prom: No such file' err || fail "metrics that cannot be written: $(cat err)"

# ---- programs of several runs: each is shown, and nothing is said of reading them as one ---------------
runs=
for i in 1 2; do
	"$sim" env CUDASPY_LIB="$shim" "$tool" run --no-report -o two -- "$app" --seconds 300 --variant kernel >run$i.out 2>run$i.err &
	runs="$runs $!"
done
trap 'kill -TERM $runs 2>/dev/null; kill -KILL $running 2>/dev/null; screen kill-server 2>/dev/null; wait 2>/dev/null; clean_up' EXIT
for i in $(seq 300); do
	"$tool" top --json --interval=100ms two >two.json 2>err
	[ -s two.json ] && jq -e '.processes | length == 2' two.json >/dev/null 2>&1 && break
	sleep 0.1
done
expect "processes of two runs ($(cat err run?.err))" "$(jq '.processes | length' two.json)" 2
[ -s err ] && fail "top, two runs: complains: $(cat err)"
kill -TERM $runs
# shellcheck disable=SC2086
wait $runs

# ---- what is wrong ------------------------------------------------------------------------------------
for wrong in "--interval=1ms:100ms at least" "--interval=soon:not a time" ":no terminal"; do
	# shellcheck disable=SC2086
	"$tool" top ${wrong%%:*} "$out" >said 2>err </dev/null
	expect "top ${wrong%%:*}: status" $? 2
	grep -q -- "${wrong##*:}" err || fail "top ${wrong%%:*}: says $(cat err)"
done

for missing in no-such-folder 999999999; do
	"$tool" top --once $missing >said 2>err
	expect "top --once $missing: status" $? 2
	grep -q "$missing" err || fail "top --once $missing: says $(cat err)"
done

# ---- the screen ---------------------------------------------------------------------------------------
if ! command -v tmux >/dev/null; then
	without "the screen (no tmux)"
	exit 0
fi
export TERM=xterm-256color LC_ALL=C.UTF-8
screen new-session -d -x 80 -y 24 "stty -g >before; '$tool' top --interval=200ms --after=300ms '$out' 2>top.err; echo status \$? >status; stty -g >after; echo is over; read x" ||
	fail "no tmux to be had"
# shows TEXT: until it is on the screen.
shows() {
	local i
	for i in $(seq 200); do
		screen capture-pane -p >pane 2>/dev/null
		grep -q -- "$1" pane && return
		sleep 0.1
	done
	fail "the screen does not show '$1': $(cat pane; cat top.err)"
}
hides() {
	local i
	for i in $(seq 200); do
		screen capture-pane -p >pane
		grep -q -- "$1" pane || return
		sleep 0.1
	done
	fail "the screen still shows '$1': $(cat pane)"
}
shows 'free_block'
expect "lines of the screen" "$(wc -l <pane)" 24
head -n 1 pane | grep -q '^cudaspy top  .* 1 process  4 threads, 3 waiting' || fail "the first line: $(cat pane)"
tail -n 1 pane | grep -q '^q quit  s sort  space stop' || fail "the last line: $(cat pane)"
for text in 'GPU 0 has work that does not end' '^GPU 0  .*outstanding, 2 waiting' '^L1  1 waiting, longest' \
	'^thread  *for  in call  *waits for' 's  cudaFree  *GPU 0  *free_block' 's  cudaMemcpyAsync  *lock L1  *copy_some'; do
	grep -q -- "$text" pane || fail "the screen has no '$text': $(cat pane)"
done
grep -q $'\e' pane && fail "something escapes: $(cat -v pane)"
screen send-keys s
shows 'by numb'
screen send-keys s
shows 'most ca'
screen send-keys s
shows 'where (longest'
screen send-keys Space
shows STOPPED
at=$(head -n 1 pane | awk '{ print $3 }')
sleep 0.7
screen capture-pane -p >pane
expect "time of a picture that is stopped" "$(head -n 1 pane | awk '{ print $3 }')" "$at"
screen send-keys Space
hides STOPPED
screen send-keys Down Enter
shows '^process'
shows '^q back'
screen send-keys Escape
shows '^q quit'
screen send-keys '?'
shows 'sort threads'
screen send-keys q
shows '^q quit'
screen resize-window -x 30 -y 6
shows 'too small'
screen resize-window -x 130 -y 40
shows 'hang.c:[0-9]*$'
shows '^q quit'
# The program ends: top goes on, and shows that nothing is running.
kill -KILL $running
shows 'No recorded program is running'
screen send-keys q
shows 'is over'
expect "status" "$(cat status)" "status 0"
expect "the terminal's settings" "$(cat after)" "$(cat before)"
[ -s top.err ] && fail "top complains: $(cat top.err)"
exit 0
