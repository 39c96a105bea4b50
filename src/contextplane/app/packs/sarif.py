"""The findings of a lint as SARIF, with the names of files as other tools take them."""

import os
from urllib.parse import quote

from contextplane.app.packs.lint import LintResult
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.authoring.sarif import LocatedFinding, sarif
from contextplane.model.json.canonical import Json

__all__ = ["file_uri", "sarif_log"]


def sarif_log(result: LintResult, version: str) -> Json:
    """Return the SARIF log of a lint; `version` is that of the program."""
    located = [
        LocatedFinding(finding=placed.finding, uri=file_uri(placed.path), place=placed.place)
        for placed in result.placed
    ]
    return sarif(located, result.value, version, laws=LAWS_OF[result.kind], not_run=result.report.not_run)


def file_uri(path: str) -> str:
    """Return a relative URI reference, with forward slashes; outside of the working folder a `file:` URI."""
    if path == "-":
        return "stdin"
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    if relative.split(os.sep)[0] == os.pardir:
        return "file://" + _percent_encode(absolute)
    return _percent_encode(relative)


def _percent_encode(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
