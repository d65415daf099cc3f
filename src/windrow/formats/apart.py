"""Reading files in a process apart: somebody else's file may be made, or damaged, so that its decoder never ends.

HDF5 can run in circles over a damaged file, with Python's lock held, so that no thread of the same process could stop
it; Arrow and HDF5 can crash over one; a few bytes can claim to be petabytes. So files are decoded by child processes,
with limits on time and memory, and what they decode comes back through shared memory. A child is started at the first
file, serves one request at a time, and is kept for the next. It guards against damage; it is no sandbox.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from windrow.errors import FileFormatError, MachineError
from windrow.formats.limits import Limits, limits_now

Result = TypeVar("Result")

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from windrow.formats.apart_process import serve; serve(int(sys.argv[2]), *sys.argv[3:])"
)
_GRACE_SECONDS = 10.0
"""A child ends itself at its limit; one that cannot even do that is ended so much later."""


def prepare_child(module: str) -> None:
    """Have a child ready that has imported a module, while this process is still importing it."""
    _children.prepare(module)


def call_apart(what: str, function: Callable[..., Result], *arguments: object, limits: Limits | None = None) -> Result:
    """What a function of a module gives when a child process calls it; ``what`` names the file in errors."""
    with _children.one() as child:
        found: Result = child.ask(what, limits or limits_now(), ("call", function, arguments))
        return found


def stream_apart(what: str, function: Callable[..., Any], *arguments: object) -> Iterator[Any]:
    """The record batches that a generator function yields in a child process, which works ahead by one."""
    import pyarrow as pa

    limits = limits_now()
    with _children.one() as child:
        child.ask(what, limits, ("stream", function, arguments))
        child.send(limits, ("next",))
        while (encoded := child.receive(what, limits)) is not None:
            child.send(limits, ("next",))
            with pa.ipc.open_stream(pa.py_buffer(encoded)) as reader:
                yield from reader


class _Child:
    """A child process and the way to it. Not ``ready`` while it owes an answer."""

    def __init__(self, *modules: str) -> None:
        if not sys.executable:
            raise MachineError("files are read by a second Python, and it is not known where Python is")
        ours, theirs = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the child
        # HDF5's locks would keep others from replacing a file that a child still has open.
        environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}
        command = [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno()), *modules]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,  # Ctrl-C is for windrow, which then ends the child
            )
        self._socket = ours
        self._connection = Connection(os.dup(ours.fileno()))
        self.ready = True

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, what: str, limits: Limits, request: tuple[Any, ...]) -> Any:
        self.send(limits, request)
        return self.receive(what, limits)

    def send(self, limits: Limits, request: tuple[Any, ...]) -> None:
        self.ready = False
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # receiving says why
            self._connection.send_bytes(pickle.dumps((_current_directory(), limits, request), protocol=5))

    def receive(self, what: str, limits: Limits) -> Any:
        try:
            if not self._connection.poll(limits.seconds + _GRACE_SECONDS):
                raise _too_slow(what, limits)
            failed, body, sizes = pickle.loads(self._connection.recv_bytes())
            buffers = self._receive_buffers(sizes) if sizes else []
        except (EOFError, OSError):
            raise self._why_it_ended(what, limits) from None
        self.ready = True
        found = pickle.loads(body, buffers=buffers)
        if failed:
            raise found
        return found

    def _receive_buffers(self, sizes: list[int]) -> list[memoryview]:
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        (descriptor,) = descriptors
        try:
            shared = memoryview(mmap.mmap(descriptor, 0))
        finally:
            os.close(descriptor)
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + padded(size))
        return [shared[start : start + size] for start, size in zip(starts, sizes, strict=False)]

    def _why_it_ended(self, what: str, limits: Limits) -> Exception:
        try:
            status = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return MachineError("what the process that reads files said was not understood", hint="Try again")
        if status == -signal.SIGALRM:
            return _too_slow(what, limits)
        if status < 0:
            name = signal.Signals(-status).name
            return FileFormatError(f"cannot read {what}: its decoder broke down, so it may be damaged", got=name)
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines() or [f"status {status}"]
        return MachineError("the process that reads files ended", got=lines[-1][:300], hint="Run: windrow doctor")

    def end(self) -> None:
        self._connection.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._said.close()


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # somebody removed it; whole paths still lead somewhere
        return "/"


def padded(size: int) -> int:
    """A size rounded up, so that what follows begins where any number may."""
    return -(-size // 64) * 64


def _too_slow(what: str, limits: Limits) -> FileFormatError:
    return FileFormatError(
        f"reading {what} took more than {limits.seconds:g} seconds: it may be damaged so that it never ends",
        hint="If it is only slow, set WINDROW_FILE_SECONDS to more",
    )


class _Children:
    """The children that wait for work; each thread that reads at the same time takes one of its own."""

    def __init__(self) -> None:
        self._inherited: list[_Child] = []
        self._idle: list[_Child] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[_Child]:
        child = self._take()
        try:
            yield child
        finally:
            with self._lock:
                kept = child.ready and len(self._idle) < (os.cpu_count() or 1)
                if kept:
                    self._idle.append(child)
            if not kept:
                child.end()

    def prepare(self, module: str) -> None:
        with self._lock:
            if not self._idle:
                self._idle.append(_Child(module))

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive:
                    return child
                child.end()
        return _Child()

    def end(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    def forget(self) -> None:
        """In a forked process: the children are its parent's."""
        self._inherited += self._idle
        self._idle = []
        self._lock = threading.Lock()


_children = _Children()
atexit.register(_children.end)
os.register_at_fork(after_in_child=_children.forget)
