#!/bin/bash
# node-llama-cpp 3.22.1 (llama.cpp v0.5.0), npm's @node-llama-cpp/linux-x64-cuda: what its 159 MB of CUDA code are compiled for.
#
# Expected: machine code for the GPUs of data centres (sm_80, sm_90), and PTX for what is newer.
# Seen: machine code for sm_86, sm_89, sm_120 and sm_121, which are mostly cards for desks; for sm_75, sm_80 and sm_90 (A100, H100, H200)
# there is PTX alone, in each of its 143 images, and that of version 9.1, which takes a driver of CUDA 13.1. Such a driver compiles each kernel
# when it is first used, in the midst of the work. One of CUDA 13.0 runs the machine code, as one minor version is as good as another for it, and
# refuses the PTX: on an H200 with driver 580.159.04 the library ends with "the provided PTX was compiled with an unsupported toolchain" at its
# first kernel (2026-11-29). Version 3.14.0 of the package has machine code for sm_90, and runs there.
#
# Exit status 0: still so; 1: not so any more; 77: the package cannot be had here.
set -u
work=$(mktemp -d) || exit 77
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 77
command -v npm >/dev/null && command -v python3 >/dev/null || { echo "no npm or python3 here"; exit 77; }
npm pack --silent @node-llama-cpp/linux-x64-cuda@3.22.1 >packed 2>&1 && tar xzf ./*.tgz || { echo "npm: $(tail -n 1 packed)"; exit 77; }
# A fat binary (magic 0xBA55ED50) is a header, whose size is its own, and entries: kind (1 PTX, 2 machine code), their header's size,
# their size, at byte 24 the version (minor, major; of PTX its own) and at byte 28 the compute capability, as CUDA 13.0's own files have them.
python3 - package/bins/linux-x64-cuda/libggml-cuda.so >seen <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
images, entries = 0, {}
magic = struct.pack("<I", 0xBA55ED50)
at = data.find(magic)
while at >= 0:
    header, size = struct.unpack_from("<HQ", data, at + 6)
    entry, end = at + header, at + header + size
    while entry + 64 <= end:
        kind, _, entry_header, bytes_ = struct.unpack_from("<HHIQ", data, entry)
        minor, major, arch = struct.unpack_from("<HHI", data, entry + 24)
        key = {1: "PTX %d.%d" % (major, minor), 2: "code"}.get(kind, str(kind)), arch
        entries[key] = entries.get(key, 0) + 1
        entry += entry_header + bytes_
    images += 1
    at = data.find(magic, end)
print(images, "images:", *("%s for sm_%d in %d" % (kind, arch, n) for (kind, arch), n in sorted(entries.items(), key=lambda e: e[0][1])), sep=" ")
END
cat seen
[ "$(cat seen)" = "143 images: PTX 9.1 for sm_75 in 143 PTX 9.1 for sm_80 in 143 code for sm_86 in 143 code for sm_89 in 143 PTX 9.1 for sm_90 in 143 code for sm_120 in 143 code for sm_121 in 143" ]
