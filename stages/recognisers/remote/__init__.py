"""What all recognisers elsewhere have in common: how they are called, and what their answers mean."""
