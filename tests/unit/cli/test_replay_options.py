"""The options of `ctx replay`: what each of them may be."""

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from contextplane.cli.verbs.replay import host, module, seconds


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (seconds, ["0", "-1", "nan", "inf", "soon", "", "86401"]),
        (
            host,
            [
                "",
                "http://example.org",
                "example.org:80",
                "a,b",
                "a b",
                "me@example.org",
                "[::1]",
                "b\u00fccher.example",
            ],
        ),
        (module, ["", "a,b", "a..b", "a:b", "../a", "1a"]),
    ],
    ids=["seconds", "host", "module"],
)
def test_an_option_that_means_nothing_is_refused(read: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ArgumentTypeError):
            read(text)


def test_an_option_that_means_something_is_read() -> None:
    assert (seconds("0.5"), host("::1"), host("example.org"), module("a.b_1")) == (0.5, "::1", "example.org", "a.b_1")
