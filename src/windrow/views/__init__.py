"""Views: stored queries that follow the arrays they read.

By verb: ``definition`` (what a view is), ``changes`` (what a batch did to an array), ``touched`` (which results that
can reach), ``rules`` (results patched from what is kept of them), ``apply`` (new results into the view), ``maintain``
(all of it, for all views of a batch), ``answer`` (queries answered from views), ``history`` and ``check``.
"""
