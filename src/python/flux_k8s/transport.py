# HTTP by libcurl: a request costs a third of the time in Python alone, most of it
# outside the interpreter's lock. curloptions.py has trust and proxy. kube.py sends its
# requests here.
# SPDX-License-Identifier: LGPL-3.0-only
"""Requests, and streaming answers."""

from __future__ import annotations

import errno
import io
import math
import os
import resource
import time
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Callable, Protocol
from urllib.parse import urlsplit

import pycurl

from flux_k8s import curloptions

if TYPE_CHECKING:
    from flux_k8s.loop import Loop

# Size limit of an answer, and of an event of a watch. A default etcd stores objects up
# to 1.5 MiB; an oversized part of a list is requested again in smaller parts.
ANSWER_BYTES = 32 << 20

# Time limit of a whole answer, as a multiple of the limit on silence: a byte now and
# then does not keep a request alive.
DEADLINES = 2

# Silence after which a watch is reopened. An API server sends a bookmark about once a
# minute (bookmarkFrequency in its cacher), but none while the kind has not changed
# since the watch began.
SILENCE_S = 75.0


class NoAnswer(Exception):
    """A request without a whole answer.

    Attributes:
        connected: whether there was a connection at all.
        timed_out: the server was silent, or too slow.
        too_large: the answer exceeded ANSWER_BYTES.
    """

    def __init__(
        self,
        message: str,
        connected: bool,
        timed_out: bool = False,
        too_large: bool = False,
    ) -> None:
        super().__init__(message)
        self.connected = connected
        self.timed_out = timed_out
        self.too_large = too_large


class Answer:
    """A complete answer of a server."""

    __slots__ = ("data", "headers", "status")

    def __init__(self, status: int, data: bytes, headers: list[bytes]) -> None:
        self.status = status
        self.data = data
        self.headers = headers

    def header(self, name: str) -> str | None:
        """The value of a header."""
        start = name.lower().encode() + b":"
        for line in self.headers:
            if line.lower().startswith(start):
                return line[len(start) :].decode("latin-1").strip()
        return None


# Called once, in a turn of the loop, with the result; a NoAnswer is raised in the
# waiting coroutine.
Done = Callable[[Any], None]


class Waited(Protocol):
    """An awaitable for coroutines of a loop."""

    def start(self, loop: Loop, done: Done) -> None: ...


# The properties that requests must share to reuse a handle of libcurl: method, absence
# of a body, and time limit.
Kind = tuple[str, bool, float]


class Request:
    """A request. Awaiting it returns an Answer, or raises NoAnswer."""

    __slots__ = ("body", "headers", "kind", "path", "transport")

    def __init__(
        self,
        transport: Transport,
        method: str,
        path: str,
        headers: tuple[str, ...],
        body: bytes | None,
        read_timeout_s: float,
    ) -> None:
        """Args:
        headers: lines.
        read_timeout_s: how long the server may be silent; the whole answer has
            DEADLINES times as long.
        """
        self.transport = transport
        self.path = path
        self.body = body
        self.headers = headers
        self.kind = method, body is None, read_timeout_s

    def __await__(self) -> Generator[Request, Answer, Answer]:
        return (yield self)

    def start(self, loop: Loop, done: Done) -> None:
        self.transport.begin(self, loop, done)


