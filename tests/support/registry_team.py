"""People with keys who use one store, each by the command `ctx` alone.

A key is a file in the working folder, `./pub.pem`. A step of a scenario is a text: the person, a colon, and the
arguments of `ctx`. `"ops: pin prod ctxpack.support@1.0.0"` runs `ctx pin prod ctxpack.support@1.0.0 --key ./ops.pem`. A
step without a person signs nothing: `": packs"`.
"""

import json
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contextplane.adapters.ed25519 import pem
from tests.surfaces.commands import Result, ctx
from tests.unit.compiler.case_files import SHOWN
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import ISSUER
from tests.unit.trust.world import der_of, key_of

__all__ = ["LOG_ROLE", "PACK_ID", "PEOPLE", "REVIEWERS", "Team", "error_code", "trust_step"]

PACK_ID = "ctxpack.support"
CONFIRMED = frozenset({"review", "sign", "publish", "unpin", "deprecate", "revoke"})
"""The verbs that ask a person before they sign; nobody is asked here."""

LOG_ROLE = "log"
"""The role that a key needs to sign a checkpoint, beside the role of its act."""

PEOPLE: Mapping[str, tuple[str, ...]] = {
    "author": (LOG_ROLE,),
    "arch": ("architecture", LOG_ROLE),
    "sec": ("security", LOG_ROLE),
    "dat": ("data", LOG_ROLE),
    "eva": ("evaluation", "support_ops", LOG_ROLE),
    "pub": ("publisher", LOG_ROLE),
    "ops": ("operator", "environment:dev", LOG_ROLE),
    "guest": (),
}
"""The keys of the issuer and their roles. `guest` is trusted, and has no role at all."""

REVIEWERS = {"architecture": "arch", "security": "sec", "data": "dat", "evaluation": "eva", "support_ops": "eva"}
_PUBLIC_DER = bytes.fromhex("302a300506032b6570032100")


class Team:
    """A folder with a store, the files of its people, and the memory of one client beside it.

    `state` holds what the client remembers outside of the store. A `Team` with another one is another client.
    """

    def __init__(self, folder: Path, *, state: Path | None = None, database_url: str | None = None) -> None:
        self.folder = folder
        self.state = state or folder.with_name(f"{folder.name}.state")
        self.database_url = database_url
        self.settings: dict[str, str] = {}

    @property
    def store(self) -> Path:
        return self.folder / ".ctx"

    @property
    def environment(self) -> dict[str, str]:
        database = {} if self.database_url is None else {"CTX_DATABASE_URL": self.database_url}
        return {"XDG_STATE_HOME": str(self.state), **database, **self.settings}

    def ctx(self, *args: str) -> Result:
        return ctx(*args, cwd=self.folder, env=self.environment)

    def run(self, step: str) -> Result:
        """Run a step, as the person before its colon."""
        return self.ctx(*self.arguments(step))

    def arguments(self, step: str) -> list[str]:
        """The arguments of the command of a step, with the key of the person, and without a question."""
        person, _, command = step.partition(":")
        key = ("--key", self.key_file(person.strip())) if person.strip() else ()
        words = shlex.split(command)
        return [*words, *(("--yes",) if words[0] in CONFIRMED else ()), *key]

    def do(self, *steps: str) -> None:
        """Run steps that all succeed."""
        for step in steps:
            result = self.run(step)
            assert result.status == 0, f"{step}: {result.err or result.out}"

    def answer(self, step: str) -> Any:  # noqa: ANN401  any JSON
        """The JSON answer of a step that succeeds."""
        result = self.run(f"{step} --json")
        assert result.status == 0, f"{step}: {result.err or result.out}"
        return json.loads(result.raw)

    def key_file(self, person: str) -> str:
        """The name of the file with the private key of a person; it is made when it is not there."""
        path = self.folder / f"{person}.pem"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_bytes(pem("PRIVATE" + " KEY", der_of(person)))
        return f"./{path.name}"

    def public_file(self, person: str) -> str:
        """The name of the file with the public key of a person."""
        (self.folder / f"{person}.pub").write_bytes(pem("PUBLIC KEY", _PUBLIC_DER + key_of(person).public_key.raw))
        return f"./{person}.pub"

    def found(self, issuer: str = ISSUER, people: Mapping[str, tuple[str, ...]] = PEOPLE) -> None:
        """Make a store, a keyring that `root` owns, and trust everybody."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = self.ctx("init")
        assert result.status == 0, result
        self.do(trust_step("root", issuer, "owner", team=self))
        for person, roles in people.items():
            self.do(trust_step(person, issuer, *roles, team=self))

    def write(self, name: str, document: Mapping[str, Any]) -> str:
        """Write a document to a file of the folder; return its name."""
        (self.folder / name).write_text(json.dumps(document), encoding="utf-8")
        return name

    def record(self, document: Mapping[str, Any], *, by: str = "author", options: str = "") -> dict[str, Any]:
        """Record a draft; returns the answer of `ctx lint --record`."""
        self.write("draft.json", document)
        answer: dict[str, Any] = self.answer(f"{by}: lint draft.json --record {options}")
        return answer

    def approve(self, target: str, *roles: str) -> None:
        for role in roles:
            self.do(f"{REVIEWERS[role]}: review {target} --role {role} --approve --reason 'as it should be'")

    def release(self, document: Mapping[str, Any], *, by: str = "author", options: str = "") -> str:
        """Bring a document from a file to a published version; return its digest."""
        draft = self.record(document, by=by, options=options)
        digest: str = draft["digest"]
        missing = [role for role in draft["missing"] if role != "support_ops" or "evaluation" not in draft["missing"]]
        self.approve(digest, *missing)
        self.do(f"pub: sign {digest}", f"pub: publish {digest}")
        return digest

    def request_for(self, ref: str, *others: str) -> str:
        """Write a request that names a version; return the name of the file."""
        name = f"request-{ref.rpartition('@')[2]}.json"
        return self.write(name, put(SHOWN, {"/request/context_pack_refs": [ref, *others]}))

    def newcomer(self, name: str) -> "Team":
        """Somebody who reads this store for the first time, and remembers nothing."""
        for memory in ("keyring.json", "registry.json"):
            (self.store / "keys" / memory).unlink(missing_ok=True)
        return Team(self.folder, state=self.state.with_name(name), database_url=self.database_url)

    def copy_to(self, folder: Path) -> "Team":
        """A copy of the folder, with the memory of its client."""
        shutil.copytree(self.folder, folder, symlinks=True)
        copy = Team(folder, database_url=self.database_url)
        if self.state.exists():
            shutil.copytree(self.state, copy.state, symlinks=True)
        return copy


def trust_step(person: str, issuer: str, *roles: str, team: Team) -> str:
    """The step by which `root` trusts a person; of `root` itself, the one that begins the keyring."""
    options = " ".join(f"--role {role}" for role in roles)
    new = "" if issuer == ISSUER else "--new-issuer"
    return f"root: keys trust {team.public_file(person)} --issuer {issuer} {new} {options}"


def error_code(result: Result) -> str:
    """The code of the error that ended a command, with or without `--json`; an empty text if there is none."""
    line = result.err.strip().rpartition("\n")[2]
    if not result.status:
        return ""
    if line.startswith("{"):
        return str(json.loads(line)["error"]["code"])
    program, _, rest = line.partition(": ")
    code = rest.partition(":")[0]
    return code if program == "ctx" and code.isidentifier() else ""
