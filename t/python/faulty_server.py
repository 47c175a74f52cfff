# An API server on a socket that can be made to do anything, for tests of the agent.
# SPDX-License-Identifier: LGPL-3.0-only
"""Server does what its script says; run() has commands carried out there."""

import http.server
import json
import queue
import select
import threading
import time

from flux_k8s import commands, kube, listwatch
from flux_k8s.kube import Kube
from flux_k8s.loop import Loop

LIMIT_S = 20
GROUP = "/apis/dataworkflowservices.github.io"
WORKFLOWS = f"{GROUP}/v1alpha7/workflows"
VERSIONS = {"versions": [{"version": "v1alpha6"}, {"version": "v1alpha7"}]}


def status(code, reason, message):
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, *events):
        """Begin a watch and leave it open."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, self.headers))
        self.server.connections.append(self.client_address)
        if self.path == GROUP and not self.server.no_discovery:
            self.send(200, VERSIONS)
            return
        if not self.known():
            self.send(401, status(401, "Unauthorized", "Unauthorized"))
            return
        if self.server.script:
            self.server.script.pop(0)(self)
        else:
            self.send(200, {"kind": "Workflow", "metadata": {"name": "w"}})

    def known(self):
        """Has the client got the token, or the certificate, that it needs?"""
        if self.server.subject is not None:
            shown = self.connection.getpeercert()
            return shown["subject"] == ((("commonName", self.server.subject),),)
        return self.server.token in (None, self.headers.get("Authorization"))

    do_GET = do_POST = do_PATCH = do_DELETE = serve

    def log_message(self, *args):
        pass


class Server:
    """An API server that does what its script says, then answers well."""

    def __init__(self, directory, context=None):
        self.directory = directory
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.seen = []
        self.http.connections = []  # of these requests
        self.http.script = []
        self.http.token = None
        self.http.subject = None
        self.http.no_discovery = False
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def kubeconfig(self, token="first", ca=None, user=None):
        path = self.directory / "kubeconfig"
        cluster = {"server": f"{self.scheme}://127.0.0.1:{self.port}"}
        if ca is not None:
            cluster["certificate-authority"] = str(ca)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user or {"token": token}}],
        }
        path.write_text(json.dumps(config))
        return str(path)

    def kube(self, **options):
        return Kube(self.kubeconfig(**options))

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def answer(code, reason="", message="no", headers=()):
    return lambda handler: handler.send(code, status(code, reason, message), headers)


def cut(handler):
    """Close the connection in the middle of an answer."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.close_connection = True


def hang_up(handler):
    """Close the connection in the place of an answer."""
    handler.close_connection = True


def at(version):
    """A list of nothing, in which a resource version is."""
    body = {"items": [], "metadata": {"resourceVersion": str(version)}}
    return lambda handler: handler.send(200, body)


def pour(size, code=200):
    """Send so many blanks as an answer, as long as somebody takes them."""

    def send(handler):
        handler.send_response(code)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.server.poured = 0
        piece = b" " * (1 << 16)
        try:
            while handler.server.poured < size:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.server.poured += len(piece)
            handler.end_stream()
        except OSError:
            handler.close_connection = True

    return send


def drip(handler, code=200):
    """Send a byte now and then as an answer that is never whole."""
    handler.send_response(code)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.connection.settimeout(0.05)
    while True:
        try:
            handler.wfile.write(b" ")
            if not handler.connection.recv(1):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    handler.close_connection = True


def never(handler):
    """Say nothing until the client gives up."""
    handler.connection.settimeout(LIMIT_S)
    handler.rfile.read(1)
    handler.close_connection = True


class Results:
    """Reports of a loop's command queue. Getting one runs the loop until it has
    arrived."""

    def __init__(self, loop=None):
        self.loop = loop or Loop()
        self.reports = []
        self.put = self.reports.append

    def get(self, timeout=LIMIT_S):
        deadline = time.monotonic() + timeout
        while True:
            self.loop.turn()
            if self.reports:
                return self.reports.pop(0)
            now = time.monotonic()
            if now > deadline:
                raise queue.Empty
            wait_s = max(0, min(self.loop.due, deadline) - now)
            select.select([self.loop.fd], [], [], wait_s)

    def empty(self):
        return not self.reports


def run(api, *todo, loop=None):
    """Have commands carried out; their results and what trouble they had. With a loop
    of the caller's its connections are used again."""
    results, trouble = Results(loop), []
    pool = commands.CommandQueue(api, results.loop, 2, results.put, trouble.append)
    for seq, command in enumerate(todo):
        pool.submit(
            {
                "kind": "workflows",
                "namespace": "default",
                "name": "w",
                "seq": seq,
                **command,
            }
        )
    got = [results.get(timeout=LIMIT_S) for _ in todo]
    pool.stop()
    if loop is None:
        results.loop.close()
    return got, trouble


def server(tmp_path):
    """A fixture: a server."""
    made = Server(tmp_path)
    yield made
    made.close()


def fast(monkeypatch):
    """A fixture: nothing waits long before it is tried again."""
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(listwatch, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(kube, "RELOAD_INTERVAL_S", 0.0)


def tls_authority():
    from dws_sim.tls import Authority

    return Authority()
