#!/usr/bin/env python3
"""tests/e2e/fake_ras.py MODE PID: listens as NCCL's RAS does (NCCL user guide, Troubleshooting, RAS), on a port of
127.0.0.1 that it prints, for one client. MODE: mismatch: a rank in process PID is behind; fine; silent: takes the
connection and says nothing; other: is something else; closes: closes it."""
import socket
import sys
import time

MISMATCH = """NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          2            1          2        2

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING  MISMATCH

Errors
======


Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  1 ranks have launched up to operation 5
  Rank 1 has launched up to operation 4 -- GPU 1 managed by process %s on node 127.0.0.1
  a name with \x1b[31mcolours\x1b[0m of its own

"""


def lines(connection):
    buffered = b""
    while True:
        some = connection.recv(4096)
        if not some:
            return
        buffered += some
        while b"\n" in buffered:
            line, buffered = buffered.split(b"\n", 1)
            yield line.decode().strip()


def answer(connection, mode, pid):
    for line in lines(connection):
        word = line.split()[0].upper() if line else ""
        if word == "CLIENT":
            connection.sendall(b"SERVER PROTOCOL 2\n")
        elif word == "TIMEOUT":
            connection.sendall(b"OK\n")
        elif line.upper() == "VERBOSE STATUS":
            text = (MISMATCH % pid).encode()
            if mode == "fine":
                text = text.split(b"Errors\n===")[0] + b"Errors\n======\n\nWarnings\n========\n\n"
            for i in range(0, len(text), 100):  # as it may come over a network
                connection.sendall(text[i:i + 100])
            return
        else:
            connection.sendall(b"ERROR: Unknown command\n")


def main():
    mode, pid = sys.argv[1:3]
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)
    print(listening.getsockname()[1], flush=True)
    connection, _ = listening.accept()
    with connection:
        if mode == "silent":
            time.sleep(60)
        elif mode == "other":
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        elif mode != "closes":
            answer(connection, mode, pid)


main()
