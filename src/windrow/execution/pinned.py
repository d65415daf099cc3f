"""Tasks that run where they are sent, and an exchange between them: one task a node, then one merging task a node.

Spark's own reduce tasks cannot be sent anywhere, so a merging task is a pinned task zipped with what the exchange
brought for it. Where a task runs is a wish: if its executor is busy for too long, or dies, it runs elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from windrow.errors import Error, MemoryLimitError
from windrow.execution.nodes import Here, Node, find_here, list_nodes
from windrow.execution.spark import SparkExecutor, open_outcomes, pickle_tasks

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

First = TypeVar("First")
Second = TypeVar("Second")
Receipt = TypeVar("Receipt")

Sent = tuple[int, Any]
"""The number of the node that something is sent to, and what."""


@dataclass(frozen=True)
class Exchange(Generic[First, Second, Receipt]):
    """A first task for each node, which sends to any of them; and a second, which gets what was sent to its node."""

    label: str
    nodes: Sequence[Node]
    first: Sequence[First]
    send: Callable[[First, Here], Iterable[Sent]]
    second: Sequence[Second]
    receive: Callable[[Second, list[Any], Here], Receipt]


class Cluster(Protocol):
    """Several nodes that carry an exchange out."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    def exchange(self, work: Exchange[Any, Any, Receipt]) -> list[Receipt]:
        """The receipts of the second tasks, in the order of nodes."""
        ...


@dataclass(frozen=True)
class SparkCluster:
    """The executors of a Spark application."""

    spark: SparkExecutor
    nodes: Sequence[Node]

    @classmethod
    def of(cls, spark: SparkExecutor) -> SparkCluster:
        return cls(spark, list_nodes(spark.session))

    def exchange(self, work: Exchange[Any, Any, Receipt]) -> list[Receipt]:
        return run_exchange(self.spark, work)


def run_exchange(spark: SparkExecutor, work: Exchange[Any, Any, Receipt]) -> list[Receipt]:
    """The receipts of the second tasks, in the order of nodes."""
    from pyspark.core.rdd import RDD
    from pyspark.serializers import CPickleSerializer, PairDeserializer

    context = spark.context
    count = len(work.nodes)
    sent = pin(context, work.first, work.nodes).flatMap(_guard_sender(work.send, count))
    brought = sent.partitionBy(count, _identity).mapPartitions(_gathered)._reserialize(CPickleSerializer())
    waiting = pin(context, work.second, work.nodes)
    both: Any = PairDeserializer(CPickleSerializer(), CPickleSerializer())  # type: ignore[no-untyped-call]
    zipped: Any = RDD(waiting._jrdd.zip(brought._jrdd), context, both)
    outcomes = zipped.map(_guard_receiver(work.receive))
    return open_outcomes(spark.collect(work.label, outcomes.collect))


def pin(context: SparkContext, tasks: Sequence[Any], nodes: Sequence[Node]) -> RDD[Any]:
    """Tasks as a collection that Spark distributes by wish: task after task to node after node."""
    from pyspark.core.rdd import RDD
    from pyspark.serializers import CPickleSerializer

    assert context._jvm is not None
    jvm: Any = context._jvm
    to_seq = jvm.PythonUtils.toSeq
    places = [to_seq([node.location]) for node in nodes]  # a list for each task would take thirty times as long
    listed = jvm.java.util.ArrayList()
    for number, task in enumerate(pickle_tasks(tasks)):
        listed.add(jvm.scala.Tuple2(bytearray(pickle.dumps(task, protocol=5)), places[number % len(places)]))
    made = context._jsc.sc().makeRDD(to_seq(listed), jvm.scala.reflect.ClassTag.Any())
    return RDD(
        jvm.org.apache.spark.api.java.JavaRDD.fromRDD(made, made.elementClassTag()), context, CPickleSerializer()
    )


def _identity(key: int) -> int:
    return key


def _gathered(rows: Iterable[Any]) -> list[list[Any]]:
    return [list(rows)]


def _guard_sender(send: Callable[[Any, Here], Iterable[Sent]], nodes: int) -> Callable[[bytes], Iterator[Sent]]:
    """What a first task sends; an error of windrow's goes to the first node, whose task hands it on."""

    def guarded(pickled: bytes) -> Iterator[Sent]:
        try:
            for node, what in send(pickle.loads(pickled), find_here()):
                yield node % nodes, pickle.dumps(what, protocol=5)
        except Error as error:
            yield 0, pickle.dumps(error)
        except MemoryError:
            yield 0, pickle.dumps(_out_of_memory())

    return guarded


def _guard_receiver(receive: Callable[[Any, list[Any], Here], Any]) -> Callable[[tuple[bytes, list[Sent]]], bytes]:
    def guarded(both: tuple[bytes, list[Sent]]) -> bytes:
        pickled, brought = both
        try:
            opened = [pickle.loads(what) for _, what in brought]
            for what in opened:
                if isinstance(what, Error):
                    raise what
            return pickle.dumps(receive(pickle.loads(pickled), opened, find_here()), protocol=5)
        except Error as error:
            return pickle.dumps(error)
        except MemoryError:
            return pickle.dumps(_out_of_memory())

    return guarded


def _out_of_memory() -> MemoryLimitError:
    return MemoryLimitError("a Spark worker ran out of memory", hint="Use smaller chunks, or more executors")
