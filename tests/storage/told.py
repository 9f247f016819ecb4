"""A child that tells how it was started."""

import json
import sys
from pathlib import Path

import storage

if __name__ == "__main__":
    assert storage.__file__
    told = {
        "arguments": sys.argv[1:],
        "name": __name__,
        "isolated": sys.flags.isolated,
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "storage": str(Path(storage.__file__).parent),
    }
    sys.stdout.write(json.dumps(told))
