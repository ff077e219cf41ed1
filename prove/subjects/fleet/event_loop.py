"""A server of asyncio, which makes the calls of a request at once and waits for them.

Arguments: port, port of the back end, calls of a request, connections to the back end at most (0: any number).
"""

import asyncio
import sys


class Connections:
    """Connections to the back end, which are used again."""

    def __init__(self, port, most):
        self.port = port
        self.idle = []
        self.free = asyncio.Semaphore(most) if most else None

    async def get(self, path):
        """Calls the back end, and returns the body of its answer."""
        if self.free is None:
            return await self._get(path)
        async with self.free:
            return await self._get(path)

    async def _get(self, path):
        if self.idle:
            reader, writer = self.idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET %s HTTP/1.1\r\nHost: back-end\r\n\r\n" % path)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
        body = await reader.readexactly(int(length))
        self.idle.append((reader, writer))
        return body


async def main():
    """Serves until it is ended."""
    port, back_end, calls, most = map(int, sys.argv[1:])
    connections = Connections(back_end, most)

    async def serve(reader, writer):
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
                gets = (connections.get(b"%s/%d" % (path, call)) for call in range(calls))
                name = path[1:]
                if any(body != name for body in await asyncio.gather(*gets)):
                    raise ValueError("an answer to another request")
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(name)
                writer.write(head + name)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main())
