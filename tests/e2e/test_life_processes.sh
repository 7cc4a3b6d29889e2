#!/bin/bash
# Processes that begin otherwise than by being started: fork without exec (children that call and that
# do not, grandchildren, out of a process whose other threads record, inside a call), exec, vfork and
# exec, posix_spawn, system(). Each process that calls has a trace of its own, complete.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet

# sizes: how many calls each trace has, sorted.
sizes() {
	local trace
	for trace in $(traces); do
		records "$trace" cudaSetDevice
	done | sort -n | tr '\n' ' '
}

same fork "$bin/life" fork
expect "fork: calls of the processes" "$(sizes)" "20 21 40 80 "
for trace in $(traces); do
	expect "fork: getters" "$(counts "$trace" cudaGetDevice)" "$(records "$trace" cudaSetDevice)"
	readable "$trace"
done
expect "fork: closing lines" "$(grep -c '^cudaspy: ' fork.err)" 4

# Threads that are in our slow paths, or in malloc, when the process forks. (Not under ASan: its malloc
# may be locked in the child for ever, gcc 12.)
if [ -z "$first" ]; then
	same forkmt "$bin/life" forkmt 60
	expect "forkmt: traces" "$(traces | wc -l)" 61
	dump_all
	expect "forkmt: children's 30 calls" "$(records_by_process cudaSetDevice | grep -cx 30)" 60
	readable "$(traces | head -n 1)"
	same clonemt "$bin/life" clonemt 100
	CUDASPY_KEEP=1 same forkbusy "$bin/life" forkmt 200 busy
	expect "forkbusy: traces" "$(traces | wc -l)" 201
fi

same forkinside "$bin/life" forkinside
expect "forkinside: calls of the processes" "$(sizes)" "2 11 "
readable $(traces)

for way in vfork spawn system; do
	same "$way" "$bin/life" again $way calls 50
	expect "$way: calls of the processes" "$(sizes)" "20 50 "
	readable $(traces)
done
same exec "$bin/life" again exec calls 50
expect "exec: calls of the images" "$(sizes)" "10 50 "
readable $(traces)
same chain "$bin/life" again exec again spawn again exec again system calls 3
expect "chain: calls of the images" "$(sizes)" "3 10 10 20 20 "
