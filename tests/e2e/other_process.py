#!/usr/bin/env python3
"""tests/e2e/other_process.py TRACE PID UUID: makes a trace that of another process: with that number, and another identity,
which begins with these 32 bits. So one generated trace becomes several of a set."""

import glob
import re
import struct
import sys

folder, pid, uuid = sys.argv[1], sys.argv[2], int(sys.argv[3])
path = f"{folder}/metadata"
text = open(path).read()
text = re.sub(r"pid = \d+;", f"pid = {pid};", text)
text = re.sub(r'uuid = "[0-9a-f]{8}', f'uuid = "{uuid:08x}', text)
open(path, "w").write(text)
identity = bytes.fromhex(re.search(r'uuid = "([^"]+)"', text).group(1).replace("-", ""))
for path in glob.glob(f"{folder}/stream_*"):
    data = bytearray(open(path, "rb").read())
    at = data.find(struct.pack("<I", 0xC1FC1FC1))
    while at >= 0:
        data[at + 4 : at + 20] = identity
        at = data.find(struct.pack("<I", 0xC1FC1FC1), at + 20)
    open(path, "wb").write(data)
