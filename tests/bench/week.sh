#!/bin/bash
# tests/bench/week.sh [CALLS] [THREADS] [SECONDS]: a week's run in minutes: CALLS recorded calls (default 10^7) by THREADS threads
# to a CUDA that does nothing, in 1,008 steps; behind each the program's clock goes on by ten minutes (tests/e2e/programs/week.c). Parts by
# size and age, with bounds: WEEK_PART and WEEK_KEEP in MiB. Samples memory, descriptors, files and disk, and says the largest of
# each, how far the run is, and what the report has. After SECONDS the program stops where it is. No cost windows, in which calls
# are only counted. Part of test_rotate.sh with few calls.
set -u
: "${CUDASPY_BUILD:?is to name the build directory}"
calls=${1:-10000000} threads=${2:-2} seconds=${3:-0}
dir=$(mktemp -d "${TMPDIR:-/tmp}/cudaspy-week.XXXXXX")
trap 'rm -rf "$dir"' EXIT
bin=$CUDASPY_BUILD/tests/e2e
CUDASPY_MEASURE_COST=0 CUDASPY_OUT=$dir/out CUDASPY_CLOCK=monotonic CUDASPY_ROTATE_SIZE=${WEEK_PART:-32} CUDASPY_ROTATE_EVERY=1h \
	CUDASPY_KEEP=${WEEK_KEEP:-256} CUDASPY_KEEP_FOR=3d LD_LIBRARY_PATH=$bin/week_cuda \
	LD_PRELOAD="${CUDASPY_FIRST:-} $CUDASPY_BUILD/libcudaspy.so" \
	"$bin/week" "$calls" "$threads" "${WEEK_DAYS:-7}" "$seconds" >"$dir/progress" 2>"$dir/messages" &
program=$!
kib=0 rss=0 fds=0 files=0 parts=0 last=
larger() { [ "${2:-0}" -gt "${!1}" ] && printf -v "$1" %s "$2"; }
sample() {
	larger kib "$(du -sk "$dir/out" 2>/dev/null | cut -f 1)"
	larger rss "$(awk '$1 == "VmRSS:" { print $2 }' /proc/$program/status 2>/dev/null)"
	larger fds "$(find /proc/$program/fd -mindepth 1 2>/dev/null | wc -l)"
	larger files "$(find "$dir/out" -type f 2>/dev/null | wc -l)"
	larger parts "$(find "$dir/out" -mindepth 1 -maxdepth 1 -name '*.cudaspy' 2>/dev/null | wc -l)"
}
most() { echo "most: disk_kib $kib rss_kib $rss descriptors $fds files $files parts $parts"; }
while kill -0 $program 2>/dev/null; do
	sample
	if [ "$(tail -n 1 "$dir/progress")" != "$last" ]; then
		last=$(tail -n 1 "$dir/progress")
		[ -z "${WEEK_PROGRESS:-}" ] || echo "$last; $(most)"
	fi
	sleep "${WEEK_SAMPLE:-0.2}"
done
wait $program || {
	cat "$dir/messages" >&2
	exit 1
}
finished=$(find "$dir/out" -mindepth 1 -maxdepth 1 -name '*.cudaspy' | sed -n 's/.*\.\([0-9]*\)\.cudaspy$/\1/p' | sort -n | tail -n 1)
"$CUDASPY_BUILD/cudaspy" report --format=json "$dir/out" >"$dir/report.json" 2>"$dir/complaints" || exit 1
cat "$dir/complaints" >&2
grep '^made' "$dir/progress"
most
echo "parts_finished $((10#${finished:-0}))"
sed -n 's/.*: \([0-9]*\) calls.*, \([0-9]*\) lost/recorded \1 lost \2/p' "$dir/messages"
python3 - "$dir/report.json" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
losses = report["losses"] or []
print("kept", report["summary"]["calls"], "removed", sum(l["count"] for l in losses if l["kind"] == "removed"),
      "other_losses", sum(l["kind"] != "removed" for l in losses))
P
