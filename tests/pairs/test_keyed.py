import numpy as np

from spacy_calib.pairs.keyed import STEP, splitmix64


def test_it_gives_the_numbers_of_splitmix64():
    """The first three that the generator gives from 0, as its authors' program prints them."""
    found = splitmix64(np.arange(1, 4, dtype=np.uint64) * STEP)
    assert found.tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
