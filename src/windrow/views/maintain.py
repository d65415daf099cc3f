"""Keeping views up to date with a batch, in the batch's own transaction.

For each view, after those that it reads: what did the batch do to its bases, which results does that reach, are these
patched or is all of it computed again, and the new results into the view. Nothing is visible before the transaction is
published, and then all of it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from windrow.errors import CancelledError, Error
from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.operations.query.stored import stored_scan, working_scan
from windrow.plan.bound import BoundNamed, BoundScan
from windrow.plan.grouping.positions import BoundRepeated
from windrow.storage.transaction import Transaction
from windrow.storage.view_rows import FAILED, FRESH, STALE, STATE, ViewChange
from windrow.storage.working import WorkingArray
from windrow.views.bring import Brought, Moments, bring
from windrow.views.changes import Change, differ, find_change
from windrow.views.definition import check_fingerprints, facts_of
from windrow.views.history import Entry
from windrow.views.known import KnownView, known_views
from windrow.views.reads import remember
from windrow.views.reduced.changes import shown_change
from windrow.views.reduced.reading import at_cells
from windrow.views.shown import as_shown


@dataclass
class Maintenance:
    """The views of one transaction. It may run several times: what it did before is not done again."""

    engine: Engine
    transaction: Transaction
    _held: dict[str, dict[str, BoundNamed]] = field(default_factory=dict)
    """For each view that was brought up to date in here, the bases as they were then."""
    _base: dict[str, BoundNamed] = field(default_factory=dict)
    _seen: dict[str, tuple[Any, BoundNamed]] = field(default_factory=dict)
    """Sparse arrays as they stand in here, for as long as they do: what one view reads of them, others find."""
    _views: list[KnownView] | None = None
    _found: dict[str, tuple[BoundNamed, BoundNamed, Change]] = field(default_factory=dict)
    _reverted: set[str] = field(default_factory=set)
    """Views that were changed in here and taken back: what was written since says nothing of what they were between."""

    def run(self) -> None:
        """Bring every view up to date with what the transaction has changed so far."""
        changed = self.transaction.changed
        if not changed:
            return
        for view in self.views:  # the arrays are locked by now, and with them all views on them
            self._keep(view)

    @property
    def views(self) -> list[KnownView]:
        """Those that the transaction did not drop; an array that it made under the name of one is none."""
        if self._views is None:
            self._views = known_views(self.transaction.warehouse)
        return [view for view in self._views if not self.transaction.is_dropped(view.name)]

    def now(self, name: str) -> BoundNamed:
        """An array or view as it stands in here."""
        working = self.transaction.known(name)
        if working is None:
            return self._published(name)
        if not working.record.sparse:
            return self._stands(working, None)
        view = next((view for view in self.views if view.name == name and view.reduced), None)
        # A view stored by position is shown at the cells of the moment that it was brought up to.
        held = {} if view is None else self._held.get(name, {})
        stands = dict(working.parts), working.pointer, working.hi, working.schema, dict(working.labels), held
        known = self._seen.get(name)
        if known is None or known[0] != stands:
            known = self._seen[name] = stands, self._stands(working, view if held else None)
        return known[1]

    def _stands(self, working: WorkingArray, view: KnownView | None) -> BoundNamed:
        warehouse, scan = self.transaction.warehouse, working_scan(self.transaction.catalog, working)
        if working.record.sparse:
            scan = replace(scan, snapshot=remember(scan.snapshot))
        if view is None:
            return as_shown(warehouse, working.record, scan, working.base.number)
        return at_cells(warehouse, view, scan, self._held[view.name])

    def _published(self, name: str) -> BoundNamed:
        if name not in self._base:
            warehouse, known = self.transaction.warehouse, self.transaction.known(name)
            record, version = self.transaction.catalog.current(name) if known is None else (known.record, known.base)
            scan = stored_scan(warehouse, name, record, version)
            self._base[name] = as_shown(warehouse, record, scan, version.number)
        return self._base[name]

    def _earlier(self, view: KnownView, name: str) -> BoundNamed:
        """A base as it was when a view was last brought up to date."""
        return self._held.get(view.name, {}).get(name) or self._published(name)

    def _keep(self, view: KnownView) -> None:
        bases = [name for name in view.held if self.transaction.known(name) is not None]
        changed = [name for name in bases if differ(self._earlier(view, name), self.now(name))]
        if view.settings.deferred:
            changed = [name for name in changed if not self._is_stored_anew(name)]
        known = self.transaction.view_changes.get(view.name)
        if known is not None and known.status == FAILED and view.record.status == FRESH:
            # It broke on the batch's way and was taken back; what the batch has done since may have mended that.
            del self.transaction.view_changes[view.name]
            known = None
        if (view.record.status if known is None else known.status) != FRESH:
            return
        if not changed:
            if known is None and any(name in self.transaction.changed for name in bases):
                # A write that changed no cell makes a version, too: the one before it is not kept for the view.
                self._note(view, ViewChange(view.name, dict.fromkeys(view.held), FRESH))
            return
        if view.settings.deferred:
            reason = f"{', '.join(changed)} changed, and it is brought up to date by refresh alone"
            self._note(
                view,
                ViewChange(
                    view.name,
                    view.held,
                    STALE,
                    reason,
                    history=(Entry.now("stale", reason, batch=self.transaction.batch).as_json(),),
                ),
            )
            return
        moments = {name: (self._earlier(view, name), self.now(name)) for name in view.held}
        try:
            brought = self.bring(view, moments)
        except CancelledError:
            raise
        except Exception as error:  # whatever it is, of windrow or of a user's function, the view says what to do
            self._take_back(view)
            if view.settings.on_failure == "refuse":
                if not isinstance(error, Error):
                    error.add_note(f"The batch breaks the view {view.name}, and nothing was changed")
                    raise
                raise _refused(view, error) from error
            reason = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            failed = Entry.now("failed", reason, batch=self.transaction.batch).as_json()
            self._note(view, ViewChange(view.name, view.held, FAILED, reason, history=(failed,)))
            return
        self._note(view, fresh(view, brought))

    def _is_stored_anew(self, name: str) -> bool:
        """Whether compaction, which changes no value, is all that was done to an array."""
        working = self.transaction.known(name)
        return working is not None and working.operation == "compact"

    def _take_back(self, view: KnownView) -> None:
        """Leave a view as it was before the batch: what was done to it so far is not to be relied on."""
        for name in (view.name, f"{STATE}{view.name}"):
            self.transaction.revert(name)
        self._held.pop(view.name, None)
        self._reverted.add(view.name)
        self.transaction.view_changes.pop(view.name, None)

    def _note(self, view: KnownView, change: ViewChange) -> None:
        earlier = self.transaction.view_changes.get(view.name)
        if earlier is not None:
            history, state = (*earlier.history, *change.history), change.state or earlier.state
            change = replace(change, history=history, state=state)
        self.transaction.view_changes[view.name] = change

    def bring(self, view: KnownView, moments: Moments, anew: str = "") -> Brought:
        """Bring one view from one moment of its bases to another."""
        if not anew:
            check_fingerprints(view.name, view.definition, view.record.facts.get("fingerprints", {}))
        changes = {} if anew else {name: self._change(name, *moment) for name, moment in moments.items()}
        differing = {name: change for name, change in changes.items() if change is not None}
        again = view.name in self._held
        brought = bring(self.engine, self.transaction, view, moments, differing, anew)
        self._held[view.name] = {name: now for name, (_, now) in moments.items()}
        if again:
            self._forget_detour(view.name)
        return brought

    def _forget_detour(self, name: str) -> None:
        """A view that was looked at on the way, and in the end is as it was, has not changed."""
        working = self.transaction.known(name)
        if working is None or not working.changed:
            return
        before, now = self._published(name), self.now(name)
        same = before.labels == now.labels and before.box == now.box
        if same and self._find_change(name, before, now).is_empty:
            self.transaction.revert(name)
            self._reverted.add(name)

    def _change(self, name: str, before: BoundNamed, after: BoundNamed) -> Change | None:
        """What happened to an array, looked up once for all views that read it."""
        if not differ(before, after):
            return None
        known = self._found.get(name)
        if known is None or known[0] is not before or differ(known[1], after):
            known = before, after, self._find_change(name, before, after)
            self._found[name] = known
        return known[2]

    def _find_change(self, name: str, before: BoundNamed, after: BoundNamed) -> Change:
        if isinstance(before, BoundRepeated) and isinstance(after, BoundRepeated):
            return shown_change(self.engine, before, after)
        assert isinstance(before, BoundScan)
        assert isinstance(after, BoundScan)
        return find_change(before, after, self._written(name, before))

    def _written(self, name: str, before: BoundScan) -> list[Box] | None:
        """Where a dense array may not be as it was, if that is known."""
        working = self.transaction.known(name)
        if (
            working is None
            or name in self._reverted
            or working.replaces_all_chunks
            or before.schema.grid.chunk != working.schema.grid.chunk
        ):
            return None
        return working.written_boxes


def fresh(view: KnownView, brought: Brought) -> ViewChange:
    """What is written about a view that was brought up to date."""
    history = () if brought.entry is None else (brought.entry.as_json(),)
    bases = dict.fromkeys(view.held)
    change = ViewChange(view.name, bases, FRESH, learned=brought.learned, history=history, state=brought.state)
    rebuilt = brought.entry is not None and brought.entry.way == "rebuilt"
    return replace(change, facts=facts_of(view.definition, view.scalar, view.reduced)) if rebuilt else change


def _refused(view: KnownView, error: Error) -> Error:
    what = f"the batch breaks the view {view.name}: {error.what}"
    said = f"{error.hint.rstrip('.')}. " if error.hint else ""
    hint = f"{said}Nothing was changed; with on_failure = stale the view would be left behind"
    return type(error)(what, got=error.got, hint=hint)
