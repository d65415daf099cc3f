"""What ``help`` says: one line for each statement, and for one of them its forms and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.errors import nearest


@dataclass(frozen=True)
class Topic:
    """A statement: what it is for, how it is written, and examples that run as they stand."""

    summary: str
    form: str
    examples: tuple[str, ...]


TOPICS: dict[str, Topic] = {
    "create": Topic(
        "make an array",
        "create [sparse] [array] NAME <ATTRIBUTE: TYPE, …> [DIMENSION=FIRST:LAST[:CHUNK], …]\n"
        "create array NAME as QUERY",
        (
            "create A [i=1:3, j=1:3] <double a, double b>",
            "create sparse array S <bright: float32> [night=1:*, ra=1:3600]",
        ),
    ),
    "view": Topic(
        "keep a query's result up to date",
        "create array view NAME [deferred] [with (SETTING = VALUE, …)] as QUERY\n"
        "explain create array view …\n"
        "refresh NAME [full]\ncheck view NAME\nshow history NAME\ndrop view NAME [cascade]\n"
        "SETTINGs: maintain = auto | incremental | strict | full, on_failure = refuse | stale,\n"
        "store = auto | cells, strategy = auto | baseline | differential | reassign,\n"
        "chunks = 'DIMENSION=SIZE, …'",
        (
            "create array view V as select count(*) from S neighbours L1(1) on (ra), night any",
            "create array view V deferred with (maintain = incremental) as select avg(a) from A window (i 3)",
            "explain create array view V as select max(a) from A regrid (i 2, j 2)",
            "refresh V full",
            "check view V",
        ),
    ),
    "load": Topic(
        "fill a dense array with typed rows, or from a file",
        "load NAME\nload NAME VALUES…\nload NAME from 'FILE'",
        ("load A", "load A 1 2 3 4 5 6", "load A from 'a.csv'"),
    ),
    "import": Topic(
        "read files into an array, which is made if it is not there",
        "import 'FILE'[, 'FILE' …] into NAME [with (OPTION = VALUE, …)]",
        ("import 'jra55.nc' into T", "import 'y2011.nc', 'y2012.nc' into T with (along = 'time')"),
    ),
    "insert": Topic(
        "put cells in",
        "insert into NAME values (COORDINATES: VALUES), …\ninsert into NAME from 'FILE'",
        ("insert into A values (1, 2: 2.5, 5), (1, 3: 6, null)", "insert into A from 'night42.parquet'"),
    ),
    "update": Topic(
        "change cells",
        "update NAME set ATTRIBUTE = EXPRESSION, … [where CONDITION]",
        ("update A set a = a + 1 where b > 3",),
    ),
    "delete": Topic(
        "remove cells of a sparse array, all of them without a condition",
        "delete from NAME [where CONDITION]",
        ("delete from S where bright > 20", "delete from S"),
    ),
    "select": Topic(
        "ask for cells, for expressions of them, and for aggregates over neighbourhoods",
        "select NAME [<ATTRIBUTE, …>]\n"
        "select EXPRESSION [as NAME], … from NAME [where CONDITION]\n"
        "       [window (…) | regrid (…) | neighbours SHAPE | group by …] [having …]\n"
        "       [order by EXPRESSION [desc], …] [limit ROWS] [into NAME]\n"
        "select … from changes(NAME, BEFORE, AFTER)",
        (
            "select A <b>",
            "select a + b as c from A where i between 1 and 2 and a > 3",
            "select avg(t) as mean from T window (time trailing '30 days')",
            "select max(a) from A@3 group by i",
            "select a from A order by a desc limit 10",
            "select avg(t) as mean from T group by lat, month(time)",
            "select t - avg(t) over (lat, lon, month(time)) as anomaly from T",
            "select * from changes(A, 3, 5) where change = 'came'",
        ),
    ),
    "aggr": Topic(
        "aggregates, in short",
        "aggr NAME AGGREGATE(ATTRIBUTE), … [where CONDITION]\n"
        "     [by window(…) | by regrid(…) | by DIMENSION, …]\n"
        "     [order by EXPRESSION [desc], …] [limit ROWS] [into NAME]",
        ("aggr A avg(a)", "aggr A sum(b) by window(2,2)", "aggr T percentile(t, 70) by window(time trailing 30)"),
    ),
    "sql": Topic(
        "ask in Spark SQL, over arrays as tables, with aggregates over any frame",
        "sql SELECT …",
        ("sql select i, median(a) over (order by i rows 2 preceding) as m from A",),
    ),
    "window": Topic(
        "what a window may be",
        "window (DIMENSION EXTENT [wrap], …) [step …] [boundary drop] [min count …] [method naive] [sweep DIMENSION]\n"
        "An EXTENT is WIDTH | centred WIDTH | trailing WIDTH | between FIRST and LAST,\n"
        "a WIDTH a number of cells, or '30 days' where there are labels.",
        ("select max(a) from A window (i between -1 and 2, j centred 3) step (1, 2) boundary drop min count 5",),
    ),
    "list": Topic(
        "what there is",
        "list [arrays | views | aggregates | functions]\nlist versions NAME",
        ("list", "list functions", "list versions A"),
    ),
    "describe": Topic(
        "schema, size, labels and history of an array; of a view also its query, and how it is kept",
        "describe NAME[@VERSION]",
        ("describe A", "describe A@3"),
    ),
    "explain": Topic(
        "how a query would run; with analyze, run it and show what was measured",
        "explain [analyze] QUERY\nexplain create array view …",
        ("explain select max(a) from A window (i 3)", "explain analyze aggr A sum(b) by window(2,2)"),
    ),
    "plot": Topic(
        "draw a result, into a file and on the terminal",
        "plot QUERY [to 'FILE'] [as map | as line | as histogram] [with (attribute = 'NAME')]",
        ("plot A", "plot select avg(t) as t from T regrid (time 24) to 't.png' as line"),
    ),
    "save": Topic(
        "write a result to a file",
        "save QUERY to 'FILE'",
        ("save A to 'a.nc'", "save select a from A where i < 3 to 'a.csv'"),
    ),
    "begin": Topic(
        "make several changes visible together; one of that id is applied once",
        "begin ['ID']; …; commit\nbegin; …; rollback",
        ("begin 'night42'", "commit", "rollback"),
    ),
    "drop": Topic(
        "remove an array or a view with all its versions; cascade removes the views on it too",
        "drop [array | view] [if exists] NAME [cascade]",
        ("drop A", "drop array if exists A", "drop A cascade"),
    ),
    "set": Topic(
        "change a setting of the session",
        "set timing on | off\nset progress on | off\nset format table | csv | json | arrow\n"
        "set engine auto | local | spark\nset rows NUMBER\nset strategy auto | baseline | differential | reassign",
        ("set timing on", "set format csv", "set rows 100"),
    ),
}
_SAME = {
    "commit": "begin",
    "rollback": "begin",
    "show": "view",
    "refresh": "view",
    "check": "view",
    "deferred": "view",
    "changes": "select",
    "regrid": "aggr",
    "neighbours": "select",
    "analyze": "explain",
}


def overview(commands: Mapping[str, str]) -> str:
    """Everything in a line each."""
    width = max(len(name) for name in (*TOPICS, *commands))
    lines = ["A statement ends with ; and may take several lines. A query on one line runs at Enter.", ""]
    lines += [f"  {name:<{width}}  {topic.summary}" for name, topic in TOPICS.items()]
    lines += ["", "Of the console itself:", ""]
    lines += [f"  {name:<{width}}  {summary}" for name, summary in commands.items()]
    return "\n".join([*lines, "", "Tab completes, Ctrl-C stops a query, help select explains a statement."])


def explain_topic(word: str) -> str:
    """One statement."""
    name = word.lower().strip().rstrip(";").split()[0]
    topic = TOPICS.get(_SAME.get(name, name))
    if topic is None:
        return f"no help on {word!r}. {nearest(name, TOPICS)}"
    form = "\n".join(f"  {line}" for line in topic.form.splitlines())
    examples = "\n".join(f"  {example};" for example in topic.examples)
    return f"{topic.summary[0].upper()}{topic.summary[1:]}.\n\n{form}\n\nFor example:\n\n{examples}"
