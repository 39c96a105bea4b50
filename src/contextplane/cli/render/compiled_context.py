"""Lines with a head and words after it. On a terminal the words go on below themselves; in a pipe a line stays one.

What moved between two compiled contexts, a line for each thing.

A compiled context on one screen: what the run may do, what shaped it, what was kept from it.
"""

from collections.abc import Iterable, Iterator

from contextplane.cli.output import CommandOutput, clean
from contextplane.compiler.overrides import value_at
from contextplane.compiler.report import ContextItem, ItemChange
from contextplane.compiler.source import CompiledCase
from contextplane.model.compiled_context import CompiledContext

__all__ = ["LineHead", "print_item_changes", "print_wrapped", "one_line", "print_compiled", "print_override_effects"]

_NARROW = 30
"""With less room than this beside the head, the words go on below it."""


class LineHead:
    """What stands first in a line: as it is printed, how wide that is without its colours, where words go on below."""

    def __init__(self, shown: str, width: int, below: int) -> None:
        self.shown = shown
        self.width = width
        self.below = below


def print_wrapped(head: LineHead, words: str, output: CommandOutput, color: str = "") -> None:
    """Print them as one line, or as many as the terminal needs."""
    first, *rest = _pieces(head, words, output)
    output.line(f"{head.shown}{_paint(first, color, output)}".rstrip())
    for one in rest:
        output.line(_paint(one, color, output))


