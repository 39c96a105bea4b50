"""What a pack refers to is known when it is written: the same as what is found by reading its manifest."""

import json
import tempfile

from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.workspace import FileSources
from contextplane.model.execution.log import read_log
from contextplane.model.execution.references import find_references
from contextplane.model.ids import Digest
from contextplane.record.pack_log import stage_log

SOME = Digest.of(b"x")
TEXTS = st.sampled_from(["", "a", "b", "sha256:", str(SOME), f"see {SOME}"])
STEPS = st.fixed_dictionaries(
    {"type": st.just("tool_call"), "tool": TEXTS.filter(bool), "output": TEXTS},
    optional={"parameters": st.dictionaries(TEXTS, TEXTS, max_size=2)},
)
LOGS = st.fixed_dictionaries(
    {
        "model": st.fixed_dictionaries({"identifier": TEXTS.filter(bool)}),
        "system_prompt": TEXTS.filter(bool),
        "environment": st.just({"os": "l", "runtime": "r"}),
        "prompts": st.lists(st.fixed_dictionaries({"role": TEXTS.filter(bool), "content": TEXTS}), max_size=3),
        "inputs": st.lists(st.fixed_dictionaries({"name": TEXTS, "content": TEXTS}), max_size=2),
        "steps": st.lists(STEPS, max_size=4),
        "outputs": st.lists(st.fixed_dictionaries({"name": TEXTS.filter(bool), "content": TEXTS}), max_size=2),
    }
)


@given(log=LOGS, parent=st.sampled_from([None, SOME, Digest.of(b"a")]))
def test_whoever_writes_a_manifest_knows_what_reading_it_finds(log: dict[str, object], parent: Digest | None) -> None:
    with tempfile.TemporaryDirectory() as folder, FileObjects(folder).batch() as batch:
        done = stage_log(read_log(json.dumps(log).encode()), parent, batch, FileSources(folder))
    assert done.refs is not None
    assert done.refs == find_references(done.raw)
