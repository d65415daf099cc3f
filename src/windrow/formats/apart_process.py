"""The child process that decodes files: it takes requests one after the other until its parent is gone."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import signal
import socket
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import IO, Any

from windrow.errors import Error, FileFormatError
from windrow.formats.apart import padded
from windrow.formats.limits import Limits

_IDLE_SECONDS = 0.5


def serve(descriptor: int, *modules: str) -> None:
    """Answer requests that come through a socket, for which modules may be imported beforehand."""
    for module in modules:
        importlib.import_module(module)
    server = _Server(socket.socket(fileno=descriptor))
    with contextlib.suppress(EOFError, ConnectionError):
        server.run()


class _Server:
    def __init__(self, way: socket.socket) -> None:
        self._socket = way
        self._connection = Connection(os.dup(way.fileno()))
        self._stream: Iterator[Any] = iter(())
        self._last: tuple[Any, ...] = ()
        """What the last request was about, kept while requests come: a file stays open from block to block."""

    def run(self) -> None:
        while True:
            if not self._connection.poll(_IDLE_SECONDS):
                self._last = ()
                self._connection.poll(None)
            directory, limits, request = pickle.loads(self._connection.recv_bytes())
            # The usual answer to this signal ends the process, also inside a loop of C that holds Python's lock.
            signal.setitimer(signal.ITIMER_REAL, limits.seconds)
            os.chdir(directory)
            _limit_memory(limits)
            answer = self._answer(request, limits)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._send(*answer)

    def _answer(self, request: tuple[Any, ...], limits: Limits) -> tuple[bool, Any]:
        try:
            return False, self._obey(*request)
        except Error as error:
            return True, error
        except MemoryError:
            hint = "If it is not, set WINDROW_FILE_MEMORY to more"
            got = f"more than {limits.memory:,} bytes"
            return True, FileFormatError(
                "reading the file takes too much memory: it may be damaged", got=got, hint=hint
            )
        except Exception as error:  # decoders raise whatever they like over damaged bytes
            lines = str(error).splitlines() or [""]
            got = f"{type(error).__name__}: {lines[0][:300]}"
            return True, FileFormatError("the file cannot be decoded: it may be damaged", got=got)

    def _obey(self, kind: str, function: Any = None, arguments: tuple[Any, ...] = ()) -> Any:
        if kind == "call":
            found = function(*arguments)
            self._last = arguments
            return found
        if kind == "stream":
            self._stream = iter(function(*arguments))
            return None
        return _encode(next(self._stream, None))

    def _send(self, failed: bool, value: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        raw = [buffer.raw() for buffer in buffers]
        self._connection.send_bytes(pickle.dumps((failed, body, [piece.nbytes for piece in raw])))
        if raw:
            with _shared_memory() as shared:
                for piece in raw:
                    _write(shared, piece)
                    _write(shared, memoryview(bytes(padded(piece.nbytes) - piece.nbytes)))
                shared.flush()
                socket.send_fds(self._socket, [b"."], [shared.fileno()])


def _limit_memory(limits: Limits) -> None:
    """Allocations beyond the limit fail, where the system knows such a limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = limits.memory if hard == resource.RLIM_INFINITY else min(limits.memory, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _shared_memory() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("windrow"), "r+b", buffering=0)
    return tempfile.TemporaryFile()


def _write(file: IO[bytes], piece: memoryview) -> None:
    while piece:
        piece = piece[file.write(piece) :]


def _encode(batch: Any) -> Any:
    """A record batch in Arrow's own format, which leaves out what a slice does not show."""
    import pyarrow as pa

    if batch is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pickle.PickleBuffer(sink.getvalue())
