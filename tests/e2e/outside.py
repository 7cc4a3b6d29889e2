# tests/e2e/outside.py MODE: steps of work for GPU 0, and between them what MODE says. Prints the number of the line that
# waits.
import asyncio
import ctypes
import inspect
import os
import queue
import socket
import sys
import threading
import time

STEPS, WAIT_S = 40, 0.002
cuda = ctypes.CDLL("libcudart.so.12")
memory = ctypes.c_void_p()
event = ctypes.c_void_p()
pinned = ctypes.c_void_p()


def here():
    return inspect.currentframe().f_back.f_lineno


def work():
    cuda.cudaMemset(memory, 0, 1 << 20)
    cuda.cudaDeviceSynchronize()


asked = threading.Semaphore(0)


def feed(give):
    for _ in range(STEPS):
        asked.acquire()  # only now, however slow the machine is: so there is something to wait for
        time.sleep(WAIT_S)
        give()


def beside(give):
    threading.Thread(target=feed, args=(give,)).start()


def sleep():
    time.sleep(WAIT_S)
    return here() - 1


def pipe(ends=[]):
    if not ends:
        ends.extend(os.pipe())
        beside(lambda: os.write(ends[1], b"x"))
    asked.release()
    os.read(ends[0], 1)
    return here() - 1


def connection(ends=[]):
    if not ends:
        ends.extend(socket.socketpair())
        beside(lambda: ends[1].send(b"x"))
    asked.release()
    ends[0].recv(1)
    return here() - 1


def waiting_queue(items=[]):
    if not items:
        items.append(queue.Queue())
        beside(lambda: items[0].put(1))
    asked.release()
    items[0].get()
    return here() - 1


def waiting_in_a_coroutine(items=[]):  # holds up the loop, which is no wait for events
    async def held_up():
        return waiting_queue(items)

    return asyncio.run(held_up())


def gil(others=[]):
    if not others:
        others.append(threading.Thread(target=spin, daemon=True))
        others[0].start()
    time.sleep(WAIT_S / 10)  # the other thread has the lock then, and keeps it for 5 ms
    return here() - 1


def busy():
    until = time.thread_time() + WAIT_S
    while time.thread_time() < until:
        pass
    return busy.__code__.co_firstlineno + 2  # where it computes, as samples say


NOT_READY = 600


def record_long():  # the copy takes some milliseconds
    if not event:
        cuda.cudaEventCreate(ctypes.byref(event))
        cuda.cudaMallocHost(ctypes.byref(pinned), 1 << 20)
    cuda.cudaMemcpyAsync(memory, pinned, 1 << 20, 1, None)
    cuda.cudaEventRecord(event, None)


def query():
    record_long()
    while cuda.cudaEventQuery(event) == NOT_READY:
        pass
    return here() - 2


def query_sleep():
    record_long()
    while cuda.cudaEventQuery(event) == NOT_READY:
        time.sleep(0.0002)
    return here() - 2


def query_seldom():  # the twin: asks between two pieces of work
    record_long()
    while cuda.cudaEventQuery(event) == NOT_READY:
        until = time.thread_time() + WAIT_S / 4
        while time.thread_time() < until:
            pass
    return here() - 2


def spin():
    while True:
        pass


between = {"sleep": sleep, "pipe": pipe, "connection": connection, "queue": waiting_queue, "coroutine": waiting_in_a_coroutine, "gil": gil, "busy": busy,
           "query": query, "query-sleep": query_sleep, "query-seldom": query_seldom}
cuda.cudaMalloc(ctypes.byref(memory), 1 << 20)
line = None
for _ in range(STEPS):
    work()
    line = between[sys.argv[1]]()
work()
print(line, flush=True)
os._exit(0)
