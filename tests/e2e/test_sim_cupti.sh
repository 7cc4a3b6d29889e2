#!/bin/bash
# The simulator's look-alike of CUPTI: each operation of the truth is told once, with its times, its call and its
# thread, whatever the offset and the drift of CUPTI's clock; and the misbehaviour that can be scripted is there.
. "$(dirname "$0")/lib.sh"
need python3
sim="$here/../sim/with-sim"
check="$here/checks/check_cupti.py"
selftest="$CUDASPY_BUILD/sim/selftest_cupti"

# told NAME HOW [LINE...]: runs the selftest with these lines as the script and compares.
told() {
	local name=$1 how=$2 arg=
	shift 2
	mkdir "$name"
	printf '%s\n' "kernel_us 30" "$@" >"$name/script"
	[ "$how" = graph ] && arg=graph
	SPYSIM_SCRIPT=$name/script SPYSIM_TRUTH=$name "$sim" "$selftest" "$name/records" $arg >"$name/out" 2>&1 ||
		fail "$name: $(tail -n 5 "$name/out")"
	python3 "$check" "$name/records" "$name"/gpu.*.tsv $how || fail "$name: $(python3 "$check" "$name/records" "$name"/gpu.*.tsv $how 2>&1)"
}

told plain ""
told offset "" "cupti_offset_us -12345678.5" "cupti_drift_ppm 150"
told graphs graph
told broken broken "cupti_broken_times 9"
told dropped drop "cupti_drop 7"

echo "cupti_slot_taken 1" >taken
SPYSIM_SCRIPT=taken "$sim" "$selftest" /dev/null taken || fail "a slot that is taken is free"

# Two processes on the same GPUs: the times are those at which it really ran.
mkdir share one two
SPYSIM_SHARE=$PWD/share SPYSIM_TRUTH=one "$sim" "$selftest" one/records >one/out 2>&1 &
other=$!
SPYSIM_SHARE=$PWD/share SPYSIM_TRUTH=two "$sim" "$selftest" two/records >two/out 2>&1 || fail "two: $(tail -n 5 two/out)"
wait "$other" || fail "one: $(tail -n 5 one/out)"
for each in one two; do
	python3 "$check" "$each/records" "$each"/gpu.*.tsv || fail "shared GPUs: process $each"
done
# Kernels of the two exclude each other, but for the turns within one's time.
awk -F '\t' '$3 == "kernel" && $10 > $9 { print $2, $9, $10, FILENAME }' one/gpu.*.tsv two/gpu.*.tsv | sort -k1,1 -k2,2n |
	awk '$1 == gpu && $4 != file && $2 < end && $3 < end { inside++ } { all++; gpu = $1; file = $4; end = $3 }
		END { if (!all || inside > all / 4) { print inside, "of", all; exit 1 } }' || fail "shared GPUs: kernels of both at once"
exit 0
