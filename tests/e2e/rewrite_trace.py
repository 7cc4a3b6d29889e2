#!/usr/bin/python3
"""tests/e2e/rewrite_trace.py SOURCE TARGET [shift=SECONDS] [uptime=SECONDS frequency=HZ] [ids=N] [host=NAME]

Copies a trace directory, and makes it one of the same run at another place and time:
  shift   the clock began so many seconds later
  uptime  the host had been started so many seconds earlier: its counter, of that frequency, stood higher. (Processes
          measure it each for themselves; what is right for all is what the first one says, whose clock they share.)
  ids     numbers of processes and threads are so much larger; a negative one: they are -N less what they were, so
          that their order is the other way round
  host    another host and boot
"""
import os
import re
import struct
import sys

# Record types by number (include/cudaspy/trace_format.h): bytes before the texts, texts, places of ids and times.
RECORDS = [
    (24, 0), (32, 0), (48, 0), (40, 0), (48, 0), (56, 0), (32, 0), (24, 0), (16, 1), (40, 2), (24, 3), (32, 0), (12, 1),
    (16, 0), (64, 0), (24, 0), (40, 0), (24, 0), (32, 0), (28, 4), (24, 0), (400, 0), (32, 0), (24, 3), (208, 0),
    (56, 0), (40, 0), (56, 0), (40, 0), (40, 0), (128, 0)]
THREAD, COUNT, CLOCK, WAIT, STRANGER, MPS, OUTSIDE, SUBMIT, GPU_CLOCK = 6, 7, 11, 14, 18, 19, 25, 28, 29
IDS = {THREAD: [12], COUNT: [12], STRANGER: [12], WAIT: [36], MPS: [16, 20], OUTSIDE: [48],
       SUBMIT: [32]}
# NVTX: a range, one with a value, a range's name, the name of a thread or another thing.
RANGE_VALUE, NVTX_NAME = len(RECORDS) + 1, len(RECORDS) + 3
RECORDS += [(16, 0), (40, 0), (16, 3), (24, 1)]
RANGE_OPEN, NAMED_THREAD = 5, 0
# NCCL: a communicator, an operation, when it ran, what is recorded.
NCCL_COMM, COLLECTIVE_RAN = len(RECORDS), len(RECORDS) + 2
RECORDS += [(80, 0), (48, 0), (48, 0), (128, 0)]
IDS[NCCL_COMM] = [36]
# A window, or a mark.
WINDOW = len(RECORDS)
RECORDS += [(128, 0)]
# Calls in a cost window.
COST = len(RECORDS)
RECORDS += [(96, 0)]
# A part of the recording begins or ends.
PART = len(RECORDS)
RECORDS += [(64, 0)]
# A function on the host that ran.
HOST_FUNCTION = len(RECORDS)
RECORDS += [(56, 0)]
IDS[HOST_FUNCTION] = [12]
# A place with words behind it, a sample, a look at a GPU.
PLACE, SAMPLE = len(RECORDS), len(RECORDS) + 1
RECORDS += [(16, 0), (32, 0), (72, 0)]
IDS[SAMPLE] = [12, 20]
HEADER, PAGE = 96, 4096


class Change:
    def __init__(self, words):
        self.shift = self.uptime = self.frequency = self.ids = 0
        self.host = None
        for word in words:
            key, value = word.split("=", 1)
            setattr(self, key, value if key == "host" else int(value))
        self.cycles = self.uptime * self.frequency

    def id(self, number):
        if not number or not self.ids:
            return number
        return number + self.ids if self.ids > 0 else -self.ids - number


def get(data, at, form):
    return struct.unpack_from("<" + form, data, at)[0]


def end_of(data, at):
    """Of the record there."""
    size, texts = RECORDS[get(data, at + 8, "H")]
    end = at + size
    if get(data, at + 8, "H") == PLACE:
        end += 8 * data[at + 11]
    for _ in range(texts):
        end = data.index(b"\0", end) + 1
    return end


def put(data, at, form, value):
    struct.pack_into("<" + form, data, at, value)


