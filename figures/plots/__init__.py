"""One function for each kind of plot, and the style they share. A user calls them as ``figures.density`` and so on."""
