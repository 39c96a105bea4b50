"""The tool `output`: list and read, as markdown. It reads the arguments, asks the shelf, and renders one page."""

from typing import TYPE_CHECKING, cast

from contextplane.handoff.page import PROFILES, PageArguments, PageQuery, Profile, first_page
from contextplane.handoff.refusals import HandoffStateMismatch
from contextplane.mcp.answers import Answer, shown_as
from contextplane.mcp.rows import refuse_other_state, row_told

if TYPE_CHECKING:
    from contextplane.app.handoff import Desk
    from contextplane.handoff.kept import Found
    from contextplane.handoff.render import Rendered
    from contextplane.mcp.arguments import Arguments

__all__ = ["called", "page_of"]


def called(arguments: "Arguments", desk: "Desk") -> Answer:
    """The answer to one call."""
    return _read(arguments, desk) if arguments.action == "read" else _list(arguments, desk)


def _list(arguments: "Arguments", desk: "Desk") -> Answer:
    from contextplane.handoff.listing import listed

    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    arguments.check()
    page = desk.reading.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = desk.now()
    packs = [row_told(row, now) for row in page.rows]
    return shown_as(listed(page.rows, now), "list", {"count": len(packs), "total": page.total, "packs": packs})


def _read(arguments: "Arguments", desk: "Desk") -> Answer:
    identity = arguments.needed_identity()
    token = arguments.token()
    given = PageArguments(
        profile=cast("Profile | None", arguments.choice("profile", tuple(PROFILES))),
        limit=arguments.number("limit", low=1),
        offset=arguments.number("offset", low=0),
        contains=arguments.words("contains"),
        status=arguments.status(),
    )
    wanted = arguments.freshness()
    arguments.check()
    found = desk.reading.get(identity)
    refuse_other_state(found.pack, wanted, desk.now())
    if token is None:
        query = first_page(given)
    else:
        from contextplane.handoff.tokens import redeem

        pack = found.pack
        query = redeem(desk.reading.page_key(), token, pack_id=pack.id, revision=pack.revision, given=given)
    page = page_of(found, query, desk)
    return shown_as(page.text, "read", page.structured)


def page_of(found: "Found", query: PageQuery, desk: "Desk") -> "Rendered":
    """One page of a pack that was found, if it has the status that is asked for."""
    from contextplane.handoff.render import rendered

    pack = found.pack
    if query.status is not None and pack.status != query.status:
        raise HandoffStateMismatch(
            f"the pack is {pack.status}, and {query.status} was asked for",
            at=pack.id,
            details={"id": pack.id, "status": pack.status, "requested_status": query.status},
        )

    def token(offset: int) -> str:
        from contextplane.handoff.tokens import issue

        key = desk.reading.page_key()
        return issue(key, query, pack_id=pack.id, revision=pack.revision, next_offset=offset)

    return rendered(pack, query, now=desk.now(), selected_by=found.selected_by, look=desk.reader().look, token=token)
