"""Step 9: a pack runs only where everything that it requires is present, and says what it requires."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.context_pack import RUNTIME_CONTRACT, ContextPack
from contextplane.trust.compatibility import RuntimeCapabilities, check_compatibility
from tests.spec.manifest import proves
from tests.support.cases import cases

_CASES = Path(__file__).resolve().parents[2] / "cases" / "context_pack"
EXAMPLE: dict[str, Any] = json.loads((_CASES / "support.json").read_text(encoding="utf-8"))
HERE = RuntimeCapabilities(ontologies=("ont.support@1.0.0", "ont.retail@3.1.0"))


def requiring(*, pinned: str = "1.0.0", **requires: str) -> ContextPack:
    refs = EXAMPLE["intelligence_refs"]
    meta = {**EXAMPLE["contract_meta"], "compatibility": {"requires": requires}}
    ontology = {**refs["ontology"], "version": pinned}
    return msgspec.convert(
        {**EXAMPLE, "contract_meta": meta, "intelligence_refs": {**refs, "ontology": ontology}}, ContextPack
    )


def code(pack: ContextPack, capabilities: RuntimeCapabilities = HERE) -> str:
    try:
        check_compatibility(pack, capabilities)
    except ContextPlaneError as error:
        return error.code
    return "ok"


def test_the_full_example_runs_on_this_contract() -> None:
    assert RUNTIME_CONTRACT == "1.0.0"
    assert code(msgspec.convert(EXAMPLE, ContextPack)) == "ok"


def test_a_pack_without_an_ontology_requires_none() -> None:
    without = {name: layer for name, layer in EXAMPLE.items() if name != "intelligence_refs"}
    assert code(msgspec.convert(without, ContextPack)) == "ontology_incompatible"
    meta = {**EXAMPLE["contract_meta"], "compatibility": {"requires": {"runtime": ">=1.0.0"}}}
    assert code(msgspec.convert({**without, "contract_meta": meta}, ContextPack), RuntimeCapabilities()) == "ok"
    assert code(msgspec.convert({**EXAMPLE, "contract_meta": meta}, ContextPack)) == "requirement_unstated"


RANGES = [
    (">=1.0.0", ">=1.0.0", "ok"),
    ("^1.0.0", "~1.0.0", "ok"),
    (">=1.0.1", ">=1.0.0", "runtime_too_old"),
    (">=2.0.0", ">=1.0.0", "runtime_too_old"),
    ("<0.9.0 || >=1.1.0", ">=1.0.0", "runtime_too_old"),
    ("<1.0.0", ">=1.0.0", "runtime_too_new"),
    (">=1.0.0", ">=2.0.0", "ontology_incompatible"),
    (">=1.0.0", "<1.0.0", "ontology_incompatible"),
    ("", ">=1.0.0", "version_range_invalid"),
    ("*", ">=1.0.0", "version_range_invalid"),
    ("latest", ">=1.0.0", "version_range_invalid"),
    (">=1.0.0", ">=1.0.0-beta", "version_range_invalid"),
    (">=2.0.0 <1.0.0", ">=1.0.0", "version_range_invalid"),
]


@proves("context-pack:versioning-guidelines:runtime-compatibility")
@proves("context-pack:contract-meta:old-runtime-fails-closed", case=">=1.0.1 and >=1.0.0")
@proves("context-pack:contract-meta:artifact-compatibility", case=">=1.0.0 and >=2.0.0")
@cases(
    ("runtime", "ontology", "expected"),
    RANGES,
    ids=[f"{runtime} and {ontology}" for runtime, ontology, _ in RANGES],
)
def test_what_is_required_is_here_or_the_pack_is_refused(runtime: str, ontology: str, expected: str) -> None:
    # An empty text has not the form of a range, so it can only come from elsewhere than a parsed document.
    pack = requiring(runtime=">=1.0.0", ontology=ontology)
    requires = {"runtime": runtime, "ontology": ontology}
    compatibility = msgspec.structs.replace(pack.contract_meta.compatibility, requires=requires)
    meta = msgspec.structs.replace(pack.contract_meta, compatibility=compatibility)
    assert code(msgspec.structs.replace(pack, contract_meta=meta)) == expected


@cases(
    ("requires", "expected"),
    [
        ({"runtime": ">=1.0.0"}, "requirement_unstated"),
        ({"ontology": ">=1.0.0"}, "requirement_unstated"),
        ({"runtime": ">=1.0.0", "ontology": ">=1.0.0", "gpu": ">=1.0.0"}, "requirement_unknown"),
        ({"runtime": ">=1.0.0", "ontology": ">=1.0.0", "ont.support": ">=1.0.0"}, "requirement_unknown"),
    ],
)
def test_what_is_not_said_or_not_known_is_refused(requires: dict[str, str], expected: str) -> None:
    assert code(requiring(**requires)) == expected


@pytest.mark.parametrize(
    ("capabilities", "hint"),
    [
        ((), "publish it here first"),
        (("ont.support@1.1.0",), "here is ont.support@1.1.0"),
        (("ont.supports@1.0.0",), ""),
    ],
)
def test_the_pinned_ontology_itself_must_be_present_and_no_other_version_will_do(
    capabilities: tuple[str, ...], hint: str
) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        check_compatibility(
            requiring(runtime=">=1.0.0", ontology=">=1.0.0"), RuntimeCapabilities(ontologies=capabilities)
        )
    assert refused.value.code == "ontology_missing"
    assert hint in (refused.value.hint or "")


def test_an_older_runtime_refuses_and_a_newer_one_takes_the_pack() -> None:
    pack = requiring(runtime=">=1.1.0 <2.0.0", ontology=">=1.0.0")
    runtimes = ["1.0.9", "1.1.0", "1.9.0", "2.0.0"]
    codes = [code(pack, msgspec.structs.replace(HERE, runtime=runtime)) for runtime in runtimes]
    assert codes == ["runtime_too_old", "ok", "ok", "runtime_too_new"]


def test_all_that_is_missing_is_told_together() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        check_compatibility(requiring(runtime=">=2.0.0", ontology=">=2.0.0", gpu=">=1"), RuntimeCapabilities())
    codes = [refused.value.code, *(error["code"] for error in refused.value.details["also"])]  # type: ignore[attr-defined]
    assert codes == ["runtime_too_old", "ontology_incompatible", "requirement_unknown", "ontology_missing"]


@given(st.tuples(*[st.integers(0, 3)] * 3), st.tuples(*[st.integers(0, 3)] * 3).filter(any))
def test_a_runtime_passes_exactly_when_it_is_not_older_than_required(
    here: tuple[int, ...], needed: tuple[int, ...]
) -> None:
    pack = requiring(runtime=f">={'.'.join(map(str, needed))}", ontology=">=1.0.0")
    passes = code(pack, msgspec.structs.replace(HERE, runtime=".".join(map(str, here))))
    assert passes == ("ok" if here >= needed else "runtime_too_old")
