"""The SVG helpers."""

from __future__ import annotations

from xml.etree import ElementTree

from unseen.tasks import svg


def test_document_is_well_formed_and_holds_its_elements_in_order() -> None:
    body = [svg.rectangle(1, 2.5, 3, 4, rx=6, fill="#abc"), svg.text(5, 6, 'a < b & "c"', anchor="end")]
    root = ElementTree.fromstring(svg.document(640, 480.5, "x & y", body, font_size=11))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("640", "480.5", "0 0 640 480.5")
    assert root.get("font-size") == "11"
    assert [child.tag.partition("}")[2] for child in root] == ["title", "rect", "rect", "text"]
    title, background, rectangle, text = root
    assert title.text == "x & y" and background.get("fill") == "#ffffff"
    assert rectangle.attrib == {"x": "1", "y": "2.5", "width": "3", "height": "4", "rx": "6", "fill": "#abc"}
    assert text.text == 'a < b & "c"' and text.get("text-anchor") == "end"


def test_attribute_values_are_escaped() -> None:
    element = ElementTree.fromstring(svg.element("path", d='M0 0"<'))
    assert element.get("d") == 'M0 0"<'
