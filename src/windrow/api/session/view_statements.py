"""Statements about views: made, explained, refreshed, checked and looked at; and drop, which is also of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.api.describe import Description, describe_view
from windrow.api.session.listing import listed
from windrow.api.session.options import view_options
from windrow.errors import DataError, SchemaError
from windrow.plan import statements as asked

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.api.refreshing import Check
    from windrow.api.reports import Report
    from windrow.api.session.statements import Session
    from windrow.api.views import View
    from windrow.views.explain import ViewExplanation


def create_view(session: Session, statement: asked.CreateView) -> View:
    """The view that the statement makes."""
    _check_alone(session, "made")
    options = view_options(statement.settings)
    query = session._bound(statement.plan)
    return session.database.create_view(statement.view, query, deferred=statement.deferred, **options)


def explain_view(session: Session, statement: asked.ExplainView) -> ViewExplanation:
    """How the view would be kept up to date."""
    create, database = statement.create, session.database
    options = view_options(create.settings) | {"deferred": create.deferred}
    query = session._bound(create.plan)
    found: ViewExplanation = session.hooks.look(database, lambda: database.explain_view(query, **options))
    return found


def refresh(session: Session, statement: asked.Refresh) -> Report:
    _check_alone(session, "refreshed")
    return session.database.view(statement.view).refresh(full=statement.full)


def check_view(session: Session, statement: asked.CheckView) -> Check:
    """What differs between the view and its query."""
    view = session.database.view(statement.view)
    found: Check = session.hooks.look(session.database, view.check)
    return found


def show_history(session: Session, statement: asked.ShowHistory) -> Any:
    """What was done to keep a view up to date; of an array, its versions."""
    if is_view(session.database, statement.name):
        from windrow.views.history import without_nodes

        return without_nodes(session.database.view(statement.name).history())
    return listed(session.database, "versions", statement.name)


def describe_if_view(session: Session, statement: asked.Describe) -> Description | None:
    """A view as it is now; None for an array, and for a version of a view, which reads like one."""
    source = statement.source
    pinned = source.version is not None or source.as_of is not None
    if pinned or not is_view(session.database, source.array):
        return None
    return describe_view(session.database.view(source.array))


def drop(session: Session, statement: asked.Drop) -> None:
    """Remove what the statement names, which is there: an array or a view, with the views on it if it says so."""
    name = statement.name
    if statement.kind == "view":
        session.database.view(name)
    elif statement.kind == "array" and is_view(session.database, name):
        raise SchemaError(f"{name} is a view", got="drop array", hint=f"As in drop view {name}")
    session._changed(lambda batch: batch.drop(name, statement.cascade))


def is_view(database: Database, name: str) -> bool:
    if not database.catalog.views():
        return False
    from windrow.api.views import view_names

    return name in view_names(database)


def _check_alone(session: Session, done: str) -> None:
    if session.batch is not None:
        hint = "Use commit or rollback first"
        raise DataError(f"a view is {done} outside of batches, and one is open", hint=hint)
