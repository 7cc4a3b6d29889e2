#!/bin/bash
# Programs that do not use CUDA: nothing written, nothing printed, nothing different; also programs
# that are linked to CUDA but never call it.
. "$(dirname "$0")/lib.sh"

nothing() {
	same "$@"
	no_trace
	[ -e "$out" ] && fail "$1: made $out"
	grep -q . "$1.err" && ! grep -q . "$1.bare_err" && fail "$1: $(cat "$1.err")"
	return 0
}

nothing true /bin/true
nothing false /bin/false
nothing pipe bash -c 'seq 1000 | sort -rn | head -n 3; (exit 3); echo $?; ls / | wc -l'
nothing missing bash -c 'no-such-program-anywhere; exec /no/such/file'
nothing script sh -c 'x=$(echo hi); echo "$x" | cat; kill -TERM $$'
command -v python3 >/dev/null || without python3
command -v python3 >/dev/null && nothing python python3 -W ignore -c '
import ctypes, subprocess, os, threading
print(subprocess.run(["echo", "hi"], capture_output=True).stdout)
try:
    ctypes.CDLL("libcudart.so.99")
except OSError as error:
    print(error)
print(ctypes.CDLL(None).getpid() == os.getpid())
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
if os.fork() == 0:
    os._exit(3)
print(os.wait()[1])'
nothing linked "$bin/life" calls 0
nothing opened "$bin/ways" local libcudart.so.13 printf
nothing looked-up "$bin/ways" default cudaMalloc cuInit

# Address space: 4 MB at most, also where the limit of data is low.
kilobytes() {
	awk '/^VmSize/ { print $2 }'
}
unset GLIBC_TUNABLES # heaps in large pages begin somewhere in one
alone=$(cat /proc/self/status | kilobytes)
with=$(LD_PRELOAD=$shim cat /proc/self/status | kilobytes)
[ $((with - alone)) -le 4096 ] || [ -n "${SAN:-}" ] || fail "the recorder takes $((with - alone)) KB of address space"
(ulimit -d 10000 && LD_PRELOAD=$shim exec /bin/true) || fail "does not start under a limit of 10 MB of data"
