#!/bin/bash
# NCCL's profiler interface, each version: what the recorder makes of what NCCL tells, that it survives what NCCL should
# not do, and that it leaves the interface to a profiler of the user's. (Simulated: a program that acts as NCCL.)
. "$(dirname "$0")/lib.sh"
nccl=$bin/nccl
export FAKE_MODE=quiet HOME=$tmp

# ran STATUS ARGUMENTS...: recorded; leaves output, messages, and for the first trace its dump.
ran() {
	local wanted=$1 status
	shift
	rm -rf "$out"
	spied timeout -k 1 60 "$nccl" "$@" >output 2>messages
	status=$?
	[ "$status" = "$wanted" ] || fail "nccl $*: status $status: $(tail -n 3 messages)"
	trace=$(traces | head -n 1)
	"$tool" dump "$trace" >dump
}

# of KIND [TEXT]: how many such records there are.
of() {
	grep -F "[$1]" dump | grep -c -e "${2:-}"
}

# none_missing: of each operation that is said to be followed there is when it ran, once.
none_missing() {
	expect "$1: operations that ran" \
		"$(grep -F '[collective_ran]' dump | grep -o ' id=[0-9]*' | sort)" \
		"$(grep -F '[collective]' dump | grep 'flags=[4-7]' | grep -o ' id=[0-9]*' | sort)"
}

