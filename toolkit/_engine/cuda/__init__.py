"""The loop on an NVIDIA GPU: compiled kernels, columns of chains, transfers, and what cannot run there."""
