"""The page about context packs against the code: its layers, fields, laws and examples are those that hold."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from contextplane.authoring.checklist import STEPS
from contextplane.authoring.gates.table import EVERY_LAW, GATES
from contextplane.authoring.overlay.resolved_view import resolve_view
from contextplane.authoring.yaml_reader import read_yaml_file
from contextplane.model.artifact import EnvironmentDescription, Overlay
from contextplane.model.context_pack import ContextPack
from tests.support.cases import cases
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, EXAMPLE_WARNINGS, findings

PAGE = (Path(__file__).parents[2] / "docs" / "context-packs.md").read_text(encoding="utf-8")
LAYERS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def fields(kind: object) -> Iterator[str]:
    """The names of all fields of a document, and of those inside it."""
    info = msgspec.inspect.type_info(kind)
    yield from _fields(info)


def _fields(info: msgspec.inspect.Type) -> Iterator[str]:
    if isinstance(info, msgspec.inspect.StructType):
        for field in info.fields:
            yield field.encode_name
            yield from _fields(field.type)
    for inside in ("item_type", "value_type", "type"):
        if isinstance(part := getattr(info, inside, None), msgspec.inspect.Type):
            yield from _fields(part)
    for part in (*getattr(info, "types", ()), *(getattr(info, "item_types", ()))):
        yield from _fields(part)


def test_the_page_has_every_layer_in_the_order_of_the_contract() -> None:
    assert list(LAYERS) == [field.encode_name for field in msgspec.structs.fields(ContextPack)]


@cases("layer", LAYERS)
def test_the_page_names_every_field_of_a_layer(layer: str) -> None:
    kind = next(field.type for field in msgspec.structs.fields(ContextPack) if field.name == layer)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", LAYERS[layer]))))
    assert set(fields(kind)) - named == set()


def test_every_law_stands_on_the_page_and_what_holds_a_rule_is_a_law() -> None:
    laws = {law.code for law in EVERY_LAW}
    assert laws - set(PAGE.split("`")) == {"golden_cases_unstable"}  # it is no rule about what an author writes
    holding = " ".join(re.findall(r"([^|]*)\|$", PAGE.partition("\n## The gates")[0], re.MULTILINE))
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", holding)) - laws == set()


def test_the_page_has_the_gates_and_the_lines_of_the_checklist_in_their_order() -> None:
    gates = PAGE.partition("\n## The gates")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| (\w+) \| [^|]*\?", gates, re.MULTILINE)) == GATES
    lines = PAGE.partition("\n## The checklist")[2]
    assert [int(number) for number in re.findall(r"^\| (\d) ", lines, re.MULTILINE)] == list(range(1, len(STEPS) + 2))


def test_the_examples_of_the_page_are_documents_that_hold() -> None:
    environment, overlay = (read_yaml_file(text.encode()).value for text in EXAMPLES)
    assert msgspec.convert(environment, type=EnvironmentDescription) == msgspec.structs.replace(
        ENVIRONMENT, tenants=("tenant_acme_prod",)
    )
    view = resolve_view(EXAMPLE, [msgspec.convert(overlay, type=Overlay)])
    assert len(view.applied) == 2
    assert {finding.code for finding in findings(view.value)} == EXAMPLE_WARNINGS
