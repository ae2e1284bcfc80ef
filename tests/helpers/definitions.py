"""Facts about aggregations, stated from their meaning and not from the code."""

# Aggregations of two columns, and those that compare one to select from another.
PAIRS = ("covariance", "correlation")
COMPARED = ("arg_min", "arg_max")
BITS = ("bit_and", "bit_or", "bit_xor")
