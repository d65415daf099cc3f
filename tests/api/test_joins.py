"""Neighbours and joins from Python: the same plans as from text, and what is refused before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import windrow as wr
from parsing import parse_query
from windrow.api.session.completion import next_words
from windrow.errors import Error


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = wr.connect(tmp_path_factory.mktemp("joins"), engine="local", progress=False)
    opened.create("A", "<m: float64, s: string> [i=1:6:2, j=1:8:2]")
    opened.create("B", "<m: float64> [i=1:9:2, j=0:4:2]")
    opened.query("create sparse array S <w: int> [i=-2:2, j=-2:2]")
    opened.query("insert into S values (0, 1: 1), (-1, 0: 1)")
    grid = {"ra": (0, 360, "1 arcsec"), "dec": (-90, 90, "1 arcsec")}
    opened.create("G", "<m: float64> [ra, dec]", grid=grid)
    days = ["2012-01-01", "2012-01-02", "2012-01-05"]
    opened.create("T", "<t: float64> [time=1:3, k=1:2]", labels={"time": wr.Labels.of(days, kind="datetime")})
    yield opened
    opened.close()


def arrays(database: Any) -> tuple[Any, Any]:
    return database.array("A"), database.array("B")


ALIKE: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda a, _: a.neighbours(wr.L1(1)).agg(n=wr.count()), "select count(*) as n from A neighbours L1(1)"),
    (
        lambda a, _: a.neighbours(wr.L2(2.5, on="i") & wr.offsets(j=wr.any_offset), min_count=3).agg(t=wr.sum("m * 2")),
        "select sum(m * 2) as t from A neighbours L2(2.5) on (i), j any min count 3",
    ),
    (
        lambda a, _: a.neighbours(wr.shape("S").excluding_self().wrap("i"), step=2).agg(n=wr.count(), method="naive"),
        "select count(*) as n from A neighbours S, wrap (i), excluding self step 2 method naive",
    ),
    (
        lambda a, _: a.neighbours(wr.Lp(3, 2), step={"j": 2}).agg(d=wr.avg("distance()")),
        "select avg(distance()) as d from A neighbours Lp(3, 2) step (j 2)",
    ),
    (
        lambda a, _: a.neighbours(wr.Linf(1), step=(1, 2)).agg(p=wr.percentile("m", 70)),
        "select percentile(m, 70) as p from A neighbours Linf(1) step (1, 2)",
    ),
    (
        lambda a, b: a.join(
            b,
            shape=wr.Linf(2),
            on={"i": "i + 3", "j": "j // 2"},
            where="abs(left.m - right.m) < 1",
            how="inner",
            nearest=None,
        ).agg(n=wr.count(), s=wr.sum("left.m * right.m")),
        'select count(*) as n, sum("left".m * right.m) as s from A "left" similarity join B right'
        ' on right.i = "left".i + 3 and right.j = "left".j // 2 and abs("left".m - right.m) < 1 with shape Linf(2)'
        ' group by "left".i, "left".j',
    ),
    (
        lambda a, _: a.join(a, wr.L1(1)).groupby().agg(n=wr.count()),
        'select count(*) as n from A "left" similarity join A right with shape L1(1)',
    ),
    (
        lambda a, b: a.join(b, wr.L1(1), how="left", nearest=3).groupby("left.i").agg(n=wr.count()),
        'select count(*) as n from A "left" left similarity join B right with shape L1(1) nearest 3 group by "left".i',
    ),
    (
        lambda a, b: a.join(b, wr.L1(1), nearest=(2, "abs(left.m - right.m)")).select(f="left.m * right.m"),
        'select "left".m * right.m as f from A "left" similarity join B right with shape L1(1)'
        ' nearest 2 by abs("left".m - right.m)',
    ),
    (
        lambda a, b: a.join(b, wr.L1(1), on="right.i = left.i and right.j = left.j", nearest="mutual").select(),
        'select * from A "left" similarity join B right on right.i = "left".i and right.j = "left".j'
        " with shape L1(1) mutual nearest",
    ),
    (
        lambda a, b: a.join(b, wr.L1(1), how="anti").select(m="left.m"),
        'select "left".m from A "left" anti similarity join B right with shape L1(1)',
    ),
    (
        lambda a, b: a.at(version=0).join(b.at(version=0), wr.L1(1)).agg(n=wr.count()),
        'select count(*) as n from A@0 "left" similarity join B@0 right with shape L1(1) group by "left".i, "left".j',
    ),
]


@pytest.mark.parametrize(("make", "text"), ALIKE, ids=[text for _, text in ALIKE])
def test_python_says_what_text_says(database: Any, make: Callable[[Any, Any], Any], text: str) -> None:
    plan = parse_query(text)
    query = make(*arrays(database))
    assert query.plan == plan
    assert query.bind().bound == wr.Query(database, plan).bind().bound


def test_label_units_sky_and_cells_by_number(database: Any) -> None:
    t = database.array("T")
    found = t.neighbours(wr.offsets(time=("-2 days", 0))).agg(n=wr.count())
    assert "neighbours time between '-2 days' and 0" in str(found.plan)
    assert t.join(t, wr.Linf(0), on={"time": "cell(time) - 1"}).agg(n=wr.count()).schema.dimension_names == (
        "time",
        "k",
    )
    g = database.array("G")
    sky = g.join(g, wr.sky("10 arcsec", on=("ra", "dec")).excluding_self(), where="distance('arcsec') > 1")
    assert sky.agg(d=wr.min("distance('arcsec')")).schema.dimension_names == ("ra", "dec", "n")
    assert sky.select(d="distance()").schema.dimension_names == (
        *("left_ra", "left_dec", "left_n", "right_ra", "right_dec", "right_n"),
    )


def test_a_query_may_be_the_right_side(database: Any) -> None:
    a, b = arrays(database)
    coarse = b.regrid(i=3, j=2).agg(m=wr.avg("m"))
    found = a.join(coarse, wr.Linf(0), on={"i": "i // 3", "j": "j // 2"}).agg(t=wr.avg("left.m - right.m"))
    assert found.schema.dimension_names == ("i", "j")
    bright = database.query("select m from B where m > 3")
    assert "where m > 3" in str(a.join(bright, wr.L1(1)).agg(n=wr.count()).plan)


def test_a_pinned_side_stays_as_it_was(database: Any) -> None:
    database.query("create sparse array V <m: float64> [i=1:6]")
    v = database.array("V")
    v.insert({"i": [1], "m": [1.0]})
    query = v.join(v.at(version=0), wr.Linf(1)).agg(n=wr.count())
    bound = query.bind().bound.source
    assert (bound.left.cells, bound.right.cells) == (1, 0)
    v.insert({"i": [2], "m": [2.0]})
    bound = query.bind().bound.source
    assert (bound.left.cells, bound.right.cells) == (2, 0)


def test_a_stored_shape_is_read_at_the_querys_moment(database: Any) -> None:
    database.query("create sparse array Q <w: int> [i=-2:2]")
    database.query("insert into Q values (1: 1)")
    b = database.array("B")
    live, pinned = (
        b.neighbours(shape & wr.offsets(j=(0, 0))).agg(n=wr.count())
        for shape in (wr.shape(database.array("Q"), on="i"), wr.shape(database.array("Q@1"), on="i"))
    )
    assert live.bind().bound.source.offsets == pinned.bind().bound.source.offsets
    database.query("insert into Q values (-1: 1)")
    assert live.bind().bound.source.offsets.contains((-1, 0))
    assert not pinned.bind().bound.source.offsets.contains((-1, 0))


def test_users_own_aggregates_take_pairs(database: Any) -> None:
    @wr.aggregate("largest_product", result="float64")
    class LargestProduct:
        def empty() -> Any:  # type: ignore[misc]
            return (0.0,)

        def add(state: Any, x: Any) -> Any:  # type: ignore[misc] # noqa: N805
            return (max(state[0], x),)

        def result(state: Any) -> Any:  # type: ignore[misc] # noqa: N805
            return state[0]

    a, b = arrays(database)
    query = a.join(b, wr.Linf(1)).agg(p=LargestProduct("left.m * right.m"))
    assert [(name, str(found)) for name, found in query.bind().bound.aggregates] == [
        ("p", "largest_product(argument_1)")
    ]


WRONG: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda a, b: a.neighbours("S"), r"a shape is needed, got 'S'.*wr.shape\(S\)"),
    (lambda a, b: a.neighbours(wr.L1(1)).agg(), "there is nothing to compute"),
    (lambda a, b: a.neighbours(wr.L1(1)).agg(n=3), "n is not an aggregate"),
    (lambda a, b: a.neighbours(wr.L1(1)).agg(n=wr.sum("s")), "sum"),
    (lambda a, b: a.neighbours(wr.L1(1), step=0).agg(n=wr.count()), "a step must be at least 1, got 0"),
    (lambda a, b: a.neighbours(wr.L1(1), min_count=-1).agg(n=wr.count()), "min count must not be negative"),
    (lambda a, b: a.neighbours(wr.L1(1)).agg(n=wr.count(), method="slow"), "method must be one of"),
    (lambda a, b: a.neighbours(wr.L1(1, on="x")).agg(n=wr.count()), "no such dimension, got 'x'"),
    (lambda a, b: a.join("B", wr.L1(1)), "joined with an array or a query, got 'B'"),
    (lambda a, b: a.join(b, 3), "a shape is needed, got 3"),
    (lambda a, b: a.join(b, wr.L1(1), how="outer"), "a join is one of inner, left, anti, got 'outer'"),
    (lambda a, b: a.join(b, wr.L1(1), on=3), "on maps right dimensions to expressions of left ones, got 3"),
    (lambda a, b: a.join(b, wr.L1(1), on={"x": "i"}), "a dimension that the right array does not have, got 'x'"),
    (
        lambda a, b: a.join(b, wr.L1(1), on={"i": "m"}),
        "i is mapped from a dimension of the left array, got m. They are i, j",
    ),
    (
        lambda a, b: a.join(b, wr.L1(1), on={"i": "right.i"}),
        "i is mapped from a dimension of the left array, got right.i",
    ),
    (lambda a, b: a.join(b, wr.L1(1), on={"i": "3"}), "i is mapped from a dimension of the left array, got 3"),
    (lambda a, b: a.join(b, wr.L1(1), on={"i": 3}), r"on\['i'\] is an expression, as text, got 3"),
    (lambda a, b: a.join(b, wr.L1(1), on={"i": "i + "}), "ends where a value"),
    (
        lambda a, b: a.join(b, wr.L1(1), on={"i": "i + 99"}).agg(n=wr.count()),
        "no cell of left comes near right along i",
    ),
    (lambda a, b: a.join(b, wr.L1(1), where="left.m").agg(n=wr.count()), "must be true or false"),
    (
        lambda a, b: a.join(b, wr.L1(1), where="c.m > 3").agg(n=wr.count()),
        "no side of the join has that name, got 'c.m'",
    ),
    (lambda a, b: a.join(b, wr.L1(1), where=3), "where is an expression, as text, got 3"),
    (lambda a, b: a.join(b, wr.L1(1), nearest=0), "nearest keeps at least one partner, got 0"),
    (lambda a, b: a.join(b, wr.L1(1), nearest="first"), "nearest is a number of partners, got 'first'"),
    (lambda a, b: a.join(b, wr.L1(1), nearest=True), "nearest is a number of partners, got True"),
    (lambda a, b: a.join(b, wr.L1(1), nearest=(1, 2)), "nearest is an expression, as text, got 2"),
    (lambda a, b: a.join(b, wr.L1(1)).groupby("k"), "grouped by dimensions of the left array, got 'k'"),
    (lambda a, b: a.join(b, wr.L1(1)).groupby("right.i"), "grouped by dimensions of the left array, got 'right.i'"),
    (lambda a, b: a.join(b, wr.L1(1)).select(f=3), "column f is an expression, as text, got 3"),
    (lambda a, b: a.join(b, wr.L1(1)).select(f="m"), "several sides of the join have this column, got 'm'"),
    (lambda a, b: a.join(b, wr.sky("10 arcsec", on=("i", "j"))).agg(n=wr.count()), "Sky needs angles along i"),
    (lambda a, b: wr.sky("200 degrees"), "below 180 degrees"),
    (lambda a, b: a.join(b, wr.L1(1), how="left").select().store("X"), "a table, which no array can hold"),
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words for _, words in WRONG])
def test_mistakes_are_said_before_any_work(database: Any, make: Callable[[Any, Any], Any], words: str) -> None:
    with pytest.raises(Error, match=words):
        make(*arrays(database))


def test_sides_are_in_one_warehouse(database: Any, tmp_path: Any) -> None:
    with wr.connect(tmp_path / "other", engine="local", progress=False) as other:
        b = other.create("B", "<m: float64> [i=1:6, j=1:8]")
        with pytest.raises(Error, match="both sides of a join are in one warehouse"):
            database.array("A").join(b, wr.L1(1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select m from A neighbours ", {"L1(", "Lp(", "Sky(", "offsets", "excluding", "S"}),
        ("select m from A neighbours L1(1) ", {"on", "step", "min count", "method"}),
        ("select m from A ", {"anti", "left", "similarity", "neighbours"}),
        ("select m from A anti similarity ", {"join"}),
        ("select m from A similarity join B with shape S ", {"on", "between", "any", "nearest", "mutual nearest"}),
        ("select m from A similarity join B with shape S nearest 3 ", {"by", "where", "group"}),
        ("select m from A similarity join B with shape S nearest 3 by dis", {"distance("}),
    ],
)
def test_joins_are_completed(database: Any, text: str, words: set[str]) -> None:
    before = text if text.endswith(" ") else text.rpartition(" ")[0] + " "
    assert words - set(next_words(database, before, text)) == set()


def test_they_say_what_they_are(database: Any) -> None:
    a, b = arrays(database)
    assert repr(a.neighbours(wr.L1(1))).startswith("<windrow neighbours L1(1) on A: ")
    assert "similarity join" in repr(a.join(b, wr.L1(1)))
    assert repr(a.join(b, wr.L1(1)).groupby("i")) == (
        "<windrow pairs grouped by left.i: .agg(n=wr.count()) computes something>"
    )
