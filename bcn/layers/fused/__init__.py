"""The fast path: the sum and the maximum over positions as reductions that never hold what they reduce.

`dispatch.py` decides whether it may run. Where it may not, the layers do the same in plain operations of torch.
"""
