"""Settings of the samplers as ``search`` found them: values of each family's knobs, by problem.

Every entry cost the same: 16 runs of 200,000 gradient evaluations (50,000 for the regression by minibatches), seed 77.
"""

SETTINGS: dict[str, dict[str, tuple[float, ...]]] = {
    "cosine25": {
        "sgld": (0.694,), "psgld": (1.04, 0.192), "sghmc": (0.79, 0.228), "sgnht": (1.8, 0.0111),
        "cyclical_sgld": (1.8, 90.0, 0.0333), "cyclical_sghmc": (1.8, 30.0, 0.3, 0.1), "csgld": (0.6, 1.02),
        "icsgld": (0.6, 1.12, 8.1), "icsghmc": (0.6, 0.75, 2.5, 0.3), "resgld, r2sgld": (0.2, 31.6, 2.5),
        "r2sghmc": (0.2, 20.0, 4.0, 0.3), "tact_hmc": (0.6, 12.0, 0.0289), "svgd": (0.299,), "mala": (2.28,),
        "hmc": (0.6, 6.0), "mala × exchange": (0.6, 50.0, 4.0), "hmc × exchange": (1.8, 1.5, 20.0, 2.5),
    },
    "gaussian_grid25": {
        "sgld": (1.5,), "psgld": (1.8, 3.95), "sghmc": (1.8, 0.684), "sgnht": (0.2, 0.228),
        "cyclical_sgld": (1.8, 90.0, 0.9), "cyclical_sghmc": (1.8, 100.0, 0.9, 0.9), "csgld": (1.8, 1.02),
        "icsgld": (1.8, 1.5, 6.4), "icsghmc": (1.8, 1.5, 2.5, 0.3), "resgld, r2sgld": (0.2, 12.6, 2.5),
        "r2sghmc": (0.2, 8.0, 2.5, 0.3), "tact_hmc": (0.6, 6.0, 0.15), "svgd": (0.486,), "mala": (0.197,),
        "hmc": (0.2, 64.0), "mala × exchange": (0.6, 20.0, 6.4), "hmc × exchange": (0.2, 3.0, 20.0, 4.0),
    },
    "five_spots": {
        "sgld": (1.1,), "psgld": (1.8, 0.111), "sghmc": (1.8, 0.3), "sgnht": (0.0385, 0.1),
        "cyclical_sgld": (1.8, 30.0, 0.0333), "cyclical_sghmc": (0.346, 10.0, 0.3, 0.3),
        "csgld": (1.04, 1.38), "icsgld": (0.6, 1.5, 13.0), "icsghmc": (0.6, 1.5, 6.4, 1.0),
        "resgld, r2sgld": (0.115, 8.0, 2.5), "r2sghmc": (0.0667, 20.0, 2.5, 0.9),
        "tact_hmc": (0.0222, 6.0, 0.15), "svgd": (0.349,), "mala": (2.97,), "hmc": (2.62, 64.0),
        "mala × exchange": (0.2, 10.1, 4.0), "hmc × exchange": (0.0667, 3.0, 20.0, 2.5),
    },
    "muller_brown": {
        "sgld": (0.883,), "psgld": (0.6, 0.0123), "sghmc": (0.6, 0.0577), "sgnht": (0.6, 0.0111),
        "cyclical_sgld": (3.0, 1.11, 0.0333), "cyclical_sghmc": (1.8, 10.0, 0.1, 0.1), "csgld": (1.04, 0.612),
        "icsgld": (0.6, 1.5, 4.0), "icsghmc": (0.6, 1.12, 6.4, 0.3), "resgld, r2sgld": (0.2, 8.0, 2.5),
        "r2sghmc": (0.2, 3.2, 2.5, 0.1), "tact_hmc": (0.6, 12.0, 0.15), "svgd": (0.202,), "mala": (2.99,),
        "hmc": (1.57, 12.0), "mala × exchange": (0.6, 50.0, 2.5), "hmc × exchange": (1.8, 1.5, 8.0, 2.5),
    },
    "banana": {
        "sgld": (0.476,), "psgld": (0.456, 2.28), "sghmc": (0.6, 0.01), "sgnht": (0.263, 0.0577),
        "cyclical_sgld": (0.6, 30.0, 1.0), "cyclical_sghmc": (0.6, 10.0, 0.9, 0.1), "csgld": (0.6, 0.408),
        "icsgld": (0.6, 0.333, 6.4), "icsghmc": (0.346, 0.919, 3.16, 0.3), "resgld, r2sgld": (0.2, 8.0, 2.5),
        "r2sghmc": (0.2, 3.2, 2.5, 0.3), "tact_hmc": (0.0222, 6.0, 0.05), "svgd": (0.167,), "mala": (1.08,),
        "hmc": (0.688, 6.0), "mala × exchange": (0.6, 3.2, 2.5), "hmc × exchange": (1.8, 1.5, 20.0, 2.5),
    },
    "funnel, 10-D": {
        "sgld": (1.05,), "psgld": (0.2, 0.0123), "sghmc": (0.2, 0.0111), "sgnht": (0.6, 0.0577),
        "cyclical_sgld": (0.6, 10.0, 0.173), "cyclical_sghmc": (0.2, 10.0, 0.9, 0.3), "csgld": (0.6, 0.1),
        "icsgld": (0.6, 0.222, 6.4), "icsghmc": (0.2, 0.333, 10.2, 0.0333),
        "resgld, r2sgld": (0.6, 3.2, 16.0), "r2sghmc": (0.6, 8.0, 4.0, 0.1), "tact_hmc": (0.0667, 3.0, 0.15),
        "svgd": (0.22,), "mala": (1.67,), "hmc": (0.456, 24.0), "mala × exchange": (0.6, 125.0, 6.4),
        "hmc × exchange": (0.6, 24.0, 8.0, 6.4),
    },
    "correlated, 16-D": {
        "sgld": (1.9,), "psgld": (2.37, 10.0), "sghmc": (1.37, 0.1), "sgnht": (0.6, 0.0333),
        "cyclical_sgld": (1.8, 1.11, 1.0), "cyclical_sghmc": (3.0, 10.0, 1.0, 0.1), "csgld": (1.8, 1.25),
        "icsgld": (0.6, 1.12, 6.4), "icsghmc": (1.8, 0.333, 6.4, 0.0333), "resgld, r2sgld": (0.6, 2.02, 6.4),
        "r2sghmc": (0.2, 20.0, 6.4, 0.3), "tact_hmc": (0.2, 3.0, 0.0289), "svgd": (0.95,), "mala": (0.824,),
        "hmc": (0.2, 6.0), "mala × exchange": (0.346, 8.0, 4.0), "hmc × exchange": (0.2, 6.0, 8.0, 4.0),
    },
    "double well, 10-D": {
        "sgld": (1.08,), "psgld": (1.37, 2.28), "sghmc": (0.6, 0.173), "sgnht": (0.346, 0.1),
        "cyclical_sgld": (1.8, 5.77, 0.1), "cyclical_sghmc": (1.04, 10.0, 0.3, 0.3), "csgld": (1.04, 1.38),
        "icsgld": (0.6, 0.75, 10.2), "icsghmc": (0.6, 0.919, 2.5, 0.3), "resgld, r2sgld": (0.263, 8.0, 4.0),
        "r2sghmc": (0.0667, 20.0, 4.0, 0.3), "tact_hmc": (0.346, 4.24, 0.0866), "svgd": (0.312,),
        "mala": (2.0,), "hmc": (0.79, 7.14), "mala × exchange": (0.346, 20.0, 6.4),
        "hmc × exchange": (0.346, 6.0, 8.0, 4.0),
    },
    "linear regression": {
        "sgld": (0.143,), "psgld": (0.2, 0.0123), "sghmc": (0.0667, 0.0192), "sgnht": (0.906, 0.3),
        "cyclical_sgld": (0.2, 10.0, 0.9), "cyclical_sghmc": (0.6, 30.0, 0.52, 0.3), "csgld": (0.152, 1.25),
        "icsgld": (0.2, 0.222, 4.0), "icsghmc": (0.0667, 0.75, 2.5, 0.1), "resgld, r2sgld": (0.2, 2.02, 6.4),
        "r2sghmc": (0.2, 20.0, 2.5, 0.3), "tact_hmc": (1.04, 3.0, 0.15), "svgd": (1.0,), "mala": (1.04,),
        "hmc": (0.229, 6.0), "mala × exchange": (0.6, 12.6, 6.4), "hmc × exchange": (0.2, 6.0, 3.2, 2.5),
    },
    "linear regression by 32": {
        "sgld": (0.0785,), "psgld": (0.2, 0.76), "sghmc": (0.0667, 0.785), "sgnht": (0.0765, 1.0),
        "cyclical_sgld": (0.2, 17.3, 0.52), "cyclical_sghmc": (0.0667, 10.0, 0.3, 0.3),
        "csgld": (0.0877, 1.36), "icsgld": (0.0667, 1.5, 6.4), "icsghmc": (0.0667, 1.0, 6.4, 0.9),
        "resgld, r2sgld": (0.0667, 1.3, 6.4), "r2sghmc": (0.0667, 1.3, 10.2, 0.9),
        "tact_hmc": (0.0222, 12.0, 0.15), "svgd": (0.975,),
    },
    "cosine25 in flower": {
        "sgld": (0.28,), "psgld": (0.456, 3.95), "sghmc": (0.346, 0.3), "sgnht": (0.2, 0.3),
        "cyclical_sgld": (0.6, 1.11, 0.0333), "cyclical_sghmc": (0.6, 3.33, 0.0333, 0.3),
        "csgld": (0.346, 1.02), "icsgld": (0.2, 1.12, 16.0), "icsghmc": (0.346, 0.919, 5.06, 0.3),
        "resgld, r2sgld": (0.0667, 8.0, 6.4), "r2sghmc": (0.0667, 3.2, 2.5, 0.1),
        "tact_hmc": (0.2, 17.0, 0.05), "svgd": (0.238,), "mala": (1.52,), "hmc": (0.2, 5.05),
        "mala × exchange": (0.346, 20.0, 2.5), "hmc × exchange": (0.2, 1.5, 8.0, 2.5),
    },
    "cosine25 in heart": {
        "sgld": (0.456,), "psgld": (0.6, 10.0), "sghmc": (0.6, 0.173), "sgnht": (1.04, 0.132),
        "cyclical_sgld": (1.8, 10.0, 0.0111), "cyclical_sghmc": (1.8, 30.0, 0.3, 0.3), "csgld": (0.6, 1.0),
        "icsgld": (0.2, 0.75, 6.4), "icsghmc": (0.2, 1.12, 6.4, 0.1), "resgld, r2sgld": (0.2, 20.0, 2.5),
        "r2sghmc": (0.0667, 20.0, 2.5, 0.1), "tact_hmc": (0.6, 12.0, 0.05), "svgd": (0.355,), "mala": (0.81,),
        "hmc": (1.8, 4.24), "mala × exchange": (1.37, 20.0, 2.5), "hmc × exchange": (0.0667, 3.0, 20.0, 2.5),
    },
}  # fmt: skip
