"""Renders pages of a handoff pack, and the list of packs, as markdown; a token leads to the next page."""

from typing import TYPE_CHECKING

from contextplane.handoff.errors import HandoffStateMismatch
from contextplane.handoff.markdown import one_line, shorten
from contextplane.handoff.page import PROFILES, PageArguments, PageQuery, Profile, first_page, list_markdown

if TYPE_CHECKING:
    from contextplane.app.handoff.session import HandoffSession
    from contextplane.handoff.reader import SelectedPack
    from contextplane.handoff.render import RenderedPage

__all__ = [
    "PROFILES",
    "PageArguments",
    "PageQuery",
    "Profile",
    "list_markdown",
    "one_line",
    "page_query",
    "render_selected",
    "shorten",
]


def page_query(
    session: "HandoffSession", selected: "SelectedPack", arguments: PageArguments, token: str | None
) -> PageQuery:
    """Return the page that a request asks for: the first one, or the one that a token leads to."""
    if token is None:
        return first_page(arguments)
    from contextplane.handoff.page_token import redeem

    pack = selected.pack
    key = session.pack_reader.page_key()
    return redeem(key, token, pack_id=pack.id, revision=pack.revision, arguments=arguments)


def render_selected(session: "HandoffSession", selected: "SelectedPack", query: PageQuery) -> "RenderedPage":
    """Render one page of a pack. `HandoffStateMismatch` when it has another status than the requested one."""
    from contextplane.handoff.render import render_page

    pack = selected.pack
    if query.status is not None and pack.status != query.status:
        raise HandoffStateMismatch(
            f"the pack is {pack.status}, and {query.status} was asked for",
            at=pack.id,
            details={"id": pack.id, "status": pack.status, "requested_status": query.status},
        )

    def token(offset: int) -> str:
        from contextplane.handoff.page_token import issue

        key = session.pack_reader.page_key()
        return issue(key, query, pack_id=pack.id, revision=pack.revision, next_offset=offset)

    return render_page(
        pack,
        query,
        now=session.now(),
        selected_by=selected.selected_by,
        locate=session.source_reader().locate,
        token=token,
    )
