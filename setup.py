"""The text that an index of packages shows: README.md with whole addresses in its links. All other metadata is in setup.cfg."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent
_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
_PICTURE = re.compile(r"^<picture>.*</picture>\n\n?", re.M)
_LEFT = re.compile(r'\]\((?!https?:)[^)]*\)|^\[[^\]]+\]: *(?!https?:)\S+|\b(?:src|srcset|href)="(?!https?:)[^"]*"', re.M)


def text_for_index(readme: str, address: str, tag: str, placeholder: bool) -> str:
    """Replace relative links by addresses at the tag; if the address is a placeholder, by their words, and pictures by nothing.

    RAISES SystemExit: A relative link is left, in a form that is not read here.
    """

    def whole(match: "re.Match[str]") -> str:
        picture, words, path = match.groups()
        if placeholder:
            return "" if picture else words
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/{tag}/{path})"

    def whole_picture(match: "re.Match[str]") -> str:
        return "" if placeholder else re.sub(r'(src(?:set)?=")(?!https?:)', rf"\1{address}/raw/{tag}/", match[0])

    text = _PICTURE.sub(whole_picture, _RELATIVE.sub(whole, readme))
    if left := _LEFT.search(text):
        raise SystemExit(
            f"README.md: {left[0]} is a relative link that setup.py cannot make whole; write [words](path) or ![words](path)."
        )
    return text


if __name__ == "__main__":
    from setuptools import setup

    about = runpy.run_path(str(ROOT / "spacy_calib" / "about.py"))  # without importing the package
    address = about["__url__"], f"v{about['__version__']}", about["URL_IS_PLACEHOLDER"]
    url, pages = (
        address[0],
        {"Documentation": "#readme", "Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"},
    )
    setup(
        url=url,
        project_urls={name: f"{url}{path}" for name, path in pages.items()},
        long_description=text_for_index((ROOT / "README.md").read_text(encoding="utf8"), *address),
    )
