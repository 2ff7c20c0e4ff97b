"""A run in words: tables by coordinate, sampler and tempering; warnings; plain text and HTML."""
