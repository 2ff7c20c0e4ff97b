"""Solutions of ordinary differential equations, lane by lane: fixed and adaptive steps, and gradients through them."""
