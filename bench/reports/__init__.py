"""Public bug reports of other libraries, answered by slidewise and the newest others.

Inputs and words are of this project. `python -m bench.reports` runs them all.
"""
