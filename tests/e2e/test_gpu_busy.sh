#!/bin/bash
# tests/gpu/busy, which holds times of GPUs against CUPTI, on the simulator: a row comes out whose numbers are those of
# the program, and records that CUPTI lost are not passed over. Simulated: no measurement.
. "$(dirname "$0")/lib.sh"
need python3
[ -x "$build/testapps/starved" ] || skip "the applications are not built (no CUDA toolkit?)"
[ -e "$build/gpu/libcupti_busy.so" ] || skip "the reference is not built: make gpu-build"
[ ! -e /dev/nvidia0 ] || skip "there is a GPU: it would be measured"

[ -z "$first" ] || skip "programs that are not built for a sanitizer"
busy="$here/../gpu/busy"

# between WHAT VALUE LEAST MOST
between() {
	awk -v x="$2" -v least="$3" -v most="$4" 'BEGIN { exit !(x ~ /^[0-9.]+$/ && x >= least && x <= most) }' ||
		fail "$1: $2 is not from $3 to $4: $(cat visit.out)"
}

# The status may be 1: a machine that is busy otherwise makes two runs differ.
timeout 100 "$busy" --build "$build" --out "$tmp/visit" --rounds 1 starved-sleep >visit.out 2>visit.err
[ -s "$tmp/visit/busy.tar.gz" ] || fail "no archive: $(cat visit.out visit.err)"
grep -q SIMULATED visit.out || fail "the visit does not say that it is simulated"
# 3 ms on the GPU and 2 ms asleep, or longer where the machine is slow.
read -r _ gpu _ ref dump work report certain default same _ < <(grep '^starved-sleep  0 ' visit.out)
expect "the GPU" "$gpu" 0
between ref "$ref" 20 65
between dump "$dump" 20 65
between "report less work" "$(echo "$report $work" | awk '{ print ($1 > $2 ? $1 - $2 : $2 - $1) }')" 0 2
between certain "$certain" 20 80
between default "$default" 20 80
expect "the same results" "$same" yes
grep '^starved-sleep  0 ' visit.out | grep -q '  sleep [0-9]*, ' || fail "the first cause is not the sleep: $(cat visit.out)"

echo "cupti_drop 7" >script
SPYSIM_SCRIPT=$tmp/script timeout 100 "$busy" --build "$build" --out "$tmp/lost" --rounds 1 starved-sleep >lost.out 2>&1
expect "status of a visit that lost records" $? 1
grep -q '^starved-sleep 1: the reference has [1-9][0-9]* dropped$' lost.out || fail "lost by the reference: $(cat lost.out)"
grep -q '^starved-sleep 1 GPU 0: not exact: GPU times are not complete' lost.out || fail "lost by cudaspy: $(cat lost.out)"

timeout 20 "$busy" --build "$build" nosuch >said 2>&1
expect "status of an unknown program" $? 2
exit 0
