#!/bin/bash
# The scenes show what their names say, and the judge of test_blame.sh can be trusted: the truth held
# against itself is right in everything, and each kind of mistake is noticed.
. "$(dirname "$0")/lib.sh"
need jq
sim="$here/../sim/with-sim"
[ -e "$build/sim/libsimkernel.so" ] || skip "no simulated kernel module in this build"

# play NAME [SEED]: leaves truth/ and truth.json, the truth as a report would say it.
play() {
	rm -rf truth
	mkdir truth
	"$sim" "$bin/scene" --script "$@" >script || fail "$*: no script"
	SPYSIM_SCRIPT=$tmp/script SPYSIM_TRUTH=$tmp/truth "$sim" "$bin/scene" "$@" >play.out 2>play.err ||
		fail "$*: $(tail -n 3 play.err)"
	[ -s play.err ] && fail "$*: $(head -n 3 play.err)"
	"$bin/judge" --as-report truth >truth.json || fail "$*: judge cannot read the truth"
}

# waited FILTER: milliseconds of truth.json's blame that it selects.
waited() {
	jq "[.blame[] | select($1) | .waited_ns] | add // 0 | . / 1e6 | floor" truth.json
}

root() {
	jq "[.root_blame[] | select($1) | .waited_ns] | add // 0 | . / 1e6 | floor" truth.json
}

time_of() {
	jq "[.accounts[] | .$1] | add | . / 1e6 | floor" truth.json
}

more() {
	[ "$2" -ge "$3" ] || missed="$1: $2 ms, expected $3 or more"
}

less() {
	[ "$2" -lt "$3" ] || missed="$1: $2 ms, expected less than $3"
}

# scene NAME CHECKS: some tries, as on a busy machine threads may begin too late to meet.
scene() {
	local try
	for ((try = 1; ; try++)); do
		play "$1"
		missed=
		eval "$2"
		[ -z "$missed" ] && return
		again $try 3 || break
	done
	fail "$1, $try times: $missed"
}

cross='.waiter_device != .holder_device'
across='.waiter_device != .root_device'

see_pageable_d2h() {
	more "copies behind a pageable copy" "$(waited '.holder_function == "cudaMemcpyAsync"')" 60
	more "its root" "$(root '.cause == "gpu"')" 60
	more "hidden waits" "$(time_of gpu_hidden_ns)" 60
}
see_pageable_sync_first() {
	# They still wait while another one's bytes are moved, which is the machine's own work.
	less "copies behind a copy, synchronised first" "$(waited true)" $((40 + $(time_of own_ns)))
}
see_mallochost_8gpus() {
	more "a convoy of eight devices" "$(waited "$cross")" 100
}
see_free_under_kernel() {
	more "copies behind cudaFree" "$(root '.root_function == "cudaFree" and .cause == "gpu"')" 40
}
see_limit_under_kernel() {
	more "copies behind a limit" "$(root '.root_function == "cudaDeviceSetLimit" and .cause == "gpu"')" 40
}
see_lazy_under_kernel() {
	more "copies behind a lazy load" "$(root '.root_function == "cudaLaunchKernel" and .cause == "gpu"')" 40
}
see_eager_under_kernel() {
	less "copies behind an eager load" "$(waited true)" 10
}
see_queue_alone() {
	more "the full queue" "$(time_of queue_ns)" 50
	less "locks behind the full queue" "$(waited true)" 5
}
see_queue_and_waiter() {
	more "another device behind the full queue" "$(root ".cause == \"queue\" and $across")" 10
}
see_ioctl_4gpus() {
	more "time in the kernel module" "$(time_of ioctl_ns)" 60
	more "devices behind it" "$(root ".cause == \"ioctl\" and $across")" 60
}
see_chain3_gpu() {
	more "the chain's last link" "$(waited '.waiter_function == "cudaStreamQuery" and .holder_function == "cudaEventCreate"')" 20
	more "its root" "$(root '.waiter_function == "cudaStreamQuery" and .root_function == "cudaStreamSynchronize" and .cause == "gpu"')" 20
}
see_chain2_ioctl() {
	more "a chain into the kernel module" "$(root '.waiter_function == "cudaEventCreate" and .cause == "ioctl"')" 20
}
see_reader_held() {
	more "a writer behind a reader" "$(waited '.waiter_function == "cudaMallocHost"')" 10
}
see_spin_4threads() {
	more "spinning" "$(waited '.lock == "x"')" 20
}
see_starvation() {
	more "starved, or at least waiting" "$(waited '.waiter_function == "cudaEventCreate"')" 8
}

for name in $(declare -F | sed -n "s/^declare -f see_//p"); do
	scene "$name" "see_$name"
done
for name in $("$sim" "$bin/scene" --list | grep '^clean'); do
	scene "$name" 'less "stalls across devices" "$(waited "$cross")" 3'
done

# The judge.
for seed in 1 2 3 4 5 6; do
	play random $seed
	"$bin/judge" --name=random truth truth.json >>lines || fail "random $seed cannot be judged"
done
scene chain3_gpu see_chain3_gpu # again: one in which they did wait
"$bin/judge" --name=chain truth truth.json >>lines
"$bin/judge" --sum lines >sum || fail "the truth misses targets against itself: $(cat sum)"

# noticed WHAT JQ_FILTER
noticed() {
	jq "$2" truth.json >wrong.json
	"$bin/judge" --name=clean_wrong truth wrong.json >wrong.line || fail "$1 cannot be judged"
	"$bin/judge" --sum wrong.line >sum && fail "not noticed: $1"
	grep "$1.*MISSED" sum >/dev/null || fail "$1: not what the sum complains about: $(cat sum)"
}
noticed "right holder" '.blame[0].holder = 1'
noticed "right holder" '.blame[0].holder_function = "cudaFree"'
noticed "right holder" '.blame = []'
noticed "wrong device" '.blame[0].holder_device = 7'
noticed "right root" '.root_blame |= map(.cause = "own")'
noticed "right root" '.root_blame |= map(.root_function = "cudaFree")'
noticed "misplaced: lock" '.accounts |= map(.lock_ns = 0)'
noticed "misplaced: unexplained" '.accounts |= map(.unexplained_ns = .total_ns)'
noticed "misplaced: gpu_intended" '.accounts |= map(.gpu_intended_ns = 0)'
noticed "false stalls" '.blame += [.blame[0] | .waiter = .holder | .waited_ns = 1000000 | .holder_function = "cudaFree"
	| .holder = 1 | .holder_device = .waiter_device + 2]'
jq '.accounts |= map(.not_running_ns = .lock_ns | .lock_ns = 0)' truth.json >fair.json
"$bin/judge" --name=fair truth fair.json | "$bin/judge" --sum >sum || fail "not fair to a thread that did not run: $(cat sum)"
