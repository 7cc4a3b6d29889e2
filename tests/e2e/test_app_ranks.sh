#!/bin/bash
# ranks, on the simulator: when one rank is late all others wait for it inside their all-reduces, and it waits for
# nobody; without one, the ranks are alike. Through NCCL's look-alike and through shared memory.
. "$(dirname "$0")/lib.sh"
need jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
app=$build/testapps/ranks
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=40

# ran NAME OPTION...: its table into NAME.csv.
ran() {
	local name=$1
	shift
	timeout -k 5 100 "$sim" "$app" --quick --csv "$@" >"$name.csv" 2>"$name.err" || fail "$*: status $?: $(cat "$name.err")"
}

# that NAME RANK CONDITION: of that rank's columns step and reduce (ms).
that() {
	awk -F, -v rank="$2" '$1 == rank { step = $5; reduce = $6; exit !('"$3"') }' "$1.csv" || fail "$1: rank $2: $3 is not so: $(cat "$1.csv")"
}

ran clean
expect "header" "$(head -n 1 clean.csv)" "rank,gpu,through,steps,step_ms,all_reduce_ms,straggler"
expect "ranks" "$(sed 1d clean.csv | cut -d, -f1-4 | tr '\n' ' ')" "0,0,nccl,20 1,1,nccl,20 "
for cause in free load sync cpu kernel; do
	ran $cause --straggler 1:$cause:2:20
	that $cause 0 "reduce > 6 && step > 8"
	that $cause 1 "reduce < 5"
	expect "$cause: straggler" "$(sed 1d $cause.csv | cut -d, -f7 | tr '\n' ' ')" " $cause "
done
ran four --ranks 4 --gpus 2 --straggler 3:cpu:1:10
expect "GPUs of four ranks" "$(sed 1d four.csv | cut -d, -f2 | tr '\n' ' ')" "0 1 0 1 "
for rank in 0 1 2; do
	that four $rank "reduce > 6"
done
ran overlap --overlap --straggler 0:load:1:10
that overlap 1 "reduce > 6"
ran seldom --read-every 7 --steps 16
expect "steps" "$(sed 1d seldom.csv | cut -d, -f4 | sort -u)" 16
ran host --without-nccl --straggler 0:cpu:1:10
expect "through" "$(sed 1d host.csv | cut -d, -f3 | sort -u)" host
that host 1 "reduce > 6"

# What launchers set is there before CUDA is: the recorder's traces are three, one of the process that counts GPUs.
CUDASPY_OUT=$out CUDASPY_QUIET=1 "$sim" env LD_PRELOAD="$shim $build/sim/libsimkernel.so" timeout -k 5 60 \
	"$app" --quick --json --straggler 1:free:2:10 >spied.json 2>spied.err || fail "recorded: $(cat spied.err)"
jq -e 'length == 2 and .[1].straggler == "free"' spied.json >/dev/null || fail "recorded: $(cat spied.json)"
"$tool" report --format=json "$out" >report.json 2>report.err || fail "no report: $(cat report.err)"

# Wrong results are noticed: the same program, but the simulator does not find the kernel's twin.
sed 's/spysim_kernel_add/spysim_kernel_adx/g' "$app" >blind
chmod +x blind
"$sim" ./blind --quick >blind.out 2>blind.err
expect "exit status with wrong results" $? 1
grep -q 'sums are wrong' blind.err || fail "wrong results: $(cat blind.err)"
for wrong in --straggler=1 --straggler=1:sleep --straggler=2:cpu --straggler=1:cpu:0 --ranks=1 --nothing; do
	"$sim" "$app" $wrong >wrong.out 2>wrong.err
	expect "exit status with $wrong" $? 2
	[ -s wrong.err ] && [ ! -s wrong.out ] || fail "$wrong: $(cat wrong.out wrong.err)"
done
