"""Other packages, each from a pinned version, in a virtual environment of their own that ``install`` makes.

``host`` starts a process there (``worker``) and asks it for timed runs; modules named ``*_runs`` are what it can run,
and import nothing of this project.
"""