class Transport:
    """Connections to one server.

    Args:
        host: the server's address in the kubeconfig.
        pool: the urllib3.PoolManager of the kubernetes package.
        connections: the number of idle connections kept open.
    """

    def __init__(self, host: str, pool: Any, connections: int) -> None:
        self._host = host.rstrip("/")
        self._connections = connections
        self._pool = pool  # owns files that libcurl reads for each connection
        self._options = curloptions.of_pool(pool)
        self._own_headers: list[str] = []
        name = curloptions.server_name(pool)
        if name is not None:
            self._rename(name)
        self._idle: dict[Kind, list[Transfer]] = {}
        self._multi: Multi | None = None

    def _rename(self, name: str) -> None:
        """Request `name`, which the server's certificate has, at the server's own
        address."""
        parts = urlsplit(self._host)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        where = (
            f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        )
        self._options.append((pycurl.CONNECT_TO, [f"{name}:{port}:{where}:{port}"]))
        self._own_headers = [f"Host: {parts.netloc}"]
        self._host = f"{parts.scheme}://{name}:{port}{parts.path}"

    def _handle(self, method: str, no_body: bool) -> pycurl.Curl:
        curl = pycurl.Curl()
        for option, value in self._options:
            curl.setopt(option, value)
        if no_body:
            curl.setopt(pycurl.HTTPGET, 1)
        else:
            curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.CUSTOMREQUEST, method)
        return curl

    def _lines(self, headers: tuple[str, ...]) -> list[str]:
        return [*headers, *self._own_headers, "Expect:"]

    def _transfer(self, kind: Kind) -> Transfer:
        """A transfer for requests of a kind: an idle one, or a new one."""
        idle = self._idle.get(kind)
        if idle:
            return idle.pop()
        method, no_body, read_timeout_s = kind
        curl = self._handle(method, no_body)
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, math.ceil(read_timeout_s)))
        curl.setopt(pycurl.TIMEOUT_MS, math.ceil(1000 * DEADLINES * read_timeout_s))
        curl.setopt(pycurl.MAXFILESIZE, ANSWER_BYTES)
        return Transfer(self, kind, curl)

    def begin(self, request: Request, loop: Loop, done: Done) -> None:
        """Send a request in the turns of a loop."""
        transfer = self._transfer(request.kind)
        transfer.curl.setopt(pycurl.URL, self._host + request.path)
        if transfer.headers != request.headers:
            transfer.headers = request.headers
            transfer.curl.setopt(pycurl.HTTPHEADER, self._lines(request.headers))
        if request.body is not None:
            # Not POSTFIELDS, with which libcurl resends a request by itself when the
            # server closes a kept connection instead of answering. A body from
            # READFUNCTION cannot be read twice, so a request with a body is never
            # resent.
            transfer.curl.setopt(pycurl.POSTFIELDSIZE, len(request.body))
            transfer.curl.setopt(pycurl.READFUNCTION, io.BytesIO(request.body).read)
        transfer.done = done
        self.multi(loop).add(transfer)

    def stream(self, path: str, headers: tuple[str, ...], timeout_s: float) -> Stream:
        """A request whose answer lasts at most `timeout_s`: see Stream.open()."""
        curl = self._handle("GET", True)
        curl.setopt(pycurl.HTTPHEADER, self._lines(headers))
        curl.setopt(pycurl.URL, self._host + path)
        curl.setopt(pycurl.TIMEOUT_MS, int(1000 * timeout_s))
        return Stream(self, curl)

    def renew(self) -> None:
        """Use new connections for further requests, and resolve the server's name
        again. Requests under way are not affected."""
        self._multi = None

    def multi(self, loop: Loop) -> Multi:
        if self._multi is None or self._multi.loop is not loop:
            try:
                self._multi = Multi(loop, self._connections)
            except pycurl.error as exc:
                raise NoAnswer(f"{exc}{_shortage()}", False) from exc
        return self._multi

    def give_back(self, transfer: Transfer) -> None:
        """Keep a transfer that has ended, for later requests of its kind."""
        idle = self._idle.setdefault(transfer.kind, [])
        if len(idle) < self._connections:
            idle.append(transfer)


class Transfer:
    """A handle of libcurl with a request under way and its answer so far. Reused for
    later requests of the same kind."""

    def __init__(self, transport: Transport, kind: Kind, curl: pycurl.Curl) -> None:
        self.kind = kind
        self.curl = curl
        self.headers: tuple[str, ...] | None = None  # what the handle has now
        self.done: Done | None = None
        self._transport = transport
        self._data: list[bytes] = []
        self._size = 0
        self._headers: list[bytes] = []
        curl.setopt(pycurl.WRITEFUNCTION, self._on_data)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)

    # Both count received bytes, and abort an oversized answer by returning 0. Headers
    # take six calls for each request: one more call in each would be noticed.

    def _on_data(self, data: bytes) -> int:
        self._data.append(data)
        self._size += len(data)
        return len(data) if self._size <= ANSWER_BYTES else 0

    def _on_header(self, line: bytes) -> int:
        self._headers.append(line)
        self._size += len(line)
        return len(line) if self._size <= ANSWER_BYTES else 0

    def ended(self, error: NoAnswer | None) -> None:
        done, self.done = self.done, None
        assert done is not None
        if error is not None:
            if self._size > ANSWER_BYTES:
                error = _too_large()
            self._data.clear()
            done(error)
            return
        status = self.curl.getinfo(pycurl.RESPONSE_CODE)
        answer = Answer(status, b"".join(self._data), self._headers[:])
        self._data.clear()
        self._size = 0
        self._headers.clear()
        self._transport.give_back(self)
        done(answer)


