"""Golden cases at a release: a red one refuses a publication, and is told after a rollback, which it does not stop."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from contextplane.app import token_counters as counters
from contextplane.app.compile.golden import FolderCases, golden_files, record_cases
from contextplane.app.registry.pins import roll_back
from contextplane.app.registry.refresh import open_refresh, run_refresh
from contextplane.app.registry.release import ActResult
from contextplane.evaluation.golden_case import GoldenContext
from contextplane.evaluation.golden_release import run_published_cases
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.parse import parse
from contextplane.registry.artifacts import candidate
from contextplane.registry.reports import GoldenCases
from contextplane.runtime.published_source import pack_source
from tests.spec.manifest import proves
from tests.unit.compiler.case_files import CLOSING, SHOWN, write_json
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import CATALOG, NARROWER, PACK, Office, code, office, version

BINDING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path / "store") as opened:
        yield opened


@pytest.fixture(autouse=True)
def store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()


@pytest.fixture
def cases(tmp_path: Path) -> str:
    """Two cases, recorded of the full example."""
    folder = tmp_path / "golden"
    folder.mkdir()
    write_json(folder, "shown.json", SHOWN)
    write_json(folder, "closing.json", CLOSING)
    record_cases(pack_source(version("1.0.0")), golden_files(str(folder)))
    return str(folder)


def with_cases(here: Office, cases: str) -> None:
    here.desk.golden = FolderCases(cases)


@pytest.fixture
def stored(here: Office) -> GoldenCases:
    """The runner of the cases that are stored with a version: no folder is given."""
    return here.desk.golden


@proves("context-pack:versioning-guidelines:rollback-replays-golden")
def test_a_rollback_runs_the_cases_that_were_kept_with_the_version(
    here: Office, cases: str, stored: GoldenCases
) -> None:
    with_cases(here, cases)
    here.release()
    for path in Path(cases).iterdir():
        path.unlink()  # a rollback depends on no folder
    here.desk.golden = stored
    here.release(version("1.1.0", NARROWER))
    here.pin("prod", PACK)
    here.pin("prod", "ctxpack.support@1.1.0")
    act = roll_back(here.desk, "prod", "ctxpack.support", None, here.by("ops"))
    assert (act.golden, act.golden_words, here.base("prod")) == ("passed", "2 as recorded", PACK)


def bound(here: Office, tmp_path: Path) -> ActResult:
    """A pack that draws on a published catalog, with a case that was recorded of both, on its way to publication."""
    here.release(CATALOG)
    value = version("1.0.0", {"at": BINDING, "value": "support.refund.review"})
    folder = tmp_path / "bound"
    folder.mkdir()
    write_json(
        folder, "shown.json", put(SHOWN, {"/request/context_pack_refs": [PACK, "decision-catalog.support@1.0.0"]})
    )
    (ran,) = record_cases(pack_source(value, [candidate(CATALOG)]), golden_files(str(folder)))
    assert isinstance(ran.actual, GoldenContext)
    with_cases(here, str(folder))
    acted = here.record(value, catalogs=(PackRef.parse("decision-catalog.support@2.1.0"),))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    return acted


def test_publication_rollback_and_refresh_run_the_cases_with_the_catalogs_of_the_pack(
    here: Office, tmp_path: Path, stored: GoldenCases
) -> None:
    target = str(bound(here, tmp_path).digest)
    acted = here.publish(target)
    assert (acted.golden, acted.golden_words) == ("passed", "1 as recorded")
    again = here.publish(target)
    assert (again.appended, again.golden) == (None, "passed")
    here.desk.golden = stored
    here.release(version("2.0.0"))
    here.pin("prod", PACK)
    here.pin("prod", "ctxpack.support@2.0.0")
    act = roll_back(here.desk, "prod", "ctxpack.support", None, here.by("ops"))
    assert (act.golden, act.golden_words) == ("passed", "1 as recorded")
    open_refresh(here.desk, "EVALUATOR_UPDATED", "policy", here.by("pub"))
    (ran, _) = run_refresh(here.desk, PackRef.parse(PACK), here.by("pub"))
    assert (ran.action, ran.passed, ran.words) == ("golden_replay", True, "1 as recorded")


def test_a_catalog_that_is_published_says_nothing_of_golden_cases(here: Office) -> None:
    acted = here.record(CATALOG)
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    assert here.publish(str(acted.digest)).golden is None


def test_a_kept_case_that_is_none_any_more_is_red(here: Office, cases: str) -> None:
    with_cases(here, cases)
    here.release()
    with here.desk.read() as reader:
        published = reader.version(here.desk.named_version(PACK)).published
    assert published is not None
    report = here.desk.platform.objects.get(Digest.parse(published.report)).replace(b'"compiler_version"', b'"gone"')
    golden = run_published_cases(report, here.desk.named_version(PACK), version("1.0.0"))
    assert (golden.outcome, "golden_case_invalid" in golden.words) == ("failed", True)


def test_a_case_that_drifted_refuses_the_publication(here: Office, cases: str) -> None:
    with_cases(here, cases)
    here.release()
    acted = here.record(version("1.1.0", NARROWER))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    assert code(lambda: here.publish(str(acted.digest))) == "publish_golden_failed"
    assert here.artifact_stage(acted.digest) == "signed"


def test_what_is_published_without_cases_says_so(here: Office) -> None:
    here.release()
    with here.desk.read() as reader:
        published = reader.version(here.desk.named_version(PACK)).published
    assert published is not None
    assert published.golden == "not_run"
    report = parse(here.desk.platform.objects.get(Digest.parse(published.report))).value
    assert isinstance(report, dict)
    assert report["golden"] == {
        "outcome": "not_run",
        "words": "no golden cases were given: --golden DIR names them",
        "cases": [],
    }
    here.release(version("1.1.0", NARROWER))
    here.pin("prod", PACK)
    here.pin("prod", "ctxpack.support@1.1.0")
    act = roll_back(here.desk, "prod", "ctxpack.support", None, here.by("ops"))
    assert (act.golden, act.golden_words) == ("not_run", "no golden cases were given when it was published")


def test_a_catalog_has_no_golden_cases(here: Office, cases: str) -> None:
    golden = FolderCases(cases).run(here.desk.named_version("decision-catalog.support@2.1.0"), CATALOG)
    assert (golden.outcome, "golden cases are for packs" in golden.words) == ("not_run", True)


def test_a_case_that_cannot_be_read_is_red_and_not_green(here: Office, tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    write_json(tmp_path / "golden", "bad.json", {"request": 1})
    golden = FolderCases(str(tmp_path / "golden")).run(here.desk.named_version(PACK), version("1.0.0"))
    assert golden.outcome == "failed"
    assert "compile_case_invalid" in golden.words


class ExactTokens:
    """Stands for an exact counter, whose table may not be installed."""

    name = "o200k_base"

    def count(self, text: str) -> int:
        return len(text) // 3


def test_cases_are_counted_by_the_counter_that_the_pack_names(cases: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "load_counter", lambda name: {"o200k_base": ExactTokens()}[name])
    pack = put(version("1.0.0"), {"/pack_meta/token_counter": "o200k_base"})
    ref = PackRef.parse("ctxpack.support@1.0.0")
    record_cases(pack_source(pack, (), counters.choose_counter), golden_files(cases))
    result = FolderCases(cases).run(ref, pack)
    assert (result.outcome, result.words) == ("passed", "2 as recorded")
    report = msgspec.json.encode({"golden": {"documents": result.documents}})
    assert run_published_cases(report, ref, pack, (), counters.choose_counter).outcome == "passed"
    assert "compile_tokens_not_given" in run_published_cases(report, ref, pack).words


def test_a_case_with_a_secret_is_never_kept(cases: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write_json(Path(cases), "leak.json", put(SHOWN, {"/request/input/message": f"with {secret}"}))
    assert code(lambda: FolderCases(cases)) == "golden_case_invalid"
