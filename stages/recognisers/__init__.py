"""Recognisers: how speech becomes text, on this machine or elsewhere."""
