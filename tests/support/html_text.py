"""HTML as a list of elements and their texts, strictly by the standard library's parser."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    """A start tag, its attributes, and the text directly inside."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class _Reader(HTMLParser):
    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in ("meta", "input", "br", "hr", "path"):
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


def elements_of(html: str) -> list[Element]:
    """Return every element of a page in its order; the text of an element includes that of those inside."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.elements


def table_rows(html: str, caption: str) -> list[list[str]]:
    """Return the cells of the table of a caption, header first."""
    elements = elements_of(html)
    (place,) = [i for i, e in enumerate(elements) if e.tag == "caption" and e.text == caption]
    rows: list[list[str]] = []
    for element in elements[place + 1 :]:
        if element.tag in ("table", "caption", "figure", "section", "h3"):
            break
        if element.tag == "tr":
            rows.append([])
        elif element.tag in ("th", "td"):
            rows[-1].append(element.text.strip())
    return rows
