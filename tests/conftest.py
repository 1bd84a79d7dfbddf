"""Small pipelines and Docs that the tests of the spaCy shell share."""

import gc
import os
import pickle
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import catalogue
import pytest
import spacy
import threadpoolctl
from hypothesis import HealthCheck, settings
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_calib.registry import registry

# Whatever file is read first: the same examples in every run, and no database: a failure is a failure for everybody. A busy machine is none.
settings.register_profile(
    "spacy-calib", derandomize=True, deadline=None, database=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spacy-calib")

# Files that take longest: workers that get one of them last would leave the others with nothing to do.
SLOWEST = (
    "tests/plugins/spark/test_spark.py", "tests/docs/test_pages.py", "tests/plugins/test_what_works.py", "tests/plugins/spark/test_killed.py",
    "tests/plugins/test_presidio.py", "tests/cli/test_evaluate_command.py", "tests/cli/test_bad_input.py",
    "tests/test_packaging.py", "tests/cli/test_fit_entities.py", "tests/scripts/test_quality_scripts.py",
    "tests/calibration/recalibrators/test_family.py", "tests/configs/test_ner_projects.py", "tests/sources/ner/test_decoding.py",
    "tests/calibration/test_golden.py", "tests/plugins/test_links.py", "tests/test_imports.py", "tests/test_registry.py",
)  # fmt: skip
# What `make test-quick` leaves out: tests of more than two seconds, and those of commands, programs and other processes, most of
# which take a second and wait for pipelines that are fitted once for all of them.
SLOW = (
    "tests/browser/", "tests/cli/", "tests/configs/", "tests/docs/", "tests/papers/", "tests/plugins/spark/",
    "tests/scripts/", "tests/test_packaging.py", "tests/test_registry.py::test_a_broken",
    "tests/test_registry.py::test_a_fresh", "tests/test_imports.py::test_entry_point", "tests/calibration/test_golden.py",
    "tests/sources/ner/test_decoding.py::test_real_model", "tests/plugins/test_what_works.py",
    "tests/pipe/test_component.py::test_entities", "tests/plugins/test_presidio.py", "tests/plugins/test_links.py",
    "tests/plugins/llm/test_model_answers.py", "tests/plugins/expect/test_expect_command.py",
    "tests/plugins/pretrained/test_pretrained_command.py", "tests/plugins/pretrained/test_french.py",
    "tests/plugins/report/test_page_command.py", "tests/plugins/report/test_pictures.py",
    "tests/plugins/report/test_slices_command.py", "tests/plugins/report/test_view_command.py",
    "tests/plugins/review/test_audit_command.py", "tests/plugins/review/test_rank_command.py",
    "tests/plugins/review/test_queue_rounds.py", "tests/plugins/review/test_batches.py",
    "tests/plugins/review/test_annotation_queues.py", "tests/plugins/review/queue/test_answers_of_queues.py::test_no_link",
    "tests/plugins/report/test_page.py", "tests/plugins/pretrained/test_applying.py", "tests/gold/test_contradictions.py::test_merged_gold",
    "tests/plugins/pretrained/test_universal.py", "tests/plugins/pretrained/test_parts_of_speech.py", "tests/plugins/review/test_promise.py",
    "tests/pipe/test_state.py::test_damage_with", "tests/doc/test_attributes.py::test_random_chains",
    "tests/doc/test_span_attributes.py::test_random_chains", "tests/test_imports.py::test_numerical_rooms_run",
    "tests/sources/ner/test_recognizer.py::test_same_weights", "tests/sources/test_transformer.py", "tests/test_types.py::test_a_type_checker",
    "tests/calibration/test_thresholds.py::test_true_precision", "tests/plugins/pretrained/test_name_terms.py::test_newcomers",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow; the slowest files first, in the order above."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """What was imported is no garbage, and need not be looked through again."""
    gc.freeze()


# Most of what a test makes lives as long as the test: looking for garbage less often finds as much of it.
gc.set_threshold(100_000, 20, 20)

_MADE = "SPACY_CALIB_TESTS_MADE"


def pytest_configure(config: pytest.Config) -> None:
    """One folder for what the workers of a run share; they inherit its name. One thread each: there are as many workers as cores."""
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")  # of processes that tests start
    config.add_cleanup(threadpoolctl.threadpool_limits(1).restore_original_limits)
    if _MADE not in os.environ:
        made = tempfile.TemporaryDirectory(prefix="spacy-calib-tests-")
        os.environ[_MADE] = made.name
        config.add_cleanup(made.cleanup)
        config.add_cleanup(lambda: os.environ.pop(_MADE))


def made_once(name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, made by one worker of the run and read by the others (and made by whoever asks outside of a run)."""
    if _MADE not in os.environ:
        return make()
    path = Path(os.environ[_MADE]) / f"{name}.pickle"
    lock = path.with_suffix(".lock")
    while not path.exists():
        try:
            lock.mkdir()  # of two workers one can
        except FileExistsError:
            time.sleep(0.05)
            continue
        try:
            if not path.exists():
                part = path.with_suffix(".part")
                part.write_bytes(pickle.dumps(make()))
                part.rename(path)
        finally:
            lock.rmdir()
    return pickle.loads(path.read_bytes())


WORDS = {
    "DET": ["the", "a", "this", "every"], "NOUN": ["dog", "cat", "duck", "saw", "run", "light"],
    "VERB": ["saw", "run", "light", "duck", "eats"], "ADJ": ["light", "red", "old"], "PUNCT": ["."],
}  # fmt: skip
PATTERNS = [
    ["DET", "NOUN", "VERB", "PUNCT"],
    ["DET", "ADJ", "NOUN", "VERB", "DET", "NOUN", "PUNCT"],
    ["NOUN", "VERB", "ADJ", "PUNCT"],
]
FEATS = {"NOUN": "Number=Sing", "VERB": "Tense=Past|VerbForm=Fin"}


def made_up_sentences(n: int, seed: int) -> list[list[tuple[str, str]]]:
    """n sentences as (word, tag), some words with several tags so that a tagger cannot be sure."""
    rng = random.Random(seed)
    return [[(rng.choice(WORDS[tag]), tag) for tag in rng.choice(PATTERNS)] for _ in range(n)]


def gold_doc(vocab, sentence: list[tuple[str, str]]) -> Doc:
    words, tags = zip(*sentence, strict=True)
    return Doc(
        vocab, words=words, tags=tags, pos=tags, morphs=[FEATS.get(tag, "") for tag in tags],
        lemmas=[word.rstrip("s") for word in words], sent_starts=[i == 0 for i in range(len(words))],
    )  # fmt: skip


def examples_for(nlp: Language, n: int, seed: int) -> list[Example]:
    """Examples with an unannotated predicted Doc and gold tags, parts of speech, features, lemmas and sentence starts."""
    references = [gold_doc(nlp.vocab, sentence) for sentence in made_up_sentences(n, seed)]
    return [Example(Doc(nlp.vocab, words=[t.text for t in ref]), ref) for ref in references]


def run_upstream(nlp: Language, examples: list[Example]) -> list[Example]:
    """Run the whole pipeline over the predicted Docs, as `fit` wants them."""
    for example, doc in zip(examples, nlp.pipe([eg.predicted for eg in examples]), strict=True):
        example.predicted = doc
    return examples


def run_other_pipes(nlp: Language, examples: list[Example], name: str = "calib") -> list[Example]:
    """Run all pipes but the one of this name, if there is one, over the predicted Docs."""
    with nlp.select_pipes(disable=[pipe for pipe in nlp.pipe_names if pipe == name]):
        return run_upstream(nlp, examples)


def fit_calib(nlp: Language, examples: list[Example], name: str = "calib") -> Any:
    """Fit a calib pipe of a pipeline on examples that the other pipes run over, and return it."""
    return nlp.get_pipe(name).fit(run_other_pipes(nlp, examples, name))


def train_briefly(nlp: Language, examples: list[Example], steps: int, learn_rate: float | None = None) -> dict[str, object]:
    """Train a new pipeline on all of the examples at each step; return its config and bytes, for `revive`."""
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = optimizer.learn_rate if learn_rate is None else learn_rate
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


TOK2VEC = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200, "window_size": 1,
           "maxout_pieces": 2, "subword_features": False, "pretrained_vectors": None}  # fmt: skip
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}


