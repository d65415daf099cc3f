"""Gives xarray objects their ``windrow`` attribute, without importing xarray before anybody else does.

xarray learns accessors by registration only, and loading it takes longer than all of ``import windrow`` may. So it is
registered at once where xarray is there already, and otherwise in the moment after xarray was imported. The
accessor's own code is loaded when ``.windrow`` is first used.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def install() -> None:
    if "xarray" in sys.modules:
        _register(sys.modules["xarray"])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register(xarray: Any) -> None:
    for kind, name in (("Dataset", "DatasetAccessor"), ("DataArray", "DataArrayAccessor")):
        if not hasattr(getattr(xarray, kind), "windrow"):
            getattr(xarray, f"register_{kind.lower()}_accessor")("windrow")(_opener(name))


def _opener(name: str) -> Any:
    def opened(data: Any) -> Any:
        from windrow.api.accessor import windows

        return getattr(windows, name)(data)

    return opened


class _Finder(importlib.abc.MetaPathFinder):
    """Notices the import of xarray, once, and leaves the finding to others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "xarray":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
