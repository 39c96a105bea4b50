"""A registry in which everything happened once: every kind of event, of two packs, an overlay and a catalog.

`write_history` makes it by the command alone. It calls back between its chapters, so that a caller can keep copies of
the registry as it was then.
"""

from collections.abc import Callable
from typing import Any

from tests.support.registry_team import LOG_ROLE, PACK_ID, Team, trust_step
from tests.unit.registry.desk import CATALOG, ISSUER, NARROWER, OVERLAY, version

__all__ = ["CATALOG_REF", "CHAPTERS", "OVERLAY_REF", "PINNED", "READS", "SECOND_PACK", "write_history"]

PINNED = f"{PACK_ID}@1.1.0"
"""The version that prod pins at the end."""

SECOND_PACK = "ctxpack.returns@1.0.0"
CATALOG_REF = "decision-catalog.support@2.1.0"
OVERLAY_REF = "ovl.staging@1.0.0"
CHAPTERS = 5

READS = (
    "packs --json",
    "packs --drafts --json",
    f"show {PINNED} --json",
    f"show {PACK_ID}@1.0.0 --json",
    f"show {PACK_ID}@prod --json",
    f"log {PINNED} --json",
    f"verify {PINNED} --json",
    f"compile {PINNED} --environment prod --request request-1.1.0.json --json",
    f"compile {PACK_ID} --environment staging --request request-1.1.0.json --json",
)
"""Commands that read the registry; none of them writes."""


def second_pack() -> dict[str, Any]:
    return version("1.0.0", {"at": "/pack_meta/pack_id", "value": SECOND_PACK.partition("@")[0]})


def write_history(team: Team, chapter_ended: Callable[[int], None]) -> None:
    """Write all chapters; `chapter_ended` is called with the number of each."""
    team.request_for(PINNED)
    for number, chapter in enumerate((_first_release, _more_artifacts, _pins, _keys, _endings), start=1):
        chapter(team)
        chapter_ended(number)


def _first_release(team: Team) -> None:
    team.found()
    draft = team.record(version("1.0.0"))["digest"]
    team.do(
        f"sec: review {draft} --role security --reject --reason 'not like this'",
        f"sec: review {draft} --role security --approve --reason 'it is better now'",
    )
    team.approve(draft, "architecture", "data", "evaluation")
    team.do(f"pub: sign {draft}", f"pub: publish {draft}", f"ops: pin prod {PACK_ID}@1.0.0")


def _more_artifacts(team: Team) -> None:
    team.release(version("1.1.0", NARROWER))
    team.release(second_pack())
    team.release(CATALOG)
    team.release(OVERLAY)
    team.release(version("1.2.0", NARROWER))


def _pins(team: Team) -> None:
    team.do(
        f"ops: pin prod {PINNED}",
        f"ops: pin staging {PINNED}",
        f"ops: pin staging {OVERLAY_REF}",
        f"ops: pin prod {PACK_ID}@1.2.0",
        f"ops: rollback prod {PACK_ID} --reason 'wrong refunds'",
        f"ops: pin test {SECOND_PACK}",
        f"ops: unpin test {SECOND_PACK.partition('@')[0]} --reason 'moved'",
        f"ops: pin stable {PINNED} --alias",
        f"ops: pin old {PACK_ID}@1.0.0 --alias",
        f"ops: unpin old {PACK_ID} --alias --reason 'not used'",
        "ops: pin dev --open",
        "ops: pin dev --protect",
    )


def _keys(team: Team) -> None:
    team.do(
        trust_step("temp", ISSUER, "operator", "environment:dev", LOG_ROLE, team=team),
        "temp: pin dev --open",
        f"root: keys rotate {team.public_file('guest')} {team.public_file('guest2')} --overlap 1",
        f"root: keys revoke {team.public_file('temp')} --reason 'lost'",
    )


def _endings(team: Team) -> None:
    draft = team.record(version("1.3.0", NARROWER))["digest"]
    team.do(
        f"sec: review {draft} --role security --reject --reason 'no'",
        "pub: refresh open ADAPTER_SCHEMA_UPDATED adp_orders --reason 'another API'",
        f"ops: refresh incident {PINNED} INC-7 --reason 'wrong sums'",
        f"ops: refresh settle {PINNED} INC-7 --reason 'right again'",
        f"pub: deprecate {PACK_ID}@1.0.0 --reason 'superseded'",
        f"pub: revoke {PACK_ID}@1.2.0 --reason 'it leaks'",
        "root: verify --registry --sign",
    )
    team.record(version("2.0.0"))
