"""The rules of a pack as a tree: which intents each is for, and which intents are decided whatever else is written."""

from collections.abc import Iterator, Mapping

from contextplane.authoring.keyed import Tree, part_at

__all__ = ["decided", "intents_of", "rules_in", "settled"]

_BUNDLES = ("policy_layer", "policy_bundles")


def rules_in(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Every rule with its id."""
    bundles = part_at(tree, _BUNDLES)
    for bundle in bundles.values() if isinstance(bundles, Mapping) else ():
        rules = part_at(bundle, ("policy_dsl", "rules"))
        yield from rules.items() if isinstance(rules, Mapping) else ()


def intents_of(rule: Tree) -> frozenset[str]:
    named = part_at(rule, ("applies_to", "intent"))
    listed = named if isinstance(named, list | tuple) else [named]
    return frozenset(one for one in listed if isinstance(one, str))


def decided(tree: Tree) -> frozenset[str]:
    """Every intent for which a rule applies to each request: where none applies, a run may only read."""
    return frozenset[str]().union(*(intents_of(rule) for _, rule in rules_in(tree) if _always_applies(rule)))


def settled(tree: Tree, *, without: str = "") -> frozenset[str]:
    """Every intent that some rule allows or denies in each case, so that nothing more follows from one more `allow`.

    `without`: a rule that is not asked.
    """
    return frozenset[str]().union(
        *(
            intents_of(rule)
            for name, rule in rules_in(tree)
            if name != without and _always_applies(rule) and _always_says(rule)
        )
    )


def _always_applies(rule: Tree) -> bool:
    applies_to = part_at(rule, ("applies_to",))
    return isinstance(applies_to, Mapping) and set(applies_to) == {"intent"}


def _always_says(rule: Tree) -> bool:
    return all(isinstance(part_at(rule, (branch, "allow")), bool) for branch in ("then", "else"))
