"""The cost of linting a pack: against one schema validation, as a command, and as packs grow."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs

from bench.install import install_wheel
from bench.measure import Row, measure_in_turns
from contextplane.authoring.gates.schema import schema_of
from contextplane.authoring.gates.table import judge_pack
from contextplane.model.context_pack import ContextPack

__all__ = ["command_rows", "gate_rows", "growth_rows"]

_ROOT = Path(__file__).parent.parent
_EXAMPLE = _ROOT / "tests" / "cases" / "context_pack" / "support.json"
_REPEATS, _PROMISED = 40, 25
_SIZES = (100, 300, 1000)
_ADAPTERS = 200


def gate_rows() -> Iterator[Row]:
    """Yield the cost of all gates over the full example, repeated in one process."""
    pack = json.loads(_EXAMPLE.read_bytes())
    validator = jsonschema_rs.Draft202012Validator(schema_of(ContextPack))
    assert validator.is_valid(pack)
    assert judge_pack(pack).passed

    # As many of each as take about the same time, so that other work on the machine slows both alike.
    def repeat(work: Callable[[], object], times: int) -> Callable[[], object]:
        return lambda: [work() for _ in range(times)]

    validations = _REPEATS * _PROMISED
    # A validation that reports every error, as the gates do.
    works = [repeat(lambda: list(validator.iter_errors(pack)), validations), repeat(lambda: judge_pack(pack), _REPEATS)]
    form, whole = measure_in_turns(works, rounds=60)
    form, whole = form / validations, whole / _REPEATS
    ratio = whole / form
    figures = f"{whole * 1e6:.0f} us, one validation {form * 1e6:.1f} us"
    kept = ratio <= _PROMISED
    yield Row("all gates over the full example", "one jsonschema-rs validation", ratio, "<= 25", kept, figures)


def command_rows() -> Iterator[Row]:
    """Yield the cost of the installed `ctx lint` against a bare interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        bin_ = install_wheel(Path(folder))

        def prepare(*command: str) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        works = [prepare(f"{bin_}/python", "-I", "-c", "pass"), prepare(f"{bin_}/ctx", "lint", str(_EXAMPLE))]
        bare, taken = measure_in_turns(works, rounds=30)
    ratio = taken / bare
    figures = f"{taken * 1000:.1f} ms, bare {bare * 1000:.1f} ms"
    yield Row("ctx lint of the full example", "python -I -c pass", ratio, "<= 10", ratio <= 10, figures)


def growth_rows() -> Iterator[Row]:
    """Yield the time per rule in packs of 100, 300 and 1,000 rules, less the time for 200 adapters."""
    packs = [_large(size) for size in (1, *_SIZES)]
    base, *times = measure_in_turns([partial(judge_pack, pack) for pack in packs], rounds=5)
    each = [(taken - base) / size for size, taken in zip(_SIZES, times, strict=True)]
    for size, taken, per_rule in zip(_SIZES, times, each, strict=True):
        ratio = per_rule / each[0]
        figures = f"{taken * 1000:.0f} ms, {per_rule * 1e6:.0f} us a rule"
        yield Row(
            f"a rule of {size:,} with {_ADAPTERS} adapters", "a rule of 100", ratio, "<= 1.3", ratio <= 1.3, figures
        )


def _large(rules: int) -> dict[str, Any]:
    """Grow the example: every fifth rule denies, and each ten rules read the same facts."""
    pack: dict[str, Any] = json.loads(_EXAMPLE.read_bytes())
    tooling = pack["tooling_layer"]
    for n in range(_ADAPTERS):
        adapter = {**tooling["adapter_registry"][0], "adapter_id": f"adp_{n}", "endpoint_ref": f"internal://a{n}"}
        tooling["adapter_registry"].append(adapter)
        permission = {**tooling["permissions"][0], "permission_id": f"p_{n}", "adapter_id": f"adp_{n}"}
        tooling["permissions"].append(permission)
    listed = pack["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"]
    for n in range(rules):
        amount = {"var": f"request.context.amount_{n // 10}"}
        condition = {"and": [{">": [amount, n]}, {"<": [amount, n + 10]}, {"==": [{"var": "user.role"}, f"role_{n}"]}]}
        listed.append(
            {**listed[1], "rule_id": f"R_{n}", "if": condition, "then": {"allow": n % 5 != 0, "prohibits": []}}
        )
    return pack
