"""Statements as the design and the papers write them, and the kinds of thing that users type besides."""

from __future__ import annotations

DESIGN = r"""
create A [i=1:3,j=1:3] <double a,double b>
create sparse array PTF <bright:float> [time=1:153064:112, ra=1:100000:100, dec=1:50000:50]
create array A<r:int,s:int>[i=1,6,2;j=1,8,2]
list
list arrays
list views
list aggregates
list versions A
load A
load A from 'file.csv'
import 'jra55.grib2' into T
select A
select A <b>
select a+b as c from A where i between 1 and 2 and a > 3
aggr A avg(a)
aggr A min(a) by regrid(2,2)
aggr A sum(b) by window(2,2)
aggr T percentile(t,70) by window(lon 1, lat 1, time trailing 30)
select percentile(t,70) as p70, avg(t) from T window (lon centred 3 wrap, lat centred 3, time trailing 30) into P
select max(a) from A window (i between -1 and 2, j centred 3) step (1, 2) boundary drop min count 5
select count(*) from A neighbours L1(1)
select count(*) as cnt from A A1 similarity join A A2 on (A1.i = A2.i) and (A1.j = A2.j) with shape L1(1) group by A1.i, A1.j
create array view V as select max(a) from A window (i 3)
insert into A values (1,2: 2,5), (1,3: 6,3)
insert into A from 'night42.parquet'
delete from A where a > 3
update A set s = s+1 where s < 3
describe A
explain select max(a) from A
explain analyze select max(a) from A
refresh V
drop A
drop view V
show history V
save A to 'x.nc'
save select a from A to 'x.nc'
plot A to 'x.png'
plot select a from A to 'x.png'
select count(*) from T where time between '2012-01-01' and '2012-01-31'
select max(t) from T window (time trailing '30 days', lat within '5 degrees') into M
select count(*) from PTF neighbours L1(1) on (ra, dec), time between -200 and 0
select A@3
select max(a) from A@3 window (2, 2)
begin 'night42'
commit
create array view V deferred as select max(a) from A window (i 3)
create array view W with (chunks = 'i=2', maintain = auto, on_failure = refuse, store = auto, strategy = auto) as select max(a) from A window (i 3)
explain create array view X as select max(a) from A window (i 3)
refresh V full
check view V
drop A cascade
select * from changes(A, 3, 5)
select count(*) from A left similarity join B with shape Linf(2)
""".strip().splitlines()  # noqa: E501

PAPERS = [
    # 002, Fig. 1, as far as ERRATA lets it stand, and sections 2.2 and 3.2
    "create A [i=1:3,j=1:3] <double a,double b>",
    "list",
    "load A",
    "load A\n1 2 3 4 5 6\n7 8 9 0 9 8\n7 6 5 4 3 2",
    "select A",
    "select A <b>",
    "aggr A avg(a)",
    "aggr A min(a) by regrid(2,2)",
    "aggr A sum(b) by window(2,2)",
    "Aggr A max(a) by window(2,3)",
    "aggr A sum(a) by window(3,3)",
    "create A[i = 1:5, j = 1:5] <int a>",
    # 004, sections 2 and 3, with the blanks that its typesetting put in
    "create array A<r:int,s:int>[i=1,6,2;j=1,8,2]",
    "create sparse array A<r:int,s:int>[i=1,6,2;j=1,8,2]",
    "SELECT A1.r * A2.s AS f INTO T\nFROM A A1 SIMILARITY JOIN A A2 ON A1.i = A2.i AND A1.j = A2.j WITH SHAPE L1(1)",
    "CREATE ARRAY VIEW V AS\nSELECT COUNT(*) AS cnt\nFROM A A1 SIMILARITY JOIN A A2\n"
    "ON (A1 .i = A2 .i) AND (A1 .j = A2 .j)\nWITH SHAPE L1 (1)\nGROUP BY A1 .i, A1 .j",
    "create sparse array PTF<bright:float>[time=1,153064;ra=1,100000;dec=1,50000]",
    "create sparse array GEO<id:int>[long=1,100000;lat=1,50000]",
]

