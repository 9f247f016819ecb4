"""The manuals, and what is made of them and of the code for other readers."""
