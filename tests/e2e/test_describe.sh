#!/bin/bash
# What a trace says of its process and its GPUs, on the simulator: command line, variables, machine, driver, each GPU.
. "$(dirname "$0")/lib.sh"
sim="$here/../sim/with-sim"
app=$build/testapps/starved
[ -x "$app" ] || skip "no test applications built: no CUDA toolkit"

# recorded VARIABLE=VALUE...: one step, under a name with a blank.
recorded() {
	rm -rf "$out"
	(exec -a "star ved" "$sim" env CUDASPY_OUT="$out" "$@" LD_PRELOAD="$first $shim" bash -c \
		'exec -a "star ved" "$@"' _ "$app" --quick --steps 1 --variant sleep --gpu-us 0 --host-us 0 >table 2>err) ||
		fail "$*: status $?: $(cat err)"
	trace=$(the_trace) || exit 1
}

# says KEY VALUE: in the trace's environment.
says() {
	expect "$1" "$(sed -n "s/^\t$1 = \"\{0,1\}\([^\"]*\)\"\{0,1\};$/\1/p" "$trace/metadata")" "$2"
}

recorded CUDA_CACHE_PATH="$tmp" "NCCL_DEBUG=WARN" "CUDA_ODD.NAME=1" PYTORCH_NO_CUDA_MEMORY_CACHING=1 TORCH_NCCL_BLOCKING_WAIT=1 TORCH_HOMELY=1
says command_line "'star ved' --quick --steps 1 --variant sleep --gpu-us 0 --host-us 0"
says env_CUDA_CACHE_PATH "$tmp"
says env_NCCL_DEBUG WARN
says env_CUDA_ODD_NAME 1
says env_PYTORCH_NO_CUDA_MEMORY_CACHING 1
says env_TORCH_NCCL_BLOCKING_WAIT 1
says executable "$(readlink -f "$app")"
says program "star ved"
says cwd "$tmp"
says hostname "$(cat /proc/sys/kernel/hostname)"
says boot_id "$(cat /proc/sys/kernel/random/boot_id)"
says probes 1
says stacks 1
says redacted 0
says keep_mib 0
says cpus "$(nproc)"
grep -q HOMELY "$trace/metadata" && fail "a variable that has nothing to do with CUDA is told"

"$tool" dump "$trace" >dump
expect "driver" "$(sed -n 's/.*note=version text="driver \([0-9]*\)".*/\1/p' dump)" 13000
expect "GPUs" "$(sed -n 's/.* gpu \(device=.*\)/\1/p' dump)" \
	'device=0 cc=9.0 bytes=17179869184 name="Simulated GPU 0" uuid="GPU-612d7369-6d75-6c61-7465-642d6770752d" pci="0000:01:00.0"
device=1 cc=9.0 bytes=17179869184 name="Simulated GPU 1" uuid="GPU-622d7369-6d75-6c61-7465-642d6770752d" pci="0000:02:00.0"'
expect "what of them it may use" "$(sed -n 's/.* share \(device=.*\)/\1/p' dump)" \
	'device=0 client=no multiprocessors=132
device=1 client=no multiprocessors=132'

# Less of it.
recorded CUDASPY_REDACT=1 NCCL_DEBUG=WARN CUDASPY_NOPROBES=1 CUDASPY_NOSTACKS=1 CUDASPY_KEEP=3
grep -qE "command_line|env_|starved --|WARN" "$trace/metadata" && fail "redacted, and it tells $(grep -E "command_line|env_" "$trace/metadata")"
says redacted 1
says probes 0
says stacks 0
says keep_mib 3
