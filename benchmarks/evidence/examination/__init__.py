"""Cases that an examination from outside found wrong without a word: one module a topic, each prints what it gives."""
