#!/bin/bash
# gdb sees through a stub: its backtrace from inside calls inside calls names main, and `finish` gets
# out of them.
. "$(dirname "$0")/lib.sh"
need gdb

cat >commands <<END
set pagination off
set confirm off
set debuginfod enabled off
set breakpoint pending on
set environment LD_PRELOAD $first $shim
set environment LD_LIBRARY_PATH $fakes
set environment CUDASPY_OUT $out
break deeper if left == 1
run deep 3
backtrace
finish
finish
up-silently
finish
delete
continue
END
timeout -k 1 60 gdb -batch -x commands "$bin/nest" >gdb.out 2>&1
grep -q 'ptrace: Operation not permitted' gdb.out && skip "gdb may not trace here"
grep -q '^#[0-9]* .*main (' gdb.out || fail "main is not in gdb's backtrace: $(cat gdb.out)"
grep -q '^#[0-9]* .* spy_trampoline' gdb.out || fail "the shim is not in gdb's backtrace: $(cat gdb.out)"
grep -q 'exited' gdb.out || fail "finish does not get through a stub: $(cat gdb.out)"
grep -q 'corrupt\|previous frame' gdb.out && fail "gdb doubts the stack: $(cat gdb.out)"
exit 0
