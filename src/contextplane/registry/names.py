"""Aliases and environments, as folds over their streams. They read nothing.

An alias is a name for people, and leads to one version at a time: no run is ever started by one. An environment is
protected until somebody says that it is open.
"""

from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.changes import AliasDropped, AliasSet, Change, EnvironmentOpened, EnvironmentProtected
from contextplane.registry.events import EventInvalid, Happened, kind_of

__all__ = ["AliasNotFound", "AliasState", "EnvironmentState"]


class AliasNotFound(ContextPlaneError):
    """A name that no version of this id has: neither an alias nor an environment that pins one."""

    code: ClassVar[str] = "alias_not_found"
    family: ClassVar[Family] = "not_found"


class AliasState(Value, frozen=True):
    """The aliases of one id, by name.

    `doubtful`: names that a key gave which was not to be trusted any more. They lead nowhere until somebody gives them
    anew.
    """

    base_id: str
    seq: int = 0
    head: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    doubtful: tuple[str, ...] = ()

    def named(self, alias: str) -> PackRef | None:
        version = dict(self.aliases).get(alias)
        return PackRef(self.base_id, version) if version is not None and alias not in self.doubtful else None

    def of_version(self, version: str) -> tuple[str, ...]:
        """What a version is called."""
        return tuple(name for name, number in self.aliases if number == version and name not in self.doubtful)

    def issuer_of(self, change: Change) -> str:  # noqa: ARG002  an alias changes nothing for anybody's runs
        return ""

    def after_event(self, happened: Happened) -> "AliasState":
        change, aliases = happened.change, dict(self.aliases)
        doubtful = {*self.doubtful}
        match change:
            case AliasSet():
                aliases[change.alias] = change.version
                (doubtful.add if happened.by.revoked else doubtful.discard)(change.alias)
            case AliasDropped():
                doubtful.discard(change.alias)
                if aliases.pop(change.alias, None) is None:
                    raise AliasNotFound(f"no alias of {self.base_id} is called that", at=change.alias)
            case _:
                raise EventInvalid(f"{kind_of(change)} is no change of aliases", at=happened.event.subject)
        known = tuple(sorted(aliases.items()))
        state = replace(self, seq=happened.event.seq, head=happened.digest, aliases=known)
        return replace(state, doubtful=tuple(sorted(doubtful)))


class EnvironmentState(Value, frozen=True):
    """Whether an environment takes versions with an open refresh."""

    environment: str
    seq: int = 0
    head: str = ""
    protected: bool = True

    def issuer_of(self, change: Change) -> str:  # noqa: ARG002  an environment is nobody's artifact
        return ""

    def after_event(self, happened: Happened) -> "EnvironmentState":
        change = happened.change
        if not isinstance(change, EnvironmentOpened | EnvironmentProtected):
            raise EventInvalid(f"{kind_of(change)} is no change of an environment", at=happened.event.subject)
        # Opening takes a key that is still believed; protecting holds whoever said it.
        opened = isinstance(change, EnvironmentOpened) and not happened.by.revoked
        return replace(self, seq=happened.event.seq, head=happened.digest, protected=not opened)
