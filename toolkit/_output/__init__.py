"""Output of a run's record: ``Run`` with its report, its tree of arrays, and its file."""
