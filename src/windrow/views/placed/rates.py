"""How fast nodes are: measured while they work, and kept in the catalog for the next plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import DataError
from windrow.placement import Rates, charge_receivers
from windrow.views.placed.merging import Merged

FIRST = charge_receivers(8e-9, 8e-10, 8e-10)
"""Until something was measured: links of 125 MB/s, and a tenth of their time to join or to merge a byte."""

WEIGHT = 0.3
"""How much the last batch counts against all before: one slow batch does not decide for ever."""

ENOUGH = 100_000
"""Fewer bytes than these say nothing of a rate."""

_LEAST, _MOST = 1e-11, 1e-5


@dataclass(frozen=True)
class _Taken:
    amount: float
    seconds: float


def read_rates(stated: str | None) -> Rates:
    """Rates as they are kept; what cannot be read counts as not measured."""
    try:
        found = json.loads(stated or "")
        return charge_receivers(*(float(found[name]) for name in ("receive", "join", "merge")))
    except (ValueError, KeyError, TypeError, DataError):
        return FIRST


def write_rates(rates: Rates) -> str:
    return json.dumps({"receive": rates.receive, "join": rates.join, "merge": rates.merge})


def learn_rates(known: Rates, receipts: Sequence[Merged]) -> Rates:
    """Rates after a batch, by what its tasks took."""
    joins = [one for receipt in receipts for one in receipt.joins]
    read = [*(one.counted for one in joins), *(one.counted for one in receipts)]
    receive = _Taken(
        sum(one.store_bytes + one.staged_bytes + one.cache_bytes for one in read),
        sum(one.read_seconds for one in read),
    )
    join = _Taken(sum(one.joined_bytes for one in joins), sum(one.join_seconds for one in joins))
    merge = _Taken(
        sum(one.made_bytes for one in receipts), sum(one.seconds - one.counted.read_seconds for one in receipts)
    )
    return charge_receivers(_mixed(known.receive, receive), _mixed(known.join, join), _mixed(known.merge, merge))


def learn_share(share: float, expected: float, found: float) -> float:
    """How many times as many states as cells alone let expect a batch makes, after one that was expected to."""
    if expected <= 0 or found <= 0:
        return share
    return float(min(max(share * found / expected, 1e-3), 1e3))


def _mixed(known: float, taken: _Taken) -> float:
    if taken.amount < ENOUGH or taken.seconds <= 0:
        return known
    found = min(max(taken.seconds / taken.amount, _LEAST), _MOST)
    return float(known ** (1 - WEIGHT) * found**WEIGHT)
