"""What draws are worth, for equal numbers of gradient evaluations and of seconds; and the search for settings."""
