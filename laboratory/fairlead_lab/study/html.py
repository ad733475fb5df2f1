"""Pieces of a page of HTML that stands alone: no scripts, no styles or pictures from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_COLUMNS_SHOWN: Final = 8
"""With more, a table of results is wider than any screen shows."""

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { line-height: 1.2; overflow-wrap: anywhere; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll::before { content: "Scroll sideways for the rest →"; display: block; position: sticky; left: 0; width: 15rem; font-size: .8rem; color: #666; }
.scroll:not(.wide)::before { display: none; }
table { border-collapse: collapse; font-size: .92rem; width: 100%; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 9rem; position: sticky; left: 0; background: #fff; }
td small { display: block; color: #555; max-width: 26rem; line-height: 1.3; }
thead th { border-bottom: 2px solid #888; } td.best { background: #e3f2e1; font-weight: 600; }
.indented { padding-left: 1rem; }
img { width: 100%; height: auto; display: block; }
figure { margin: 1rem 0 2rem; } figure .scroll { margin: .5rem 0; } figcaption { color: #444; }
code { background: #f2f2f2; padding: .1rem .3rem; overflow-wrap: anywhere; }
.note { background: #fff6dd; border-left: 4px solid #e0b030; padding: .5rem 1rem; margin: 1rem 0; }
.note > * { margin: .2rem 0; } .under { font-size: .9rem; color: #444; margin: .4rem 0; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin-left: 1.2rem; }
@media (max-width: 50rem) {
  .scroll:not(.wide)::before { display: block; }
  h1 { font-size: 1.4rem; } body { margin: 1rem auto; }
  th:first-child, td:first-child { min-width: 8rem; max-width: 10rem; overflow-wrap: anywhere; border-right: 1px solid #ddd; }
  img { width: 48rem; }
}
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


def small_print(lines: Iterable[str]) -> str:
    """Plain paragraphs that belong to what stands above them."""
    return "\n".join(f'<p class="under">{escape(line)}</p>' for line in lines)


def note(text: str, lines: Iterable[str]) -> str:
    """A remark that stands out, and a list that belongs to it."""
    return f'<div class="note">{paragraph(text)}{bullets(lines)}</div>'


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
    """Plain cells, of which a second line is small print; ``best`` has, for each row, the places of the cells to mark.

    A first cell that begins with blanks belongs to the row above.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = []
    for number, row in enumerate(rows):
        marked = best[number] if best is not None else frozenset()
        cells = "".join(
            f'<td class="best">{_cell(cell)}</td>' if place in marked else f"<td>{_cell(cell)}</td>"
            for place, cell in enumerate(row)
        )
        body.append(f"<tr>{cells}</tr>\n")
    inside = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(body)}</tbody>"
    look = "scroll wide" if len(columns) > _COLUMNS_SHOWN else "scroll"
    # A keyboard can scroll what can have the focus.
    return f'<div class="{look}" tabindex="0"><table>\n{inside}\n</table></div>'


def _cell(text: str) -> str:
    first, line_break, more = text.partition("\n")
    shown = escape(first.strip())
    if first.startswith("  "):
        shown = f'<span class="indented">{shown}</span>'
    return f"{shown}<small>{escape(more)}</small>" if line_break else shown


def picture(png: bytes, *, alternative: str, caption: str) -> str:
    """A picture within the page, with what it says in words for who does not see it."""
    source = b64encode(png).decode("ascii")
    return (
        f'<figure><div class="scroll" tabindex="0"><img alt="{escape(alternative, quote=True)}" '
        f'src="data:image/png;base64,{source}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
