"""The table of GPUs."""

from __future__ import annotations

import pytest

from boleir.codegen.targets import TARGETS, UnknownTarget, target, target_of, targets


@pytest.mark.parametrize("spelled", ["sm_90", "sm90", "SM_90", "sm_90a", "90", 90, " sm_90 "])
def test_spellings_of_one_target(spelled: str | int) -> None:
    assert target(spelled) is TARGETS["sm_90"]


def test_a_target_names_itself() -> None:
    assert target(TARGETS["gfx942"]) is target("gfx942")
    assert str(target("gfx942")) == "gfx942"


@pytest.mark.parametrize("spelled", ["sm_91", "sm_", "", "gfx900", "cuda", "sm_9000"])
def test_unknown_names_are_refused_with_the_known_ones(spelled: str) -> None:
    with pytest.raises(UnknownTarget, match="sm_121"):
        target(spelled)


def test_lists_keep_their_order_and_lose_repeats() -> None:
    assert [str(t) for t in targets("sm_120, sm_80,sm_120,")] == ["sm_120", "sm_80"]
    with pytest.raises(UnknownTarget, match="no target given"):
        targets(" , ")


def test_required_targets_are_there() -> None:
    assert set(TARGETS) == {
        *("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "sm_121", "gfx942")
    }


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_100"),
        ((12, 1), "sm_121"),
    ],
)
def test_best_target_of_a_device(capability: tuple[int, int], name: str) -> None:
    assert target_of(capability).name == name


@pytest.mark.parametrize("capability", [(7, 5), (10, 3), (11, 0), (13, 0)])
def test_devices_without_a_target(capability: tuple[int, int]) -> None:
    with pytest.raises(UnknownTarget, match=f"{capability[0]}.{capability[1]}"):
        target_of(capability)


def test_architecture_specific_binaries_do_not_move() -> None:
    assert not TARGETS["sm_100"].runs_on((10, 3))
    assert not TARGETS["sm_86"].runs_on((8, 0))
    assert not TARGETS["gfx942"].runs_on((9, 4))


def test_limits_are_consistent() -> None:
    for row in TARGETS.values():
        assert row.shared_per_block + row.shared_reserved <= row.shared_per_sm
        assert row.threads_per_block <= row.threads_per_sm
        assert row.threads_per_block % row.warp_size == 0
        assert row.triple == (row.backend, row.arch, row.warp_size)
        assert row.binary_kind == {"cuda": "cubin", "hip": "hsaco"}[row.backend]
