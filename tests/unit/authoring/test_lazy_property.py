"""A property that is worked out once, and for each owner apart."""

from contextplane.authoring.texts import lazy_property


class Owner:
    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0

    @lazy_property
    def greeting(self) -> str:
        """What it says."""
        self.calls += 1
        return f"hello {self.name}"


def test_it_is_worked_out_when_it_is_first_asked_for_and_kept() -> None:
    owner, other = Owner("a"), Owner("b")
    assert owner.calls == 0
    assert [owner.greeting, owner.greeting, other.greeting] == ["hello a", "hello a", "hello b"]
    assert (owner.calls, other.calls) == (1, 1)


def test_it_keeps_its_words() -> None:
    assert Owner.greeting.__doc__ == "What it says."
