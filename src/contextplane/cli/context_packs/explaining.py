"""`ctx lint --explain NAME`: a gate with its laws, a law, or an error of `ctx` itself."""

from contextplane.app.explaining import GateExplained, LawExplained, explained
from contextplane.cli.exit import EXIT_OF, OK
from contextplane.cli.screen import Screen, counted

__all__ = ["explain"]


def explain(name: str, screen: Screen) -> int:
    found = explained(name)
    if isinstance(found, GateExplained):
        screen.say(f"the gate {found.gate}: {counted(len(found.laws), 'law')}")
        for law in found.laws:
            screen.say(f"  {law.code} ({law.severity})")
            screen.say(f"      {law.law}")
    elif isinstance(found, LawExplained):
        screen.say(f"{found.gate}/{found.code} ({found.severity})")
        screen.say(found.law)
    else:
        screen.say(f"{found.code} (an error of ctx; it ends with status {EXIT_OF[found.family]})")
        screen.say(found.means)
        screen.say("docs/errors.md has every error of every command.")
    screen.answer(found)
    return OK
