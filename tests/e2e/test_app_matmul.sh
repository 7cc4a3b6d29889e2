#!/bin/bash
# matmul, on eight simulated GPUs: threads are as fast as one alone until something that all of them need
# is held for long: a driver whose launches take one lock of the process, or pinning between launches.
# Then threads wait for each other, processes do not, and the report says for which lock, across GPUs.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
app=$build/testapps/matmul
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
export SPYSIM_GPUS=8
small=(--size 16 --iterations 100 --csv)

# Long kernels, and a lock held asleep, for a third of a kernel's time: one worker keeps ahead of its GPU
# also on a busy machine, eight cannot.
echo 'kernel matmul 3000' >good
printf 'kernel matmul 3000\nhold cuLaunchKernel mutex:process 1000\n' >onelock
printf 'kernel matmul 1000\ncost cuMemHostAlloc 4000\n' >pins

# play SCRIPT RATIOS OPTION...: recorded; the table in SCRIPT.csv, the report in SCRIPT.json. RATIOS are
# what a launch of all workers is to take, against that of the lone one: 'threads > 2 && processes < 1.5'. On
# a busy machine the lone one may have had bad luck, or the crew: then once more.
play() {
	local script=$1 ratios=$2 try
	shift 2
	for ((try = 1; ; try++)); do
		rm -rf "$out"
		CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/$script "$sim" \
			env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
			timeout -k 1 60 "$app" "${small[@]}" "$@" >"$script.csv" 2>"$script.err" ||
			fail "$script: exit status $?: $(tail -n 3 "$script.err")"
		holds "$script.csv" "$ratios" && break
		again $try 6 || fail "$script: ratios are to be $ratios: $(cat "$script.csv")"
	done
	"$tool" report --format=json "$out" >"$script.json" 2>report.err || fail "no report: $(cat report.err)"
}

# mean FILE MODE COLUMN: of the row of all workers.
mean() {
	awk -F, -v mode="$2" -v column="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 == mode && $at["worker"] == "all" { print $at[column]; exit }' "$1"
}

# holds FILE RATIOS
holds() {
	awk "BEGIN { threads = $(mean "$1" threads ratio)0; processes = $(mean "$1" processes ratio)0
		exit !($2) }"
}

is() {
	[ "$(jq "$2" "$1")" = true ] || fail "$1: not so: $2: $(jq -c '.waits, .call_blame[:3], .device_blame[:2], .locks[:2]' "$1")"
}

# The table: a row for each worker of each crew and one for all of them, in both runs.
SPYSIM_SCRIPT=$tmp/good "$sim" "$app" "${small[@]}" --gpus 4 --iterations 20 --repeat 2 --size 64 >good.csv 2>good.err ||
	fail "exit status $?: $(cat good.err)"
expect "header" "$(head -n 1 good.csv)" "mode,run,worker,gpu,ms_per_launch,gflop_per_s,ratio,beside_us"
expect "rows" "$(sed 1d good.csv | cut -d, -f1-4 | tr '\n' ' ')" "$(for run in 1 2; do
	echo "alone,$run,0,0 alone,$run,all,"
	for mode in threads processes; do
		echo "$mode,$run,0,0 $mode,$run,1,1 $mode,$run,2,2 $mode,$run,3,3 $mode,$run,all,"
	done
done | tr '\n' ' ')"
# 4 * size^3 operations in so many milliseconds; one decimal of GFLOP/s.
awk -F, 'NR > 1 { off = $5 * $6 * 1e6 - 4 * 64 ^ 3
		if ($5 < 3 || $7 <= 0 || $8 != "" || off > 6e4 * $5 || off < -6e4 * $5) exit 1 }' good.csv ||
	fail "numbers: $(cat good.csv)"
"$sim" "$app" --quick --json --threads 1 --beside event | jq -e 'length == 4 and all(.beside_us > 0)' >/dev/null ||
	fail "--json with --beside"

# Nothing in the way of anybody.
play good 'threads < 1.5 && processes < 1.5'
is good.json '.waits | .cross_device_ns < .total_ns / 20'

# One lock for all launches of a process.
play onelock 'threads > 1.7' --threads 8
is onelock.json '.waits | .lock_ns > .total_ns / 4 and .cross_device_ns > .lock_waited_ns * 0.9'
is onelock.json '.waits | .processes_help_ns > .lock_ns * 0.4 and (.processes | test("would save"))'
is onelock.json '.call_blame[0] | .waiter_function == "cudaLaunchKernel" and .holder_function == "cudaLaunchKernel"'
is onelock.json '.device_blame[0] | .waiter_device != .holder_device and .how == "measured"'
is onelock.json '[.locks[0] | .waiters, .holders] == [8, 8]'
is onelock.json '[.worst_calls[] | select(.function == "cudaLaunchKernel" and .holder > 0)][0] |
	.device != .holder_device and (.what | test("held by thread"))'
play onelock 'processes < 1.5' --processes 8
is onelock.json '.waits | .cross_device_ns == 0 and .lock_ns < .total_ns / 20'

# Pinning between launches: of that each thread does enough alone, but all of it is done under one lock.
play pins 'threads > 1.7 && processes < 1.4' --beside pin
awk -v processes="$(mean pins.csv processes beside_us)" -v threads="$(mean pins.csv threads beside_us)" \
	'BEGIN { exit !(threads > 1.3 * processes) }' || fail "pinning took no longer: $(cat pins.csv)"
is pins.json '.waits.cross_device_ns > .waits.total_ns / 10'
is pins.json '.call_blame[0].holder_function == "cudaMallocHost"'
is pins.json '.device_blame[0] | .waiter_device != .holder_device'
# The same where launches, too, take that lock: now they wait for other GPUs' pinning.
(echo 'lock process' && cat pins) >oldpins
play oldpins 'threads > 1.7' --threads 8 --beside pin
is oldpins.json 'any(.call_blame[]; .waiter_function == "cudaLaunchKernel" and
	.holder_function == "cudaMallocHost" and .how == "measured" and .waited_ns > 100e6)'

# Wrong results are noticed: the same program, but the simulator does not find the kernel's twin.
sed 's/spysim_kernel_matmul/spysim_kernel_matmux/g' "$app" >blind
chmod +x blind
"$sim" ./blind --quick >blind.out 2>blind.err
expect "exit status with wrong results" $? 1
grep -q 'numbers of the products are wrong' blind.err || fail "wrong results: $(cat blind.err)"
for wrong in --beside=nothing --beside= --beside=pin,,event --gpus=0 --size=x --every --nothing; do
	"$sim" "$app" $wrong >wrong.out 2>wrong.err
	expect "exit status with $wrong" $? 2
	[ -s wrong.err ] && [ ! -s wrong.out ] || fail "$wrong: $(cat wrong.out wrong.err)"
done
"$sim" "$app" --quick --gpus 9 2>wrong.err
expect "exit status with too few GPUs" $? 1
grep -q 'there are only 8' wrong.err || fail "too few GPUs: $(cat wrong.err)"
