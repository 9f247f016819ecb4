"""The tests of Rubezh; they mirror its tree."""
