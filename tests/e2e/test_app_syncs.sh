#!/bin/bash
# syncs, on the simulator: whoever synchronises the GPU that computes stands still for as long as it
# computes, whoever synchronises the other one waits for nothing. The table says so, and so does the report.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
app=$build/testapps/syncs
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
# Kernels so long that the launches between them do not count: all rounds take the GPU 300 ms.
echo 'kernel matmul 1000' >script
export SPYSIM_SCRIPT=$tmp/script
all="none other own both every event stream"

# spy VARIANT: recorded, its report in VARIANT.json.
spy() {
	rm -rf "$out"
	CUDASPY_OUT=$out "$sim" env LD_PRELOAD="$first $shim $build/sim/libsimkernel.so" \
		timeout -k 1 60 "$app" --quick --csv --variant "$1" >"$1.csv" 2>"$1.err" ||
		fail "$1: exit status $?: $(tail -n 3 "$1.err")"
	"$tool" report --format=json "$(the_trace)" >"$1.json" 2>report.err || fail "no report: $(cat report.err)"
}

# cell FILE VARIANT COLUMN
cell() {
	awk -F, -v variant="$2" -v column="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 == variant { print $at[column] }' "$1"
}

# that FILE VARIANT CONDITION: in terms of the variant's columns.
that() {
	local name set=
	for name in total_ms syncs in_syncs_ms end_ms; do
		set+="$name = $(cell "$1" "$2" $name) + 0; "
	done
	awk "BEGIN { $set exit !($3) }" || fail "$1: $2: $3 is not so: $(cat "$1")"
}

is() {
	[ "$(jq "def account(f): .function_accounts[] | select(.function == f); $2" "$1")" = true ] ||
		fail "$1: not so: $2: $(jq -c '.waits, (.function_accounts[] | select(.function | test("Sync")))' "$1")"
}

"$sim" "$app" --quick --csv >bare.csv 2>bare.err || fail "exit status $?: $(cat bare.err)"
expect "header" "$(head -n 1 bare.csv)" "variant,rounds,total_ms,syncs,in_syncs_ms,sync_us,end_ms"
expect "variants" "$(sed 1d bare.csv | cut -d, -f1 | tr '\n' ' ')" "$all "
expect "synchronising calls" "$(sed 1d bare.csv | cut -d, -f4 | tr '\n' ' ')" "0 300 300 600 30 300 300 "
for variant in own both every event stream; do
	that bare.csv $variant "in_syncs_ms > 150 && end_ms < total_ms / 4"
done
for variant in none other; do
	that bare.csv $variant "in_syncs_ms < 30 && end_ms > total_ms / 4 && total_ms >= 300"
done
expect "time of a call where there is none" "$(cell bare.csv none sync_us)" ""
"$sim" "$app" --quick --json --variant stream | jq -e '.[0].syncs == 300 and length == 1' >/dev/null || fail "--json"
"$sim" "$app" --iterations 20 --quick --json --variant stream | jq -e '.[0].rounds == 20' >/dev/null || fail "rounds, given with --quick"

# The idle time is no loss: it is what these calls are for. It shows in the calls that have it.
spy own
that own.csv own "in_syncs_ms > 150"
is own.json '.waits | .gpu_intended_ns > 150e6 and .lock_ns == 0 and .gpu_hidden_ns < 10e6'
is own.json 'account("cudaDeviceSynchronize") | .gpu_intended_ns > 150e6 and .calls >= 300'
is own.json 'account("cudaStreamSynchronize") | .gpu_intended_ns < 30e6'
spy other
that other.csv other "in_syncs_ms < 30"
is other.json 'account("cudaDeviceSynchronize") | .gpu_intended_ns < 30e6 and .calls >= 300'
is other.json 'account("cudaStreamSynchronize") | .gpu_intended_ns > 75e6'
spy none
is none.json 'account("cudaDeviceSynchronize") | .calls < 10 and .gpu_intended_ns < 30e6'

# One GPU: what makes sense with one.
SPYSIM_GPUS=1 "$sim" "$app" --quick --csv >one.csv 2>one.err || fail "one GPU: $(cat one.err)"
expect "variants with one GPU" "$(sed 1d one.csv | cut -d, -f1 | tr '\n' ' ')" "none own every event stream "
grep -q 'only one GPU' one.err || fail "one GPU, and it says: $(cat one.err)"
SPYSIM_GPUS=1 "$sim" "$app" --quick --variant other >one.out 2>one.err
expect "exit status of 'other' with one GPU" $? 1
SPYSIM_GPUS=0 "$sim" "$app" --quick >no.out 2>no.err
expect "exit status without a GPU" $? 1
[ -s no.err ] && [ ! -s no.out ] || fail "no GPU: $(cat no.out no.err)"

# Wrong results are noticed: the same program, but the simulator does not find the kernel's twin.
sed 's/spysim_kernel_matmul/spysim_kernel_matmux/g' "$app" >blind
chmod +x blind
"$sim" ./blind --quick >blind.out 2>blind.err
expect "exit status with wrong results" $? 1
expect "variants with wrong results" "$(grep -c 'numbers of the products are wrong' blind.err)" 7
for wrong in --variant=nothing --gpus=3 --size=0 --every --nothing; do
	"$sim" "$app" $wrong >wrong.out 2>wrong.err
	expect "exit status with $wrong" $? 2
	[ -s wrong.err ] && [ ! -s wrong.out ] || fail "$wrong: $(cat wrong.out wrong.err)"
done
