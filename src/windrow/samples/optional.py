"""Packages that hold real data, imported when they are asked for."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from windrow.errors import MachineError


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def required(package: str, distribution: str, what: str) -> Any:
    """A package, or an error that says which to install."""
    if not is_installed(package):
        raise MachineError(
            f"{what} come with the package {distribution}, which is not installed", hint=f"pip install {distribution}"
        )
    return importlib.import_module(package)
