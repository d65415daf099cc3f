"""A PostgreSQL server of a test's own, from the packages of the machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs, which Debian keeps out of the search path."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    return next(iter([*found, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]), None)


@dataclass(frozen=True)
class Server:
    """A running server, in which databases can be made."""

    port: int

    def address(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def make_database(self, name: str) -> str:
        """The address of a new, empty database."""
        engine = sa.create_engine(self.address("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f'create database "{name}"')
        engine.dispose()
        return self.address(name)


@contextmanager
def running_server(programs: Path, folder: Path) -> Iterator[Server]:
    """A server that keeps its data in a folder and answers on this machine alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    if os.getuid() == 0:  # the server refuses to run as root
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o005 != 0o005:
                parent.chmod(parent.stat().st_mode | 0o005)
        shutil.chown(folder, "postgres")
    control = programs / "pg_ctl"
    _run(folder, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres")
    _run(folder, control, "-D", data, "-w", "-l", folder / "log", "-o", f"-p {port} -k {folder} -h 127.0.0.1", "start")
    try:
        yield Server(port)
    finally:
        _run(folder, control, "-D", data, "-w", "-m", "immediate", "stop")


def _run(folder: Path, *command: object) -> None:
    words = [str(word) for word in command]
    user = "postgres" if os.getuid() == 0 else None
    subprocess.run(words, check=True, cwd=folder, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
