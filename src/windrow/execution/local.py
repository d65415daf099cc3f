"""Runs tasks on threads of this process: the heavy parts (decoding, compressing, kernels) let go of Python's lock."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import Error, MemoryLimitError
from windrow.execution.executor import (
    TRIES,
    BatchFunction,
    Cancellation,
    Job,
    Progress,
    Receipt,
    Task,
    check_memory,
    is_sort_key,
)
from windrow.kernels.sparse.order import coordinate_order

_TRANSIENT = {errno.EINTR, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE, errno.EIO}
_POLL_SECONDS = 0.1


class LocalExecutor:
    """In this process, ``workers`` tasks at a time, as long as their memory fits the limit."""

    name = "local"

    def __init__(self, workers: int, memory: int, progress: Progress, cancellation: Cancellation) -> None:
        self.workers = workers
        self.memory = memory
        self._progress = progress
        self._cancellation = cancellation

    @property
    def worker_memory(self) -> int:
        return self.memory // self.workers

    def run(self, job: Job[Task, Receipt]) -> list[Receipt]:
        check_memory(job.label, job.task_bytes, self.memory)
        check = self._cancellation.watch(job.label)
        at_once = min(self.workers, max(1, self.memory // max(1, job.task_bytes)), max(1, len(job.tasks)))
        if len(job.tasks) <= 1:
            return [self._attempt(job, task, check) for task in job.tasks]
        with ThreadPoolExecutor(at_once, thread_name_prefix="windrow") as pool:
            futures = [pool.submit(self._attempt, job, task, check) for task in job.tasks]
            try:
                self._watch(job.label, futures, check)
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
        return [future.result() for future in futures]

    def _watch(self, label: str, futures: Sequence[Future[Any]], check: Callable[[], None]) -> None:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            check()
            self._progress(label, len(futures) - len(pending), len(futures))

    def _attempt(self, job: Job[Task, Receipt], task: Task, check: Callable[[], None]) -> Receipt:
        for attempt in range(1, TRIES + 1):
            check()
            try:
                return job.function(task)
            except Error:
                raise
            except MemoryError:
                raise MemoryLimitError(f"{job.label} ran out of memory", hint="Use smaller chunks") from None
            except OSError as error:
                if attempt == TRIES or error.errno not in _TRANSIENT:
                    raise
        raise AssertionError("unreachable")

    def map_sorted(
        self, label: str, rows: pa.Table, order: Sequence[str], function: BatchFunction[Receipt]
    ) -> list[Receipt]:
        check_memory(label, 3 * rows.nbytes, self.memory)
        keys = [rows.column(name).to_numpy().astype(np.int64, copy=False) for name in order]
        positions = coordinate_order(keys)
        kept = rows.select([name for name in rows.column_names if name not in order or not is_sort_key(name)])
        arranged = kept.take(pa.array(positions))
        cuts = _cuts([key[positions] for key in keys], self.workers)
        pieces = [arranged.slice(start, stop - start) for start, stop in itertools.pairwise(cuts)]
        return self.run(Job(label, lambda piece: function(iter(piece.to_batches())), pieces))


_SMALLEST_RANGE = 100_000


def _cuts(keys: Sequence[Any], pieces: int) -> list[int]:
    """Borders of about equal ranges that never part equal keys; few rows stay in one range."""
    rows = len(keys[0])
    pieces = max(1, min(pieces, rows // _SMALLEST_RANGE))
    cuts = [0]
    for piece in range(1, pieces):
        cut = rows * piece // pieces
        while cut < rows and all(key[cut] == key[cut - 1] for key in keys):
            cut += 1
        if cuts[-1] < cut < rows:
            cuts.append(cut)
    return [*cuts, rows]
