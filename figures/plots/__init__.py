"""One function for each kind of plot, and the style they share; exported by the package as ``figures.density`` etc."""
