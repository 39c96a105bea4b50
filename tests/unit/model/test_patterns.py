"""No type has a text with a pattern beside a list or an object: msgspec would take the pattern for a type.

It does so when garbage is collected, and the process dies. Such texts are checked by the type that has them.
"""

import importlib
import pkgutil
from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

import contextplane
from contextplane.model.arguments import FactReference
from contextplane.model.pack_layers import Effect, Permission, Rule
from contextplane.model.value import Document
from tests.support.cases import cases

CONTAINERS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType, inspect.DictType)


def documents(base: type[Document]) -> Iterator[type[Document]]:
    for document in base.__subclasses__():
        yield document
        yield from documents(document)


def mixed(form: object) -> bool:
    """Whether a type, or one within it, has a text with a pattern beside a list or an object."""
    if isinstance(form, inspect.Metadata):
        return mixed(form.type)
    if isinstance(form, inspect.UnionType):
        parts = [part.type if isinstance(part, inspect.Metadata) else part for part in form.types]
        has_pattern = any(isinstance(part, inspect.StrType) and part.pattern for part in parts)
        return (has_pattern and any(isinstance(part, CONTAINERS) for part in parts)) or any(map(mixed, parts))
    inside = [getattr(form, name, None) for name in ("item_type", "key_type", "value_type")]
    return any(map(mixed, [*filter(None, inside), *getattr(form, "item_types", ())]))


def test_no_type_has_a_pattern_beside_a_list_or_an_object() -> None:
    for module in pkgutil.walk_packages(contextplane.__path__, "contextplane."):
        if ".adapters." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    every = {document for document in documents(Document) if document.__module__.startswith("contextplane.")}
    assert Rule in every
    assert [
        f"{document.__qualname__}.{field.name}"
        for document in every
        for field in getattr(inspect.type_info(document), "fields", ())
        if mixed(field.type)
    ] == []


@cases(
    ("form", "value"),
    [
        (Rule, {"rule_id": "R", "applies_to": {"intent": "no id"}, "if": True, "then": {"allow": True}}),
        (Rule, {"rule_id": "R", "applies_to": {"intent": ["no id"]}, "if": True, "then": {"allow": True}}),
        (Effect, {"requires_approval_gate": "no id"}),
        (Effect, {"requires_approval_gate": ["no id"]}),
        (
            Permission,
            {"permission_id": "p", "adapter_id": "a", "capability": "c", "allow": True}
            | {"requires_approval_gate": ""},
        ),
        (FactReference, {"var": "no fact"}),
        (FactReference, {"var": ["no fact", 1]}),
    ],
)
def test_a_text_beside_a_list_is_checked_all_the_same(form: type, value: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, form)
