from html.parser import HTMLParser

ATTACK = "<img src=x onerror=alert(1)>"
# Elements that have no end.
VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """The `elements` of a page with their attributes, its `marks` (text, label) as displaCy writes them, and all that is `shown`."""

    def __init__(self, markup: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.marks: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "mark":
            self.marks.append(("", ""))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.shown.append(data)
        if "mark" in self.open:
            text, label = self.marks[-1]
            inside = self.open[-1] == "span"
            self.marks[-1] = (text + ("" if inside else data.strip()), label + (data if inside else ""))

    @property
    def text(self) -> str:
        return "".join(self.shown)
