"""tests/e2e/filtered.py COMMAND...: runs it under a seccomp filter that kills who calls perf_event_open (x86-64)."""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD_NUMBER, EQUALS, RETURN = 0x20, 0x15, 0x06  # of BPF: linux/bpf_common.h
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000
PERF_EVENT_OPEN = 298

rows = [(LOAD_NUMBER, 0, 0, 0), (EQUALS, 0, 1, PERF_EVENT_OPEN), (RETURN, 0, 0, KILL_PROCESS), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_void_p]
for arguments in ((PR_SET_NO_NEW_PRIVS, 1, None, None), (PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(program), None)):
    if libc.prctl(*arguments, None):
        sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
