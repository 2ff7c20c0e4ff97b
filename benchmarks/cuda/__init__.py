"""A GPU: chain-steps per second beside the CPU, JAX on the same GPU, and what the card could do; equality of bits."""
