"""Threads that are kept from call to call: what they inherit, what they leave behind, what a fork makes of them."""

import multiprocessing
import os
import sys
import threading

import pytest
import torch

from bcn.layers.fused.threads import flushes_denormals, run_shares

TINY = sys.float_info.min
HALVES = list(range(4))


def halve(_: int) -> tuple[float, int]:
    return TINY / 2, threading.get_ident()


def test_shares_keep_their_order_and_their_threads() -> None:
    assert run_shares(lambda share: share * share, HALVES) == [0, 1, 4, 9]
    before = {ident for _, ident in run_shares(halve, HALVES)}
    started = threading.active_count()
    for _ in range(50):
        run_shares(halve, HALVES)
    assert threading.active_count() <= started + len(HALVES)
    assert threading.get_ident() in before


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this CPU does not flush denormals")
def test_threads_flush_denormals_as_their_caller_does() -> None:
    """As threads that the caller starts anew, whichever setting was first."""
    for flush in (False, True, False, True):
        torch.set_flush_denormal(flush)
        try:
            assert flushes_denormals() == flush
            assert [half == 0 for half, _ in run_shares(halve, HALVES)] == [flush] * len(HALVES)
        finally:
            torch.set_flush_denormal(False)


def test_what_a_thread_raises_is_raised_when_all_are_done() -> None:
    done = []

    def work(share: int) -> None:
        if share in (0, 2):
            raise ValueError(share)
        done.append(share)

    with pytest.raises(ValueError, match="0"):
        run_shares(work, HALVES)
    assert sorted(done) == [1, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    run_shares(halve, HALVES)
    child = multiprocessing.get_context("fork").Process(target=run_shares, args=(halve, HALVES))
    child.start()
    child.join(20)
    assert child.exitcode == 0
