"""`python -m tests.prove`: all claims; `python -m tests.prove maps --seed 3`: one case again."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from prove.command import main

sys.exit(main())
