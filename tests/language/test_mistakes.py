"""What is said about text that is no statement, and where the caret stands."""

from __future__ import annotations

import pickle

import pytest

from windrow.errors import Error, LanguageError
from windrow.language.parser import LONGEST_STATEMENT, StatementSyntaxError, parse

MISTAKES = [
    # text, with the place of the caret before ^; words of the message; words of the hint
    ("^slect A", "expected a statement, got 'slect'", "Did you mean 'select'"),
    ("^toad A", "got 'toad'", "Did you mean 'load'"),
    ("select a ^form A", "got 'form'", "Did you mean 'from'"),
    ("select a from A were ^a > 3 and b", "got 'a'", "Did you mean 'where'"),
    ("select max(a) from A windw ^(2, 2)", "got '('", "Did you mean 'window'"),
    ("aggr A min(a) by regrld^(2,2)", "got '('", "Did you mean 'regrid'"),
    ("select max(a) from A window (i 2) boundary ^dorp", "expected clip or drop", "Did you mean 'drop'"),
    ("show ^hist V", "expected history", "Did you mean 'history'"),
    ("select^", "ends where a value", None),
    ("select a from^", "ends where a form such as filter(…), '(' or a name", None),
    ("select a from A where a >^", "ends where a value", None),
    ("select max(a) from A window (2, 2^", "ends where ')', ',' or wrap", None),
    ("explain ^describe A", "expected a query, analyze or create", None),
    ("delete from A ^whre a > 1", "expected the end or where, got 'whre'", "Did you mean 'where'"),
    ("delete^", "ends where from is expected", None),
    ("refresh V ^ful", "expected full or the end, got 'ful'", "Did you mean 'full'"),
    ("drop V ^cascad", "expected cascade or the end, got 'cascad'", "Did you mean 'cascade'"),
    ("check view^", "ends where a name is expected", None),
    ("explain analyze ^create view V as select A", "expected a query, got 'create'", None),
    ("create view V with (maintain = ^) as select A", "a constant", None),
    ("create view V with (^) as select A", "expected a name, got ')'", None),
    ("^create view V with (store = auto, store = cells) as select A", "a setting is given twice", None),
    ("select * from changes(A, 3^)", "expected ',', got ')'", None),
    ("select * from changes(A, ^-1, 3)", "expected a whole number, got '-'", None),
    ("select * from changes(A, ^B, 3)", "expected a whole number, got 'B'", None),
    ("select * from changes(^(select A), 1, 3)", "expected a name, got '('", None),
    ("select a + from ^A", "got 'A'", None),
    ("select a from A where ^max(a) > 3", "max is an aggregate and cannot stand in where", "having"),
    ("select max(a) from A window (2,2) ^where a > 3", "where must stand before window", "having"),
    ("select max(a) from A window (2,2) ^regrid (2, 2)", "regrid cannot follow window", "parentheses"),
    ("select a from A ^from B", "from is given twice", None),
    ("select ^maxx(a) from A", "no such function, got 'maxx'", "Did you mean 'max'"),
    ("select max(^min(a)) from A", "min cannot stand inside max", "parentheses"),
    ("select ^a, max(a) from A group by i", "expected an aggregate, got a", "grouped by"),
    ("select ^*, max(a) from A", "expected an aggregate, got *", None),
    ("select a, ^* from A", "* must be the first", None),
    ("aggr A ^a", "expected an aggregate, got a", None),
    ("select a + b^", "does not say from which array", "select a from A"),
    ("select max(a) from A ^window (i 2, 3)", "names some dimensions", None),
    ("select max(a) from A window (^0, 3)", "at least one cell, got 0", None),
    ("select max(a) from A window (i 2) ^step (1, 2)", "a step for each extent", None),
    ("select max(a) from A regrid (2) ^step 2", "a regrid takes no step", None),
    ("select max(a) from A window (i 2) step 2 ^step 3", "step is given twice", None),
    ("select count(*) from A neighbours ^L3(1)", "no such shape, got 'L3'", "Did you mean"),
    ("select count(*) from A neighbours ^excluding self", "at least one term", None),
    ("select count(*) from A neighbours ^Lp(3)", "Lp takes two numbers, got 1", "As in Lp(3, 2.5)"),
    ("select count(*) from A neighbours ^L1(1, 2)", "L1 takes one number, got 2", "As in L1(1)"),
    ("select count(*) from A neighbours ^Lp(0.5, 2)", "the power of Lp must be", None),
    ("select count(*) from A neighbours ^Sky('200 degrees') on (ra, dec)", "below 180 degrees", None),
    ("select count(*) from A neighbours ^Sky('10 parsec') on (ra, dec)", "the radius of Sky is an angle", "arcsec"),
    ("select count(*) from A neighbours ^time between '-2 days' and 3", "in label units, the other in cells", None),
    ("select count(*) from A neighbours ^time between 0 and '-2 days'", "end before they start", None),
    ("select count(*) from A neighbours L1(1) ^boundary drop", "a shape takes no boundary", "step, min count, method"),
    ("select count(*) from A neighbours L1(1) ^step 0", "a step must be at least 1, got 0", None),
    ("select count(*) from A neighbours L1(1) ^step (2, i 3)", "names some dimensions and not others", None),
    ("select a from A similarity join B with shape L1(1) ^nearest 0", "at least one partner, got 0", "nearest 1"),
    ("select a from A similarity join B with shape L1(1) ^nearest by 3", "got 'nearest'", None),
    ("select a from A similarity join B with shape L1(1) ^nearst 3", "got 'nearst'", "Did you mean 'nearest'"),
    ("select a from A similarity join B with shape L1(1) ^mutual", "got 'mutual'", "Did you mean 'mutual nearest'"),
    ("select a from A anti ^join B with shape L1(1)", "got 'join'", "anti similarity join"),
    ("select a from A join ^B with shape L1(1)", "got 'B'", "As in A similarity join B"),
    ("select ^distanse() from A", "no such function, got 'distanse'", "Did you mean 'distance'"),
    ("select ^percentile(t) from T", "percentile needs a parameter", "percentile(x, P)"),
    ("select ^percentile(t, a) from T", "the parameter of percentile is a number, got a", "percentile(a, 70)"),
    ("select ^quantile(t, a) from T", "the parameter of quantile is a number, got a", "quantile(a, 0.7)"),
    ("select ^max(a, 3) from A", "max takes no parameter, got 3", None),
    ("select ^sum(*) from A", "only count takes *", None),
    ("select a ^from A similarity join A with shape L1(1)", "two sides of a join have one name", "A A1"),
    ("select a from A similarity join B on A.i = B.i^", "ends where with is expected", None),
    ("^select max(a) as m, min(a) as m from A", "two columns of one name, got 'm'", None),
    ('select ^a as "a b" from A', "not a valid name for a column, got 'a b'", None),
    ("select a from A into B ^into C", "into is given twice", None),
    ("select a from (select b from B ^into C)", "into can stand in a query of its own only", None),
    ("create array view V as select A ^into B", "into can stand", None),
    ("create view V deferred as select A ^deferred", "deferred is given twice", None),
    ("create A <a: ^flot> [i=1:3]", "unknown type, got 'flot'", "Did you mean 'float'"),
    ("create A [^i=3:1] <double a>", "ends before it starts", None),
    ("create A ^<a: int>", "expected a schema such as", None),
    ("create A^", "ends where a schema", None),
    ("insert into A values (1,2: 2,5), (1,3: 6^", "ends where ')' or ','", None),
    ("insert into A values (^a)", "expected a constant", None),
    ("update A set s ^== 3", "expected '=', got '=='", None),
    ("plot A to ^x.png", "expected a 'text', got 'x'", None),
    ("^window(A, 1, 1, 0, max(v))", "two numbers for each dimension, got 3", None),
    ("window(A, 1, 1, ^v)", "expected an aggregate in window, got v", None),
    ("^filter(A)", "filter needs one condition", None),
    ("apply(A, ^3, a)", "expected a name for the next column", None),
    ("between(A, ^a + b)", "expected a range of one dimension", None),
    ("select a from A^@x", "no meaning here, got '@'", "A version is a number"),
    ("select a from A^@99999999999999999999", "does not fit 64 bits", None),
    ("select a from A ^as of 'yesterday'", "not a date or time, got 'yesterday'", None),
    ("select a, ^99999999999999999999 from A", "does not fit 64 bits", None),
    ("select a from A; ^select b from B", "one statement at a time", None),
    ("^", "there is no statement", "select A"),
    ("-- nothing^", "there is no statement", None),
    ("select a from A where a = ^'abc", "a quote is never closed", "End it with '"),
    ('select a from ^"abc; select A', "a quote is never closed", 'End it with "'),
    ("select ^日本 from A", "no meaning here, got '日'", None),
    ("select a^\0 from A", "got U+0000", None),
    ("select '日' = 1 ^fron A", "got 'fron'", "Did you mean 'from'"),
    ("^wİndow(A, 1, 1, 0, 0, max(v))", "expected a statement, got 'w'", None),
    ("select ^ſ from A", "no meaning here, got 'ſ'", None),
    ("select a\n  from A\n wher ^a > 1", "got 'a'", "Did you mean 'where'"),
]


