#!/usr/bin/python3
"""tests/e2e/break_container.py HOW FROM TO: a container of traces with one thing in it that is not as it has to be.

HOW is a row of WAYS. `break_container.py list` prints them, each with what a reader has to say of it.
"""
import struct
import sys

LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


class Entry:
    """Of the index: where it is, and where its member's header is."""

    def __init__(self, data, at):
        self.at = at
        (self.n_name, self.n_extra, self.n_comment) = struct.unpack_from("<HHH", data, at + 28)
        (self.local,) = struct.unpack_from("<I", data, at + 42)
        self.name = bytes(data[at + 46:at + 46 + self.n_name])
        self.size = 46 + self.n_name + self.n_extra + self.n_comment


def entries(data):
    end = data.rfind(END)
    n, _, at = struct.unpack_from("<HII", data, end + 10)
    found = []
    for _ in range(n):
        found.append(Entry(data, at))
        at += found[-1].size
    return found


def put(data, form, at, *values):
    struct.pack_into(form, data, at, *values)


def rename(data, entry, name):
    """Of the same length, in both places."""
    assert len(name) == len(entry.name)
    data[entry.at + 46:entry.at + 46 + len(name)] = name
    data[entry.local + 30:entry.local + 30 + len(name)] = name


def stream(data):
    return next(e for e in entries(data) if b"stream_0001" in e.name)


def leads_out(data):
    e = stream(data)
    rename(data, e, b"../" + b"x" * (e.n_name - 3))


def absolute(data):
    e = stream(data)
    rename(data, e, b"/" + b"x" * (e.n_name - 1))


def inside_dots(data):
    e = stream(data)
    rename(data, e, b"a/../" + b"x" * (e.n_name - 5))


def nul(data):
    e = stream(data)
    rename(data, e, e.name[:-3] + b"\0\0\0")


def twice(data):
    e = next(e for e in entries(data) if e.name.endswith(b"stream_0000_tail"))
    rename(data, stream(data), e.name)


def overlapping(data):
    """The index says of the first member that it ends inside the second one."""
    first, second = entries(data)[:2]
    size = second.local - 4096 + 100
    put(data, "<II", first.at + 20, size, size)


def too_large(data):
    put(data, "<II", stream(data).at + 20, 0x70000000, 0x70000000)


def endless(data):
    """As 64 bits say that it is: but no such field is there."""
    put(data, "<II", stream(data).at + 20, 0xffffffff, 0xffffffff)


def contradicting(data):
    put(data, "<I", stream(data).at + 20, 17)


def compressed(data):
    put(data, "<H", stream(data).at + 10, 8)


def encrypted(data):
    put(data, "<H", stream(data).at + 8, 1)


def no_header(data):
    put(data, "<I", stream(data).at + 42, 4096 * 3 + 1)


def header_beyond(data):
    put(data, "<I", stream(data).at + 42, 0x7fffffff)


def other_name(data):
    e = stream(data)
    data[e.local + 30 + e.n_name - 1] ^= 1


def bad_index(data):
    data[entries(data)[1].at] ^= 0xff


def index_nowhere(data):
    put(data, "<I", data.rfind(END) + 16, 0x7fffffff)


def index_too_many(data):
    put(data, "<HH", data.rfind(END) + 8, 60000, 60000)


def index_cut(data):
    e = entries(data)[-1]
    put(data, "<H", e.at + 30, 0xfff0)


def no_end(data):
    del data[data.rfind(END):]


def no_index_and_compressed(data):
    no_end(data)
    at = data.find(LOCAL, 100)
    put(data, "<H", at + 8, 8)


def no_index_and_no_sizes(data):
    no_end(data)
    at = data.find(LOCAL, 100)
    put(data, "<H", at + 6, 8)


def no_index_and_rubbish(data):
    no_end(data)
    data[data.find(LOCAL, 100)] ^= 0xff


def not_one(data):
    data[0] = 0


WAYS = {
    leads_out: "leads out of its folder",
    absolute: "leads out of its folder",
    inside_dots: "leads out of its folder",
    nul: "leads out of its folder",
    twice: "second member of the same name",
    overlapping: "begins inside the one before",
    too_large: "ends behind the place where the index begins",
    endless: "has no size",
    contradicting: "contradict each other",
    compressed: "compressed member",
    encrypted: "encrypted member",
    no_header: "no member begins where the index says",
    header_beyond: "no member begins where the index says",
    other_name: "another name in the index",
    bad_index: "no entry of the index begins here",
    index_nowhere: "lies nowhere in the file",
    index_too_many: "cannot be as large as it claims",
    index_cut: "index ends inside an entry",
    no_end: "the index is missing",
    no_index_and_compressed: "compressed member",
    no_index_and_no_sizes: "does not say its size",
    no_index_and_rubbish: "what follows is left out",
    not_one: "neither a trace directory nor a container",
}


def main():
    if sys.argv[1:] == ["list"]:
        for way, says in WAYS.items():
            print(way.__name__, says)
        return
    way = next(way for way in WAYS if way.__name__ == sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        data = bytearray(file.read())
    way(data)
    with open(sys.argv[3], "wb") as file:
        file.write(data)


main()
