"""Report of a run: tables by coordinate, sampler and tempering; warnings; plain text and HTML."""
