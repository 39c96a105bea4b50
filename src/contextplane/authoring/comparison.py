"""Two packs side by side: what changed, the least version class of it, and whether the newer number says as much."""

from contextplane.authoring.compare import compared
from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import Report
from contextplane.authoring.versions import Bump, BumpTooSmall, check_bump, required_bump
from contextplane.model.canonical import Json, canonical
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.value import Value

__all__ = ["Comparison", "Side", "comparison"]


class Side(Value, frozen=True):
    """A pack as it was written, and typed."""

    value: Json
    pack: ContextPack


class Comparison(Value, frozen=True):
    """`unsafe`: the errors for which the newer pack may not be published. `refusal`: why its number will not do."""

    old: PackRef
    new: PackRef
    same: bool
    bump: Bump
    unsafe: tuple[Finding, ...]
    refusal: str


def comparison(old: Side, new: Side, report: Report) -> Comparison:
    """Compare two packs; `report` is what the gates say of the newer one."""
    unsafe = tuple(one for one in report.findings if one.severity == "error")
    bump = required_bump(compared(old.value, new.value), unsafe=[f"{one.code} at {one.at}" for one in unsafe])
    same = canonical(old.value) == canonical(new.value)
    refs = old.pack.ref, new.pack.ref
    refusal = "" if same else _refusal(*refs, bump, unsafe)
    return Comparison(old=refs[0], new=refs[1], same=same, bump=bump, unsafe=unsafe, refusal=refusal)


def _refusal(old: PackRef, new: PackRef, bump: Bump, unsafe: tuple[Finding, ...]) -> str:
    if old.pack_id != new.pack_id:
        return f"{old.pack_id} and {new.pack_id} are two packs, not two versions of one"
    if unsafe:
        return f"{new} may not be published under any number: the gates find errors in it"
    try:
        check_bump(old, new, bump)
    except BumpTooSmall as error:
        return str(error)
    return ""
