"""`ctx handoff read --follow` and `ctx handoff show --html`: what a person sees of a pack that agents work on."""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from tests.patience import PATIENCE
from tests.surfaces.commands import COMMAND, child_environment
from tests.surfaces.git_repository import git_repository
from tests.surfaces.handoff_store import CODE, HandoffStore

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
HOSTILE = """"><script>document.title = 'owned'</script><img src=x onerror="document.title='owned'">&lt;&amp;'"""


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path / "project")


class Watcher:
    """A command that prints more from time to time."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.text = ""

    def wait_for(self, text: str) -> None:
        """Read until a text was printed, and forget what was printed up to it."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self.process.stdout], [], [], left)[0], self.text
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, self.text
            self.text += data.decode()
        self.text = self.text.partition(text)[2]


@contextmanager
def following(place: HandoffStore, *args: str) -> Iterator[Watcher]:
    process = subprocess.Popen(
        [COMMAND, "handoff", "read", *args, "--follow"],
        cwd=place.folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs beside it
    )
    with process:
        try:
            yield Watcher(process)
        finally:
            process.kill()


def test_a_pack_is_followed_through_its_revisions_and_its_code_until_it_is_gone(place: HandoffStore) -> None:
    pack = place.write(name="login-bug")
    with following(place, "login-bug") as watcher:
        watcher.wait_for("# Context pack: Login bug\n")
        watcher.wait_for("- lines: 4-6\n")
        place.write(pack.id, revision=1, title="Second title")
        watcher.wait_for("# Context pack: Second title\n")
        watcher.wait_for("- lines: 4-6\n")
        place.code.write_text("# one more\n" + CODE, encoding="utf-8")
        watcher.wait_for("- lines: 4-6 (moved: now 5-7)\n")
        place.delete(pack.id)
        assert watcher.process.wait(PATIENCE) == 13
        assert watcher.process.stderr is not None
        assert b"login-bug" in watcher.process.stderr.read()


def test_nothing_is_printed_while_nothing_changes_and_ctrl_c_ends_it(place: HandoffStore) -> None:
    pack = place.write(ttl_minutes=3)
    with following(place, pack.id, "--profile", "orchestrator") as watcher:
        watcher.wait_for("- lines: 4-6\n")
        assert watcher.process.stdout is not None
        while select.select([watcher.process.stdout], [], [], 2.5)[0]:
            data = os.read(watcher.process.stdout.fileno(), 1 << 16)
            assert b"LEGEND" not in data
        watcher.process.send_signal(signal.SIGINT)
        assert watcher.process.wait(PATIENCE) == 130


@pytest.mark.parametrize("options", [["read", "PACK", "--follow", "--json"], ["show", "PACK", "--follow"]])
def test_following_is_for_people_who_read(place: HandoffStore, options: list[str]) -> None:
    pack = place.write()
    result = place.ctx("handoff", *[pack.id if option == "PACK" else option for option in options])
    assert result.status == 2
    assert "--follow" in result.err


# --- the page ---------------------------------------------------------------------------------------------------------


class _Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a"]


def html_of(place: HandoffStore, pack: str) -> str:
    result = place.ctx("handoff", "show", pack, "--html")
    assert (result.status, result.err) == (0, "")
    return result.out


def test_the_page_has_everything_and_links_into_the_code(place: HandoffStore) -> None:
    git_repository(place.folder)
    diagram = {"key": "flow", "title": "Flow", "mermaid": "graph TD\n  a-->b"}
    ref = {"key": "check", "path": "auth.py", "line_start": 4, "line_end": 6, "why": "expiry is ignored"}
    sections = [
        {"key": "findings", "title": "Findings", "description": "Two\nlines", "refs": [ref], "diagrams": [diagram]}
    ]
    pack = place.write(name="login-bug", brief="In short", tags=["auth"], sections=sections)
    place.code.write_text("# one more\n" + CODE, encoding="utf-8")
    page = _Elements(html_of(place, "login-bug"))
    for text in ("Login bug", f"{pack.id}@1", "In short", "auth", "branch main", "Two\nlines", "graph TD\n  a-->b"):
        assert text in page.text, text
    assert "expiry is ignored" in page.text
    assert "5  def check(token):" in page.text
    assert "moved, now 5-7" in page.text
    target = f"file://{place.folder}/auth.py#L5-L7"
    assert target in page.links()
    assert "#findings" in page.links()


def test_a_ref_that_cannot_be_read_has_no_link(place: HandoffStore) -> None:
    refs = [
        {"key": "gone", "path": "missing.py", "line_start": 1, "line_end": 1},
        {"key": "script", "path": "javascript:alert(1)", "line_start": 1, "line_end": 1},
    ]
    pack = place.write(sections=[{"key": "findings", "title": "Findings", "refs": refs}])
    page = _Elements(html_of(place, pack.id))
    assert "the file is missing" in page.text
    assert [link for link in page.links() if not link.startswith("#")] == []


def test_no_text_of_a_pack_becomes_an_element_of_the_page(place: HandoffStore) -> None:
    code = place.folder / "<b onclick=x>'\" #?.py"
    code.write_text(f"{HOSTILE}\n</code></pre><script>1</script>\n", encoding="utf-8")
    ref = {"path": code.name, "line_start": 1, "line_end": 2, "title": HOSTILE, "why": HOSTILE, "group": HOSTILE}
    diagram = {"key": "flow", "title": HOSTILE, "mermaid": f"</pre>{HOSTILE}", "why": HOSTILE}
    sections = [
        {
            "key": "findings",
            "title": HOSTILE,
            "description": f"{HOSTILE}\x1b[2J\u202e",
            "refs": [{"key": "check", **ref}],
            "diagrams": [diagram],
        }
    ]
    pack = place.write(title=HOSTILE, brief=HOSTILE, tags=[HOSTILE], sections=sections)
    page = _Elements(html_of(place, pack.id))
    assert not {tag for tag, _ in page.elements} & {"script", "img", "iframe", "b", "object", "base", "form"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count("document.title = 'owned'") >= 8
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    (target,) = [link for link in page.links() if link.startswith("file:")]
    assert unquote(urlparse(target).path) == str(code)


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_shows_the_page_runs_nothing_of_it_and_opens_its_links(place: HandoffStore, tmp_path: Path) -> None:
    pack = place.write(
        title=f"Login bug {HOSTILE}",
        sections=[
            {
                "key": "findings",
                "title": HOSTILE,
                "description": HOSTILE,
                "refs": [{"key": "check", "path": "auth.py", "line_start": 4, "line_end": 6}],
            },
        ],
    )
    saved = tmp_path / "page.html"
    saved.write_text(html_of(place, pack.id), encoding="utf-8")
    page = _Elements(open_in_browser(saved.as_uri(), tmp_path))
    assert "Login bug" in page.text
    assert "owned" not in [data for data in page.text.splitlines() if data == "owned"]
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    (target,) = [link for link in page.links() if link.startswith("file:")]
    assert "def check(token):" in _Elements(open_in_browser(target, tmp_path)).text


def open_in_browser(address: str, folder: Path) -> str:
    """The page as the browser has it after everything was loaded and run."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    result = subprocess.run(
        [*command, "--dump-dom", address], capture_output=True, check=True, timeout=PATIENCE, cwd=folder
    )
    return result.stdout.decode()