def one_line(text: str, longest: int = 150) -> str:
    """Text on its line, and no longer than that."""
    shown = clean(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _paint(text: str, color: str, output: CommandOutput) -> str:
    return output.paint(color, text) if color and text else text


def _pieces(head: LineHead, words: str, output: CommandOutput) -> list[str]:
    if not output.out.isatty():
        return [words]
    import shutil
    import textwrap

    columns = shutil.get_terminal_size().columns
    if head.width + len(words) <= columns:
        return [words]
    beside = columns - head.width >= _NARROW
    hang = max(head.width, head.below) if beside else head.below
    lines = textwrap.wrap(words, max(_NARROW, columns - hang), break_long_words=False, break_on_hyphens=False)
    if not beside:
        lines.insert(0, "")
    return [lines[0], *(f"{'':{hang}}{line}" for line in lines[1:])]


_MOVED_MOST = 40
_BEFORE = 80
"""What something was may be cut short sooner than what it is now."""

_ABSENT = {"gate": "not active", "redaction": "not active"}
"""What is said of a thing that the account does not hold; of all others, that it is not there."""


def print_override_effects(found: CompiledCase, knobs: str, output: CommandOutput) -> None:
    """What the knobs moved."""
    output.line(f"moved by {one_line(knobs)}:")
    moved = found.changes
    print_item_changes(moved, "  ", output)
    if found.refused_before:
        output.line(f"  everything: without that, it is refused with {found.refused_before}")
    elif not moved:
        output.line("  nothing but the hash" if found.hash_changed else "  nothing")


def print_item_changes(found: Iterable[ItemChange], indent: str, output: CommandOutput) -> None:
    """A line for each thing that is otherwise; very many are counted."""
    things = list(found)
    for thing in things[:_MOVED_MOST]:
        name = f"{thing.kind} {clean(thing.id)}: "
        print_wrapped(
            LineHead(f"{indent}{_mark(thing, output)} {name}", len(indent) + 2 + len(name), len(indent) + 4),
            _change(thing),
            output,
        )
    if len(things) > _MOVED_MOST:
        output.line(f"{indent}and {len(things) - _MOVED_MOST} more")


def _mark(difference: ItemChange, output: CommandOutput) -> str:
    was, is_ = (
        difference.before is not None and difference.before.inside,
        difference.after is not None and difference.after.inside,
    )
    if was == is_:
        return output.paint("yellow", "~")
    return output.paint("green", "+") if is_ else output.paint("red", "-")


def _change(difference: ItemChange) -> str:
    return f"{_words(difference, difference.before, _BEFORE)} -> {_words(difference, difference.after)}"


def _words(difference: ItemChange, item: ContextItem | None, longest: int = 150) -> str:
    return one_line(item.words, longest) if item is not None else _ABSENT.get(difference.kind, "not there")


_BAR = 20
_NAME = 10
_WORDS = _NAME + 4
_LIST_MOST = 12
"""So many of a kind are listed; the rest is counted."""


def print_compiled(found: CompiledCase, items: Iterable[ContextItem], output: CommandOutput) -> None:
    """All of it: the verdict and what was asked first, the rest in the order in which it was decided."""
    items = tuple(items)
    compiled, ledger = found.context, found.context.context_ledger
    for item in items:
        if item.kind == "decision":
            head = LineHead(f"{output.paint('bold', ledger.pack_ref)}  ", len(ledger.pack_ref) + 2, _NAME)
            print_wrapped(head, one_line(item.words), output, "green" if item.inside else "red")
    _print_line("request", one_line(_request_line(found)), output)
    for kind, name in (("tool", "tools"), ("rule", "rules"), ("gate", "gates"), ("guardrail", "controls")):
        _print_items(name, [one for one in items if one.kind == kind], output)
    _print_line("redacts", ", ".join(compiled.runtime_controls.redaction_rules_active) or "nothing", output)
    for kind, name in (("evidence", "evidence"), ("memory", "memory")):
        _print_items(name, [one for one in items if one.kind == kind], output)
    _print_requirements(compiled, items, output)
    _print_notes(compiled, items, output)
    for n, line in enumerate(_bars(found, output)):
        _print_line("" if n else "budget", line, output)
    for warning in compiled.budget_report.warnings:
        _print_line("", output.paint("yellow", clean(warning)), output)
    prompt = f"{ledger.prefix_length:,} bytes of prefix, {ledger.fixed_tokens:,} tokens outside the buckets"
    _print_line("prompt", prompt, output)
    _print_line("hash", ledger.compiled_context_hash, output)


def _request_line(found: CompiledCase) -> str:
    """What is asked, by whom, and what the run may do at most."""
    role = value_at(found.value, "/run_context/user/role")
    who = f"by {role}" if isinstance(role, str) else "by somebody without a role"
    ceiling = value_at(found.value, "/run_context/safety_mode")
    return f"{value_at(found.value, '/request/input/intent')} {who}; the run's ceiling is {ceiling}"


def _print_items(name: str, items: list[ContextItem], output: CommandOutput) -> None:
    """Those that are in, then those that are not, each with its words."""
    shown = [one for one in items if one.inside] + [one for one in items if not one.inside]
    if not shown:
        _print_line(name, "none", output)
    names = _short_names(shown)
    width = max(map(len, names[:_LIST_MOST]), default=0)
    for n, (item, said) in enumerate(zip(shown[:_LIST_MOST], names, strict=False)):
        mark = output.paint("green", "+") if item.inside else output.paint("dim", "-")
        head = LineHead(f"{'' if n else name:<{_NAME}}{mark} {said:<{width}}  ", _NAME + width + 4, _WORDS)
        print_wrapped(head, one_line(item.words), output)
    if len(shown) > _LIST_MOST:
        rest = shown[_LIST_MOST:]
        inside = sum(one.inside for one in rest)
        _print_line("", f"and {len(rest)} more: {inside} in, {len(rest) - inside} out (--json lists them)", output)


def _short_names(items: list[ContextItem]) -> list[str]:
    """How each is called here: a rule without its bundle, unless another bundle has one of that name."""
    last = [item.id.rpartition("#")[2] for item in items]
    return [
        clean(name if item.kind == "rule" and last.count(name) == 1 else item.id)
        for item, name in zip(items, last, strict=True)
    ]


def _print_requirements(compiled: CompiledContext, items: Iterable[ContextItem], output: CommandOutput) -> None:
    gate = compiled.evidence_gate
    if gate is None or not gate.required:
        return
    color, may = _may_commit(compiled, commit=gate.commit_allowed)
    _print_line("decision", f"{output.paint(color, may)}; the evidence that it requires is {gate.sufficiency}", output)
    for item in items:
        if item.kind == "requirement":
            mark = output.paint("green", "+") if item.inside else output.paint("yellow", "-")
            name = clean(item.id)
            print_wrapped(LineHead(f"{'':{_NAME}}{mark} {name}: ", _NAME + len(name) + 4, _WORDS), one_line(item.words), output)


def _print_notes(compiled: CompiledContext, items: Iterable[ContextItem], output: CommandOutput) -> None:
    """What the stages noticed, such as a signal that no guardrail answers to. Of gates their own lines tell it."""
    idle = tuple(f"{item.id} is not active" for item in items if item.kind == "gate" and not item.inside)
    notes = [(stage.stage, note) for stage in compiled.context_ledger.stages for note in stage.notes]
    told = [f"{stage}: {note}" for stage, note in notes if not note.startswith(idle)]
    for n, line in enumerate(told[:_LIST_MOST]):
        head = LineHead(f"{'' if n else 'noticed':<{_NAME}}", _NAME, _WORDS)
        print_wrapped(head, one_line(line), output, "yellow")
    if len(told) > _LIST_MOST:
        _print_line("", f"and {len(told) - _LIST_MOST} more (--json lists them)", output)


def _may_commit(compiled: CompiledContext, *, commit: bool) -> tuple[str, str]:
    """Evidence alone commits nothing: policy comes before it, approvals after it."""
    verdict = compiled.policy_decision
    if verdict is not None and not verdict.allowed:
        return "red", "denied by policy"
    if not commit:
        return "yellow", "not yet"
    waits = ", ".join(map(clean, compiled.runtime_controls.approval_gates_active))
    return ("yellow", f"may be committed after {waits}") if waits else ("green", "may be committed")


def _bars(found: CompiledCase, output: CommandOutput) -> Iterator[str]:
    report = found.context.budget_report
    for bucket, allotted in report.tokens_allocated.items():
        dropped = report.dropped_block_ids.get(bucket, ())
        told = f"  dropped {_few(dropped)}" if dropped else ""
        yield (
            _bar(bucket, report.tokens_used_by_bucket[bucket], allotted, "yellow" if dropped else "cyan", output) + told
        )
    total = value_at(found.value, "/run_context/run_budget/total_tokens")
    if isinstance(total, int):
        over = any(omission.reason == "over_total_budget" for omission in found.context.manifests.omission_manifest)
        yield _bar("total", report.tokens_used_at_compile, total, "yellow" if over else "cyan", output)


def _bar(name: str, used: int, allotted: int, color: str, output: CommandOutput) -> str:
    filled = min(_BAR, -(-used * _BAR // allotted)) if allotted else _BAR * (used > 0)
    return f"{name:<8} {output.paint(color, '#' * filled)}{'.' * (_BAR - filled)} {used:>6,} of {allotted:,}"


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_LIST_MOST]) + (f" and {len(names) - _LIST_MOST} more" if len(names) > _LIST_MOST else "")


def _print_line(name: str, text: str, output: CommandOutput) -> None:
    output.line(f"{name:<{_NAME}}{text}")
