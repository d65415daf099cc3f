"""A cluster in one process: nodes are folders, tasks are pickled and opened again, as Spark does it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import dumps

from windrow.execution.nodes import Here, Node
from windrow.execution.pinned import Exchange


@dataclass
class FolderCluster:
    """So many nodes; ``names`` are those that are there."""

    root: Path
    names: list[str]
    strays: dict[str, str] = field(default_factory=dict)
    """Where the tasks of a node run that is busy."""
    exchanges: list[Exchange[Any, Any, Any]] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [Node(f"folders/{name}", name, f"executor_here_{name}") for name in self.names]

    def here(self, node: Node) -> Here:
        name = self.strays.get(node.executor, node.executor)
        return Here(name, self.root / name)

    def exchange(self, work: Exchange[Any, Any, Any]) -> list[Any]:
        self.exchanges.append(work)
        brought: dict[int, list[Any]] = {}
        for node, task in zip(work.nodes, work.first, strict=True):
            for home, what in work.send(pickle.loads(dumps(task)), self.here(node)):
                brought.setdefault(home, []).append(pickle.loads(pickle.dumps(what)))
        found = []
        for number, (node, task) in enumerate(zip(work.nodes, work.second, strict=True)):
            opened = pickle.loads(dumps(task))
            found.append(work.receive(opened, brought.get(number, []), self.here(node)))
        return found


def use_folders(database: Any, root: Path, nodes: int = 3) -> FolderCluster:
    """Let a database maintain its views on folders."""
    cluster = FolderCluster(root, [str(number) for number in range(nodes)])
    database.engine.cluster = lambda size: cluster if len(cluster.names) > 1 else None
    return cluster
