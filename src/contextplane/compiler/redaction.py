"""Stage `redaction`: masks what the pack's rules hide, before any other stage repeats a part of it.

Policy and admission are decided on the real values, and the digests of the inputs cover those. Blocks, manifests, notes
and reasons are written from the masked ones.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from contextplane.compiler.draft import Draft, Inputs, RedactionPart
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import Omission
from contextplane.model.evidence import Evidence, EvidenceConflict, EvidenceInput, Memory
from contextplane.model.invoke import Attachment, InvokeRequest
from contextplane.policy.redaction.redactor import MaskedText, Redaction
from contextplane.policy.redaction.schema_marks import SchemaMarks

__all__ = ["redact_inputs"]

_PLACES = 20


def redact_inputs(draft: Draft) -> Draft:
    """Mask request, evidence and memories. What was masked is listed by rule and place, not by value."""
    inputs = draft.inputs
    view = inputs.view
    marks = view.memoize("output_marks", lambda: _output_marks(view))
    if not marks and view.redactor.is_clear("\n".join(_texts(inputs))):
        return replace(draft, shown=inputs, redaction=view.share_part((), "nothing_redacted", RedactionPart))
    masking = _Masking(view, marks)
    shown = replace(
        inputs,
        request=masking.request(inputs.request),
        evidence=tuple(masking.piece(piece, f"evidence#/{n}") for n, piece in enumerate(inputs.evidence)),
        memories=tuple(masking.memory(memory, f"memories#/{n}") for n, memory in enumerate(inputs.memories)),
    )
    part = RedactionPart(omitted=tuple(masking.omissions()))
    return replace(draft, shown=shown, masked_refs=masking.refs, redaction=part)


def _texts(inputs: Inputs) -> Iterator[str]:
    """Yield every text of the inputs that a later stage repeats."""
    request = inputs.request
    yield request.input.message
    yield request.input.channel or ""
    if request.input.context:
        yield msgspec.json.encode(request.input.context).decode()
    for attachment in request.attachments:
        yield attachment.artifact_id
        yield attachment.media_type
    for piece in inputs.evidence:
        if isinstance(piece, str):
            yield piece
            continue
        yield from _piece_texts(piece)
    for memory in inputs.memories:
        yield memory.memory_ref
        yield memory.content
        yield from memory.evidence_refs


def _piece_texts(piece: Evidence) -> Iterator[str]:
    yield piece.evidence_ref
    yield piece.source
    yield piece.content
    for conflict in piece.conflicts:
        yield conflict.evidence_ref
        yield conflict.selected or ""
        yield conflict.resolution_ref or ""


class _Masking:
    """Masks the inputs of one compile, and collects what was masked at which place."""

    def __init__(self, view: PackView, marks: dict[str, SchemaMarks]) -> None:
        self._view = view
        self._marks = marks
        self._found: dict[tuple[str, str, str], list[str]] = {}
        self.refs: dict[str, str] = {}

    def request(self, request: InvokeRequest) -> InvokeRequest:
        invoke_input = request.input
        context = self._view.redactor.mask_value(invoke_input.context)
        self._note("request#/input/context", context.redactions)
        channel = invoke_input.channel
        return replace(
            request,
            input=replace(
                invoke_input,
                message=self._text(invoke_input.message, "request#/input/message"),
                channel=None if channel is None else self._text(channel, "request#/input/channel"),
                context=context.value,
            ),
            attachments=tuple(
                self._attachment(attachment, f"request#/attachments/{n}")
                for n, attachment in enumerate(request.attachments)
            ),
        )

    def piece(self, piece: EvidenceInput, at: str) -> EvidenceInput:
        """Mask a piece of evidence: its reference, and its content also by the schemas of its tools."""
        if isinstance(piece, str):
            return self._ref(piece, at)
        if not self._marks and self._view.redactor.is_clear("\n".join(_piece_texts(piece))):
            return piece
        marks, must_be_json = _marks_of(piece, self._view, self._marks)
        masked = self._view.redactor.mask_text(piece.content, marks=marks, must_be_json=must_be_json)
        return replace(
            piece,
            evidence_ref=self._ref(piece.evidence_ref, f"{at}/evidence_ref"),
            source=self._text(piece.source, f"{at}/source"),
            content=self._note_text(f"{at}/content", masked),
            conflicts=tuple(
                self._conflict(conflict, f"{at}/conflicts/{n}") for n, conflict in enumerate(piece.conflicts)
            ),
        )

    def memory(self, memory: Memory, at: str) -> Memory:
        return replace(
            memory,
            memory_ref=self._ref(memory.memory_ref, f"{at}/memory_ref"),
            content=self._text(memory.content, f"{at}/content"),
            evidence_refs=tuple(
                self._ref(ref, f"{at}/evidence_refs/{n}") for n, ref in enumerate(memory.evidence_refs)
            ),
        )

    def omissions(self) -> Iterator[Omission]:
        """Yield an omission for each place, rule and way."""
        for (at, rule, way), places in self._found.items():
            shown = tuple(place for place in dict.fromkeys(places) if place)[:_PLACES]
            yield Omission(
                kind="redaction", id=rule, stage="redaction", reason=f"by_{way}", at=at, count=len(places), places=shown
            )

    def _attachment(self, attachment: Attachment, at: str) -> Attachment:
        return replace(
            attachment,
            artifact_id=self._text(attachment.artifact_id, f"{at}/artifact_id"),
            media_type=self._text(attachment.media_type, f"{at}/media_type"),
        )

    def _conflict(self, conflict: EvidenceConflict, at: str) -> EvidenceConflict:
        return replace(
            conflict,
            evidence_ref=self._ref(conflict.evidence_ref, f"{at}/evidence_ref"),
            selected=conflict.selected and self._ref(conflict.selected, f"{at}/selected"),
            resolution_ref=conflict.resolution_ref and self._ref(conflict.resolution_ref, f"{at}/resolution_ref"),
        )

    def _ref(self, ref: str, at: str) -> str:
        masked = self._text(ref, at)
        if masked != ref:
            self.refs[ref] = masked
        return masked

    def _text(self, text: str, at: str) -> str:
        return self._note_text(at, self._view.redactor.mask_text(text))

    def _note_text(self, at: str, masked: MaskedText) -> str:
        self._note(at, masked.redactions)
        return masked.text

    def _note(self, at: str, redactions: Iterable[Redaction]) -> None:
        for redaction in redactions:
            self._found.setdefault((at, redaction.rule, redaction.way), []).append(redaction.place)


def _output_marks(view: PackView) -> dict[str, SchemaMarks]:
    """The marks of `x-redact` in the output schema of each tool that has any."""
    marks = {
        f"{adapter.adapter_id}.{name}": SchemaMarks.of([spec.output_schema])
        for adapter in view.pack.tooling_layer.adapter_registry
        for name, spec in adapter.capability_specs.items()
        if spec.output_schema is not None
    }
    return {tool: mark for tool, mark in marks.items() if mark is not None}


def _marks_of(piece: Evidence, view: PackView, marks: dict[str, SchemaMarks]) -> tuple[SchemaMarks | None, bool]:
    """The marks for the content of a piece, and whether it must be JSON because a marked tool made it.

    A piece is the result of the tool that its reference or its source names. By its type alone it may be the result of
    any tool that produces the type, or a person's words.
    """
    if not marks:
        return None, False
    kind, _, rest = piece.evidence_ref.partition(":")
    named = {piece.source, rest.partition(":")[0].partition("#")[0] if kind == "tool" else ""}
    tools = {tool for tool in marks if tool in named or tool.rpartition(".")[0] in named}
    schemas: list[dict[str, Any]] = []
    for tool in sorted({*tools, *view.evidence_producers.tools.get(piece.type, ())} & marks.keys()):
        schemas += marks[tool].documents
    return SchemaMarks.of(schemas), bool(tools)