_CSELECT_IN, _CSELECT_OUT = pycurl.CSELECT_IN, pycurl.CSELECT_OUT


class Multi:
    """The transfers of one transport in a loop, with connections of their own: a
    transport with other credentials has another Multi."""

    def __init__(self, loop: Loop, connections: int) -> None:
        self.loop = loop
        self._under_way: dict[pycurl.Curl, Transfer | Stream] = {}
        self._news: list[Stream] = []
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        loop.multis.add(self)

    def add(self, transfer: Transfer | Stream) -> None:
        self._under_way[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)

    def remove(self, transfer: Transfer | Stream) -> None:
        if self._under_way.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)

    def note(self, stream: Stream) -> None:
        """Note news of a stream inside a callback, where libcurl must not be called."""
        self._news.append(stream)

    def act(self, fd: int, readable: bool, writable: bool) -> None:
        """Handle events on a socket."""
        events = _CSELECT_IN * readable | _CSELECT_OUT * writable
        self._multi.socket_action(fd, events)
        self._tell()

    def act_on_time(self) -> None:
        """Handle the timeout that libcurl has set."""
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._tell()

    def _tell(self) -> None:
        more = True
        while more:
            more, ended, failed = self._multi.info_read()
            for curl in ended:
                self._end(curl, None)
            for curl, code, message in failed:
                self._end(curl, _no_answer(curl, code, message))
        if self._news:
            news, self._news = self._news, []
            for stream in news:
                stream.tell()

    def _end(self, curl: pycurl.Curl, error: NoAnswer | None) -> None:
        transfer = self._under_way.get(curl)
        if transfer is not None:
            self.remove(transfer)
            transfer.ended(error)

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self.loop.unwatch(fd)
        else:
            self.loop.watch(
                self, fd, bool(what & pycurl.POLL_IN), bool(what & pycurl.POLL_OUT)
            )

    def _on_timer(self, wait_ms: int) -> None:
        self.loop.time(self, None if wait_ms < 0 else wait_ms / 1000)

    def close(self) -> None:
        for transfer in list(self._under_way.values()):
            self.remove(transfer)
        self._multi.close()


