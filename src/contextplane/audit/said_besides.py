"""What a stored manifest says besides its references, as far as it can be held against what is there.

Others wrote manifests too, and whoever makes one by hand can say anything in it: its hash proves who said it, not that
it is so.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from contextplane.model.execution import digests_in
from contextplane.model.ids import Digest
from contextplane.model.json_text import repeats_a_key
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.value import Value

__all__ = ["contradictions", "unknown_refs"]

_LISTS: dict[str, type[Value]] = {"prompts": Prompt, "inputs": Input, "steps": Step, "outputs": Output}
_OBJECTS: dict[str, type[Value]] = {"model": Model, "environment": Environment}


def contradictions(raw: bytes, sizes: Mapping[Digest, int]) -> Iterator[tuple[str, str]]:
    """What of a manifest cannot be so, each with its reason. `sizes`: of the contents that were found whole."""
    value = msgspec.json.decode(raw)
    if repeats_a_key(raw, value):
        yield "a key", "it stands twice in one object, and readers differ in which value they keep"
    for number, one in enumerate(_entries(value, "inputs")):
        said = one.get("size")
        for digest in digests_in(one.get("content_ref")):
            if said is not None and digest in sizes and said != sizes[digest]:
                yield f"inputs/{number} {digest}", f"its size is said to be {said!r:.20}, and it is {sizes[digest]}"


def unknown_refs(raw: bytes) -> tuple[Digest, ...]:
    """The digests in fields that are not of the form of a manifest: parts of the pack, for whoever wrote them."""
    value = msgspec.json.decode(raw)
    others = [_besides(value, Manifest)]
    others += [_besides(value.get(name), kind) for name, kind in _OBJECTS.items()]
    others += [_besides(one, kind) for name, kind in _LISTS.items() for one in _entries(value, name)]
    return tuple(dict.fromkeys(digest for one in others for digest in digests_in(one)))


def _besides(value: object, kind: type[Value]) -> list[object]:
    """The values of the fields that an object of this kind does not have."""
    known = kind.__struct_fields__
    return [one for name, one in value.items() if name not in known] if isinstance(value, dict) else []


def _entries(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    listed = value.get(name)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
