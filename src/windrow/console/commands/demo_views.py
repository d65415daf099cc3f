"""The demos of views: an array, a view on it, batches one by one, and each compared with computing all of it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

import windrow as wr
from windrow.api.database import Database
from windrow.api.describe import human_bytes
from windrow.api.plotting import require_matplotlib
from windrow.api.query import Query
from windrow.api.views import View
from windrow.console.commands.demo_steps import MAKER, Steps, clear
from windrow.console.commands.demo_views_figure import Batches, Map, draw
from windrow.console.commands.settings import Settings
from windrow.errors import CorruptionError, DataError
from windrow.samples import PLACES_SCHEMA, SURVEY_SCHEMA, places_by_region, survey_nights
from windrow.samples.survey import STEPS_A_DAY

DAYS = 200
PLACES_A_REGION = 200
RADIUS = 10
"""Cells of a hundredth of a degree or less: some kilometres."""


@dataclass(frozen=True)
class Story:
    """What a demo of views is about."""

    array: str
    view: str
    schema: str
    source_attribute: str
    stored: pa.Table
    """What is there before the first batch."""
    batches: Sequence[pa.Table]
    batch_name: str
    title: str
    axes: tuple[str, str]
    """The dimensions of the map."""

    @property
    def metadata(self) -> dict[str, dict[str, str]]:
        return {self.source_attribute: {"source": MAKER}}


def run_sky(settings: Settings, out: Path, detections: int, nights: int) -> None:
    made = list(survey_nights(detections))
    if nights + 1 >= len(made):
        hint = f"At most {len(made) - 2}: one night more comes first, and the array must have some before it"
        raise DataError("there are not so many nights", got=nights, hint=hint)
    story = Story(
        "SKY",
        "SKY_NEAR",
        SURVEY_SCHEMA,
        "mag",
        pa.concat_tables(made[: -nights - 1]),
        made[-nights - 1 :],
        "night",
        f"Detections beside each detection within {DAYS} days before, of a made-up survey",
        ("ra", "dec"),
    )
    shape = wr.L1(1, on=("ra", "dec")) & wr.offsets(time=(-DAYS * STEPS_A_DAY, 0))
    _run(settings, story, out, lambda db: db.array("SKY").neighbours(shape).agg(n=wr.count(), mean=wr.avg("mag")))


def run_places(settings: Settings, out: Path, count: int, regions: int) -> None:
    if (regions + 1) * PLACES_A_REGION >= count:
        hint = f"At most {count // PLACES_A_REGION - 2}: one region more comes first"
        raise DataError("there are not so many regions", got=regions, hint=hint)
    world, *later = places_by_region(count, regions + 1, PLACES_A_REGION)
    story = Story(
        "GEO",
        "GEO_NEAR",
        PLACES_SCHEMA,
        "latitude",
        world,
        later,
        "region",
        f"Places within {RADIUS} cells of each place",
        ("long", "lat"),
    )
    shape = wr.Linf(RADIUS)
    _run(settings, story, out, lambda db: db.array("GEO").neighbours(shape).agg(n=wr.count(), north=wr.max("latitude")))


def _run(settings: Settings, story: Story, out: Path, ask: Callable[[Database], Query]) -> None:
    began = time.perf_counter()
    require_matplotlib()
    steps = Steps()
    with settings.connect(create=True, engine="local") as db:
        clear(db, story.array, story.view)
        with steps.timed("stored cells") as step:
            array = db.create(story.array, story.schema, sparse=True, metadata=story.metadata)
            array.insert(story.stored)
            step.text = f"{story.array}@{array.version}, sparse, {story.stored.num_rows:,} cells"
        with steps.timed("made a view") as step:
            view = db.create_view(story.view, ask(db))
            step.text = f"{view.name}@{view.version}: {view.definition}"
        with steps.timed("warmed up") as step:
            array.insert(story.batches[0])
            step.text = f"one {story.batch_name} that is not counted: it may compile what the others use"
        first = _rebuild(view)
        seconds = _follow(db, story, view)
        with steps.timed("checked it") as step:
            _check(view)
            step.text = "after all batches the view is what its query gives from scratch"
        last = _rebuild(view)
        times = f"{last / float(np.median(seconds)):.1f} times a batch"
        click.echo(f"   computing all of the view again takes {last:.2f} s, {times}")
        with steps.timed("drew a picture") as step:
            draw(Map(story.title, story.axes, view.read()), Batches(story.batch_name, seconds, (first, last)), out)
            step.text = f"{out}, {human_bytes(out.stat().st_size)}"
    click.echo(f"done in {time.perf_counter() - began:.1f} s; array and view are in {settings.db}. Now try:")
    click.echo(f"  windrow describe {story.view} --db {settings.db}")


def _follow(db: Database, story: Story, view: View) -> list[float]:
    """Batch after batch, each with what the view's history says of it, and how long it took."""
    array, seconds = db.array(story.array), []
    for number, table in enumerate(story.batches[1:], 1):
        began = time.perf_counter()
        array.insert(table)
        seconds.append(time.perf_counter() - began)
        done = view.history().to_pylist()[-1]
        click.echo(
            f"   {story.batch_name} {number:>2}: {table.num_rows:>5,} new cells, view {done['way']}: "
            f"{done['cells']:>5,} cells changed  [{seconds[-1]:.2f} s]"
        )
    return seconds


def _check(view: View) -> None:
    found = view.check()
    if not found.ok:
        raise CorruptionError(str(found))


def _rebuild(view: View) -> float:
    began = time.perf_counter()
    view.refresh(full=True)
    return time.perf_counter() - began
