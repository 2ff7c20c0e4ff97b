"""The runs of ``device_cases`` that are named, in Numba's simulator of CUDA, in a process of its own.

Arguments: the folder in which each case leaves its arrays, and the cases. What is compiled is not optimised, which
takes a third of the time and leaves every bit alone.
"""

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path


def mend():
    """Let the simulator rest before it asks whether a thread is alive: it would keep others from compiling.

    And let it make a block's shared array once: two of its threads that ask at the same time were given one each, so
    that the one read what the other had not written.
    """
    import numpy as np
    from numba.cuda.simulator import kernel, kernelapi

    one_at_a_time = threading.Lock()

    def is_alive(thread):
        """As before, but after a rest."""
        time.sleep(1e-4)
        return threading.Thread.is_alive(thread)

    def array(shared, shape, dtype):
        """The block's array of the line that asks, for which the simulator knows it too."""
        asks = sys._getframe(1)
        with one_at_a_time:
            place = asks.f_code.co_filename, asks.f_lineno
            return shared._allocations.setdefault(place, np.empty(shape, dtype))

    kernel.BlockThread.is_alive = is_alive
    kernelapi.FakeCUDAShared.array = array


def main(folder, names):
    """Run them; one that raises leaves its words."""
    mend()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    import numpy as np

    from tests.support.device_cases import arrays

    for number, name in enumerate(names):
        started = time.perf_counter()
        try:
            found = arrays(name, "cuda", folder)
        except Exception as error:
            found = {"error": np.array(f"{type(error).__name__}: {error}")}
        np.savez(Path(folder) / f"{number}.npz", **found)
        print(f"{time.perf_counter() - started:6.2f} s  {name}", flush=True)


if __name__ == "__main__":
    assert os.environ["NUMBA_ENABLE_CUDASIM"] == "1"
    main(sys.argv[1], sys.argv[2:])
