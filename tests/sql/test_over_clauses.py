"""What an OVER clause asks for, who does it, and what is refused, with the caret at the right place."""

from __future__ import annotations

import pytest
from sqlglot import exp

import windrow as wr
from windrow.sql.over_clauses import WindowCall, read_window
from windrow.sql.reading import Reading, SqlError
from windrow.sql.scopes import windows_of


def calls(text: str) -> list[WindowCall | None]:
    """What windrow makes of each window of a query, in the order of the text."""
    reading = Reading(text)
    select = reading.tree
    assert isinstance(select, exp.Select)
    named = {window.name.lower(): window for window in select.args.get("windows") or []}
    windows = sorted(windows_of(select), key=reading.position)
    return [read_window(reading, window, named) for window in windows]


def call(window: str) -> WindowCall:
    (found,) = calls(f"select {window} from t")
    assert found is not None
    return found


def shown(found: WindowCall) -> str:
    """An aggregate with what it is computed of, and its frame."""
    arguments = ", ".join(argument.sql("spark") for argument in found.arguments) or "*"
    condition = f" where {found.condition.sql('spark')}" if found.condition is not None else ""
    parameter = found.aggregate.parameter
    inside = arguments if parameter is None else f"{arguments}, {parameter:g}"
    return f"{found.aggregate.name}({inside}){condition} {found.frame}"


ALL = "range between unbounded preceding and unbounded following"
SO_FAR = "range between unbounded preceding and current row"


@pytest.mark.parametrize(
    ("window", "meant"),
    [
        ("median(x) over ()", f"median(x) {ALL}"),
        ("MEDIAN(x) OVER (ORDER BY d)", f"median(x) {SO_FAR}"),
        ("mode(x) over (order by d rows 3 preceding)", "mode(x) rows between 3 preceding and current row"),
        ("mode(x, true) over ()", f"mode(x) {ALL}"),
        ("mode() within group (order by x) over ()", f"mode(x) {ALL}"),
        ("mode(x) ignore nulls over ()", f"mode(x) {ALL}"),
        ("count(distinct x) over ()", f"count_distinct(x) {ALL}"),
        ("count(distinct x, y + 1) over ()", f"count_distinct(x, y + 1) {ALL}"),
        ("count_distinct(x) over ()", f"count_distinct(x) {ALL}"),
        ("min(distinct x) over ()", f"min(x) {ALL}"),
        ("percentile(x, 0.3) over ()", f"quantile_cont(x, 0.3) {ALL}"),
        ("windrow_percentile(x, 70) over ()", f"percentile(x, 70) {ALL}"),
        ("windrow_sum(x) over ()", f"sum(x) {ALL}"),
        ("quantile_disc(x, 0.3) over ()", f"quantile_disc(x, 0.3) {ALL}"),
        ("quantile_index(x, 1) over ()", f"quantile_index(x, 1) {ALL}"),
        ("percentile_cont(0.25) within group (order by x) over ()", f"quantile_cont(x, 0.25) {ALL}"),
        ("percentile_cont(0.25) within group (order by x desc) over ()", f"quantile_cont(x, 0.75) {ALL}"),
        ("percentile_disc(0.9) within group (order by x) over ()", f"quantile_disc(x, 0.9) {ALL}"),
        ("percentile_disc(0.9) within group (order by x desc) over ()", f"percentile(x, 10) {ALL}"),
        ("median(x) filter (where y > 0) over ()", f"median(x) where y > 0 {ALL}"),
        (
            "sum(x) over (order by d groups between 1 preceding and 2 following exclude ties)",
            "sum(x) groups between 1 preceding and 2 following exclude ties",
        ),
        (
            "count(*) over (order by d rows between current row and unbounded following exclude current row)",
            "count(*) rows between current row and unbounded following exclude current row",
        ),
        (
            "avg(x) over (order by d rows between 100 - 1 preceding and y following)",
            "avg(x) rows between 99 preceding and y following",
        ),
        (
            "std(x) over (order by d range between interval 7 days preceding"
            " and interval '3' hour following exclude group)",
            "std(x) range between interval '7 days' preceding and interval '3 hours' following exclude group",
        ),
        ("median(x) over (order by d range 0.5 preceding)", "median(x) range between 0.5 preceding and current row"),
    ],
)
def test_windrows_windows(window: str, meant: str) -> None:
    assert shown(call(window)) == meant


@pytest.mark.parametrize(
    "window",
    [
        "row_number() over (partition by s order by d)",
        "row_number() over ()",
        "lag(x, n) over (order by d)",
        "sum(x) over (partition by s order by d rows 3 preceding)",
        "sum(x) over (partition by s order by d rows between 4 - 1 preceding and current row)",
        "count(x) filter (where y > 0) over (partition by s order by d)",
        "last_value(x) ignore nulls over (order by d)",
        "percentile(x, array(0.1, 0.9)) over (partition by s)",
        "percentile(x, 0.5, f) over (partition by s)",
        "approx_percentile(x, 0.5) over (order by d)",
        "collect_list(x) over (order by d)",
        "db.median(x) over (order by d)",
    ],
)
def test_sparks_windows(window: str) -> None:
    assert calls(f"select {window} from t") == [None]


