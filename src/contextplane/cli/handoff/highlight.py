"""Colours code on a terminal: comments, strings, numbers and keywords of the common languages.

It knows words and quotes, no grammar. What it is not sure of stays plain; no character is added, lost or changed.
"""

import re
from collections.abc import Callable
from functools import cache

__all__ = ["Paint", "color_code"]


Paint = Callable[[str, str], str]


_CODE_COLOR = {"comment": "dim", "string": "green", "number": "cyan", "keyword": "magenta"}
_HASH = {"python", "ruby", "bash", "toml", "yaml"}
_DASHES = {"sql"}
_MARKUP = {"html", "markdown"}
_NO_COMMENT = {"json"}
_TICKS = {"javascript", "typescript", "go", "bash", "ruby"}
_WORDS = {
    "python": "and as assert async await break class continue def del elif else except finally for from global if"
    " import in is lambda match case None nonlocal not or pass raise return self True False try while with yield",
    "rust": "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod"
    " move mut pub ref return self Self static struct super trait true type unsafe use where while",
    "go": "break case chan const continue default defer else fallthrough for func go goto if import interface map nil"
    " package range return select struct switch true false type var",
    "sql": "select from where insert into values update set delete create table drop alter index join left right inner"
    " outer on as and or not null is in group by order having limit offset union all distinct with case when then else"
    " end primary key references default begin commit rollback",
    "bash": "if then else elif fi for in do done while until case esac function return local export set unset exit",
    "ruby": "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo"
    " rescue retry return self super then true undef unless until when while yield",
    "json": "true false null",
    "yaml": "true false null",
    "toml": "true false",
    "protobuf": "syntax package import option message enum service rpc returns repeated optional oneof map reserved",
}
_LIKE_C = (
    "abstract as async await auto boolean bool break byte case catch char class const continue default delete do double"
    " else enum export extends extern final finally float for from fun function goto if implements import in instanceof"
    " int interface internal let long namespace new null nullptr object override package private protected public"
    " return sealed short signed sizeof static struct super switch template this throw throws true false try typedef"
    " typeof union unsigned using val var virtual void volatile when while yield"
)


def color_code(code: str, language: str, paint: Paint) -> str:
    """Return the code with its parts painted. A part of several lines is painted on each of them."""
    pattern = _pattern(language)
    if pattern is None:
        return code
    return pattern.sub(lambda match: _paint_lines(match[0], _CODE_COLOR[match.lastgroup or "keyword"], paint), code)


def _paint_lines(text: str, color: str, paint: Paint) -> str:
    return "\n".join(paint(color, line) if line else "" for line in text.split("\n"))


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    """Return the pattern of the painted parts of a language; None if there are none."""
    if not language or language in {"markdown", "mermaid"}:
        return None
    words = _WORDS.get(language, "" if language in {"html", "css"} else _LIKE_C).split()
    parts = [f"(?P<comment>{_comment(language)})"] if language not in _NO_COMMENT else []
    parts.append(f"(?P<string>{_string(language)})")
    parts.append(r"(?P<number>(?<![\w.])\d[\w.]*)")
    if words:
        parts.append(rf"(?P<keyword>\b(?:{'|'.join(words)})\b)")
    return re.compile("|".join(parts), re.IGNORECASE if language == "sql" else 0)


def _comment(language: str) -> str:
    if language in _HASH:
        return r"(?<![^\s])#[^\n]*"
    if language in _DASHES:
        return r"--[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
    if language in _MARKUP:
        return r"<!--[\s\S]*?(?:-->|\Z)"
    return r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)" if language != "css" else r"/\*[\s\S]*?(?:\*/|\Z)"


def _string(language: str) -> str:
    """Return the pattern of strings, of several lines in some languages; Rust's lifetimes are none."""
    double, single = r'"(?:[^"\\\n]|\\.)*"?', r"'(?:[^'\\\n]|\\.)*'"
    kinds = [double] if language == "rust" else [double, single]
    if language == "python":
        kinds = [r'"""[\s\S]*?(?:"""|\Z)', r"'''[\s\S]*?(?:'''|\Z)", *kinds]
    return "|".join([*kinds, r"`[^`]*(?:`|\Z)"] if language in _TICKS else kinds)
