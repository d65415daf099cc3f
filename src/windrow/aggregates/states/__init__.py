"""States: what has to be kept of a group's values so that values can come and go, and results still be exact.

A state is a set of arrays, one entry for each group. States are merged, and one is taken out of another; ``finish``
gives results, and says for which groups the state is not enough, so that they have to be computed anew.

- *Sums* (counts, sums, averages, variances, covariances, and what else is made of sums of products, in ``sums``): sums
  of about 32 digits with a bound on their error, and the sum of absolute values that the error is judged by. Infinities
  are counted, so that they leave without a trace; what is missing never enters.
- *Whole sums* of integers: exact, in 96 bits; whether a sum fits int64 is judged when it is asked for.
- *Extremes*: the value, and how often it is there (``extremes``).
- *Order statistics*: a bracket of neighbouring ones, and how many values are below it (``order``).
- *Users' own*: the tuple that their functions work on (``user``).
"""
