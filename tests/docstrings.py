import doctest
from typing import Any


def run_examples(target: Any, **names: Any) -> None:
    """Run the examples in the docstring of a class or function, of which there is one at least. names: Further names that they use."""
    (examples,) = doctest.DocTestFinder(recurse=False).find(target, module=False, globs={target.__name__: target, **names})
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert (result.failed, result.attempted) == (0, len(examples.examples))
    assert result.attempted
