"""A few helpers for writing SVG pictures of examples as text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

INK = "#22262b"
"""The default colour of text."""
GREY = "#7a828c"
"""The colour of axes, labels and what does not matter."""


def document(width: float, height: float, title: str, body: Iterable[str], **attributes: object) -> str:
    """Return a whole picture: a root element with a title, a white background and the elements of `body`.

    Args:
        width, height: the size in pixels.
        title: a title for screen readers and for readers of the source.
        body: the elements, drawn in this order.
        attributes: further attributes of the root element, such as `font_size=11`.
    """
    background = element("rect", width=width, height=height, fill="#ffffff")
    joined = "\n".join(["", f"<title>{escape(title)}</title>", background, *body, ""])
    return element(
        "svg",
        joined,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width:g} {height:g}",
        font_family="Helvetica, Arial, sans-serif",
        **attributes,
    )


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """Return one element; an underscore in an attribute's name becomes a hyphen, and `content` must be valid SVG.

    >>> element("circle", cx=1.5, cy=2, r=3.0, stroke_width=1)
    '<circle cx="1.5" cy="2" r="3" stroke-width="1"/>'
    """
    opening = tag
    for name, value in attributes.items():
        text_value = f"{value:g}" if isinstance(value, int | float) else escape(str(value))
        opening += f' {name.replace("_", "-")}="{text_value}"'
    return f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>"


def text(
    x: float, y: float, content: str, size: int = 12, anchor: str = "start", weight: str = "normal", colour: str = INK
) -> str:
    """Return one line of text; `content` is escaped, and `anchor` is start, middle or end."""
    return element(
        "text", escape(content), x=x, y=y, font_size=size, text_anchor=anchor, font_weight=weight, fill=colour
    )


def rectangle(x: float, y: float, width: float, height: float, **attributes: object) -> str:
    """Return a rectangle by its upper left corner and its size."""
    return element("rect", "", x=x, y=y, width=width, height=height, **attributes)
