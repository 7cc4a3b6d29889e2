#!/bin/bash
# tests/bench/week.sh [CALLS] [THREADS] [SPEED]: a week's run in minutes: CALLS recorded calls (default 10^7) by THREADS threads
# through the recorder, to a CUDA that does nothing, while a clock runs SPEED times as fast as the real one (a library that is
# preloaded; CUDASPY_CLOCK=monotonic). Parts by size and age, with bounds. Samples memory, descriptors, files and disk; says the
# largest of each, and what the report has. No cost windows, in which calls are only counted. Part of test_rotate.sh with few calls.
set -u
: "${CUDASPY_BUILD:?is to name the build directory}"
calls=${1:-10000000} threads=${2:-2} speed=${3:-60000}
dir=$(mktemp -d "${TMPDIR:-/tmp}/cudaspy-week.XXXXXX")
trap 'rm -rf "$dir"' EXIT
bin=$CUDASPY_BUILD/tests/e2e
FAKE_MODE=quiet WEEK_SPEED=$speed CUDASPY_MEASURE_COST=0 CUDASPY_OUT=$dir/out CUDASPY_CLOCK=monotonic CUDASPY_NOPROBES=1 CUDASPY_NOSTACKS=1 \
	CUDASPY_ROTATE_SIZE=${WEEK_PART:-32} CUDASPY_ROTATE_EVERY=1h CUDASPY_KEEP=${WEEK_KEEP:-256} CUDASPY_KEEP_FOR=3d \
	LD_LIBRARY_PATH=$bin/fakes LD_PRELOAD="${CUDASPY_FIRST:-} $bin/libweekclock.so $CUDASPY_BUILD/libcudaspy.so" \
	"$bin/life" load "$threads" $((calls / threads)) >/dev/null 2>"$dir/messages" &
program=$!
kib=0 rss=0 fds=0 files=0 parts=0 began=$(date +%s.%N)
larger() { [ "${2:-0}" -gt "${!1}" ] && printf -v "$1" %s "$2"; }
while kill -0 $program 2>/dev/null; do
	larger kib "$(du -sk "$dir/out" 2>/dev/null | cut -f 1)"
	larger rss "$(awk '$1 == "VmRSS:" { print $2 }' /proc/$program/status 2>/dev/null)"
	larger fds "$(find /proc/$program/fd -mindepth 1 2>/dev/null | wc -l)"
	larger files "$(find "$dir/out" -type f 2>/dev/null | wc -l)"
	larger parts "$(find "$dir/out" -mindepth 1 -maxdepth 1 -name '*.cudaspy' 2>/dev/null | wc -l)"
	sleep "${WEEK_SAMPLE:-0.2}"
done
wait $program || exit 1
took=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
"$CUDASPY_BUILD/cudaspy" report --format=json "$dir/out" >"$dir/report.json" 2>"$dir/complaints" || exit 1
cat "$dir/complaints" >&2
echo "calls $calls took_s $took simulated_h $(awk -v s="$took" -v k="$speed" 'BEGIN { printf "%.1f", s * k / 3600 }')"
echo "most: disk_kib $kib rss_kib $rss descriptors $fds files $files parts $parts"
sed -n 's/.*: \([0-9]*\) calls.*, \([0-9]*\) lost/recorded \1 lost \2/p' "$dir/messages"
python3 - "$dir/report.json" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
losses = report["losses"] or []
print("kept", report["summary"]["calls"], "removed", sum(l["count"] for l in losses if l["kind"] == "removed"),
      "other_losses", sum(l["kind"] != "removed" for l in losses))
P
