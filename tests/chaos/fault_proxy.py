# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy in user space that disturbs connections like a network."""
import asyncio
import socket
import struct
import threading

CHUNK = 1 << 18  # bytes


class FaultProxy:
    """Forwards connections from `listen` to `target`, both (host, port), and
    counts the bytes. `rate`: bytes per second in each direction of a
    connection.

    set_fault(kind), from any thread:
      pass       no fault
      delay      every chunk arrives 50 ms late
      rate       1 MB/s in each direction of a connection
      reset      connections are reset, including new ones
      half-open  whatever the server sends on connections open at that time is
                 lost, for as long as they last
      blackhole  nothing gets through until the fault ends; new connections are
                 accepted and receive nothing
    """

    KINDS = ("delay", "rate", "reset", "half-open", "blackhole")

    def __init__(self, network, listen, target, rate=None):
        self.network, self.listen, self.target = network, listen, target
        self.rate = rate
        self.bytes = 0
        self.fault = "pass"
        self.open = set()  # connections

    def set_fault(self, kind):
        self.network.call(self._set_fault, kind)

    def _set_fault(self, kind):
        self.fault = kind
        for connection in list(self.open):
            if kind == "reset":
                connection.reset()
            elif kind == "half-open":
                connection.deaf = True
        self.changed.set()
        self.changed = asyncio.Event()

    async def start(self):
        self.changed = asyncio.Event()
        self.server = await asyncio.start_server(self._serve, *self.listen)

    async def _serve(self, reader, writer):
        connection = _Connection(self, reader, writer)
        self.open.add(connection)
        try:
            await connection.run()
        except OSError:
            pass  # one of the ends is gone
        finally:
            self.open.discard(connection)
            connection.close()


class _Connection:
    def __init__(self, proxy, reader, writer):
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.upstream = None
        self.deaf = proxy.fault == "half-open"

    async def run(self):
        if self.proxy.fault == "reset":
            return self.reset()
        await self._gate()
        up_reader, self.upstream = await asyncio.open_connection(
            *self.proxy.target)
        pumps = [
            asyncio.ensure_future(self._pump(self.reader, self.upstream, False)),
            asyncio.ensure_future(self._pump(up_reader, self.writer, True))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _gate(self):
        while self.proxy.fault == "blackhole":
            await self.proxy.changed.wait()

    async def _pump(self, reader, writer, answers):
        while data := await reader.read(CHUNK):
            await self._gate()
            if self.proxy.fault == "delay":
                await asyncio.sleep(0.05)
            rate = 1e6 if self.proxy.fault == "rate" else self.proxy.rate
            if rate:
                await asyncio.sleep(len(data) / rate)
            if answers and self.deaf:
                continue
            self.proxy.bytes += len(data)
            writer.write(data)
            await writer.drain()

    def reset(self):
        for writer in (self.writer, self.upstream):
            end = writer and writer.get_extra_info("socket")
            if end is not None:
                # Makes close() send RST.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        for writer in (self.writer, self.upstream):
            if writer is not None:
                writer.transport.abort()


class Network:
    """The thread on which all proxies run."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever,
                                       daemon=True)
        self.thread.start()

    def proxy(self, listen, target, rate=None):
        proxy = FaultProxy(self, listen, target, rate)
        asyncio.run_coroutine_threadsafe(proxy.start(), self.loop).result(10)
        return proxy

    def call(self, function, *arguments):
        async def run():
            function(*arguments)
        asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)