def train_pipeline(components: list[str], listener: bool = True, steps: int = 6) -> Language:
    """A pipeline trained for a moment on made-up sentences: labels, and scores that are neither 0 nor 1."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    if listener:
        nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    for name in components:
        model = {"tok2vec": LISTENER if listener else TOK2VEC}
        nlp.add_pipe(name, config={"model": model, "min_tree_freq": 1} if name == "trainable_lemmatizer" else {"model": model})
    train_briefly(nlp, examples_for(nlp, 60, seed=1), steps)
    return nlp


@pytest.fixture(scope="session")
def trained_bytes() -> dict[str, object]:
    """Trained once for the whole run."""

    def train() -> dict[str, object]:
        nlp = train_pipeline(["tagger", "morphologizer", "senter", "trainable_lemmatizer"])
        return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}

    return made_once("pipeline", train)


@pytest.fixture(scope="session")
def fuzz() -> ModuleType:
    """scripts/tools/fuzz_state.py."""
    from tools import fuzz_state

    return fuzz_state


def revive(saved: dict[str, object], **kwargs) -> Language:
    nlp = spacy.blank("xx").from_config(saved["config"], **kwargs)
    return nlp.from_bytes(saved["bytes"])


@pytest.fixture
def nlp(trained_bytes) -> Language:
    """tok2vec, tagger, morphologizer, senter, trainable_lemmatizer; the heads listen to the tok2vec."""
    return revive(trained_bytes)


@pytest.fixture(scope="session")
def fitted_bytes(trained_bytes) -> dict[str, object]:
    """Fitted once for the whole run."""

    def fit() -> dict[str, object]:
        nlp = revive(trained_bytes)
        grouping = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 2}
        nlp.add_pipe("calib", after="tagger", config={"grouping": grouping})
        fit_calib(nlp, examples_for(nlp, 80, seed=2))
        return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}

    return made_once("fitted", fit)


@pytest.fixture
def fitted(fitted_bytes) -> Language:
    """The same with a fitted calib pipe behind the tagger."""
    return revive(fitted_bytes)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, where there is one."""
    folder = os.environ.get("SPACY_CALIB_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SPACY_CALIB_DATA does not name the folder of real data sets")
    return Path(folder)


@pytest.fixture
def register() -> Iterator[Callable[[str, str, Callable[..., Any]], None]]:
    """(registry, name, function): registered as another package would, until the test ends."""
    added: list[tuple[str, ...]] = []

    def add(kind: str, name: str, function: Callable[..., Any]) -> None:
        held = getattr(registry, kind)
        held.register(name, func=function)
        added.append((*held.namespace, name))

    yield add
    for key in added:  # and nothing else: meanwhile spaCy may have registered things of its own
        catalogue.REGISTRY.pop(key, None)
