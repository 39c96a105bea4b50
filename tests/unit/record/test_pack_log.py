"""Contents of a log are put in order, also when there is much of them, and a refusal tells which one it is about."""

import base64
import json
from pathlib import Path

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.workspace import FileSources
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import InvalidLog, read_log
from contextplane.model.ids import Digest
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.record.pack_log import StagedPack, stage_log

LARGE = "a line of text\n" * 200_000  # 3 MB: four of them are much


def stage_outputs(tmp_path: Path, outputs: list[dict[str, str]]) -> StagedPack:
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    objects = FileObjects(str(tmp_path))
    with objects.batch() as batch:
        return stage_log(
            read_log(json.dumps({**log, "outputs": outputs}).encode()), None, batch, FileSources(str(tmp_path))
        )


def test_many_large_contents_are_put_in_their_order(tmp_path: Path) -> None:
    texts = [f"{n}{LARGE}" for n in range(5)]
    done = stage_outputs(tmp_path, [{"name": f"{n}", "content": text} for n, text in enumerate(texts)])
    assert [output.content_ref for output in done.manifest.outputs] == [str(Digest.of(text.encode())) for text in texts]
    assert set(FileObjects(str(tmp_path)).names()) == {Digest.of(text.encode()) for text in [*texts, "s"]} | {
        done.digest
    }


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"content_base64": "%" + "a" * 5000}, "content_base64_invalid"),
        ({"path": "none"}, "source_unreadable"),
        ({"path": "../" + "x" * 5000}, "path_outside_root"),
    ],
)
def test_of_many_the_one_that_is_refused_is_named_and_nothing_is_left(
    tmp_path: Path, bad: dict[str, str], code: str
) -> None:
    outputs = [{"name": f"{n}", "content": f"{n}{LARGE}"} for n in range(4)]
    outputs.insert(2, {"name": "bad", **bad})
    with pytest.raises(ContextPlaneError) as refused:
        stage_outputs(tmp_path, outputs)
    assert refused.value.code == code
    assert str(refused.value.at).startswith("/outputs/2/")
    assert list(FileObjects(str(tmp_path)).names()) == []
    assert list(FileObjects(str(tmp_path)).strays()) == []


@pytest.mark.parametrize("large", [[], [LARGE] * 4], ids=["little", "much"])
def test_everything_that_is_wrong_with_contents_is_told_at_once_and_nothing_is_left(
    tmp_path: Path, large: list[str]
) -> None:
    outputs = [{"name": f"{n}", "content": f"{n}{text}"} for n, text in enumerate(large)]
    bad = [{"content_base64": "%%%"}, {"path": "none"}, {"path": "../x"}, {"path": "none"}]
    with pytest.raises(InvalidLog) as refused:
        stage_outputs(tmp_path, [*outputs, *({"name": f"bad {n}", **content} for n, content in enumerate(bad))])
    first = len(outputs)
    assert [problem.at for problem in refused.value.problems] == [
        f"/outputs/{first}/content_base64",
        *(f"/outputs/{first + n}/path" for n in (1, 2, 3)),
    ]
    messages = [problem.message for problem in refused.value.problems]
    assert [message.partition(":")[0] for message in messages[:2]] == ["not base64", "cannot be read"]
    assert messages[2] == "leads out of its folder (../x)"
    assert messages[3] == messages[1]
    assert list(FileObjects(str(tmp_path)).names()) == []
    assert list(FileObjects(str(tmp_path)).strays()) == []


def test_a_content_that_is_given_many_times_is_one_object_everywhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"twice")
    contents = [{"content": "twice"}, {"path": "file"}, {"content_base64": "dHdpY2U="}, {"content": "twice"}]
    done = stage_outputs(tmp_path, [{"name": f"{n}", **content} for n, content in enumerate(contents)])
    assert {output.content_ref for output in done.manifest.outputs} == {str(Digest.of(b"twice"))}
    assert sorted(content.size for content in done.contents) == [1, 5]


