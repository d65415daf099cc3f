"""Delta tables that windrow did not write: which files their newest version is made of."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from windrow.errors import FileFormatError

_KNOWN_FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""What a table may have that does not change which rows its files hold."""


def is_delta_table(place: Path) -> bool:
    return (place / "_delta_log").is_dir()


def delta_files(place: Path) -> list[str]:
    """The files of a table's newest version; features that change what their rows mean are refused."""
    table = DeltaTable(place)
    features = sorted(set(table.protocol().reader_features or ()) - _KNOWN_FEATURES)
    if features:
        hint = "Write it anew without them, or read it with Delta's own library for Spark"
        raise FileFormatError(f"{place} uses features of Delta that windrow lacks", got=", ".join(features), hint=hint)
    files = [str(file) for file in table.file_uris()]
    if not files:
        raise FileFormatError(f"{place} is a Delta table without rows")
    return files
