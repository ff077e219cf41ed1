"""A server of http.server with a thread for each connection, which hands the calls of a request to a pool of threads.

Arguments: port, port of the back end, calls of a request, workers of the pool.
"""

import http.client
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, BACK_END, CALLS, WORKERS = map(int, sys.argv[1:])

pool = ThreadPoolExecutor(WORKERS)
# Each worker keeps a connection.
mine = threading.local()


def get(path):
    """Calls the back end, and returns the body of its answer."""
    if not hasattr(mine, "connection"):
        mine.connection = http.client.HTTPConnection("127.0.0.1", BACK_END)
    mine.connection.request("GET", path)
    return mine.connection.getresponse().read().decode()


class Handler(BaseHTTPRequestHandler):
    """A connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        """Answers with the request's name."""
        results = [pool.submit(get, f"{self.path}/{call}") for call in range(CALLS)]
        name = self.path[1:]
        if any(result.result() != name for result in results):
            self.send_error(500)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(name)))
        self.end_headers()
        self.wfile.write(name.encode())

    def log_message(self, *_):
        """Says nothing."""


class Server(ThreadingHTTPServer):
    """Ends without waiting for its clients."""

    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", PORT), Handler).serve_forever()
