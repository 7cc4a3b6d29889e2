#!/bin/bash
# System calls that a policy refuses, or that fail: the program does what it does otherwise, and each call is recorded
# or counted as lost. The calls that docs/SAFETY.md lists are all that the recorder needs.
. "$(dirname "$0")/lib.sh"
export FAKE_MODE=quiet
list=$here/../../docs/SAFETY.md

bare "$bin/steps" refuse:1:openat >probe.out 2>&1
grep -q 'no filter' probe.out && skip "no seccomp filters here"

# accounted NAME CALLS: calls and lost ones add up, or one line says why there is no trace.
accounted() {
	local calls lost numbers
	numbers=$(closing "$1.err")
	[ "$(grep -c '^cudaspy: ' "$1.err")" -le 3 ] || fail "$1: too much said: $(cat "$1.err")"
	if [ -z "$numbers" ]; then
		grep -q '^cudaspy: cannot write' "$1.err" || fail "$1: not a word: $(cat "$1.err")"
		return
	fi
	read -r calls _ lost <<<"$numbers"
	expect "$1: calls and lost calls" $((calls + lost)) "$2"
	readable "$(the_trace)"
}

# EPERM 1, EIO 5, EMFILE 24, ENOSPC 28, EROFS 30, ENOSYS 38, EDQUOT 122
for error in 1:openat 1:pwritev 1:fallocate 1:mkdirat 1:renameat 1:fcntl 1:fstatfs 1:madvise 1:getrandom 1:prctl \
	1:rt_sigaction 1:fchmod 1:unlinkat 1:ftruncate 1:pwrite64 1:openat,pwritev,fallocate 24:openat 28:openat \
	28:fallocate,pwritev 5:pwritev 5:pwrite64 30:openat,mkdirat,renameat 122:pwritev 122:fallocate 38:fallocate \
	1:sched_getaffinity,getcwd,readlink,getppid 1:process_vm_readv; do
	same "after $error" "$bin/steps" calls:10 refuse:$error calls:9000 thread:4000
	accounted "after $error" 13010
	case $error in 1:openat | 28:fallocate* | 1:mkdirat | 1:renameat | 122:pwritev | 1:fstatfs)
		same "before $error" "$bin/steps" refuse:$error calls:9000 thread:4000
		accounted "before $error" 13000
		CUDASPY_KEEP=1 same "bounded $error" "$bin/steps" calls:10 refuse:$error calls:60000 thread:4000
		accounted "bounded $error" 64010
		;;
	esac
done

# A sandbox whose handler answers: SIGSYS is not blocked where the recorder makes the call, also in a thread that blocks it.
for names in getpid openat,fcntl,newfstatat,fstat pwritev,fallocate,madvise,close rt_sigprocmask,clock_gettime; do
	same "trap $names" "$bin/steps" calls:10 trap:$names calls:9000 thread:4000
	[ -z "$(closing "trap $names.err")" ] || accounted "trap $names" 13010
done
same "blocked trap" "$bin/steps" calls:10 trap:getpid,fstat,madvise block calls:9000 thread:4000

# What is listed suffices. The program itself and its C library need some, too.
sed -n '/^System calls of the recorder:/,/^$/p' "$list" | tr -d '`,.:' >only
[ "$(wc -w <only)" -gt 30 ] || fail "no list of system calls in $list"
echo exit exit_group clone3 clone rseq set_robust_list mprotect munmap brk dup2 write >>only
same only "$bin/steps" only:only calls:9000 thread:4000 crowd:20 more:2000 disperse
accounted only 53020
grep -q 'nothing can be stored' only.err && fail "only what is listed: $(cat only.err)"
CUDASPY_KEEP=1 same only-bounded "$bin/steps" only:only calls:90000 thread:4000 crowd:20 more:2000 disperse
accounted only-bounded 134020
grep -q 'nothing can be stored' only-bounded.err && fail "only what is listed, bounded: $(cat only-bounded.err)"
exit 0
