"""What judging a pack costs: against one validation of its form, as a command, and as packs grow."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs

from bench.install import installed
from bench.measure import Row, in_turns
from contextplane.authoring.gates.schema import schema_of
from contextplane.authoring.gates.table import judged
from contextplane.model.context_pack import ContextPack

__all__ = ["command", "gates", "growth"]

_ROOT = Path(__file__).parent.parent
_EXAMPLE = _ROOT / "tests" / "cases" / "context_pack" / "support.json"
_REPEATS, _PROMISED = 40, 25
_SIZES = (100, 300, 1000)
_ADAPTERS = 200


def gates() -> Iterator[Row]:
    """The full example, again and again in one process."""
    pack = json.loads(_EXAMPLE.read_bytes())
    validator = jsonschema_rs.Draft202012Validator(schema_of(ContextPack))
    assert validator.is_valid(pack)
    assert judged(pack).passed

    # As many of each as take about the same time: a machine that is busy elsewhere then slows both alike.
    def often(work: Callable[[], object], times: int) -> Callable[[], object]:
        return lambda: [work() for _ in range(times)]

    validations = _REPEATS * _PROMISED
    # A validation that would tell every error, as the gates do.
    works = [often(lambda: list(validator.iter_errors(pack)), validations), often(lambda: judged(pack), _REPEATS)]
    form, whole = in_turns(works, rounds=60)
    form, whole = form / validations, whole / _REPEATS
    ratio = whole / form
    figures = f"{whole * 1e6:.0f} us, one validation {form * 1e6:.1f} us"
    kept = ratio <= _PROMISED
    yield Row("all gates over the full example", "one jsonschema-rs validation", ratio, "<= 25", kept, figures)


def command() -> Iterator[Row]:
    """`ctx lint` as users install it, against a bare interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        bin_ = installed(Path(folder))

        def running(*command: str) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        works = [running(f"{bin_}/python", "-I", "-c", "pass"), running(f"{bin_}/ctx", "lint", str(_EXAMPLE))]
        bare, taken = in_turns(works, rounds=30)
    ratio = taken / bare
    figures = f"{taken * 1000:.1f} ms, bare {bare * 1000:.1f} ms"
    yield Row("ctx lint of the full example", "python -I -c pass", ratio, "<= 10", ratio <= 10, figures)


def growth() -> Iterator[Row]:
    """Packs of 100, 300 and 1,000 rules with 200 adapters: time per rule, the adapters' part taken off."""
    packs = [_large(size) for size in (1, *_SIZES)]
    base, *times = in_turns([partial(judged, pack) for pack in packs], rounds=5)
    each = [(taken - base) / size for size, taken in zip(_SIZES, times, strict=True)]
    for size, taken, one in zip(_SIZES, times, each, strict=True):
        ratio = one / each[0]
        figures = f"{taken * 1000:.0f} ms, {one * 1e6:.0f} us a rule"
        yield Row(
            f"a rule of {size:,} with {_ADAPTERS} adapters", "a rule of 100", ratio, "<= 1.3", ratio <= 1.3, figures
        )


def _large(rules: int) -> dict[str, Any]:
    """The example, grown: every fifth rule denies, and each ten rules read the same facts."""
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