OTHERS = r"""
window(A, 1,1,0,0, max(v) as m)
regrid(A, 2,2, avg(v), count(*))
between(A, 1, 1, 2, null)
between(A, i between 1 and 2, time >= '2012-01-01', k = 3)
filter(between(A, 1,1,2,2), v > 3 and w is not null) into B
project(apply(A, c, a + b, d, a * b), c, d)
aggregate(filter(scan(A@2), v > 3), max(v) as m, count(*), i)
select max(a) - min(a) as spread, max(a) as m from A window (i 3) having spread > 2 into B
select sum(a*b)/sum(b) as w, coalesce(max(a), 0) from A regrid (i 2, j 2) min count 2 method naive
select *, case when a > 1 then 'x' else lower(s) end as c from (select * from A where a > 1) X
select A1.i, avg(A1.m) from A A1 left similarity join (filter(B, m > 1)) as A2 on A2.i = A1.i // 2 and abs(A1.m - A2.m) < 1 with shape L2(1.5), wrap (i) similarity join C with shape Hamming(1), excluding self where A1.m > 0 group by A1.i
select count(*) from A neighbors offsets ((0, 1), (-1, 0)) on (i, j), k any wrap
select count(*) from A neighbours Lp(3, 2.5) on (x, y), time between '-200 days' and 0 wrap step (x 2) min count 3 method naive
select count(*) from A neighbours S step 2
select max(a) from A neighbors S@3 on (i, j), k any, excluding self
select avg(distance('arcsec')) from G similarity join H on G.m < H.m with shape Sky('10 arcsec') on (ra, dec) group by G.ra, G.dec
select sum(A.m * B.m) as s from A left similarity join B with shape L1(1) where A.m > 0 group by A.i, A.j min count 2 having s > 3 order by s
select * from A anti similarity join B on cell(B.time) = cell(A.time) and A.m > B.m with shape reflected(S) where m > 3
select distance() as d from A left similarity join B with shape L2(5) nearest 3 by abs(A.m - B.m) similarity join C with shape Linf(1) mutual nearest by A.m - C.m into D
select nearest, anti.mutual from A anti similarity join mutual with shape shape
select reflected from nearest reflected where reflected.nearest - 3 > anti
SELECT A.r * B.s as f INTO T FROM A SIMILARITY JOIN B ON A.i = B.i and A.j = B.j WITH SHAPE S
SELECT A.r * B.s as f INTO T FROM A SIMILARITY JOIN B ON A.i = B.i and A.j = B.j WITH SHAPE offsets ((0, 0), (0, 1))
select max(a) from A as of '2026-01-01 12:00' window (i corner 2, j 3) step (j 2)
select "window", "order" from "select" "from" where "from"."window" = 1
create view V with (strategy = 'reassign') as select count(*) from A neighbours L1(1) deferred
create array B as select a from A
explain create view V deferred with (on_failure = 'stale', maintain = full) as filter(changes(A, 0, 2), a > 1)
create view full with (full = cascade, store = cells) as select cascade from check full where full.check = 1
select full, check, cascade, changes from changes changes where changes.full > full
aggr changes(full, 1, 1) count(*) by i
changes(A, 1, 2)
refresh view full full
refresh check
check view check
check full
drop view if exists cascade cascade
drop full
delete from cascade
insert into A values (1, '2012-01-01': null, -2.5e3, 'it''s', true) with (on_duplicate = 'last')
insert into A values (1), (2)
insert into A select a + 1 as a from B where i > 3
insert into A (filter(B, a > 3))
import 'a.nc', 'b.nc' into T with (along = 'time')
load A from 'x.csv' with (delimiter = ';')
plot (select a from A) to 'x.png' as map with (width = 800)
plot A as histogram
update A set a = case when a > 1 then 1 end, b = -b
drop array if exists A
list functions
set timing on
set format to csv
rollback
select a -- the rest is a comment; select
from A # and this
""".strip().splitlines()  # noqa: E501
OTHERS = [*OTHERS[:-2], "\n".join(OTHERS[-2:])]

ALL = [*DESIGN, *PAPERS, *OTHERS]
