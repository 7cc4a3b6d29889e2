#!/bin/bash
# Ranks whose GPUs have different amounts of work, on the simulator: in turn, or one stage of a pipeline always. The twins have as much
# in all ranks.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
need jq
[ -z "$first" ] || skip "programs that are not built for a sanitizer"
sim="$here/../sim/with-sim"
app=$build/testapps/ranks
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=60 CUDASPY_QUIET=1

# found NAME RANKS OPTION...: uneven-work, if its report has it. Work of 20 ms a step. (The simulator's GPUs are threads: beside other programs
# one may well be slow.)
found() {
	local name=$1 ranks=$2
	shift 2
	SPYSIM_GPUS=$ranks timeout -k 5 100 "$sim" "$tool" run --no-report --out="$tmp/$name" -- "$app" --quick --csv --ranks="$ranks" --gpus="$ranks" \
		--steps=24 --work-us=20000 --bytes=2048 "$@" >"$name.csv" 2>"$name.err" || fail "$*: status $?: $(cat "$name.err")"
	"$tool" report --format=json "$tmp/$name" >"$name.json" 2>"$name.err" || fail "$name: no report: $(cat "$name.err")"
	jq -r '[.findings[].id | select(. == "uneven-work")] | unique | join(" ")' "$name.json"
}

# even WHAT NAME RANKS OPTION...: not found; a GPU that was slow beside other programs is not so three times.
even() {
	local what=$1 said
	shift
	for _ in 1 2 3; do
		rm -rf "${tmp:?}/$1"
		said=$(found "$@") || exit 1
		[ -n "$said" ] || return 0
	done
	fail "$what: $said"
}

even "as much for all" even 2
expect "in turn, two ranks" "$(found two 2 --straggler=0:uneven:1:40)" uneven-work
expect "in turn, three ranks, several collectives" "$(found three 3 --straggler=0:uneven:1:40 --buckets=3)" uneven-work
jq -e '.findings[] | select(.id == "uneven-work") | .what | test("rank 0 in [0-9]+ of [0-9]+ step.*rank 1 in [0-9]+")' two.json >/dev/null ||
	fail "who was last: $(jq -r '.findings[] | select(.id == "uneven-work") | .what' two.json)"
# Evenly divided, a step of two ranks takes as long as half of both.
jq -e '.findings[] | select(.id == "uneven-work") | .own_ns > 0.7e9 and .gain_high_ns <= 0.55 * .own_ns' two.json >/dev/null ||
	fail "its price: $(jq -c '.findings[] | select(.id == "uneven-work") | {own_ns, gain_high_ns, idle_gpu_ns}' two.json)"

# A pipeline: two thirds of a step are no fault of anybody's, where stages are equal.
even "equal stages" equal 3 --microbatches=2
expect "a heavy stage" "$(found heavy 3 --microbatches=4 --straggler=2:kernel:1:30)" uneven-work
"$tool" report "$tmp/heavy" >heavy.txt 2>heavy.err || fail "no report: $(cat heavy.err)"
tr -s '[:space:]' ' ' <heavy.txt >heavy.line
grep -q "rank 2 (GPU 2) holds the other ranks up: each of them waited" heavy.line || fail "which stage: $(cat heavy.txt)"
grep -q "Ranks wait mostly in sends and receives, as the stages of a pipeline do" heavy.line || fail "the bubble: $(cat heavy.txt)"

# An all-to-all in the midst of each step is a collective, and no pipeline; NCCL's times of its messages and of the all-reduces behind it
# are not those of these kernels.
late() {
	jq -r '[.findings[].id | select(. == "straggler-rank" or . == "slow-gpu" or . == "collective-order")] | unique | join(" ")' "$1.json"
}
even "experts" experts 3 --exchange
expect "experts, nobody late" "$(late experts)" ""
expect "experts, no more work" "$(found nap 3 --exchange --straggler=1:nap:1:20)" ""
expect "experts, one asleep" "$(late nap)" straggler-rank
jq -e '.findings[] | select(.id == "straggler-rank") | .what | test("^rank 1 .* asleep")' nap.json >/dev/null || fail "who: $(jq -c .findings nap.json)"
jq -e '.ranks | map(.wait_ns) | .[0] > 4e8 and .[2] > 4e8 and .[1] < 1e8' nap.json >/dev/null || fail "waits: $(jq -c '.ranks | map(.wait_ns)' nap.json)"
exit 0
