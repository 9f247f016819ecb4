"""The claim protocol against a model of itself: step by step, and under every fault we can make."""
