"""PostgreSQL and the audio store: the nouns, and the only door to each."""
