"""Comparing two runs: what differs, in the order in which a run happens, so that the first difference comes first.

It compares what a run was and not when: `created`, timestamps, recorded indices and the parent are passed over. The
types and words of what the reference program finds too are its own; what a step is, its type and whether it is
deterministic, counts as its tool.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from contextplane.audit.align import align
from contextplane.audit.load import LoadedPack
from contextplane.audit.text_diff import TextDiff, text_diff
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import SORTED, canonical
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.store.damage import short

__all__ = ["MOST_TEXTS", "Diff", "Drift", "Entry", "compare", "diff"]

MOST_TEXTS = 100
"""No more contents are compared as text."""

_SHOWN = 12

Drift = Literal[
    "model_drift",
    "environment_drift",
    "prompt_drift",
    "input_drift",
    "tool_drift",
    "param_drift",
    "reasoning_drift",
    "output_drift",
]


class Entry(Value, frozen=True):
    """One difference.

    `pack_a`, `pack_b`: what each pack has there, absent where it has nothing; of a content the first digits of its
    hash. `content_a`, `content_b`: the whole reference. `at_a`, `at_b`: the place in each manifest. `part_a`, `part_b`:
    what a reference calls it, where it can be read by one. `step_index` is the place in the list, of A where A has one;
    a prompt whose content differs has one too.
    """

    type: Drift
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


class Diff(Value, frozen=True):
    """Two packs and everything in which their runs differ. The first entry is the first divergence."""

    a: Digest
    b: Digest
    entries: tuple[Entry, ...]


def diff(a: LoadedPack, b: LoadedPack, objects: Objects) -> Diff:
    """Compare two packs, with the texts of the contents in which they differ."""
    entries = []
    texts = 0
    for entry in () if a.digest == b.digest else compare(a.manifest, b.manifest):
        if isinstance(entry.content_a, str) and isinstance(entry.content_b, str):
            texts += 1
            text = TextDiff(state="left_out", why=f"only the first {MOST_TEXTS} contents are compared as text")
            if texts <= MOST_TEXTS:
                names = _called(a.digest, entry.part_a, entry.at_a), _called(b.digest, entry.part_b, entry.at_b)
                text = text_diff(entry.content_a, entry.content_b, objects, names=names)
            entries.append(msgspec.structs.replace(entry, text=text))
        else:
            entries.append(entry)
    return Diff(a=a.digest, b=b.digest, entries=tuple(entries))


def _called(pack: Digest, part: str | UnsetType, at: str | UnsetType) -> str:
    """What people know a content by; its place, where another of the same name hides it."""
    return short(pack, part) if isinstance(part, str) else f"{short(pack)}#{at}"


def compare(a: Manifest, b: Manifest) -> Iterator[Entry]:
    """Every difference between two manifests, in the order in which a run happens."""
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
    """What one pack has: its place, what is told of it, and when it is a content the reference, and its part."""

    at: str
    told: Any
    content: str | UnsetType = UNSET
    part: str | UnsetType = UNSET


def _content(at: str, ref: str, part: str | UnsetType) -> _Side:
    return _Side(at=at, told=_short(ref), content=ref, part=part)


def _entry(
    drift: Drift, description: str, *, a: _Side | None = None, b: _Side | None = None, index: int | UnsetType = UNSET
) -> Entry:
    return Entry(
        type=drift,
        description=description,
        step_index=index,
        pack_a=a.told if a else UNSET,
        pack_b=b.told if b else UNSET,
        at_a=a.at if a else UNSET,
        at_b=b.at if b else UNSET,
        part_a=a.part if a else UNSET,
        part_b=b.part if b else UNSET,
        content_a=a.content if a else UNSET,
        content_b=b.content if b else UNSET,
    )


def _by_name(drift: Drift, changed: str, *, a: Mapping[str, _Side], b: Mapping[str, _Side]) -> Iterator[Entry]:
    """What has a name: everything of A in its order, then what only B has."""
    for name in {**a, **b}:
        if name not in b:
            yield _entry(drift, f"{name} removed in pack B", a=a[name])
        elif name not in a:
            yield _entry(drift, f"{name} added in pack B", b=b[name])
        elif a[name].content != b[name].content or _exact(a[name].told) != _exact(b[name].told):
            yield _entry(drift, f"{name} {changed}", a=a[name], b=b[name])


def _model(model: Model) -> dict[str, _Side]:
    identifier = _Side(at="/model/identifier", told=model.identifier)
    return {"Model identifier": identifier} | _members("Model parameter", "/model/parameters", model.parameters)


def _environment(environment: Environment) -> dict[str, _Side]:
    return {
        "OS": _Side(at="/environment/os", told=environment.os),
        "Runtime": _Side(at="/environment/runtime", told=environment.runtime),
    } | _members("Version of tool", "/environment/tool_versions", environment.tool_versions)


def _members(what: str, at: str, values: Mapping[str, Any] | None) -> dict[str, _Side]:
    """The members of an object, sorted. No object is one without members."""
    return {
        f"{what} {_quoted(key)}": _Side(at=at + pointer([key]), told=value)
        for key, value in sorted((values or {}).items(), key=lambda item: item[0])
    }


def _files(what: str, files: Sequence[Input | Output]) -> dict[str, _Side]:
    """Inputs or outputs by name; of several of one name, each by its turn."""
    sides: dict[str, _Side] = {}
    turns: dict[str, int] = {}
    last = {file.name: position for position, file in enumerate(files)}  # a reference means that one
    for position, file in enumerate(files):
        turn = turns[file.name] = turns.get(file.name, 0) + 1
        name = f"{what} {_quoted(file.name)}" + (f" (number {turn} of this name)" if turn > 1 else "")
        part = f"{what.lower()}s/{file.name}" if last[file.name] == position else UNSET
        sides[name] = _content(f"/{what.lower()}s/{position}", file.content_ref, part)
    return sides


def _prompts(a: tuple[Prompt, ...], b: tuple[Prompt, ...]) -> Iterator[Entry]:
    """Paired as steps are: by role and content, then by content, then by role. All that one has more are one entry."""
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
    return _Side(at=f"/{first}", told=[f"/prompts/{position}" for position in positions], part=first)


def _prompt(n: int, m: int, *, a: Prompt, b: Prompt) -> Iterator[Entry]:
    part_a, part_b = f"prompts/{n}", f"prompts/{m}"
    at_a, at_b = f"/{part_a}", f"/{part_b}"
    if a.content_ref != b.content_ref:
        said = f"Prompt {_number(n, m)} content differs (role: {a.role})"
        ours, theirs = _content(at_a, a.content_ref, part_a), _content(at_b, b.content_ref, part_b)
        yield _entry("prompt_drift", said, a=ours, b=theirs, index=n)
    if a.role != b.role:
        said = f"Prompt {_number(n, m)} role changed"
        yield _entry("prompt_drift", said, a=_Side(at=at_a, told=a.role), b=_Side(at=at_b, told=b.role))


def _number(n: int, m: int) -> str:
    """The place in A, and that in B where it is another: both packs are before the eyes of who reads it."""
    return f"{n}" if n == m else f"{n} ({m} in pack B)"


def _steps(a: tuple[Step, ...], b: tuple[Step, ...]) -> Iterator[Entry]:
    """Paired by call and output, then by call, then by tool. What is left stands in the other's place, or is alone."""
    keys = [[(step.type, step.tool, _exact(step.parameters), step.output_ref) for step in steps] for steps in (a, b)]
    calls, tools = ([[key[:size] for key in side] for side in keys] for size in (3, 2))
    for n, m in align((keys[0], keys[1]), (calls[0], calls[1]), (tools[0], tools[1])):
        if n is not None and m is not None:
            if keys[0][n] != keys[1][m] or a[n].deterministic != b[m].deterministic:
                yield from _step(n, m, a=a[n], b=b[m])
        elif n is not None:
            yield _entry("tool_drift", f"Step {n}: {_label(a[n])} removed in pack B", a=_alone(n, a[n]), index=n)
        elif m is not None:
            yield _entry("tool_drift", f"Step {m}: {_label(b[m])} added in pack B", b=_alone(m, b[m]), index=m)


