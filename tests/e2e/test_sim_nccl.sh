#!/bin/bash
# The simulator's look-alike of NCCL: operations of several processes wait for each other and compute what they should,
# profiler plugins of each version get what happened, with GPU timers that are off and drift, and a rank that never
# comes is an error after some time and no hang.
. "$(dirname "$0")/lib.sh"
need python3
sim="$here/../sim/with-sim"
check="$here/checks/check_nccl.py"
selftest="$CUDASPY_BUILD/sim/selftest_nccl"
export TMPDIR=$tmp SPYSIM_NCCL_WAIT_S=40

# ran NAME RANKS MODE VERSION: the selftest; truth and what the plugin got are consistent.
ran() {
	mkdir "$1"
	SPYSIM_TRUTH=$1 PLUGIN_OUT=$1/plugin timeout 100 "$sim" "$selftest" "$2" "$3" >"$1/out" 2>&1 ||
		fail "$1: $(tail -n 5 "$1/out")"
	python3 "$check" "$4" "$1" $(ls "$1"/plugin.* 2>/dev/null) >"$1/check" || fail "$1: $(cat "$1/check")"
}

ran plain2 2 all 0
ran plain4 4 all 0
ran late 2 late 0
for version in 1 2 3 4 5 6; do
	export NCCL_PROFILER_PLUGIN=$CUDASPY_BUILD/sim/libnccl-profiler-v$version.so
	SPYSIM_NCCL_SEED=$version SPYSIM_NCCL_INTERFACE=$version ran "same$version" 2 all "$version"
	expect "plugins of version $version" "$(ls "same$version"/plugin.* | wc -l)" 2
done
# Newer libraries take older plugins; there is no plugin for older ones.
export NCCL_PROFILER_PLUGIN=$CUDASPY_BUILD/sim/libnccl-profiler-v4.so
SPYSIM_NCCL_INTERFACE=6 SPYSIM_NCCL_TIMER_STEP_NS=1000 ran newer 4 all 4
SPYSIM_NCCL_INTERFACE=3 ran older 2 late 0
[ ! -e older/plugin.* ] || fail "NCCL with interface 3 has loaded a plugin of version 4"
# What the plugin does not want it does not get.
PLUGIN_MASK=2 ran colls 2 late 0
cat colls/plugin.* | grep -q 'start coll' || fail "no collectives with mask 2"
cat colls/plugin.* | grep -q 'start kernel' && fail "kernels with mask 2"
NCCL_PROFILER_PLUGIN=none ran none 2 late 0
[ ! -e none/plugin.* ] || fail "a plugin with NCCL_PROFILER_PLUGIN=none"
# By its short name, as the default, and preloaded.
mkdir plugins
cp "$CUDASPY_BUILD/sim/libnccl-profiler-v4.so" plugins/libnccl-profiler-short.so
cp "$CUDASPY_BUILD/sim/libnccl-profiler-v4.so" plugins/libnccl-profiler.so
NCCL_PROFILER_PLUGIN=short LD_LIBRARY_PATH=$tmp/plugins ran short 2 late 4
unset NCCL_PROFILER_PLUGIN
LD_LIBRARY_PATH=$tmp/plugins ran default 2 late 4
NCCL_PROFILER_PLUGIN=STATIC_PLUGIN LD_PRELOAD="$first $CUDASPY_BUILD/sim/libnccl-profiler-v4.so" ran static 2 late 4
for name in short default static; do
	expect "plugins: $name" "$(ls $name/plugin.* | wc -l)" 2
done

# GPU timers: offset and drift are the script's.
printf 'nccl_timer_offset_us 5000\nnccl_timer_drift_ppm 0\nnccl_timer_step_ns 1000\n' >script
SPYSIM_SCRIPT=$tmp/script ran timers 2 late 0
grep -hv '^#' timers/nccl.*.tsv | cut -f 9,10 | grep -qvP '^[0-9]+000\t[0-9]+000$' && fail "timers are finer than 1000 ns"

# One of three never comes.
SPYSIM_NCCL_WAIT_S=1 timeout 60 "$sim" "$selftest" 3 alone >alone.out 2>&1 || fail "a rank that does not come: $(tail -n 3 alone.out)"
[ -z "$(ls "$tmp"/spysim-nccl-* 2>/dev/null)" ] || fail "files are left over: $(ls "$tmp"/spysim-nccl-*)"
