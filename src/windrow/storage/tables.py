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

# A part is in every version from `since` on, up to but not including `until`.
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
    # Not there in format 1, whose parts get them when a warehouse is brought to format 2.
    Column("first", BigInteger),  # the ordinals of its first and last chunk
    Column("last", BigInteger),
    Column("run", BigInteger),  # 0: a base part
    Index("parts_by_array", "array_id", "until"),
)

# Gone with its part.
part_chunks = Table(
    "part_chunks",
    metadata,
    Column("part_id", BigInteger, primary_key=True, autoincrement=False),
    Column("chunks", BigInteger, nullable=False),
    Column("encoded", LargeBinary, nullable=False),
)

# A vector holds in the versions from `since` on, up to but not including `until`. Its row stays as long as its part
# does, though no version may need its file any more: it also says when which chunks changed.
vectors = Table(
    "vectors",
    metadata,
    Column("part_id", BigInteger, primary_key=True, autoincrement=False),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger),
    Column("file", String(255), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("dead", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),  # bytes of this and all earlier vectors of the part
    Column("marked", LargeBinary, nullable=False),  # the chunks in which cells died of a change
)

# The chunks that a version of a dense array wrote, or all that it has if `whole`.
dense_chunks = Table(
    "dense_chunks",
    metadata,
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), primary_key=True),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("whole", Integer, nullable=False),
    Column("encoded", LargeBinary, nullable=False),
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

# A view is an array whose cells are the result of a query.
views = Table(
    "views",
    metadata,
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("definition", Text, nullable=False),  # its query, as text
    Column("settings", Text, nullable=False),
    Column("state", BigInteger),  # the hidden array that keeps what patching its results needs
    Column("status", String(16), nullable=False),  # fresh | stale | failed
    Column("reason", Text),
    Column("bases", Text, nullable=False),  # the arrays that it reads, each with the version that it holds for
    Column("facts", Text, nullable=False),  # what has to be known of its query besides its text
    Column("learned", Text, nullable=False),  # what maintaining it has cost
)

# The versions of the bases that a version of a view holds for: from the first to the last of each.
view_versions = Table(
    "view_versions",
    metadata,
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("bases", Text, nullable=False),
)

view_history = Table(
    "view_history",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), nullable=False),
    Column("entry", Text, nullable=False),
    Index("view_history_by_array", "array_id"),
)

# Where chunks of an array are at home since a version: those that are not listed are where the rows before say, unless
# this one is `whole`. A warehouse gets the table with the first homes.
homes = Table(
    "homes",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("array_id", ForeignKey("arrays.id", ondelete="CASCADE"), nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("whole", Integer, nullable=False),
    Column("identity", String(64)),  # under which nodes keep the chunks that this version changed
    Column("nodes", Text, nullable=False),  # the names that the numbers in the list stand for
    Column("encoded", LargeBinary, nullable=False),  # chunks, and the number of the node of each
    Column("joined", LargeBinary),  # of a view's state: what the batch joined for which of its chunks
    Index("homes_by_array", "array_id", "since"),
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

# Not in the catalog's own file: see leases.py.
leases = Table(
    "leases",
    MetaData(),
    Column("token", String(64), primary_key=True),
    Column("array_id", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("directory", String(255), nullable=False),
    Column("pointer", String(64), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("host", String(255), nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("process_started", BigInteger, nullable=False),
    Column("heartbeat", BigInteger, nullable=False),
)

trash = Table("trash", metadata, Column("directory", String(255), primary_key=True))
