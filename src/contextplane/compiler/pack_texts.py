"""Texts that only the pack decides: what the business does, and how the agent speaks."""

from contextplane.compiler.quoting import listed, quoted
from contextplane.model.context_pack.business_context import BusinessContext
from contextplane.model.context_pack.tone_and_comms import Audience, ToneAndComms

__all__ = ["business_text", "tone_text"]


def business_text(business: BusinessContext) -> str:
    """What the business does, for whom, and what it never does."""
    summary = business.summary
    lines = [f"What we do: {quoted(summary.what_we_do)}"]
    if summary.who_we_serve:
        lines.append(f"Whom we serve: {listed(summary.who_we_serve)}")
    if summary.differentiators:
        lines.append(f"What sets us apart: {listed(summary.differentiators)}")
    if business.non_negotiables:
        lines.append("Non-negotiable:")
        lines += [f"- {quoted(one)}" for one in business.non_negotiables]
    return "\n".join(lines)


def tone_text(tone: ToneAndComms) -> str:
    """How to speak. It never stands above policy, and says so."""
    lines = [f"Voice: {listed(tone.voice_attributes)}."] if tone.voice_attributes else []
    lines += _habits("", Audience(do=tone.do, dont=tone.dont))
    lines += _habits("To customers: ", tone.customer_facing)
    lines += _habits("To operators: ", tone.operator_facing)
    return "\n".join(["How you speak never overrides policy or controls.", *lines])


def _habits(whom: str, habits: Audience | None) -> list[str]:
    if habits is None:
        return []
    lines = [f"{whom}Do: {listed(habits.do)}."] if habits.do else []
    return lines + ([f"{whom}Do not: {listed(habits.dont)}."] if habits.dont else [])
