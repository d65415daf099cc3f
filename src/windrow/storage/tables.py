"""The catalog's tables. Only what SQLite and PostgreSQL share is used."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

# SQLite gives automatic keys only to columns of exactly the type INTEGER.
_key = BigInteger().with_variant(Integer(), "sqlite")

settings = Table(
    "settings", metadata, Column("key", String(64), primary_key=True), Column("value", Text, nullable=False)
)

arrays = Table(
    "arrays",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("name", String(255), nullable=False, unique=True),
    Column("directory", String(255), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),  # dense | sparse
    Column("gridding", Text),
    Column("metadata", Text, nullable=False),
    # A dropped array's id must not come back: whoever still holds a version or a lock of it would mean the new one.
    sqlite_autoincrement=True,
)

versions = Table(
    "versions",
    metadata,
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("pointer", String(64), nullable=False),  # an Icechunk snapshot or a Delta version
    Column("schema", Text, nullable=False),
    Column("hi", Text, nullable=False),
    Column("operation", String(64), nullable=False),
    Column("batch", String(255)),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("cells", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("checksum", String(64), nullable=False),  # of an Icechunk snapshot and its manifests
)

# A part or chunk is in every version from `since` on, up to but not including `until`.
parts = Table(
    "parts",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), nullable=False),
    Column("path", String(255), nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("cells", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("checksum", BigInteger, nullable=False),  # of the footer
    Column("lo", LargeBinary, nullable=False),
    Column("hi", LargeBinary, nullable=False),
    Index("parts_by_array", "array_id", "until"),
)

chunks = Table(
    "chunks",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), nullable=False),
    Column("part_id", BigInteger),  # sparse only: the chunk lives as long as its part
    Column("chunk", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("cells", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("lo", LargeBinary, nullable=False),
    Column("hi", LargeBinary, nullable=False),
    Index("chunks_by_array", "array_id", "chunk", "until"),
    Index("chunks_by_part", "part_id"),
)

labels = Table(
    "labels",
    metadata,
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), primary_key=True),
    Column("dimension", String(255), primary_key=True),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("start", BigInteger, nullable=False),  # 0 begins the dimension's labels anew
    Column("encoded", LargeBinary, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("id", String(255), primary_key=True),
    Column("created", BigInteger, nullable=False),
    Column("report", Text, nullable=False),
)

locks = Table(
    "locks",
    metadata,
    Column("array_id", BigInteger, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False),
    Column("host", String(255), nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("process_started", BigInteger, nullable=False),
    Column("heartbeat", BigInteger, nullable=False),
)

trash = Table("trash", metadata, Column("directory", String(255), primary_key=True))
