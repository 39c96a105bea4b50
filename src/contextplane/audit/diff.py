"""Compares two runs: lists every difference, in the order in which a run happens.

`created`, timestamps, recorded indices and the parent are not compared: what a run was, not when. Types and words of
differences that the reference program finds too are those of that program. A changed type of a step, or a change in
whether it is deterministic, counts as a change of its tool.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from contextplane.audit.align import align
from contextplane.audit.load import LoadedPack
from contextplane.audit.text_diff import TextDiff, diff_contents
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import SORTED, canonical
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.store.damage import short_ref

__all__ = ["MAX_TEXTS", "DiffEntry", "DriftType", "PackDiff", "diff_manifests", "diff_packs"]

MAX_TEXTS = 100
"""At most so many contents are compared as text."""

_SHORT_DIGITS = 12

DriftType = Literal[
    "model_drift",
    "environment_drift",
    "prompt_drift",
    "input_drift",
    "tool_drift",
    "param_drift",
    "reasoning_drift",
    "output_drift",
]


class DiffEntry(Value, frozen=True):
    """A difference between two packs.

    `pack_a`, `pack_b`: the value in each pack, absent where it has none; for a content the first digits of its hash.
    `content_a`, `content_b`: the whole reference. `at_a`, `at_b`: the place in each manifest. `part_a`, `part_b`: the
    selector by which a reference can read it, if there is one. `step_index`: the position in the list, in A if A has
    the step; a prompt whose content differs has one too.
    """

    type: DriftType
    description: str
    step_index: int | UnsetType = UNSET
    pack_a: Any = UNSET
    pack_b: Any = UNSET
    at_a: str | UnsetType = UNSET
    at_b: str | UnsetType = UNSET
    part_a: str | UnsetType = UNSET
    part_b: str | UnsetType = UNSET
    content_a: str | UnsetType = UNSET
    content_b: str | UnsetType = UNSET
    text: TextDiff | UnsetType = UNSET


class PackDiff(Value, frozen=True):
    """Two packs, and every difference between their runs. The first entry is the first divergence."""

    a: Digest
    b: Digest
    entries: tuple[DiffEntry, ...]


def diff_packs(a: LoadedPack, b: LoadedPack, objects: Objects) -> PackDiff:
    """Compare two packs, with the texts of the contents in which they differ."""
    entries = []
    texts = 0
    for entry in () if a.digest == b.digest else diff_manifests(a.manifest, b.manifest):
        if isinstance(entry.content_a, str) and isinstance(entry.content_b, str):
            texts += 1
            text = TextDiff(state="left_out", why=f"only the first {MAX_TEXTS} contents are compared as text")
            if texts <= MAX_TEXTS:
                names = (
                    _content_name(a.digest, entry.part_a, entry.at_a),
                    _content_name(b.digest, entry.part_b, entry.at_b),
                )
                text = diff_contents(entry.content_a, entry.content_b, objects, names=names)
            entries.append(msgspec.structs.replace(entry, text=text))
        else:
            entries.append(entry)
    return PackDiff(a=a.digest, b=b.digest, entries=tuple(entries))


def _content_name(pack: Digest, part: str | UnsetType, at: str | UnsetType) -> str:
    """The name of a content in a message: its selector, or its place if another of the same name hides it."""
    return short_ref(pack, part) if isinstance(part, str) else f"{short_ref(pack)}#{at}"


def diff_manifests(a: Manifest, b: Manifest) -> Iterator[DiffEntry]:
    """Yield every difference between two manifests, in the order in which a run happens."""
    yield from _by_name("model_drift", "changed", a=_model(a.model), b=_model(b.model))
    yield from _by_name("environment_drift", "changed", a=_environment(a.environment), b=_environment(b.environment))
    if a.system_prompt != b.system_prompt:
        ours, theirs = (_content("/system_prompt", manifest.system_prompt, "system_prompt") for manifest in (a, b))
        yield _entry("prompt_drift", "System prompts differ", a=ours, b=theirs)
    yield from _prompts(a.prompts, b.prompts)
    yield from _by_name("input_drift", "content differs", a=_files("Input", a.inputs), b=_files("Input", b.inputs))
    yield from _steps(a.steps, b.steps)
    yield from _by_name("output_drift", "content differs", a=_files("Output", a.outputs), b=_files("Output", b.outputs))


class _Side(Value, frozen=True):
    """One side of a difference: its place, its shown value, and for a content the reference and selector."""

    at: str
    shown: Any
    content: str | UnsetType = UNSET
    part: str | UnsetType = UNSET


def _content(at: str, ref: str, part: str | UnsetType) -> _Side:
    return _Side(at=at, shown=_short(ref), content=ref, part=part)


def _entry(
    drift: DriftType,
    description: str,
    *,
    a: _Side | None = None,
    b: _Side | None = None,
    index: int | UnsetType = UNSET,
) -> DiffEntry:
    return DiffEntry(
        type=drift,
        description=description,
        step_index=index,
        pack_a=a.shown if a else UNSET,
        pack_b=b.shown if b else UNSET,
        at_a=a.at if a else UNSET,
        at_b=b.at if b else UNSET,
        part_a=a.part if a else UNSET,
        part_b=b.part if b else UNSET,
        content_a=a.content if a else UNSET,
        content_b=b.content if b else UNSET,
    )


def _by_name(drift: DriftType, changed: str, *, a: Mapping[str, _Side], b: Mapping[str, _Side]) -> Iterator[DiffEntry]:
    """What has a name: everything of A in its order, then what only B has."""
    for name in {**a, **b}:
        if name not in b:
            yield _entry(drift, f"{name} removed in pack B", a=a[name])
        elif name not in a:
            yield _entry(drift, f"{name} added in pack B", b=b[name])
        elif a[name].content != b[name].content or _exact(a[name].shown) != _exact(b[name].shown):
            yield _entry(drift, f"{name} {changed}", a=a[name], b=b[name])


def _model(model: Model) -> dict[str, _Side]:
    identifier = _Side(at="/model/identifier", shown=model.identifier)
    return {"Model identifier": identifier} | _members("Model parameter", "/model/parameters", model.parameters)


def _environment(environment: Environment) -> dict[str, _Side]:
    return {
        "OS": _Side(at="/environment/os", shown=environment.os),
        "Runtime": _Side(at="/environment/runtime", shown=environment.runtime),
    } | _members("Version of tool", "/environment/tool_versions", environment.tool_versions)


def _members(what: str, at: str, values: Mapping[str, Any] | None) -> dict[str, _Side]:
    """The members of an object, sorted. None has no members."""
    return {
        f"{what} {_quote(key)}": _Side(at=at + pointer([key]), shown=value)
        for key, value in sorted((values or {}).items(), key=lambda item: item[0])
    }


def _files(what: str, files: Sequence[Input | Output]) -> dict[str, _Side]:
    """Inputs or outputs by name; several of the same name are numbered."""
    sides: dict[str, _Side] = {}
    turns: dict[str, int] = {}
    last = {file.name: position for position, file in enumerate(files)}  # a reference names the last one
    for position, file in enumerate(files):
        turn = turns[file.name] = turns.get(file.name, 0) + 1
        name = f"{what} {_quote(file.name)}" + (f" (number {turn} of this name)" if turn > 1 else "")
        part = f"{what.lower()}s/{file.name}" if last[file.name] == position else UNSET
        sides[name] = _content(f"/{what.lower()}s/{position}", file.content_ref, part)
    return sides


def _prompts(a: tuple[Prompt, ...], b: tuple[Prompt, ...]) -> Iterator[DiffEntry]:
    """Pair prompts by role and content, then content, then role. All extra ones of a pack are one entry."""
    pairs = align(
        ([(prompt.role, prompt.content_ref) for prompt in a], [(prompt.role, prompt.content_ref) for prompt in b]),
        ([prompt.content_ref for prompt in a], [prompt.content_ref for prompt in b]),
        ([prompt.role for prompt in a], [prompt.role for prompt in b]),
    )
    only_a = [n for n, m in pairs if n is not None and m is None]
    only_b = [m for n, m in pairs if n is None and m is not None]
    for n, m in pairs:
        if n is not None and m is not None:
            yield from _prompt(n, m, a=a[n], b=b[m])
        elif n is not None and n == only_a[0]:
            yield _entry("prompt_drift", f"Pack A has {len(only_a)} extra prompt(s)", a=_extra(only_a))
        elif m is not None and m == only_b[0]:
            yield _entry("prompt_drift", f"Pack B has {len(only_b)} extra prompt(s)", b=_extra(only_b))


def _extra(positions: list[int]) -> _Side:
    first = f"prompts/{positions[0]}"
    return _Side(at=f"/{first}", shown=[f"/prompts/{position}" for position in positions], part=first)


def _prompt(n: int, m: int, *, a: Prompt, b: Prompt) -> Iterator[DiffEntry]:
    part_a, part_b = f"prompts/{n}", f"prompts/{m}"
    at_a, at_b = f"/{part_a}", f"/{part_b}"
    if a.content_ref != b.content_ref:
        description = f"Prompt {_number(n, m)} content differs (role: {a.role})"
        ours, theirs = _content(at_a, a.content_ref, part_a), _content(at_b, b.content_ref, part_b)
        yield _entry("prompt_drift", description, a=ours, b=theirs, index=n)
    if a.role != b.role:
        description = f"Prompt {_number(n, m)} role changed"
        yield _entry("prompt_drift", description, a=_Side(at=at_a, shown=a.role), b=_Side(at=at_b, shown=b.role))


def _number(n: int, m: int) -> str:
    """The position in A, and that in B if it differs: a reader sees both packs."""
    return f"{n}" if n == m else f"{n} ({m} in pack B)"


def _steps(a: tuple[Step, ...], b: tuple[Step, ...]) -> Iterator[DiffEntry]:
    """Pair steps by call and output, then by call, then by tool. The others are paired in order, or alone."""
    keys = [[(step.type, step.tool, _exact(step.parameters), step.output_ref) for step in steps] for steps in (a, b)]
    calls, tools = ([[key[:size] for key in side] for side in keys] for size in (3, 2))
    for n, m in align((keys[0], keys[1]), (calls[0], calls[1]), (tools[0], tools[1])):
        if n is not None and m is not None:
            if keys[0][n] != keys[1][m] or a[n].deterministic != b[m].deterministic:
                yield from _step(n, m, a=a[n], b=b[m])
        elif n is not None:
            yield _entry(
                "tool_drift", f"Step {n}: {_label(a[n])} removed in pack B", a=_unpaired_step(n, a[n]), index=n
            )
        elif m is not None:
            yield _entry("tool_drift", f"Step {m}: {_label(b[m])} added in pack B", b=_unpaired_step(m, b[m]), index=m)


def _unpaired_step(position: int, step: Step) -> _Side:
    """A step that the other run does not have. Its selector is that of its output, else of its parameters."""
    output, parameters = f"steps/{position}", f"steps/{position}/parameters"
    part = output if step.output_ref else parameters if step.parameters is not None else UNSET
    return _Side(at=f"/{output}", shown=_label(step), content=step.output_ref or UNSET, part=part)


def _step(n: int, m: int, *, a: Step, b: Step) -> Iterator[DiffEntry]:
    """Yield the differences of two paired steps. If the tools differ, nothing else is comparable."""

    def entry(drift: DriftType, description: str, value_a: object, value_b: object) -> DiffEntry:
        ours, theirs = _Side(at=f"/steps/{n}", shown=value_a), _Side(at=f"/steps/{m}", shown=value_b)
        return _entry(drift, f"Step {_number(n, m)}: {description}", a=ours, b=theirs, index=n)

    what = _label(a)
    if a.tool != b.tool:
        yield entry("tool_drift", "different tool", what, _label(b))
        return
    if a.type != b.type:
        yield entry("tool_drift", f"{what} is a different type of step", a.type, b.type)
    if a.deterministic != b.deterministic:
        description = f"{what} is deterministic in pack {'A' if a.deterministic else 'B'} only"
        yield entry("tool_drift", description, a.deterministic, b.deterministic)
    if _exact(a.parameters) != _exact(b.parameters):
        yield entry("param_drift", f"{what} called with different parameters", a.parameters, b.parameters)
    if a.output_ref != b.output_ref:
        ours, theirs = (_content(f"/steps/{at}", step.output_ref, f"steps/{at}") for at, step in ((n, a), (m, b)))
        description = f"Step {_number(n, m)}: {what} produced different output"
        yield _entry("reasoning_drift", description, a=ours, b=theirs, index=n)


def _label(step: Step) -> str:
    """The label of a step: its tool, or its type if it has none."""
    return step.tool or step.type


def _short(ref: str) -> str:
    """The first digits of a reference. A text that is no reference is returned whole."""
    try:
        return Digest.parse(ref).hex[:_SHORT_DIGITS]
    except ContextPlaneError:
        return ref


def _quote(name: str) -> str:
    return msgspec.json.encode(name).decode()


def _exact(value: object) -> bytes:
    """Bytes that are equal if the JSON values are: 1.0 equals 1, and true does not.

    Sorted bytes have this property except for whole numbers with a fraction, so only these need the canonical form.
    Manifests of other programs may have none.
    """
    encoded = SORTED.encode(value)
    if b".0" in encoded:
        try:
            return canonical(value)
        except ContextPlaneError:
            return encoded
    return encoded
