"""Other packages that benchmarks measure against, each optional, and a run against them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar


@dataclass(frozen=True)
class Package:
    """A package by the name that reports give it, by the one it is imported by, and by the one it is installed by."""

    name: str
    package: str
    distribution: str
    needs: str | None = field(default=None, kw_only=True)
    """A package that it does not bring itself, and cannot do without here."""

    @property
    def version(self) -> str | None:
        """None if it is not installed."""
        if any(importlib.util.find_spec(name) is None for name in (self.package, self.needs) if name is not None):
            return None
        return importlib.metadata.version(self.distribution)


AnyScale = TypeVar("AnyScale")
AnyPackage = TypeVar("AnyPackage", bound=Package)


@dataclass(frozen=True)
class Run(Generic[AnyScale, AnyPackage]):
    """One run: its scale, the peers it races against, and a folder for what it stores meanwhile."""

    scale: AnyScale
    peers: tuple[AnyPackage, ...]
    folder: Path

    def has(self, name: str) -> bool:
        """Whether the peer of that name can be measured."""
        return any(peer.name == name and peer.version for peer in self.peers)
