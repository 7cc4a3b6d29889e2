#!/bin/bash
# Who else was in the kernel module: two processes whose requests take 0.3 ms, so that this is what such calls
# need, and then two at the same time, of four threads each, whose requests take 1.5 ms. What those take longer is put
# down to each other, also across the processes, as inferred, and nothing of it becomes blame. On the simulator: no
# measurement.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
kernel=$build/sim/libsimkernel.so
[ -e "$kernel" ] || skip "no simulated kernel module in this build"

# play US: with requests that take so long.
play() {
	"$sim" "$bin/scene" --script ioctl_no_lock | sed "s/^ioctl .*/ioctl cuStreamWaitEvent $1/" >"script.$1"
	CUDASPY_OUT=$out SPYSIM_SCRIPT=$tmp/script.$1 "$sim" env LD_PRELOAD="$first $shim $kernel" \
		"$bin/scene" ioctl_no_lock >"play.$1.out" 2>&1 || fail "requests of $1 us: $(tail -n 3 "play.$1.out")"
}
# holds WHAT FILTER
holds() {
	jq -e "$2" report.json >/dev/null || fail "not so: $1: $(jq -c '.waits, .kernel_overlap[:4], .blame[:4]' report.json)"
}

# On a busy machine short requests may last, too, or the two not meet: then once more.
for ((try = 1; ; try++)); do
	rm -rf "$out"
	play 300
	play 300
	play 1500 &
	play 1501
	wait
	"$tool" report --format=json "$out" >report.json || fail "no report"
	jq -e '(.waits | .ioctl_ns - .kernel_work_ns > 100e6 and .kernel_overlap_ns > 0.5 * (.ioctl_ns - .kernel_work_ns)) and
		any(.kernel_overlap[]; .process != .other_process)' report.json >/dev/null && break
	again $try 4 || fail "hardly any overlap: $(jq -c '.waits, .kernel_overlap[:4]' report.json)"
done
holds "no more than was lost there" '.waits | .kernel_overlap_ns <= .ioctl_ns - .kernel_work_ns'
holds "the rows add up" '([.kernel_overlap[].excess_ns] | add) - .waits.kernel_overlap_ns | fabs < 1000'
holds "inferred, and of others" 'all(.kernel_overlap[]; .how == "inferred" and .waiter != .other)'
holds "mostly of those calls" '
	([.kernel_overlap[] | select(.waiter_function == "cudaStreamWaitEvent" and .other_function == "cudaStreamWaitEvent")
		| .excess_ns] | add) > 0.9 * .waits.kernel_overlap_ns'
holds "no blame" 'all(.blame[], .root_blame[]; .how == "measured")'

"$tool" report "$out" | tr -s ' \n' ' ' | grep -q 'kernel module ([^)]* of it while other threads were in it, too: inferred)' ||
	fail "the headline does not say so: $("$tool" report "$out" | sed -n '/^WAITS/,/^$/p')"
thread=$(jq '.kernel_overlap[0].waiter' report.json)
"$tool" why --format=json "$thread" "$out" >why.json || fail "why of a thread"
expect "rows about other threads" \
	"$(jq "[.kernel_overlap[] | select(.waiter != $thread and .other != $thread)] | length" why.json)" 0
"$tool" why "$thread" "$out" | grep -q '^KERNEL MODULE: calls that took longer' || fail "why of a thread does not name the others"