def test_what_looks_like_a_secret_is_told_wherever_it_stands(tmp_path: Path) -> None:
    key = "AKIA" + "A1" * 8
    (tmp_path / "file").write_bytes(b"x" * 9000 + f" {key} ".encode())
    log = {
        "model": {"identifier": "m", "parameters": {"key": key}},
        "system_prompt": "s",
        "environment": {"os": "l", "runtime": "r"},
        "prompts": [{"role": "user", "content": key}, {"role": "user", "content": key}],
        "inputs": [{"name": "f", "path": "file"}],
        "steps": [
            {"type": "reasoning", "parameters": {"fine": 1}},
            {"type": "reasoning", "parameters": {"deep": [{"in": [f"key={key}"]}]}},
        ],
    }
    with FileObjects(str(tmp_path)).batch() as batch:
        done = stage_log(read_log(json.dumps(log).encode()), None, batch, FileSources(str(tmp_path)))
    places = ["/prompts/0/content", "/prompts/1/content", "/inputs/0/path", "/model/parameters", "/steps/1/parameters"]
    assert done.suspects == tuple((at, "AWS access key") for at in places)


def test_a_broken_text_among_many_is_named(tmp_path: Path) -> None:
    data = json.dumps(
        {
            "model": {"identifier": "m"},
            "system_prompt": "s",
            "environment": {"os": "l", "runtime": "r"},
            "outputs": [{"name": f"{n}", "content": f"{n}{LARGE}"} for n in range(4)],
        }
    ).encode()
    place = data.rindex(b"a line of text")
    broken = data[:place] + b"\xff" + data[place + 1 :]
    with pytest.raises(ContextPlaneError) as refused, FileObjects(str(tmp_path)).batch() as batch:
        stage_log(read_log(broken), None, batch, FileSources(str(tmp_path)))
    assert (refused.value.code, str(refused.value.at)[:18]) == ("json_utf8_invalid", "/outputs/3/content")


@pytest.mark.parametrize("content", [LARGE, LARGE + "\N{GRINNING FACE}" * 9, "key=AKIA" + "A1" * 8 + " " + LARGE])
def test_a_very_long_text_is_streamed_to_the_same_object(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = [{"name": "o", "content": content}]
    whole = stage_outputs(tmp_path, outputs)
    monkeypatch.setattr("contextplane.record.pack_log._STREAMED_BYTES", 1 << 20)
    monkeypatch.setattr("contextplane.model.json.large.LongText.to_bytes", None)
    assert stage_outputs(tmp_path, outputs) == whole
    assert FileObjects(str(tmp_path)).get(Digest.of(content.encode())) == content.encode()


@pytest.mark.parametrize("reference", ["pk_abcd2345", "pk_abcd2345" + "x" * 5000], ids=["short", "long"])
def test_a_handoff_pack_that_was_not_resolved_is_never_stored_as_its_reference(tmp_path: Path, reference: str) -> None:
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    data = json.dumps({**log, "inputs": [{"name": "h", "handoff": reference}]}).encode()
    with pytest.raises(TypeError, match="handoff"), FileObjects(str(tmp_path)).batch() as batch:
        stage_log(read_log(data), None, batch, FileSources(str(tmp_path)))
    assert list(FileObjects(str(tmp_path)).names()) == []


def test_several_texts_that_are_broken_are_all_named_with_their_lines(tmp_path: Path) -> None:
    text = "x" * 5000
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    data = json.dumps({**log, "outputs": [{"name": n, "content": f"{n}{text}"} for n in "abc"]}).encode()
    broken = data.replace(b'"ax', b'\n"\xffx').replace(b'"cx', b'\n"\nx')
    with pytest.raises(InvalidLog) as refused, FileObjects(str(tmp_path)).batch() as batch:
        stage_log(read_log(broken), None, batch, FileSources(str(tmp_path)))
    assert [(problem.at, problem.message) for problem in refused.value.problems] == [
        ("/outputs/0/content", "line 2, column 2: not UTF-8"),
        ("/outputs/2/content", "line 3, column 2: U+000A is unescaped in a string"),
    ]


def test_the_shapes_of_secrets_are_known_and_ordinary_text_has_none() -> None:
    token = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for kind, text in {
        "private key": "-----BEGIN RSA PRIVATE" + " KEY-----",
        "AWS access key": "AKIA" + "A1" * 8,
        "GitHub token": "ghp_" + "a1" * 18,
        "Slack token": "xoxb-" + "1" * 12,
        "API key": "sk-" + "a1" * 12,
        "JSON Web Token": f"{token}.{token}.{token}",
    }.items():
        assert secret_shapes(f"see {text} here".encode()) == (kind,)
    assert secret_shapes(b"AKIA is a prefix, ghp_ too, sk- as well; the task-list, eyJ.eyJ.") == ()
