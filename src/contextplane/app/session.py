"""A session: what one principal does with a store, through any surface.

`open_session` is the one way from a principal to a session. A command and a server with one thread open a session of
their own; a program with many threads opens sessions on a shared `Store`. The parts of a session are loaded when they
are first used: a session that only reads execution packs loads no keys and no registry.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings, signer_environment, signer_setting
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.app.handoff.session import HandoffSession
    from contextplane.app.registry.keys import KeyStore
    from contextplane.app.registry.session import RegistrySession
    from contextplane.app.store_access import Store
    from contextplane.ports.keys import Signer
    from contextplane.registry.reports import GoldenCases

__all__ = ["LocalPrincipal", "PrincipalSession", "external_signer", "open_session"]


class LocalPrincipal(Value, frozen=True):
    """The principal of a call on this machine: the holder of the private keys that it can open.

    It is the key that signs an act that counts as its actor; without a passphrase or a key it can only read.
    `passphrase`: asks for the passphrase of a key when it is opened. `signing_key`: a private key in PEM form that is
    preferred to those of the store. `external_signer`: opens a signer outside of this program, preferred to both.
    """

    passphrase: Callable[[], bytes | None] = lambda: None
    signing_key: bytes | None = None
    external_signer: "Callable[[], Signer] | None" = None

    def __repr__(self) -> str:
        """Hide the key."""
        return "LocalPrincipal()"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Hide the key from `rich` as well, which prints the local variables of tracebacks by this."""
        return []


def external_signer(pin: Callable[[], bytes | None]) -> "Callable[[], Signer] | None":
    """Return what opens the signer of `CTX_SIGNER`; None if that is unset. `pin`: asks for a PIN."""
    setting = signer_setting()
    return None if setting is None else partial(_open_signer, setting, pin)


def _open_signer(setting: str, pin: Callable[[], bytes | None]) -> "Signer":
    from contextplane.app.registry.signers import open_external_signer

    return open_external_signer(setting, pin, signer_environment())


class PrincipalSession:
    """A principal's session with one store, and with the handoff packs of the same folder. For one thread."""

    def __init__(
        self, settings: Settings, principal: LocalPrincipal, stack: ExitStack, open_store: Callable[[], Platform]
    ) -> None:
        """Call `open_session` instead."""
        self.principal = principal
        self._settings = settings
        self._stack = stack
        self._open_store = open_store

    @cached_property
    def platform(self) -> Platform:
        """The store, opened by the first use. A folder without a store is refused then."""
        return self._open_store()

    @cached_property
    def keys(self) -> "KeyStore":
        """The keys of the store, as far as the principal can open them."""
        from contextplane.app.registry.keys import KeyStore

        principal = self.principal
        return KeyStore(
            self.platform, principal.passphrase, principal.signing_key, external_signer=principal.external_signer
        )

    def registry(self, golden: "GoldenCases | None" = None) -> "RegistrySession":
        """The registry of the store, in which the principal acts. `golden`: runs golden cases."""
        from contextplane.app.registry.session import RegistrySession

        return RegistrySession(self.keys, golden)

    @cached_property
    def handoffs(self) -> "HandoffSession":
        """The handoff packs of the folder. Their store may be another one, and need not exist."""
        from contextplane.app.handoff.session import open_handoffs

        return self._stack.enter_context(open_handoffs(self._settings))


@contextmanager
def open_session(
    opened: "Settings | Store", principal: LocalPrincipal | None = None, *, following: bool = True
) -> Iterator[PrincipalSession]:
    """Open a session of a principal, by the settings or with a store that threads share.

    `following`: bring the index of the store up to date with its packs; a shared store does so when it is opened.
    """
    with ExitStack() as stack:
        if isinstance(opened, Settings):
            settings = opened
            yield PrincipalSession(
                settings,
                principal or LocalPrincipal(),
                stack,
                lambda: stack.enter_context(open_platform(settings, following=following)),
            )
        else:
            store = opened
            yield PrincipalSession(store.settings, principal or LocalPrincipal(), stack, lambda: store.platform)