class Stream:
    """A streaming answer, for one coroutine.

    Attributes:
        heard_at: monotonic time of the last data, or of the request.
    """

    def __init__(self, transport: Transport, curl: pycurl.Curl) -> None:
        self.curl = curl
        self.status = 0
        self.heard_at = time.monotonic()
        self._transport = transport
        self._multi: Multi | None = None
        self._chunks: list[bytes] = []
        self._headers: list[bytes] = []
        self._headers_size = 0
        self._over = False
        self._error: NoAnswer | None = None
        self._done: Done | None = None  # of the waiting coroutine
        curl.setopt(pycurl.WRITEFUNCTION, self._on_data)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)

    def _on_data(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        self._chunks.append(data)
        if self._multi is not None:
            self._multi.note(self)

    def _on_header(self, line: bytes) -> int:
        self.heard_at = time.monotonic()
        self._headers.append(line)
        self._headers_size += len(line)
        if self._multi is not None and line in (b"\r\n", b"\n"):
            self._multi.note(self)
        return len(line) if self._headers_size <= ANSWER_BYTES else 0

    @property
    def _begun(self) -> bool:
        """Whether the headers have ended, with an empty line. Headers of preliminary
        answers (1xx, or a proxy's) do not count."""
        ended = bool(self._headers) and self._headers[-1] in (b"\r\n", b"\n")
        return ended and self.curl.getinfo(pycurl.RESPONSE_CODE) >= 200

    def __await__(self) -> Generator[Stream, None, None]:
        yield self

    def start(self, loop: Loop, done: Done) -> None:
        """Call `done` at the next data, or at the end of the answer."""
        self._done = done
        if self._multi is None:
            self._multi = self._transport.multi(loop)
            self._multi.add(self)
            self._listen(loop)

    def _listen(self, loop: Loop) -> None:
        """Set the timer for silence. Its weak reference lets an unused stream go."""
        found = weakref.ref(self)

        def look() -> None:
            stream = found()
            if stream is None or stream._over:
                return
            if time.monotonic() - stream.heard_at < SILENCE_S:
                stream._listen(loop)
            else:
                stream.give_up()

        loop.call_at(self.heard_at + SILENCE_S, look)

    def give_up(self) -> None:
        """End a silent stream, and use new connections for further requests, as the
        server may be dead. An error only if the answer has not begun."""
        if not self._over:
            if not self._begun:
                self._error = NoAnswer("no answer begins", True, timed_out=True)
            self._transport.renew()
            self.close()

    def tell(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(None)

    def ended(self, error: NoAnswer | None) -> None:
        self._over, self._error = True, error
        self.tell()

    async def open(self) -> None:
        """Send the request.

        Raises:
            NoAnswer: no answer begins.
        """
        while not self._over and not self._begun:
            await self
        if self._error is not None and not self._begun:
            raise self._error
        self.status = self.curl.getinfo(pycurl.RESPONSE_CODE)

    async def chunk(self) -> bytes:
        """The next data; empty when the server, close() or give_up() has ended the
        stream.

        Raises:
            NoAnswer: the connection broke.
        """
        while not self._chunks and not self._over:
            await self
        if not self._chunks and self._error is not None:
            raise self._error
        chunk = b"".join(self._chunks)
        self._chunks.clear()
        return chunk

    async def answer(self, timeout_s: float) -> Answer:
        """The complete answer, for a refusal.

        Raises:
            NoAnswer: the answer does not end in time.
        """
        end, data = time.monotonic() + timeout_s, bytearray()
        while chunk := await self.chunk():
            data += chunk
            if len(data) > ANSWER_BYTES:
                raise _too_large()
            if time.monotonic() > end:
                raise NoAnswer("a refusal that does not end", True, timed_out=True)
        return Answer(self.status, bytes(data), self._headers)

    def close(self) -> None:
        """End the stream; may be called repeatedly."""
        if self._multi is not None:
            self._multi.remove(self)
        self._chunks.clear()
        self._over = True
        self.tell()


# Errors that occur before a connection is usable.
_NO_CONNECTION = (
    pycurl.E_COULDNT_RESOLVE_PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_SSL_CONNECT_ERROR,
    pycurl.E_SSL_CERTPROBLEM,
    pycurl.E_SSL_CACERT,
)


def _shortage() -> str:
    """A text if the process is out of file descriptors, else "". libcurl reports that
    as an unresolved name or missing certificates."""
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            return (
                f": out of file descriptors ({os.strerror(exc.errno)}, the limit is "
                f"{limit}: LimitNOFILE of the unit)"
            )
    return ""


def _too_large() -> NoAnswer:
    return NoAnswer(f"more than {ANSWER_BYTES >> 20} MiB", True, too_large=True)


def _no_answer(curl: pycurl.Curl, code: int, message: str) -> NoAnswer:
    if code == pycurl.E_FILESIZE_EXCEEDED:
        return _too_large()
    asked = code not in _NO_CONNECTION and curl.getinfo(pycurl.REQUEST_SIZE) > 0
    turned_away = curl.getinfo(pycurl.HTTP_CONNECTCODE) >= 300
    cause = curl.getinfo(pycurl.OS_ERRNO)
    if cause and code == pycurl.E_COULDNT_CONNECT:
        message = f"{message} ({os.strerror(cause)})"
    if code == pycurl.E_SEND_FAIL_REWIND:
        message = "the server has closed the connection without an answer"
    message += _shortage()
    timed_out = code == pycurl.E_OPERATION_TIMEDOUT
    return NoAnswer(message, asked and not turned_away, timed_out)
