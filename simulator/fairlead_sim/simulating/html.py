"""Pieces of a page of HTML that stands alone: no scripts, no styles or pictures from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; font-size: .92rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 9rem; position: sticky; left: 0; background: #fff; }
td small { display: block; color: #555; max-width: 26rem; line-height: 1.3; }
thead th { border-bottom: 2px solid #888; } td.best { background: #e3f2e1; font-weight: 600; }
img { max-width: 100%; height: auto; display: block; margin: .5rem 0; }
figure { margin: 1rem 0 2rem; } figcaption { color: #444; }
code { background: #f2f2f2; padding: .1rem .3rem; overflow-wrap: anywhere; }
.note { background: #fff6dd; border-left: 4px solid #e0b030; padding: .5rem 1rem; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin-left: 1.2rem; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole document; the parts are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """A heading of plain text."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, *, is_note: bool = False) -> str:
    """Plain text; a note stands out."""
    return f'<p class="note">{escape(text)}</p>' if is_note else f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    """A command on a line of its own."""
    return f"<p><code>{escape(text)}</code></p>"


def bullets(lines: Iterable[str]) -> str:
    """A list of plain texts; empty if there are none."""
    items = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"<ul>\n{items}</ul>" if items else ""


def terms(meanings: Sequence[tuple[str, str]]) -> str:
    """Words and what they mean, as plain text."""
    rows = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>\n" for word, meaning in meanings)
    return f"<dl>\n{rows}</dl>"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], best: Sequence[frozenset[int]] | None = None
) -> str:
    """Plain cells, of which a second line is small print; ``best`` has, for each row, the places of the cells to mark."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = []
    for number, row in enumerate(rows):
        marked = best[number] if best is not None else frozenset()
        cells = "".join(
            f'<td class="best">{_cell(cell)}</td>' if place in marked else f"<td>{_cell(cell)}</td>"
            for place, cell in enumerate(row)
        )
        body.append(f"<tr>{cells}</tr>\n")
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(body)}</tbody>\n</table>"


def _cell(text: str) -> str:
    first, line_break, more = text.partition("\n")
    return f"{escape(first)}<small>{escape(more)}</small>" if line_break else escape(first)


def picture(png: bytes, *, alternative: str, caption: str) -> str:
    """A picture within the page, with what it says in words for who does not see it."""
    source = b64encode(png).decode("ascii")
    return (
        f'<figure><img alt="{escape(alternative, quote=True)}" src="data:image/png;base64,{source}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
