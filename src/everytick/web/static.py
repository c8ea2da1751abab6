"""The files of the pages: style, marks and modules of ours, read once, each with an ETag.

Only names that are known are answered, so no path leads out of the folder. Every `*.css` is a part of `app.css`.
"""

import gzip
import mimetypes
import re
import string
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from everytick.domain.values import value
from everytick.web.asking import needs
from everytick.web.problems import Problem

router = APIRouter()

_FOLDER = Path(__file__).parent / "static"
_FIRST = ("tokens.css", "frame.css")
"""The parts of `app.css` with which it begins; the others follow by name."""

_TOKEN = re.compile(r"--[a-z][\w-]*", re.ASCII)
"""The name of a design token. What is sent has short ones: 56 names stand there 500 times."""

_NAMED, _DECLARED = "var(--a)", "--a:;"
"""What it takes at least to name a token, and to declare it beside its value."""

_FOR_EVER, _ASK_AGAIN = "public, max-age=31536000, immutable", "public, no-cache"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


@value(frozen=True)
class StaticFile:
    """A file as it is sent: plain or compressed. `version` changes with its content."""

    plain: bytes
    compressed: bytes
    media_type: str
    version: str


def _static_file(name: str, plain: bytes) -> StaticFile:
    suffix = Path(name).suffix
    media_type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(plain, gzip.compress(plain, 9, mtime=0), media_type, sha256(plain).hexdigest()[:16])


@cache
def files() -> dict[str, StaticFile]:
    """Return every file by its name."""
    found = sorted(path for path in _FOLDER.rglob("*") if path.is_file() and not path.name.startswith("."))
    parts = [path for path in found if path.suffix == ".css"]
    parts.sort(key=lambda path: (_FIRST.index(path.name) if path.name in _FIRST else len(_FIRST), path.name))
    plain = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in found if path.suffix != ".css"}
    style = _without_blanks("\n".join(path.read_text() for path in parts))
    style, marks = _inlined(style, plain["marks.svg"].decode())
    short = _short_names(style)
    for name in [name for name in plain if name.endswith(".js")]:
        plain[name] = _without_comments(plain[name].decode()).encode()
    for name, text in (("app.css", style), ("marks.svg", marks)):
        plain[name] = _TOKEN.sub(lambda found: short.get(found[0], found[0]), text).encode()
    return {name: _static_file(name, content) for name, content in plain.items()}


def _without_comments(module: str) -> str:
    """Return a module without what only its authors read: lines of comment, and indentation. No text spans lines."""
    lines = (line.strip() for line in module.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))


def _without_blanks(style: str) -> str:
    """Return a style without what only its authors read: comments, indentation and line breaks."""
    bare = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    bare = re.sub(r"\s*\n\s*", "\n", bare)
    bare = re.sub(r"\s*([{};,>])\s*", r"\1", bare).replace(";}", "}").strip()
    # Before a class or a heading, never in a sum, where the blanks must stay.
    bare = re.sub(r" \+ (?=\.[a-z]|h[1-6]\b)", "+", bare)
    # Between a property and its value, never in a selector.
    bare = re.sub(r"([{;][-a-z0-9]+):\s+", r"\1:", bare)
    bare = re.sub(r"\(([a-z-]+): ", r"(\1:", bare).replace("@media (", "@media(").replace(" !important", "!important")
    return _by_layer(bare)


def _by_layer(style: str) -> str:
    """Return the style with one block for each layer. What stands in no layer comes first; the order is declared."""
    rest, layers = [], dict[str, list[str]]()
    for rule in _rules(style):
        head, _, body = rule.partition("{")
        if head.startswith("@layer ") and body:
            layers.setdefault(head, []).append(body[:-1])
        else:
            rest.append(rule)
    return "".join((*rest, *(f"{head}{{{_by_width(''.join(parts))}}}" for head, parts in layers.items())))


def _by_width(layer: str) -> str:
    """Return a layer with one block for each condition, where the last of them stood: narrow comes after wide."""
    plain, conditions = [], dict[str, str]()
    for rule in _rules(layer):
        head, _, body = rule.partition("{")
        if head.startswith("@media"):
            conditions[head] = conditions.pop(head, "") + body[:-1]
        else:
            plain.append(rule)
    return "".join((*plain, *(f"{head}{{{body}}}" for head, body in conditions.items())))


def _rules(style: str) -> Iterator[str]:
    """Give the rules of the outermost level."""
    begin = depth = 0
    for place, sign in enumerate(style):
        depth += (sign == "{") - (sign == "}")
        if depth == 0 and sign in "};":
            yield style[begin : place + 1]
            begin = place + 1


def _inlined(style: str, marks: str) -> tuple[str, str]:
    """Return style and marks in which a value stands itself if that is shorter than to declare and name its token."""
    for name in dict.fromkeys(_TOKEN.findall(style)):
        named, declared = f"var({name})", re.findall(rf"(?<=[{{;]){name}:[^;}}]+;?", style)
        if len(declared) != 1:
            continue
        said = declared[0].removeprefix(f"{name}:").removesuffix(";")
        uses = style.count(named) + marks.count(named)
        if uses * len(said) <= uses * len(_NAMED) + len(_DECLARED) + len(said):
            style = style.replace(declared[0], "").replace(named, said)
            marks = marks.replace(named, said)
    return style, marks


def _short_names(style: str) -> dict[str, str]:
    """Return a name of one or two letters for each token of the style: those that are used most get the shortest."""
    counted = Counter(_TOKEN.findall(style))
    letters = string.ascii_lowercase
    short = [*letters, *(a + b for a in letters for b in letters)]
    return {name: f"--{short[place]}" for place, (name, _) in enumerate(counted.most_common())}


def versioned(name: str) -> str | None:
    """Return the version of a file, which its address carries; None if there is no such file."""
    found = files().get(name)
    return None if found is None else found.version


@router.get("/static/{name:path}", dependencies=[needs(None)], include_in_schema=False)
async def static(request: Request, name: str, v: str = "") -> Response:
    """Return a file of the pages, or 304 if the browser has it."""
    found = files().get(name)
    if found is None:
        raise Problem(404, "no_such_file", "there is no such file")
    headers = {
        "etag": f'"{found.version}"',
        "cache-control": _FOR_EVER if v == found.version else _ASK_AGAIN,
        "vary": "accept-encoding",
    }
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**headers, "content-encoding": "gzip"}, media_type=found.media_type)
    return Response(found.plain, headers=headers, media_type=found.media_type)
