"""The layers of the paper, one idea per file; `baselines/` has those it compares with, `fused/` the fast path."""