def _alone(position: int, step: Step) -> _Side:
    """A step that the other run does not have: it is read by its output, or by its parameters when it had none."""
    output, parameters = f"steps/{position}", f"steps/{position}/parameters"
    part = output if step.output_ref else parameters if step.parameters is not None else UNSET
    return _Side(at=f"/{output}", told=_label(step), content=step.output_ref or UNSET, part=part)


def _step(n: int, m: int, *, a: Step, b: Step) -> Iterator[Entry]:
    """What differs between two steps that answer to each other. Of another tool, nothing else is comparable."""

    def both(drift: Drift, said: str, told_a: object, told_b: object) -> Entry:
        ours, theirs = _Side(at=f"/steps/{n}", told=told_a), _Side(at=f"/steps/{m}", told=told_b)
        return _entry(drift, f"Step {_number(n, m)}: {said}", a=ours, b=theirs, index=n)

    what = _label(a)
    if a.tool != b.tool:
        yield both("tool_drift", "different tool", what, _label(b))
        return
    if a.type != b.type:
        yield both("tool_drift", f"{what} is a different type of step", a.type, b.type)
    if a.deterministic != b.deterministic:
        said = f"{what} is deterministic in pack {'A' if a.deterministic else 'B'} only"
        yield both("tool_drift", said, a.deterministic, b.deterministic)
    if _exact(a.parameters) != _exact(b.parameters):
        yield both("param_drift", f"{what} called with different parameters", a.parameters, b.parameters)
    if a.output_ref != b.output_ref:
        ours, theirs = (_content(f"/steps/{at}", step.output_ref, f"steps/{at}") for at, step in ((n, a), (m, b)))
        said = f"Step {_number(n, m)}: {what} produced different output"
        yield _entry("reasoning_drift", said, a=ours, b=theirs, index=n)


def _label(step: Step) -> str:
    """What a step is called: by its tool, or by its type when it needs none."""
    return step.tool or step.type


def _short(ref: str) -> str:
    """The first digits of a reference; whatever else stands there, whole."""
    try:
        return Digest.parse(ref).hex[:_SHOWN]
    except ContextPlaneError:
        return ref


def _quoted(name: str) -> str:
    return msgspec.json.encode(name).decode()


def _exact(value: object) -> bytes:
    """Bytes that are equal when the values are, as JSON has them: 1.0 is 1, and true is not.

    Sorted bytes are that, but for whole numbers that one wrote with a fraction; only these need the canonical form, and
    what others stored may have none.
    """
    encoded = SORTED.encode(value)
    if b".0" in encoded:
        try:
            return canonical(value)
        except ContextPlaneError:
            return encoded
    return encoded
