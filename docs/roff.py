"""The Markdown of docs/ as the text of a manual page: headings, paragraphs, lists, tables, commands. No I/O.

It knows what these pages use and no more; whatever else stands in them comes out as it is.
"""

import re
from collections.abc import Iterator
from typing import Final

_CELL: Final = re.compile(r"(?<!\\)\|")
_INLINE: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\([^)]*\)")
_RULE: Final = re.compile(r"\|[-| ]+\|")


def roff(markdown: str, *, section: str = ".SH", below: str = ".SS") -> str:
    """Return the page's body; headings of the second level become `section`, deeper ones `below`."""
    return "".join(f"{line}\n" for block in _blocks(markdown) for line in _written(block, section, below))


def escaped(text: str) -> str:
    """Return plain text that means itself to roff."""
    text = (
        text.replace(r"\|", "|")
        .replace("\\", r"\e")
        .replace("-", r"\-")
        .replace("'", r"\(aq")
        .replace("`", r"\(ga")
    )
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def inline(text: str) -> str:
    """Return running text: code and what is stressed in bold, links by their words."""
    done, at = "", 0
    for found in _INLINE.finditer(text):
        code, strong, stressed, link = found.groups()
        done += _prose(text[at : found.start()])
        if code is not None:
            done += rf"\fB{escaped(code)}\fR"
        elif strong is not None:
            done += rf"\fB{_prose(strong)}\fR"
        elif stressed is not None:
            done += rf"\fI{_prose(stressed)}\fR"
        else:
            done += inline(link)
        at = found.end()
    return re.sub(r"^([.'])", r"\\&\1", done + _prose(text[at:]))


def _prose(text: str) -> str:
    return text.replace("\\|", "|").replace("\\", r"\e")


def _blocks(markdown: str) -> Iterator[str]:
    """Yield paragraphs, lists, tables, headings and fenced commands, each as it was written."""
    for position, part in enumerate(re.split(r"^(```.*?^```)$", markdown, flags=re.MULTILINE | re.DOTALL)):
        if position % 2:
            yield part
        else:
            yield from (block for block in re.split(r"\n\s*\n", part.strip()) if block)


def _written(block: str, section: str, below: str) -> Iterator[str]:
    if heading := re.fullmatch(r"(##+) (.+)", block):
        yield f"{section if heading[1] == '##' else below} {_heading(heading[2], section, heading[1])}"
    elif block.startswith("```"):
        yield from (
            ".PP",
            ".RS 4",
            ".EX",
            *(escaped(line) for line in block.splitlines()[1:-1]),
            ".EE",
            ".RE",
        )
    elif block.startswith("|"):
        yield from _table(block)
    elif block.startswith("- "):
        for point in re.split(r"^- ", block, flags=re.MULTILINE)[1:]:
            yield from (r".IP \(bu 2", inline(" ".join(point.split())))
    else:
        yield from (".PP", inline(" ".join(block.split())))


def _heading(text: str, section: str, level: str) -> str:
    title = _prose(text.replace("`", ""))
    return title.upper() if section == ".SH" and level == "##" else title


def _table(block: str) -> Iterator[str]:
    """Yield a tagged paragraph for each row: the first cell is the tag, the last one its text."""
    heads, *rows = (
        [cell.strip() for cell in _CELL.split(line)[1:-1]]
        for line in block.splitlines()
        if not _RULE.fullmatch(line)
    )
    for tag, *between, text in rows:
        said = [f"{name} {cell}" for name, cell in zip(heads[1:-1], between, strict=True)]
        yield ".TP 8"
        yield inline(tag) + (f" ({'; '.join(map(inline, said))})" if said else "")
        yield inline(text)
