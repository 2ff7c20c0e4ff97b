"""Tables of networks: speed beside other packages, and the learning experiments of the papers at full length."""
