"""Right-hand sides that several rooms identify: what is compiled of one function is on disk for all of them."""


def decay(t, x, p):
    """At rate p[0]."""
    return (-p[0] * x[0],)


def growth(t, x, p):
    """At rate p[0]."""
    return (p[0] * x[0],)


def decay_by_product(t, x, p):
    """At rate p[0] p[1]: data tell the product alone."""
    return (-p[0] * p[1] * x[0],)


def decay_by_square(t, x, p):
    """At rate p[0]²: data do not tell its sign."""
    return (-(p[0] ** 2) * x[0],)


def relaxation(t, x, p):
    """To p[1] at rate p[0]."""
    return (p[0] * (p[1] - x[0]),)
