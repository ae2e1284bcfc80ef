"""The first seed of random tests: SLIDEWISE_SEED, or one that changes every day."""

import os
import time

SEED = int(os.environ.get("SLIDEWISE_SEED") or time.strftime("%Y%m%d000000"))
