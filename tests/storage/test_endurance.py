"""Kills by the thousand, and many processes at once: the long form of what the other tests show once."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

import endurance
from crash_writer import Started
from endurance import World
from windrow.storage.tables import locks

READERS = 2
KILLS = int(os.environ.get("WINDROW_KILLS", "1000"))


def kill_many(path: Path, kills: int, seed: int) -> Counter[str]:
    """Kill a writer again and again; nothing is ever half-seen, nothing acknowledged is lost, no lock stays."""
    endurance.prepare(path)
    choices = random.Random(seed)
    world, number, outcomes = World(), 1, Counter[str]()
    readers = [Started(endurance.watch, path) for _ in range(READERS)]
    for reader in readers:
        assert reader.next() == "ready"
    for kill in range(kills):
        writer = Started(endurance.write_until_killed, path, world, f"{seed}/{kill}", number)
        begun, done = writer.next(), 0
        # The moment is drawn from the time that the work before took, so that most kills land inside a piece of work.
        while done < choices.randrange(1, 3):
            began = time.monotonic()
            said = writer.next()
            done += said[0] == "done"
            world, begun = (world.after(*said[1:]), begun) if said[0] == "done" else (world, said)
        time.sleep((time.monotonic() - began) * choices.uniform(0, 1.3))
        writer.kill()
        while writer.channel.poll():
            try:
                said = writer.channel.recv()
            except EOFError:
                break
            world, begun = (world.after(*said[1:]), begun) if said[0] == "done" else (world, said)
        number = begun[2] + 1
        with endurance.connect(path, lock_timeout=0) as database:
            found = endurance.look(database)
            possible = [world, world.after(*begun[1:])] if said[0] == "begun" else [world]
            assert found in possible, (kill, begun, found, world)
            outcomes[f"{begun[1]}, {'after' if found != world else 'before'}"] += 1
            world = found
            # Whatever the writer held is free again.
            endurance.work(database, path, "update", 10**6 + kill, "")
            world = world.after("update", 0, "")
            with database.catalog.reading() as connection:
                held = {row.process for row in connection.execute(sa.select(locks)).all()}
            assert writer.process.pid not in held
        if kill % 100 == 99:
            print(f"{kill + 1} kills: {dict(sorted(outcomes.items()))}", flush=True)
    for reader in readers:
        reader.channel.send("enough")
        looks = reader.next()
        assert isinstance(looks, int), looks
        outcomes["looks"] += looks
    return outcomes


def test_kills_of_every_kind_of_work(tmp_path: Path) -> None:
    print(kill_many(tmp_path, 6, seed=1))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_thousand_kills(tmp_path: Path) -> None:
    outcomes = kill_many(tmp_path, KILLS, seed=2)
    print(dict(sorted(outcomes.items())))
    assert set(endurance.KINDS) <= {key.partition(",")[0] for key in outcomes}


def run_accounts(
    path: Path, seconds: float, writers: int, readers: int
) -> tuple[list[tuple[int, int, float]], list[int]]:
    endurance.open_accounts(path)
    auditors = [Started(endurance.audit, path) for _ in range(readers)]
    clerks = [Started(endurance.transfer_until, path, seed, seconds, 30.0) for seed in range(writers)]
    assert {process.next() for process in (*auditors, *clerks)} == {"ready"}
    moved = [clerk.next(seconds + 120) for clerk in clerks]
    for auditor in auditors:
        auditor.channel.send("enough")
    looks = [auditor.next() for auditor in auditors]
    assert all(isinstance(found, tuple) for found in moved), moved
    assert all(isinstance(found, int) for found in looks), looks
    with endurance.connect(path, lock_timeout=0) as database:
        assert database.query(endurance.ALL).compute()["total"].to_pylist() == [endurance.TOTAL]
    return moved, looks


def test_writers_and_readers_of_overlapping_arrays(tmp_path: Path) -> None:
    moved, looks = run_accounts(tmp_path, 2, writers=2, readers=1)
    assert sum(count for count, _, _ in moved) > 0
    assert sum(looks) > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_writers_and_four_readers_for_five_minutes(tmp_path: Path) -> None:
    moved, looks = run_accounts(tmp_path, 300, writers=4, readers=4)
    print(f"transfers, refused, longest wait: {moved}; looks: {looks}")
    # Two locks may each be waited for.
    assert max(longest for _, _, longest in moved) < 2 * 30 + 10
