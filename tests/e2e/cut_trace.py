#!/usr/bin/python3
"""tests/e2e/cut_trace.py SOURCE TARGET KIND FROM TO [COUNT]

Copies a trace directory, and leaves out what is recorded between two parts of its time (0 to 1), or with COUNT so many
collective operations, the first of them that far in the trace, and what lies between them; as if
  counting  a cost window had been there, in which calls are only counted
  closed    recording had been dormant
  lost      there had been no room: the losses are counted
  killed    the process had been killed at FROM (TO is not used)
  cut       the files ended there: the board knows of more

Prints how many records of collective operations are left out."""
import os
import struct
import sys

from rewrite_trace import HEADER, PAGE, end_of, get, put

CALLS = {0, 1, 2, 3, 4, 5, 13}
# What happens, and not what things are called.
HAPPENS = CALLS | {14, 15, 16, 17, 21, 22, 24, 25, 26, 31, 32, 36, 37}
COLLECTIVE, COLLECTIVES = 36, {36, 37}
WINDOW = 39
CLOSED, OPEN, COUNTING, RECORDING = 1, 0, 3, 4
SLOT_CALLS, SLOT_LOST = 64, 80


def packets(data):
    """Offset, end of content and size of each."""
    at = 0
    while at + HEADER <= len(data) and get(data, at, "I") == 0xC1FC1FC1:
        size = get(data, at + 56, "Q") // 8
        yield at, at + get(data, at + 48, "Q") // 8, size
        at += size


def records(data, at, end):
    """Time, event and bytes of each."""
    while at < end:
        event = get(data, at + 8, "H")
        stop = end_of(data, at)
        yield get(data, at, "Q"), event, bytes(data[at:stop])
        at = stop


def window(time, state, number):
    return struct.pack("<QHHIQ104s", time, WINDOW, state, number, 0, b"")


class Cut:
    def __init__(self, source, kind, begin, end, count):
        self.source, self.kind = source, kind
        self.left_out = 0
        times = [
            (time, event)
            for name in self.streams()
            for data in [self.read(name)]
            for at, stop, _ in packets(data)
            for time, event, _ in records(data, at + HEADER, stop)
            if event in HAPPENS
        ]
        submitted = sorted(time for time, event in times if event == COLLECTIVE)
        first, last = min(times)[0], max(times)[0]
        self.begin = first + int((last - first) * begin)
        if count:
            at = int(begin * (len(submitted) - count))
            self.begin, end = submitted[at] - 1, (submitted[at + count - 1] - first) / (last - first)
        self.end = 1 << 63 if kind in ("killed", "cut") else first + int((last - first) * end)

    def read(self, name):
        with open(os.path.join(self.source, name), "rb") as file:
            return bytearray(file.read())

    def streams(self):
        return sorted(name for name in os.listdir(self.source) if name.startswith("stream_"))

    def is_out(self, time, event):
        if self.kind in ("killed", "cut"):
            return time > self.begin
        return event in HAPPENS and self.begin < time <= self.end

    def windows(self):
        if self.kind == "counting":
            return [(self.begin, window(self.begin, COUNTING, 0)), (self.end, window(self.end, RECORDING, 0))]
        if self.kind == "closed":
            return [(self.begin, window(self.begin, CLOSED, 1)), (self.end, window(self.end, OPEN, 2))]
        return []

    def stream(self, name):
        """The stream without, and how many records of calls and how many others it has lost."""
        data = self.read(name)
        session = name.startswith("stream_0000")
        calls = lost = 0
        result = bytearray()
        pending = self.windows() if session else []
        for at, stop, size in packets(data):
            kept = bytearray()
            last = get(data, at + 32, "Q")
            for time, event, record in records(data, at + HEADER, stop):
                while pending and pending[0][0] <= time:
                    last, text = pending.pop(0)
                    kept += text
                if self.is_out(time, event):
                    calls += event in CALLS
                    lost += event in HAPPENS
                    self.left_out += event in COLLECTIVES
                    continue
                kept += record
                last = time
            for last, text in pending if at + size >= len(data) else []:
                kept += text
            header = bytearray(data[at : at + HEADER])
            put(header, 40, "Q", max(last, get(header, 32, "Q")))
            put(header, 48, "Q", 8 * (HEADER + len(kept)))
            if self.kind == "lost":
                put(header, 72, "Q", get(header, 72, "Q") + lost)
            size = max(size, -(-(HEADER + len(kept)) // PAGE) * PAGE)
            put(header, 56, "Q", 8 * size)
            result += (header + kept).ljust(size, b"\0")
        return result, calls, lost


def main():
    source, target, kind = sys.argv[1:4]
    cut = Cut(source, kind, float(sys.argv[4]), float(sys.argv[5]), int((sys.argv[6:] or "0")[0]))
    os.mkdir(target)
    board = cut.read(".board")
    for name in os.listdir(source):
        data = cut.read(name)
        if name.startswith("stream_"):
            data, calls, lost = cut.stream(name)
            page = (1 + int(name[7:11])) * PAGE
            if page < len(board) and kind != "cut":
                put(board, page + SLOT_CALLS, "Q", get(board, page + SLOT_CALLS, "Q") - calls)
            if page < len(board) and kind == "lost":
                put(board, page + SLOT_LOST, "Q", get(board, page + SLOT_LOST, "Q") + lost)
        if name != ".board":
            with open(os.path.join(target, name), "wb") as file:
                file.write(data)
    if kind == "killed":
        put(board, 36, "I", 0)
    with open(os.path.join(target, ".board"), "wb") as file:
        file.write(board)
    print(cut.left_out)


if __name__ == "__main__":
    main()
