"""Lists and searches recorded runs: pages, lines of parents, and runs with certain words.

The manifest of each run is checked now: it may have been damaged since it was indexed.
"""

from collections.abc import Sequence

from contextplane.app.damage import DAMAGE_LABEL, Damage
from contextplane.app.platform import Platform
from contextplane.app.references import find_run
from contextplane.model.catalog import PackFilter, PackRow, SearchHit
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.store.damage import damage_in
from contextplane.store.find import LEFT_OUT, SEARCHED, UNREAD

__all__ = [
    "SEARCHED",
    "ListedRun",
    "RunHit",
    "RunLine",
    "RunPage",
    "SearchResult",
    "list_parents",
    "list_runs",
    "search_runs",
]


class ListedRun(Value, frozen=True):
    """A run in a list. `problem` is what is wrong with its manifest, `why` the message of storage."""

    row: PackRow
    damage: Damage | None
    problem: str
    why: str


class RunPage(Value, frozen=True):
    """Runs, and whether there are more. `known`: the number of runs in the store, if none of them fits."""

    runs: tuple[ListedRun, ...]
    more: bool
    known: int


class RunLine(Value, frozen=True):
    """A run, and after each run its parent. `absent`: the parent that is not in this store."""

    runs: tuple[ListedRun, ...]
    more: bool
    absent: Digest | None


def list_runs(platform: Platform, pack_filter: PackFilter, limit: int) -> RunPage:
    """List the newest runs that fit."""
    with platform.catalog.read() as view:
        rows = view.packs.page(pack_filter, limit + 1)
        known = len(rows) or sum(1 for _ in view.packs.digests())
    return RunPage(runs=_check_manifests(platform, rows[:limit]), more=len(rows) > limit, known=known)


def list_parents(platform: Platform, text: str, limit: int) -> RunLine:
    """List the run that a text names and its line of parents, as far as it is known here."""
    rows: list[PackRow] = []
    following: Digest | None = find_run(text, platform)
    with platform.catalog.read() as view:
        while following is not None and len(rows) <= limit and (row := view.packs.row(following)) is not None:
            rows.append(row)
            following = row.parent
    more = len(rows) > limit
    runs = _check_manifests(platform, rows[:limit])
    return RunLine(runs=runs, more=more, absent=None if more else following)


def _check_manifests(platform: Platform, rows: Sequence[PackRow]) -> tuple[ListedRun, ...]:
    runs = []
    for row in rows:
        condition = platform.objects.check(row.digest)
        damage = damage_in(condition)
        problem = row.problem if damage is None else DAMAGE_LABEL[damage]
        runs.append(ListedRun(row=row, damage=damage, problem=problem, why=condition.why))
    return tuple(runs)


class RunHit(Value, frozen=True):
    """A place in a run that fits a search, and the damage of the run's manifest."""

    hit: SearchHit
    damage: Damage | None


class SearchResult(Value, frozen=True):
    """The hits of a search. `left_out`: not all contents are indexed; `unread`: some were damaged then."""

    hits: tuple[RunHit, ...]
    more: bool
    left_out: bool
    unread: bool


def search_runs(platform: Platform, words: str, limit: int) -> SearchResult:
    """Find the places that hold these words."""
    with platform.catalog.read() as view:
        hits = view.texts.search(words, limit + 1)
        left_out = view.marks.get(LEFT_OUT) is not None
        unread = next(view.marks.names(UNREAD), None) is not None
    more, hits = len(hits) > limit, hits[:limit]
    packs = dict.fromkeys(hit.pack for hit in hits)
    damages = {pack: damage_in(platform.objects.check(pack)) for pack in packs}
    return SearchResult(
        hits=tuple(RunHit(hit=hit, damage=damages[hit.pack]) for hit in hits),
        more=more,
        left_out=left_out,
        unread=unread,
    )
