"""Local clusters of Dask for tests."""

import contextlib
import logging
import multiprocessing
import os
import warnings

import dask
import distributed.utils
from dask.distributed import Client, LocalCluster

# Workers fork from one process, where there is fork, which has imported these modules once for all of them.
START_METHOD = "forkserver" if os.name == "posix" else "spawn"
PRELOADED = ["distributed.nanny", "toolkit", "targets"]


@contextlib.contextmanager
def local_cluster(n_workers=2, threads=1, processes=True, **options):
    """A client of a new cluster on this machine, which is closed at the end."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    distributed.utils._forkserver_preload_set = True  # Dask would choose other modules, with pandas
    multiprocessing.set_forkserver_preload(PRELOADED)
    # Set for as long as the cluster lives, because it may start a worker in place of another.
    with dask.config.set({"distributed.worker.multiprocessing-method": START_METHOD}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cluster = LocalCluster(
                n_workers=n_workers, threads_per_worker=threads, processes=processes, dashboard_address=None,
                silence_logs=logging.CRITICAL, **options,
            )  # fmt: skip
            client = Client(cluster)
        try:
            yield client
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                client.close(timeout=5)
                cluster.close(timeout=10)


def worker_processes(client):
    """The process identifiers of the workers that run, by their nannies."""
    return [
        nanny.process.pid
        for nanny in client.cluster.workers.values()
        if nanny.process is not None and nanny.process.pid and nanny.process.status.name == "running"
    ]