@pytest.mark.parametrize(("marked", "words", "hint"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_mistakes_are_shown_under_a_caret(marked: str, words: str, hint: str | None) -> None:
    text, place = marked.replace("^", "", 1), marked.index("^")
    with pytest.raises(StatementSyntaxError) as caught:
        parse(text)
    error = caught.value
    message = str(error)
    assert error.position == place
    assert words in message.splitlines()[0]
    assert hint is None or hint in (error.hint or "")
    assert message.splitlines()[2].endswith("^")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.position, type(copied)) == (message, place, type(error))


@pytest.mark.parametrize(
    "text",
    [
        "select " + "(" * 9000 + "a" + ")" * 9000 + " from A",
        "select a from " + "(select a from " * 3000 + "A" + ")" * 3000,
        "filter(" * 3000 + "A" + ", v > 3)" * 3000,
        "filter(" * 9000,
        "select a from A where " + "not " * 9000 + "a",
        "select " + "case when " * 3000,
        "select a from A " + "similarity join A with shape L1(1) " * 1000,
        "select " + "a+" * 600_000 + "a from A",
        "load A " + "1 " * LONGEST_STATEMENT,
        "select '" + "a" * 500_000,
        "select A <" + "<a," * 9000,
        "create A <" + "a," * 9000,
        "[" * 9000,
        "select A@" + "9" * 5000,
        "select max(a) from A window (" + "9" * 5000 + ")",
        "select " + "\u0301" * 5000,
        "select \ud800 from A",
        "select '\ud800' from A",
    ],
    ids=range(18),
)
def test_monsters_are_refused(text: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


def test_what_is_too_long_when_printed_is_refused() -> None:
    for text in ("regrid(A, 2, 2" + ", avg(v)" * 20_000 + ")", "select a from A where a in (" + "1," * 90_000 + "1)"):
        assert len(text) < LONGEST_STATEMENT
        with pytest.raises(LanguageError, match="a statement may have 200,000 characters"):
            parse(text)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(LanguageError, match="a statement is a text, got a int"):
        parse(3)  # type: ignore[arg-type]


def test_mistakes_are_windrow_s() -> None:
    with pytest.raises(Error) as caught:
        parse("select")
    assert caught.value.exit_code == 1
