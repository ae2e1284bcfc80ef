"""Streams of keyed windows for all pairs of features, compared with a model.

`factors` lists the features, `covering` draws cases in which every two values occur
together, `plan` and `stream` draw the request and the rows of a case, `model` computes
the answers that are due, `values` an aggregation over given rows, and `run` compares.
"""