@pytest.mark.parametrize(
    "window",
    [
        "row_number() over (order by d)",
        "lag(x, 2, 0) over (order by d)",
        "nth_value(x, 3) over (order by d rows 5 preceding)",
        "sum(x) over (order by d rows 3 preceding)",
        "count(x) filter (where y > 0) over (order by d)",
        "avg(x) over ()",
    ],
)
def test_windows_that_spark_would_put_into_one_task(window: str) -> None:
    (call,) = calls(f"select {window} from t")
    assert call.optional


def test_users_own_aggregates_are_windrows() -> None:
    @wr.aggregate("sql_spread")
    class Spread:
        def empty() -> tuple[float, float]:  # type: ignore[misc]
            return (1e300, -1e300)

        def add(state, x):  # type: ignore[no-untyped-def]  # noqa: N805
            return (min(state[0], x), max(state[1], x))

        def result(state):  # type: ignore[no-untyped-def]  # noqa: N805
            return state[1] - state[0]

    assert shown(call("sql_spread(x) over ()")) == f"sql_spread(x) {ALL}"
    assert call("SQL_SPREAD(x) over ()").aggregate.user is Spread


def test_order_and_partition() -> None:
    found = call("median(x) over (partition by s, t.u order by d desc, e nulls last, f + 1 desc nulls first)")
    assert [node.sql() for node in found.partition] == ["s", "t.u"]
    assert [(o.node.sql(), o.descending, o.nulls_first) for o in found.order] == [
        ("d", True, False),
        ("e", False, False),
        ("f + 1", True, True),
    ]


def test_named_windows() -> None:
    text = (
        "select median(x) over w, mode(x) over (v rows 1 preceding), rank() over W, median(x) over (w) from t "
        "window w as (partition by s order by d groups 2 preceding), v as (partition by p order by q)"
    )
    with pytest.raises(SqlError, match="rank cannot be computed over such a frame"):
        calls(text)
    first, second, third = calls(text.replace("rank() over W, ", ""))
    assert first is not None
    assert second is not None
    assert third is not None
    assert shown(first) == "median(x) groups between 2 preceding and current row"
    assert shown(third) == shown(first)
    assert [o.node.sql() for o in first.order] == ["d"]
    assert shown(second) == "mode(x) rows between 1 preceding and current row"
    assert [node.sql() for node in second.partition] == ["p"]


@pytest.mark.parametrize(
    ("window", "what"),
    [
        ("percentile(x, 50) over ()", "fraction from 0 to 1, got 50"),
        ("percentile_cont(1.5) within group (order by x) over ()", "fraction from 0 to 1, got 1.5"),
        ("quantile_cont(x, 1.5) over ()", "between 0 and 1, got 1.5"),
        ("windrow_percentile(x, -1) over ()", "between 0 and 100, got -1"),
        ("sum(distinct x) over ()", "no sum\\(distinct"),
        ("median(x, y) over ()", "takes one argument over a frame, got 2 arguments"),
        ("median(x) respect nulls over ()", "passes NULLs over"),
        ("median(x) within group (order by y) over ()", "has no within group"),
        ("mode() within group (order by x desc) over ()", "gives the smallest"),
        ("first(x) over (order by d groups 1 preceding)", "first cannot be computed over such a frame"),
        ("rank() over (order by d rows between y preceding and current row)", "rank cannot be computed"),
        ("median(x) over w", "no such window, got 'w'"),
        (
            "median(x) over (order by d rows between unbounded following and current row)",
            "start at unbounded following",
        ),
        ("median(x) over (order by d rows between current row and unbounded preceding)", "end at unbounded preceding"),
        ("median(x) over (order by d rows -1 preceding)", "must not be negative, got -1"),
        ("median(x) over (order by d range between 2 - 3 following and 1 following)", "must not be negative, got -1"),
        ("median(x) over (order by d rows 1.5 preceding)", "whole numbers, got 1.5"),
        ("median(x) over (order by d rows interval 1 day preceding)", "whole numbers, got interval '1 day'"),
        ("median(x) over (order by d, e range 1 preceding)", "exactly one order column, got 2 order columns"),
        ("median(x) over (partition by s range 1 preceding)", "exactly one order column, got no ORDER BY"),
        ("median(x) over (partition by s groups 1 preceding)", "groups frame needs an ORDER BY"),
        ("median(x) over (order by d rows 1)", "so many preceding or following"),
    ],
)
def test_refused_windows_show_their_place(window: str, what: str) -> None:
    text = f"select a,\n  {window} from t"
    with pytest.raises(SqlError, match=what) as caught:
        calls(text)
    assert text[caught.value.position :].startswith(window.split("(")[0])
    assert caught.value.line == 2


def test_a_bound_that_changes_each_time_is_refused() -> None:
    text = "select median(x) over (order by d rows between rand() preceding and current row) from t"
    with pytest.raises(SqlError, match=r"the same each time it is computed, got rand\(\)") as caught:
        calls(text)
    assert text[caught.value.position :].startswith("rand()")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("select median(x over () from t", "over"),
        ("select median(x) over (order by d rows between 1 preceding and) from t", ")"),
        ("select a b c from t", "c"),
        ("select x from t where", "where"),
    ],
)
def test_unreadable_text_shows_its_place(text: str, at: str) -> None:
    with pytest.raises(SqlError) as caught:
        Reading(text)
    assert text[caught.value.position :].startswith(at)
    assert "<" not in caught.value.what


def test_open_quotes_are_refused() -> None:
    with pytest.raises(SqlError):
        Reading("select 'abc from t")
