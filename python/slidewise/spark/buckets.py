"""The keys of buckets, by which Spark spreads them evenly over partitions.

Spark gives a row to the partition `hash(key) mod partitions`, where the hash is Murmur3
with 32 bits. With two partitions, one gets five of the buckets 0 to 7, and takes a
quarter longer than necessary. Over one integer the hash is one to one, so bucket `i`
has the key whose hash is `i`. Then, for any number of partitions, their numbers of
buckets differ by at most one.
"""

__all__ = ["bucket_keys", "bucket_number"]

_MASK = (1 << 32) - 1
# The constants of Murmur3, and the seed of Spark.
_C1, _C2, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIXED = 0x85EBCA6B, 0xC2B2AE35
_SEED = 42


def bucket_keys(buckets: int) -> list[int]:
    """Returns the keys of buckets: signed integers of 32 bits.

    Example:
        >>> bucket_keys(2)
        [-1693959553, -1910889132]
    """
    return [_unhashed(bucket) for bucket in range(buckets)]


def bucket_number(key: int) -> int:
    """Returns the bucket of a key: Spark's hash of the integer.

    Example:
        >>> [bucket_number(key) for key in bucket_keys(3)]
        [0, 1, 2]
    """
    mixed = _rotated(key * _C1 & _MASK, 15) * _C2 & _MASK
    mixed = (_rotated(mixed ^ _SEED, 13) * 5 + _ADDED) & _MASK
    mixed ^= 4  # The number of hashed bytes.
    mixed = (mixed ^ mixed >> 16) * _MIXED[0] & _MASK
    mixed = (mixed ^ mixed >> 13) * _MIXED[1] & _MASK
    return mixed ^ mixed >> 16


def _unhashed(mixed: int) -> int:
    """Inverts Spark's hash of an integer, from its last step to its first."""
    mixed ^= mixed >> 16
    mixed = mixed * _inverse(_MIXED[1]) & _MASK
    mixed ^= mixed >> 13 ^ mixed >> 26
    mixed = mixed * _inverse(_MIXED[0]) & _MASK
    mixed ^= mixed >> 16
    mixed ^= 4  # The number of hashed bytes.
    mixed = (mixed - _ADDED) * _inverse(5) & _MASK
    key = _rotated(mixed, 32 - 13) ^ _SEED
    key = _rotated(key * _inverse(_C2) & _MASK, 32 - 15)
    key = key * _inverse(_C1) & _MASK
    return key - (1 << 32) if key >> 31 else key


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> (32 - by)) & _MASK


def _inverse(factor: int) -> int:
    return pow(factor, -1, 1 << 32)