def more(data, at, form, by):
    """A time; 0 means unknown."""
    if get(data, at, form):
        put(data, at, form, get(data, at, form) + by)


def change_record(data, at, change):
    event = get(data, at + 8, "H")
    put(data, at, "Q", get(data, at, "Q") + change.cycles)
    for place in IDS.get(event, []):
        put(data, at + place, "I", change.id(get(data, at + place, "I")))
    if event == WAIT:
        more(data, at + 40, "Q", change.cycles)
    if event == GPU_CLOCK:
        put(data, at + 16, "Q", get(data, at + 16, "Q") + change.cycles)
    if event == CLOCK:
        put(data, at + 24, "Q", get(data, at + 24, "Q") + change.shift * 10**9)
    if event == COLLECTIVE_RAN:
        more(data, at + 40, "Q", change.cycles)
    if event == WINDOW:
        more(data, at + 16, "Q", change.cycles)
    if event == COST:
        more(data, at + 16, "Q", change.cycles)
        more(data, at + 24, "Q", change.cycles)
    if event == PART:
        for place in (16, 48, 56):
            more(data, at + place, "Q", change.cycles)
    if event == HOST_FUNCTION:
        more(data, at + 40, "Q", change.cycles)
    if event == RANGE_VALUE and data[at + 10] == RANGE_OPEN:
        more(data, at + 16, "Q", change.cycles)
    if event == NVTX_NAME and get(data, at + 10, "H") == NAMED_THREAD:
        put(data, at + 16, "Q", change.id(get(data, at + 16, "Q")))
    return end_of(data, at)


def change_stream(data, change):
    packet = 0
    while packet + HEADER <= len(data) and get(data, packet, "I") == 0xC1FC1FC1:
        content, size = get(data, packet + 48, "Q") // 8, get(data, packet + 56, "Q") // 8
        put(data, packet + 32, "Q", get(data, packet + 32, "Q") + change.cycles)
        put(data, packet + 40, "Q", get(data, packet + 40, "Q") + change.cycles)
        put(data, packet + 88, "I", change.id(get(data, packet + 88, "I")))
        at = packet + HEADER
        while at < packet + content:
            at = change_record(data, at, change)
        packet += size


def change_board(data, change):
    put(data, 12, "I", change.id(get(data, 12, "I")))
    for page in range(PAGE, len(data), PAGE):
        put(data, page, "I", change.id(get(data, page, "I")))
        more(data, page + 8, "Q", change.cycles)
        more(data, page + 16, "Q", change.cycles)
        put(data, page + 36, "I", change.id(get(data, page + 36, "I")))


def change_metadata(text, change):
    def number(key, new):
        nonlocal text
        text = re.sub(r"(?m)^(\s*%s = )(\d+);" % key, lambda m: "%s%d;" % (m[1], new(int(m[2]))), text)

    kinds = len(re.findall(r"(?m)^event \{", text))
    assert kinds == len(RECORDS), "%d kinds of records, %d of them known here" % (kinds, len(RECORDS))
    number("pid", change.id)
    number("ppid", change.id)
    number("start_realtime_ns", lambda n: n + change.shift * 10**9)
    number("offset_s", lambda n: n + change.shift)
    number("offset_s", lambda n: n - change.uptime)
    if change.host:
        text = re.sub(r'(?m)^(\s*hostname = )".*";', r'\1"%s";' % change.host, text)
        text = re.sub(r'(?m)^(\s*boot_id = )"(.*)";', r'\1"\2-%s";' % change.host, text)
    return text


def main():
    source, target, change = sys.argv[1], sys.argv[2], Change(sys.argv[3:])
    os.mkdir(target)
    for name in os.listdir(source):
        with open(os.path.join(source, name), "rb") as file:
            data = bytearray(file.read())
        if name == "metadata":
            data = change_metadata(data.decode(), change).encode()
        elif name == ".board":
            change_board(data, change)
        elif name.startswith("stream_"):
            change_stream(data, change)
        with open(os.path.join(target, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
