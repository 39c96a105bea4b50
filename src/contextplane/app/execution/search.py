"""Searches the texts of recorded runs. The manifest of each run that has a hit is checked now."""

from contextplane.app.damage import Damage
from contextplane.app.platform import Platform
from contextplane.model.catalog import SearchHit
from contextplane.model.value import Value
from contextplane.store.damage import damage_in
from contextplane.store.find import LEFT_OUT, SEARCHED, UNREAD

__all__ = ["SEARCHED", "RunHit", "SearchResult", "search_runs"]


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
