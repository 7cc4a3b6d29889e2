#!/usr/bin/env python3
"""hostile_board.py FOLDER KIND MAGIC VERSION: for test_live_foreign.sh. Maps a board in FOLDER/KIND-PID.cudaspy, as a recorded process
does, and does with it what none does, until it is killed. Prints its number when it is ready.

  lock      keeps it locked          cut       cuts it off and makes it longer again, all the time
  holes     1 TiB long, of holes     random    its slots are random bytes; its head says that there are 4,294,967,295
  packet    a stream of one packet, of 1 TiB of holes, and a tail that says the same
  fifo, folder, link, hidden         that has taken the place of the file (hidden: that nobody may read)
  swap      the folder comes and goes, and is another one meanwhile
"""
import fcntl
import mmap
import os
import random
import struct
import sys
import time

PAGE = 4096
folder, kind, magic, version = sys.argv[1], sys.argv[2], int(sys.argv[3], 0), int(sys.argv[4])
trace = os.path.join(folder, "%s-%d.cudaspy" % (kind, os.getpid()))
board = os.path.join(trace, ".board")
os.makedirs(trace)
slots = 0xFFFFFFFF if kind == "random" else 1
head = struct.pack("<QIIQQII", magic, version, os.getpid(), 10**9, 0, slots, 0).ljust(PAGE, b"\0")
size = 1 << 40 if kind == "holes" else PAGE * 5000
file = open(board, "w+b", buffering=0)
file.write(head)
if kind in ("random", "cut"):
    file.write(random.Random(5).randbytes(PAGE * 4999))
file.truncate(size)
mapped = mmap.mmap(file.fileno(), PAGE)
with open(os.path.join(trace, "metadata"), "w") as metadata:
    metadata.write('/* CTF 1.8 */\ntrace { major = 1; };\nenv { tracer_name = "cudaspy"; trace_version = %d; pid = %d; '
                   'program = "\x1b[31mx"; };\n' % (version, os.getpid()))
if kind == "packet":
    bits = (1 << 40) * 8
    packet = struct.pack("<I16sI8Q2I", 0xC1FC1FC1, bytes(16), 0, 0, 0, 1 << 62, bits, bits, 0, 0, 0, os.getpid(), 0)
    for name in "stream_0000", "stream_0001", "stream_0001_tail":
        with open(os.path.join(trace, name), "wb") as stream:
            stream.write(packet)
            stream.truncate(1 << 40)
if kind == "lock":
    fcntl.flock(file, fcntl.LOCK_EX)
if kind == "hidden":
    os.chmod(board, 0)
if kind in ("fifo", "folder", "link"):
    os.rename(board, board + ".away")
    if kind == "fifo":
        os.mkfifo(board)
    elif kind == "folder":
        os.mkdir(board)
    else:
        os.symlink(".board.away", board)
print(os.getpid(), flush=True)
while True:
    if kind == "cut":
        file.truncate(0)
        time.sleep(0.002)
        file.truncate(size)
        os.pwrite(file.fileno(), head, 0)
    elif kind == "swap":
        os.rename(trace, trace + ".away")
        os.symlink("/etc", trace)
        time.sleep(0.002)
        os.unlink(trace)
        os.rename(trace + ".away", trace)
    time.sleep(0.01 if kind in ("cut", "swap") else 60)