for version in 1 2 3 4 5 6 7; do
	in_turn || continue
	ran 0 "$version" all
	readable "$trace"
	expect "$version: found" "$(grep profiler output)" "profiler cudaspy"
	expect "$version: state" "$(of nccl_state "state=on text=\"interface $version\"")" 1
	ranks=$([ "$version" -lt 4 ] && echo "ranks=0 nodes=0" || echo "ranks=4 nodes=1")
	expect "$version: communicator" \
		"$(of nccl_comm "comm=1 interface=$version hash=0xfeedface12345678 rank=3 $ranks .*device=0 name=\"a group\"")" 1
	for i in "Broadcast 0" "Reduce 1" "AllGather 2" "ReduceScatter 3" "AllReduce 4"; do
		expect "$version: $i" "$(of collective "func=${i% *} comm=1 seq=${i#* } count=${i#* }*0* bytes_each=4 .*peer=2 algorithm=RING protocol=SIMPLE channels=2")" 1
	done
	expect "$version: Send and Recv" "$(of collective "func=Send .*seq=1 count=64 bytes_each=2 .*peer=1") $(of collective "func=Recv .*seq=1 count=65 bytes_each=2 .*peer=2")" "1 1"
	expect "$version: made of copies" "$(of collective "func=AllGather .*seq=9 count=77 bytes_each=1 .*flags=2")" "$((version >= 6))"
	[ "$version" -lt 3 ] || none_missing "$version"
	expect "$version: when they ran" "$(of collective_ran) $(of collective_ran "begin_ns=9000 end_ns=9900 .*channels=2")" \
		"$((version < 3 ? 0 : 7)) $((version >= 4))"
	ran 0 "$version" odd
	grep -v ' 0$' output | grep -v profiler && fail "$version: what is none has a handle"
	ran 0 "$version" late
	readable "$trace"
	ran 0 "$version" graph
	expect "$version: of a graph" "$(of collective "flags=1$")" 1
	# Each that is wanted puts a function on the host into the graph.
	ran 0 "$version" capture
	wanted="8 captured: $((version >= 5)) $((version >= 5)) 2 captured: 0 0 then: $((version >= 3))"
	expect "$version: wanted of graphs" "$(grep -E 'captured|then' output | paste -sd ' ')" "$wanted"
done

for version in 3 5; do
	in_turn || continue
	ran 0 "$version" threads
	readable "$trace"
	expect "$version: operations of all threads" "$(of collective) $(of nccl_comm)" "12000 4"
	none_missing "$version: threads"
	expect "$version: what is lost" "$(closing messages | cut -d ' ' -f 3)" 0
	ran 0 "$version" full
	expect "$version: operations, also without room to follow them" "$(of collective)" 5001
	expect "$version: followed" "$(of collective 'flags=4')" 4097
	expect "$version: without a handle" "$(grep -E 'without|late' output | paste -sd ' ')" "without 904 late 0"
	expect "$version: after that" "$(of collective_ran)" 1
	ran 0 "$version" paced
	asked=$(sed -n 's/^asked //p' output)
	expect "$version: quick ones" "$(of collective) $(of collective 'flags=4')" "2000 $asked"
	[ "$asked" -ge 64 ] && [ "$asked" -le 1500 ] || fail "$version: $asked of 2,000 quick operations are followed"
	ran 0 "$version" fewer
	expect "$version: fewer channels than were said" "$(of collective_ran "channels=1") $(grep still output)" "3 still there 0"
	ran 0 "$version" fork
	expect "$version: child" "$(grep child output)" "child 0"
	expect "$version: traces of a fork" "$(traces | wc -l)" 2
	for trace in $(traces); do
		"$tool" dump "$trace" >dump
		expect "$version: operations of $trace" "$(of nccl_state) $(of nccl_comm) $(of collective) $(of collective_ran)" "1 1 1 1"
	done
done

# --- stacks: the first at each place, and some more ---
ran 0 5 lines
stacks=$(of stack "of=- why=sampled")
[ "$stacks" -ge 5 ] && [ "$stacks" -le 40 ] || fail "stacks of 101 operations: $stacks"
(export CUDASPY_NOSTACKS=1 && ran 0 5 lines && expect "no stacks" "$(of stack)" 0) || exit 1

# --- off ---
for off in CUDASPY_NONCCL=1 CUDASPY_DISABLE=1; do
	rm -rf "$out"
	(export "${off?}"; spied timeout 20 "$nccl" 5 all) >output 2>messages
	expect "$off: status" $? 3
done
(export CUDASPY_NONCCL=1 && ran 3 5 all && expect "off is said" "$(of nccl_state 'state=off')" 1) || exit 1

# --- a profiler of the user's ---
# taken WHAT: the interface was left to it, and the trace says so.
taken() {
	expect "taken: $1" "$(of nccl_state "state=taken text=\".*$1.*\"")" 1
	expect "taken, operations: $1" "$(of collective)" 0
}
(export NCCL_PROFILER_PLUGIN=/none.so && ran 3 5 all && taken "NCCL_PROFILER_PLUGIN=/none.so") || exit 1
(export NCCL_PROFILER_PLUGIN=none && ran 3 5 all && taken "NCCL_PROFILER_PLUGIN=none") || exit 1
echo "NCCL_PROFILER_PLUGIN=mine" >nccl.conf
(export NCCL_CONF_FILE=$tmp/nccl.conf && ran 3 5 all && taken "in .*/nccl.conf") || exit 1
cp nccl.conf .nccl.conf
ran 3 5 all
taken "in .*/.nccl.conf"
printf '# NCCL_PROFILER_PLUGIN=no\nNCCL_DEBUG=WARN\n' >.nccl.conf
ran 0 5 all
rm .nccl.conf
touch libnccl-profiler.so
(fakes=$fakes:$tmp && ran 3 5 all && taken "$tmp/libnccl-profiler.so") || exit 1
# One that is linked into the program, of an older version than ours: NCCL would take the newest.
spied "$bin/nccl_own" 2>messages || fail "a profiler of the program's own is not the only one that is found: $(cat messages)"
# What a recorded parent has set is nobody else's.
(export NCCL_PROFILER_PLUGIN=STATIC_PLUGIN && ran 0 5 all && expect "inherited" "$(of collective)" 7) || exit 1

# --- ranks ---
(export RANK=3 LOCAL_RANK=1 WORLD_SIZE=8 TORCHELASTIC_RUN_ID='a job' && ran 0 5 all &&
	expect "a rank" "$(grep -oE '\b(rank|local_rank|world_size|rank_from|job) = .*' "$trace/metadata" | sort | paste -sd ' ')" \
		'job = "a job"; local_rank = 1; rank = 3; rank_from = "RANK"; world_size = 8;' &&
	[[ $trace == */nccl.rank3-*.cudaspy ]]) || fail "rank: $(traces)"
(export RANK=3 SLURM_JOB_ID=secret CUDASPY_REDACT=1 && ran 0 5 all && ! grep -q secret "$trace/metadata") || fail "redacted: the job's name"
exit 0
