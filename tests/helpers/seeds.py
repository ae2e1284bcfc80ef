"""The first seed of what is random: another one each day, or that of SLIDEWISE_SEED."""

import os
import time

SEED = int(os.environ.get("SLIDEWISE_SEED") or time.strftime("%Y%m%d000000"))
