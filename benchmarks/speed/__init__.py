"""Speed of samplers, targets and storage beside peers, scalar loops and ceilings; start-up, growth and memory."""
