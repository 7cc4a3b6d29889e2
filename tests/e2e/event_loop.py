# tests/e2e/event_loop.py: a server of asyncio's whose coroutines wait for the GPU, in the loop's own thread ("loop") or in
# another one ("thread"), and one with a single client ("one"). Clients are threads: each sends a request, waits for the reply,
# and sends the next. Prints the number of the line that waits.
import asyncio
import ctypes
import os
import socket
import sys
import threading

MODE = sys.argv[1]
CLIENTS, REQUESTS = 1 if MODE == "one" else 4, 120
cuda = ctypes.CDLL("libcudart.so.12")
memory, pinned = ctypes.c_void_p(), ctypes.c_void_p()


def work():
    cuda.cudaMemcpyAsync(memory, pinned, 1 << 20, 1, None)  # takes some milliseconds
    return cuda.cudaStreamSynchronize(None)


async def handle(reader, writer):
    while await reader.read(1):
        if MODE == "thread":
            await asyncio.get_running_loop().run_in_executor(None, work)
        else:
            work()
        writer.write(b"y")
        await writer.drain()
    writer.close()


def client(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        for _ in range(REQUESTS // CLIENTS):
            s.send(b"x")
            s.recv(1)


async def serve(path):
    server = await asyncio.start_unix_server(handle, path)
    clients = [threading.Thread(target=client, args=(path,)) for _ in range(CLIENTS)]
    for thread in clients:
        thread.start()
    await asyncio.get_running_loop().run_in_executor(None, lambda: [thread.join() for thread in clients])
    server.close()


cuda.cudaMalloc(ctypes.byref(memory), 1 << 20)
cuda.cudaMallocHost(ctypes.byref(pinned), 1 << 20)
asyncio.run(serve(sys.argv[2]))
print(work.__code__.co_firstlineno + 2, flush=True)
os._exit(0)
