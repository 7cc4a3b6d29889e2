#!/bin/bash
# `cudaspy diff` of programs on the simulator: where copies become pinned the finding vanishes, less time
# is lost, and the kernels are the same; of a program with itself nothing differs; with several runs what
# differs among them is noise. Simulated: no measurement.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
[ -e "$kernel" ] || skip "no simulated kernel module in this build"

# record NAME ARGUMENT...: its trace, in the directory NAME.
record() {
	local name=$1
	shift
	CUDASPY_OUT=$tmp/$name "$sim" env LD_PRELOAD="$first $shim $kernel" timeout 60 \
		"$bin/faults" "$@" >/dev/null 2>err || fail "$name: status $?: $(tail -n 2 err)"
}
# That a busy machine gave a run no CPU is none of the runs' differences.
words='def ours: [.findings[] | select(.id != "oversubscribed-host")];
	def of(verdict): [.[] | select(.verdict == verdict and .noise != "yes" and
		any(.a_severity, .b_severity; . != null and . != "minor"))] | length;
	def told(verdict): ours | of(verdict);
	def counted: . as $all | all("appeared", "vanished"; . as $one | $all.summary[$one] == ($all.findings | of($one)));'
# holds WHAT FILTER
holds() {
	jq -e "$words $2" diff.json >/dev/null || fail "not so: $1: $(jq -c '.summary, .findings, .waits' diff.json)"
}
# diff_of ARGUMENT...
diff_of() {
	"$tool" diff "$@" >diff.text 2>err || fail "diff $*: status $?: $(cat err)"
	[ -s err ] && fail "diff $*: complains: $(cat err)"
	"$tool" diff --format=json "$@" >diff.json || fail "diff --format=json $*: status $?"
}

for i in 1 2 3; do
	record pageable$i pageable-d2h
	record pinned$i --clean pageable-d2h
done

# ---- one run each ----------------------------------------------------------------------------------
diff_of pageable1 pinned1
holds "the finding vanished" 'counted and told("vanished") == 1 and told("appeared") == 0 and
	(ours[0] | .id == "pageable-copy" and .verdict == "vanished" and .b_runs == 0 and .noise == "unknown")'
holds "less is lost to hidden waits" '.waits[] | select(.cause == "gpu_hidden") | .a_ns > 20e6 and .b_ns == 0'
holds "the kernels are the same" '.calls[] | select(.function == "cudaLaunchKernel") | .a_count == .b_count and .a_count > 20'
grep -q 'noise  *not known' diff.text || fail "text says nothing about noise: $(cat diff.text)"
grep -q 'vanished: .* cases in A, 0 in B' diff.text || fail "text: $(cat diff.text)"
fits "$tool" diff pageable1 pinned1
diff_of pinned1 pageable1
holds "the other way round it appeared" 'counted and told("appeared") == 1 and ours[0].verdict == "appeared" and ours[0].change_ns > 20e6'

# ---- with itself -----------------------------------------------------------------------------------
diff_of pageable1 pageable1
holds "no difference" '[.summary | .appeared, .vanished, .grew, .shrank] == [0, 0, 0, 0] and
	all(.findings[], .waits[], .calls[]; .change_ns == 0 and .verdict == "same")'
expect "lines that say nothing differs" "$(grep -c 'No difference worth a line' diff.text)" 2

# ---- several runs ----------------------------------------------------------------------------------
diff_of pageable1 pageable2 pageable3 -- pinned1 pinned2 pinned3
holds "gone for good" 'counted and told("vanished") == 1 and ours[0].noise == "no" and ours[0].a_runs == 3 and
	(.summary | .a_runs == 3 and .b_runs == 3) and (.waits[] | select(.cause == "gpu_hidden") | .noise == "no")'
cp diff.json with_dashes.json
diff_of pageable1,pageable2,pageable3 pinned1,pinned2,pinned3
cmp -s diff.json with_dashes.json || fail "commas are not the same as --"
diff_of pageable1,pageable3 pageable2,pageable1
holds "one and the same run on both sides: noise" 'all(.findings[], .waits[], .calls[]; .noise == "yes") and
	[.summary | .appeared, .vanished, .grew, .shrank] == [0, 0, 0, 0]'
mkdir 'a,b'
cp -r pageable1/*.cudaspy 'a,b/'
diff_of 'a,b' pageable1
holds "a name with a comma is one run" '.summary.a_runs == 1 and (.runs[0].run == "a,b")'

# ---- reports that were kept ------------------------------------------------------------------------
"$tool" report --format=json pageable1 >kept.json || fail "no report"
diff_of kept.json pageable1
holds "a kept report is the run" 'all(.findings[], .waits[], .calls[]; .change_ns == 0)'

# ---- what it refuses -------------------------------------------------------------------------------
# refuses STATUS MESSAGE ARGUMENT...
refuses() {
	local status=$1 message=$2
	shift 2
	"$tool" diff "$@" >refused.out 2>err
	expect "status of diff $*" $? "$status"
	grep -q "$message" err || fail "diff $*: says $(cat err)"
	expect "what diff $* prints" "$(cat refused.out)" ""
}
nothing=$("$tool" report nosuch >/dev/null 2>&1; echo $?)
refuses 2 'two runs are wanted'
refuses 2 'two runs are wanted' pageable1
refuses 2 'two runs are wanted' pageable1 pageable2 pageable3
refuses 2 'two runs are wanted' pageable1 --
refuses 2 'two runs are wanted' , pageable1
refuses 2 'no such option' --nosuch pageable1 pinned1
refuses 2 'no format' --format=nosuch pageable1 pinned1
refuses "$nothing" 'nosuch' pageable1 nosuch
echo '{"schema": "cudaspy-info-1"}' >info.json
refuses "$nothing" 'info.json: no report' info.json pageable1
echo 'not JSON' >broken.json
refuses "$nothing" 'broken.json:1: no JSON' pageable1 broken.json
