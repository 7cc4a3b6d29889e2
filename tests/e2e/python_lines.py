# tests/e2e/python_lines.py CDLL|PyDLL: calls of CUDA's that fail, from everywhere in Python that a call may
# come from, and one from a thread that Python knows nothing of. Prints for each what cudaspy has to tell:
# "more=0 line:function:file,..." innermost first, with the interpreter's own idea of its frames.
import asyncio
import ctypes
import functools
import os
import sys
import threading

sys.dont_write_bytecode = True
from python_note import note

library = getattr(ctypes, sys.argv[1])("libcudart.so.12")


def fail():
    # One line: it is noted in this one, and called in this one.
    return note(sys._getframe()), library.cudaSetDevice(99)


def nested():
    def inner(value):
        return (
            value,
            fail(),
        )

    inner(
        1
    )


class Model:
    def step(self):
        for _ in self.batches():
            pass

    def batches(self):
        yield from self.batch()

    @staticmethod
    def batch():
        yield fail()

    def __del__(self):
        fail()


async def coroutine():
    await asyncio.sleep(0)

    async def inner():
        fail()

    await inner()


def deep(n):
    return deep(n - 1) if n else fail()


def through_c():
    sorted([2, 1], key=functools.partial(max, 3) and (lambda _: fail() and 0))[:0]


def made():
    path = os.path.join(os.sep, "t\u00e4\u65e5", "made\U0001f40d.py")
    exec(compile("\n\ndef f\u00fcr():\n  x = [\n fail()]\nf\u00fcr()", path, "exec"), {"fail": fail})


def caught():
    try:
        raise KeyError
    except KeyError:
        with open(os.devnull):
            [fail() for _ in range(1)]


def copies():
    # Asynchronous in name only, from two lines; the second ones cost more.
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.cudaMalloc.argtypes = [pointer, size]
    library.cudaMemcpyAsync.argtypes = [pointer, pointer, size, ctypes.c_int, pointer]
    device, room = pointer(), 32 << 20
    library.cudaMalloc(ctypes.byref(device), room)
    host = ctypes.create_string_buffer(room)
    for _ in range(4):
        library.cudaMemcpyAsync(device, host, room // 8, 1, None)  # mark: small
        library.cudaMemcpyAsync(device, host, room, 1, None)  # mark: large
        library.cudaDeviceSynchronize()


which = sys.argv[2]
if which == "functions":
    nested()
    Model().step()
    asyncio.run(coroutine())
    thread = threading.Thread(target=deep, args=(3,))
    thread.start()
    thread.join()
elif which == "more":
    deep(20)
    deep(100)
    deep(400)
    through_c()
    made()
    caught()
elif which == "optimised":
    # Again and again, until the interpreter has replaced its instructions by faster ones.
    def hot(n):
        total = 0
        for i in range(n):
            total += i if i < n - 1 else bool(fail())
        return total

    hot(20000)
elif which == "traced":
    # Instrumented, by which the interpreter replaces instructions, too.
    sys.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)
    nested()
elif which == "stranger":
    # A thread that C made: pthread_create(&thread, NULL, cudaSetDevice, (void *)99).
    c = ctypes.CDLL(None)
    handle = ctypes.c_ulong()
    function = ctypes.cast(library.cudaSetDevice, ctypes.c_void_p)
    c.pthread_create(ctypes.byref(handle), None, function, ctypes.c_void_p(99))
    c.pthread_join(handle, None)
elif which == "fork":
    nested()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        deep(2)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
elif which == "copies":
    copies()
sys.stdout.flush()
