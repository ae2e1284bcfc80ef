"""Streams of keyed windows in which every two features meet, against their meaning.

`factors` says what is crossed, `covering` draws cases in which every two values occur
together, `rows` draws a stream for a case, `model` says what a stream has to answer,
`values` what an aggregation is over given rows, and `run` compares.
"""
