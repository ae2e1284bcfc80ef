"""The buckets of a stream: how many there are, and the keys that Spark knows them by.

A task takes the buckets of a partition one after another, each with calls, accesses to
state and pages of its own. So a partition has one bucket, unless there are to be fewer.
Spark keeps the number of partitions in the checkpoint, and passes it to each task.

Spark gives a row to the partition `hash(key) mod partitions`, where the hash is Murmur3
with 32 bits. With two partitions, one gets five of the buckets 0 to 7, and takes a
quarter longer than necessary. Over one integer the hash is one to one, so bucket `i`
has the key whose hash is `i`. Then, for any number of partitions, their numbers of
buckets differ by at most one.
"""

from pyspark import TaskContext

__all__ = ["PARTITIONS", "bucket_count", "bucket_keys", "bucket_number"]

# The setting of partitions, also of those of state. Some versions keep the number of
# the latter in a setting of their own.
PARTITIONS = "spark.sql.shuffle.partitions"
_OF_STATE = "spark.sql.streaming.internal.stateStore.partitions"
_DEFAULT = 200

_MASK = (1 << 32) - 1
# The constants of Murmur3, and the seed of Spark.
_C1, _C2, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIXED = 0x85EBCA6B, 0xC2B2AE35
_SEED = 42


def bucket_count(most: int | None, partitions: int | None = None) -> int:
    """Returns the number of buckets: one per partition of the state, or fewer.

    Args:
        most: The most; None for any number.
        partitions: The number of partitions; by default those of the query of this
            task.

    Example:
        >>> bucket_count(None, 16), bucket_count(1024, 16), bucket_count(8, 16)
        (16, 16, 8)
    """
    if partitions is None:
        partitions = _partitions()
    return partitions if most is None else min(most, partitions)


def _partitions() -> int:
    """The number of partitions of the state of the query of this task."""
    context = TaskContext.get()
    if context is not None:
        for name in (_OF_STATE, PARTITIONS):
            if (found := context.getLocalProperty(name)) is not None:
                return int(found)
    return _DEFAULT


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
