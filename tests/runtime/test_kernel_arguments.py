"""What `verify` and `commit` say about arguments that do not fit, and what they pass on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.errors import LaunchError, ScheduleError
from boleir.runtime.arguments import ArgumentError, _check_token_stride
from boleir.runtime.kernel import Kernel
from boleir.runtime.pool import PoolLayer, SlotFormat, StatePool
from boleir.runtime.tree_batch import TreeBatch
from tests.runtime.recording_program import RecordingProgram, inputs_for, recorded

INT = torch.int32


@dataclass
class Call:
    """A good call, to be spoiled."""

    kernel: Kernel
    program: RecordingProgram
    tree: TreeBatch = field(init=False)
    inputs: dict[str, Any] = field(init=False)
    pool: StatePool = field(init=False)
    slots: torch.Tensor = field(init=False)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = self.kernel.tree_batch([-1, 0, 0, -1, 0], [0, 3, 3, 5])
        self.inputs = inputs_for(self.kernel, 5)
        self.pool = self.kernel.pool(4, 2)
        self.slots = torch.tensor([2, -1, 0], dtype=INT)

    def verify(self, layer: int = 0) -> Any:
        return self.kernel.verify(
            self.tree, self.inputs, self.pool.layer(layer), self.slots, **self.options
        )


@pytest.fixture
def call() -> Call:
    return Call(*recorded())


def _with(name: str, tensor: object) -> Callable[[Call], None]:
    def spoil(call: Call) -> None:
        call.inputs[name] = tensor

    return spoil


def _option(name: str, value: object) -> Callable[[Call], None]:
    def spoil(call: Call) -> None:
        call.options[name] = value

    return spoil


def _attribute(name: str, make: Callable[[Call], object]) -> Callable[[Call], None]:
    def spoil(call: Call) -> None:
        setattr(call, name, make(call))

    return spoil


def _bf16(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.bfloat16)


def _tree(**bounds: int) -> Callable[[Call], TreeBatch]:
    given = {"max_nodes": 8, "max_depth": 3} | bounds
    return lambda _: TreeBatch.from_parents([-1, 0, 0, -1, 0], [0, 3, 3, 5], **given)


def _pool(**changes: Any) -> Callable[[Call], StatePool]:
    def make(call: Call) -> StatePool:
        slot = SlotFormat.of(call.kernel.interface)
        fields = {n: getattr(slot, n) for n in ("state", "window", "dtype", "window_dtype")}
        return StatePool(4, 2, SlotFormat(**{**fields, **changes}))

    return make


def _spread(call: Call, gap: int) -> StatePool:
    """The call's pool, `gap` elements between its states."""
    layers = []
    for layer in range(2):
        held = call.pool.layer(layer)
        memory = torch.zeros(4, held.state[0].numel() + gap)
        state = memory[:, : held.state[0].numel()].unflatten(1, held.state.shape[1:])
        layers.append((state, held.window))
    return StatePool.adopt(*zip(*layers, strict=True))


SPOILED: list[tuple[str, Callable[[Call], None], str]] = [
    ("missing", lambda call: call.inputs.pop("k"), "k is missing: bfloat16 [tokens, 2, 32]"),
    ("missing parameter", lambda call: call.inputs.pop("A_log"), "A_log is missing: float32 [4]"),
    ("missing weight", lambda call: call.inputs.pop("conv_weight"), "conv_weight is missing"),
    ("unknown", _with("z", _bf16(5)), "z is no input of this kernel"),
    ("no tensor", _with("q", [1]), "q is a list, expected a tensor"),
    ("format", _with("v", torch.zeros(5, 4, 48)), "v is torch.float32, expected torch.bfloat16"),
    ("heads", _with("k", _bf16(5, 4, 32)), "k is [5, 4, 32], expected [tokens, 2, 32]"),
    ("width", _with("a", _bf16(5, 3)), "a is [5, 3], expected [tokens, 4]"),
    ("tokens", _with("b", _bf16(6, 4)), "b has 6 tokens, q has 5"),
    (
        "strided heads",
        _with("q", _bf16(5, 2, 64)[:, :, ::2]),
        "q [5, 2, 32] has strides (128, 64, 2); only the distance between tokens is free",
    ),
    (
        "odd token stride",
        _with("q", _bf16(5, 72)[:, :64]),
        "q has a token stride of 72 elements, the kernel takes multiples of 16",
    ),
    (
        "odd token stride of the output",
        _option("out", _bf16(5, 200)[:, :192].unflatten(1, (4, 48))),
        "out has a token stride of 200 elements, the kernel takes multiples of 16",
    ),
    (
        "odd slot stride",
        _attribute("pool", lambda call: _spread(call, 8)),
        "pool state has a distance between slots of 6152 elements, the kernel takes multiples",
    ),
    (
        "overlapping output",
        _option("out", _bf16(1, 4, 48).expand(5, 4, 48)),
        "out has a token stride of 0 elements: its tokens overlap",
    ),
    ("parameter", _with("A_log", torch.zeros(3)), "A_log is [3], expected contiguous [4]"),
    (
        "strided parameter",
        _with("dt_bias", torch.zeros(8)[::2]),
        "dt_bias is not contiguous, [4], expected contiguous [4]",
    ),
    ("weights", _with("conv_weight", _bf16(320, 3)), "expected contiguous [320, 4]"),
    ("out", _option("out", _bf16(5, 4, 32)), "out is [5, 4, 32], expected [tokens, 4, 48]"),
    ("short out", _option("out", _bf16(4, 4, 48)), "out has 4 tokens, the inputs have 5"),
    ("layer", _option("layer", 1), "layer 1 is not one of the workspace's 1"),
    (
        "slots",
        _attribute("slots", lambda _: torch.zeros(2, dtype=INT)),
        "slots is [2], expected contiguous [3]",
    ),
    (
        "long slots",
        _attribute("slots", lambda _: torch.zeros(3, dtype=torch.int64)),
        "slots is torch.int64, expected torch.int32",
    ),
    (
        "listed slots",
        _attribute("slots", lambda _: [2, -1, 0]),
        "slots is a list, expected a tensor",
    ),
    (
        "deep trees",
        _attribute("tree", _tree(max_depth=4)),
        "tree may be 4 deep, the kernel was compiled for 3",
    ),
    (
        "many nodes",
        _attribute("tree", _tree(max_nodes=100)),
        "tree holds up to 100 nodes per request (2 ancestor words), the kernel takes 8 (1 words)",
    ),
    (
        "convolution",
        _attribute("tree", _tree(conv_width=3)),
        "tree has nearest ancestors for a convolution of width 3, the recurrence's has width 4",
    ),
    (
        "pool format",
        _attribute("pool", _pool(dtype=torch.float16)),
        "pool state is torch.float16, expected torch.float32",
    ),
    (
        "key first",
        _attribute("pool", _pool(state=(4, 32, 48))),
        "pool state is [4, 4, 32, 48], expected [slots, 4, 48, 32]",
    ),
    (
        "no window",
        _attribute("pool", _pool(window=None)),
        "pool window is missing: expected bfloat16 [slots, 320, 3]",
    ),
    (
        "full window",
        _attribute("pool", _pool(window=(320, 4))),
        "pool window is [4, 320, 4], expected [slots, 320, 3]",
    ),
]


@pytest.mark.parametrize("interpreted", [True, False], ids=["interpreted", "prepared"])
@pytest.mark.parametrize(
    ("spoil", "message"), [case[1:] for case in SPOILED], ids=[case[0] for case in SPOILED]
)
def test_a_refusal_names_the_argument_and_what_was_expected(
    spoil: Callable[[Call], None], message: str, interpreted: bool
) -> None:
    call = Call(*recorded(interpreted=interpreted))
    call.options["workspace"] = call.kernel.workspace(3, 5)
    call.verify()
    spoil(call)
    with pytest.raises(LaunchError, match=re.escape(message)):
        call.verify()
    assert len(call.program.launches) == len(call.kernel.interface.stages) - 1


@pytest.mark.parametrize("given", [None, [1, 2]])
def test_inputs_come_by_name(call: Call, given: Any) -> None:
    with pytest.raises(LaunchError, match=r"inputs is a .*, expected a mapping from names"):
        call.kernel.verify(call.tree, given, call.pool.layer(0), call.slots)


@pytest.mark.parametrize("room", [True, False])
def test_trees_and_workspaces_are_of_their_types(call: Call, room: bool) -> None:
    space = call.kernel.workspace(3, 5) if room else None
    with pytest.raises(LaunchError, match="tree is a list, expected a TreeBatch"):
        call.kernel.verify([-1, 0], call.inputs, call.pool.layer(0), call.slots, workspace=space)  # type: ignore[arg-type]
    call.options["workspace"] = "x"
    with pytest.raises(LaunchError, match="workspace is a str"):
        call.verify()


def test_weights_are_taken_as_a_convolution_module_keeps_them(call: Call) -> None:
    conv = torch.nn.Conv1d(320, 320, 4, groups=320, dtype=torch.bfloat16)
    call.inputs["conv_weight"] = conv.weight
    call.verify()
    call.inputs["conv_weight"] = conv.weight[:, :, :3]
    with pytest.raises(LaunchError, match=re.escape("expected contiguous [320, 4]")):
        call.verify()


def test_a_pool_is_no_layer(call: Call) -> None:
    with pytest.raises(LaunchError, match="pool is a StatePool, expected a PoolLayer"):
        call.kernel.verify(call.tree, call.inputs, call.pool, call.slots)


@pytest.mark.parametrize(
    ("size", "message"),
    [((2, 5, 1), "room for 2 requests, the trees have 3"), ((3, 4, 1), "room for 4 nodes")],
)
def test_a_workspace_must_be_large_enough(
    call: Call, size: tuple[int, int, int], message: str
) -> None:
    call.options["workspace"] = call.kernel.workspace(*size)
    with pytest.raises(LaunchError, match=message):
        call.verify()


def test_a_workspace_belongs_to_a_kernel(call: Call) -> None:
    other, _ = recorded("gated_delta_rule")
    call.options["workspace"] = other.workspace(3, 5)
    with pytest.raises(LaunchError, match="belongs to another kernel"):
        call.verify()


def test_addresses_must_be_multiples_of_sixteen_bytes() -> None:
    call = Call(*recorded(interpreted=False))
    call.inputs["a"] = _bf16(5 * 4 + 3)[3:].view(5, 4)
    with pytest.raises(ArgumentError, match="a begins at an address that is 6 above") as refused:
        call.verify()
    assert refused.value.argument == "a"


def test_tokens_of_one_request_lie_within_the_reach_of_their_arithmetic() -> None:
    """Rows are counted in 32 bits: 8 nodes at 2^28 elements are too many, and once wrapped."""
    call = Call(*recorded())
    with pytest.raises(ArgumentError, match="8 nodes of a request must lie within 2147483648"):
        _check_token_stride(call.kernel.interface, "a", 2**28)
    _check_token_stride(call.kernel.interface, "a", 2**28 - 1)


def test_the_stride_of_one_token_is_of_no_matter() -> None:
    call = Call(*recorded())
    call.tree = call.kernel.tree_batch([-1], [0, 1, 1, 1])
    call.inputs = {name: x[:1] if len(x) == 5 else x for name, x in call.inputs.items()}
    call.inputs["q"] = _bf16(2, 72)[:1, :64]
    call.options["out"] = _bf16(2, 200)[:1, :192].unflatten(1, (4, 48))
    call.verify()
    values = call.program.launches[-1][3]
    assert (values["q_stride"], values["out_stride"]) == (64, 192)


@pytest.mark.parametrize("sizes", [(1, 1, 60, 20), (2, 2, 60, 36), (1, 3, 33, 17)])
def test_dense_tensors_of_any_size_are_taken(sizes: tuple[int, int, int, int]) -> None:
    """What is promised to the compiler about strides has to hold for them."""
    lowered = lower(boleir.load("gdn"), Shapes(*sizes, 8, 3))
    face = interface_of(lowered)
    dense = {x.name: x.channels for x in face.inputs}
    dense |= {"out": sizes[1] * sizes[3], "state": sizes[1] * sizes[2] * sizes[3]}
    for name in face.aligned:
        assert dense[name.removesuffix("_stride")] % 16 == 0
    program = RecordingProgram()
    kernel = Kernel(face, program, torch.device("cpu"), text=lowered.text)
    Call(kernel, program).verify()


def test_launches_get_strides_and_addresses() -> None:
    call = Call(*recorded(interpreted=False, gates="prepare"))
    packed = _bf16(5, 320 + 16)
    call.inputs["q"] = packed[:, :64].unflatten(1, (2, 32))
    call.inputs["k"] = packed[:, 64:128].unflatten(1, (2, 32))
    call.inputs["v"] = packed[:, 128:320].unflatten(1, (4, 48))
    space = call.kernel.workspace(4, 9, 2)
    out = _bf16(5, 4, 48)
    call.options |= {"workspace": space, "layer": 1, "out": out}
    call.verify()
    stages = [launch[0] for launch in call.program.launches]
    assert stages == [name for name in call.kernel.interface.stages if name != "commit"]
    _, batch, layers, values = call.program.launches[-1]
    assert (batch, layers) == (3, 1)
    assert values["q"] == packed.data_ptr()
    assert values["v"] == packed.data_ptr() + 2 * 128
    assert values["q_stride"] == values["v_stride"] == 336
    assert values["a_stride"] == 4
    assert values["state_stride"] == 4 * 48 * 32
    assert values["capacity"] == 9
    assert values["mixed"] == space.layer(1).tensors[0].data_ptr()
    assert values["out"] == out.data_ptr()


def test_outputs_are_allocated_like_the_inputs(call: Call) -> None:
    out, _ = call.verify()
    assert (list(out.shape), out.dtype) == ([5, 4, 48], torch.bfloat16)
    call.inputs |= {name: call.inputs[name][None] for name in ("q", "k", "v")}
    assert list(call.verify()[0].shape) == [1, 5, 4, 48]


def test_more_tokens_and_slots_than_trees_are_fine(call: Call) -> None:
    call.inputs = inputs_for(call.kernel, 8)
    call.slots = torch.zeros(6, dtype=INT)
    assert list(call.verify()[0].shape) == [8, 4, 48]


# ---- commit ------------------------------------------------------------------------------


def _round(call: Call, layers: int = 2) -> list[Any]:
    space = call.kernel.workspace(3, 5, layers)
    call.options["workspace"] = space
    found = []
    for layer in range(layers):
        call.options["layer"] = layer
        found.append(call.verify(layer)[1])
    call.program.launches.clear()
    return found


def test_a_deferred_commit_is_one_launch_and_so_is_a_flush() -> None:
    call = Call(*recorded(commit="deferred"))
    assert call.kernel.interface.verifying == ("prepare", "verify")
    factors = _round(call)
    accepted = torch.zeros(3, dtype=INT)
    call.kernel.flush(call.pool)
    assert not call.program.launches  # nothing has been recorded
    call.kernel.commit(factors, accepted, call.pool, call.slots)
    call.kernel.commit(factors, accepted, call.pool, call.slots, now=True)
    call.kernel.flush(call.pool)
    call.kernel.flush(call.pool.layer(1), call.slots)
    launches = call.program.launches
    assert [x[:3] for x in launches] == [
        ("record", 3, 2), ("commit", 3, 2), ("flush", 4, 2), ("flush", 3, 1)
    ]  # fmt: skip
    face, values = call.kernel.interface, launches[2][3]
    assert values["slots"].tolist() == [0, 1, 2, 3]
    table = values["table"][: 2 * len(face.table)].view(2, -1)
    row = dict(zip(face.table, table[1].tolist(), strict=True))
    layer = call.pool.layer(1)
    assert layer.recorded is not None and layer.recorded.shape == (4, 4, face.recorded_channels)
    assert row["recorded"] == layer.recorded.data_ptr()
    assert row["A_log"] == call.inputs["A_log"].data_ptr()
    assert values["recorded_stride"] == layer.recorded.stride(0)


def test_one_launch_commits_all_layers(call: Call) -> None:
    factors = _round(call)
    accepted = torch.zeros(3, dtype=INT)
    call.kernel.commit(factors, accepted, call.pool, call.slots)
    ((stage, batch, layers, values),) = call.program.launches
    assert (stage, batch, layers) == ("commit", 3, 2)
    face = call.kernel.interface
    table = values["table"].view(-1, len(face.table))
    assert table.shape[0] == 2
    for layer in range(2):
        row = dict(zip(face.table, table[layer].tolist(), strict=True))
        assert row["state"] == call.pool.layer(layer).state.data_ptr()
        assert row["window"] == call.pool.layer(layer).tensors[1].data_ptr()
        assert row["a"] == call.inputs["a"].data_ptr()
    assert values["target_slots"] is call.slots
    assert values["track_slots"].tolist() == values["track_nodes"].tolist() == [-1, -1, -1]


def test_the_table_is_uploaded_only_when_a_pointer_changes(call: Call) -> None:
    factors = _round(call)
    accepted = torch.zeros(3, dtype=INT)
    call.kernel.commit(factors, accepted, call.pool, call.slots)
    first = call.program.launches[-1][3]["table"]
    call.kernel.commit(factors, accepted, call.pool, call.slots)
    assert call.program.launches[-1][3]["table"] is first
    other = call.kernel.pool(4, 2)
    call.kernel.commit(factors, accepted, other, call.slots)
    moved = call.program.launches[-1][3]["table"]
    assert moved is not first
    assert moved[0] == other.layer(0).state.data_ptr()


def test_a_single_layer_is_committed_by_itself(call: Call) -> None:
    factors = _round(call, layers=1)[0]
    accepted = torch.zeros(3, dtype=INT)
    call.kernel.commit(factors, accepted, call.pool.layer(0), call.slots)
    assert call.program.launches[-1][2] == 1
    call.kernel.commit([], accepted, call.pool, call.slots)
    assert len(call.program.launches) == 1


def test_a_commit_refuses_what_does_not_belong_together(call: Call) -> None:
    factors = _round(call)
    accepted = torch.zeros(3, dtype=INT)
    with pytest.raises(LaunchError, match="pool has 1 layers, factors has 2"):
        call.kernel.commit(factors, accepted, [call.pool.layer(0)], call.slots)
    with pytest.raises(LaunchError, match="come from one round"):
        call.kernel.commit([factors[0], _round(call)[1]], accepted, call.pool, call.slots)
    short = torch.zeros(2, dtype=INT)
    with pytest.raises(LaunchError, match=re.escape("accepted_node is [2], expected contiguous")):
        call.kernel.commit(factors, short, call.pool, call.slots)
    with pytest.raises(LaunchError, match=re.escape("target_slots is [2]")):
        call.kernel.commit(factors, accepted, call.pool, call.slots, target_slots=short)
    with pytest.raises(LaunchError, match="accepted_node is a list, expected a tensor"):
        call.kernel.commit(factors, [0, 0, 0], call.pool, call.slots)
    apart = PoolLayer(call.pool.layer(1).state[::2], call.pool.layer(1).tensors[1][::2])
    with pytest.raises(LaunchError, match="different distances between slots"):
        call.kernel.commit(factors, accepted, [call.pool.layer(0), apart], call.slots)


def test_every_layer_of_a_pool_takes_part_once(call: Call) -> None:
    first, second = _round(call)
    accepted, pool = torch.zeros(3, dtype=INT), call.pool
    one, two = pool.layer(0), pool.layer(1)
    wrong: list[tuple[Any, Any, str]] = [
        ([first], pool, "factors are of layers 0 of the workspace, and the pool has 2"),
        (first, pool, "each of its layers takes part once"),
        ([first, first], pool, "factors are of layers 0, 0 of the workspace"),
        ([first, second, second], pool, "layers 0, 1, 1 of the workspace, and the pool has 2"),
        (
            [first, first],
            [one, two],
            "verified with layer 0 of the pool, and would be committed to layer 1",
        ),
        ([first, second], [one, one], "pool names a layer twice"),
        ([first, second], [two, one], "layer 0 of the workspace were verified with layer 1"),
    ]
    for given, where, message in wrong:
        with pytest.raises(LaunchError, match=message) as caught:
            call.kernel.commit(given, accepted, where, call.slots)
        assert "\n" not in caught.value.message
    assert not call.program.launches
    call.kernel.commit([second, first], accepted, pool, call.slots)  # factors know their layer
    table = call.program.launches[-1][3]["table"].view(2, -1)
    state = call.kernel.interface.table.index("state")
    assert table[:, state].tolist() == [two.state.data_ptr(), one.state.data_ptr()]
    call.kernel.commit([second], accepted, [two], call.slots)


def test_a_workspace_of_one_layer_serves_one_layer(call: Call) -> None:
    call.options["workspace"] = call.kernel.workspace(3, 5)
    factors = [call.verify(layer)[1] for layer in range(2)]
    accepted = torch.zeros(3, dtype=INT)
    for pool in (call.pool, [call.pool.layer(0), call.pool.layer(1)]):
        with pytest.raises(LaunchError, match="factors are of layers 0, 0 of the workspace"):
            call.kernel.commit(factors, accepted, pool, call.slots)


def test_layers_that_were_verified_crosswise_are_refused(call: Call) -> None:
    call.options["workspace"] = call.kernel.workspace(3, 5, 2)
    accepted, crossed = torch.zeros(3, dtype=INT), []
    for layer in range(2):
        call.options["layer"] = layer
        crossed.append(call.verify(1 - layer)[1])
    with pytest.raises(LaunchError, match="would be committed to layer 0"):
        call.kernel.commit(crossed, accepted, call.pool, call.slots)
    call.kernel.commit(crossed, accepted, call.kernel.pool(4, 2), call.slots)
    call.kernel.commit(crossed, accepted, [call.pool.layer(1), call.pool.layer(0)], call.slots)


@pytest.mark.parametrize("batch", [0, -1, 1.5, "a", True, None])
def test_a_wrong_batch_is_refused_before_anything_is_compiled(batch: Any) -> None:
    with pytest.raises(ScheduleError, match="batch must be a whole number of at least 1"):
        boleir.compile(
            "gdn", key_heads=1, value_heads=1, d_k=16, d_v=16, target="sm_90", batch=batch
        )


def test_a_commit_takes_only_what_this_kernel_verified(call: Call) -> None:
    accepted, layer = torch.zeros(3, dtype=INT), call.pool.layer(0)
    other, _ = recorded(commit="factors")
    with pytest.raises(LaunchError, match="factors come from the verification of another kernel"):
        other.commit(_round(call, layers=1), accepted, layer, call.slots)
    out, factors = call.verify()
    spoiled: list[tuple[Any, Any, str]] = [
        (None, layer, "factors is a NoneType, expected what verify gave"),
        (out, layer, "factors is a Tensor, expected what verify gave"),
        ((out, factors), layer, "factors is a Tensor, expected what verify gave for each layer"),
        (factors, None, "pool is a NoneType, expected a StatePool"),
        (factors, [layer.state], "pool is a Tensor, expected layers of a StatePool"),
    ]
    for given, pool, message in spoiled:
        with pytest.raises(LaunchError, match=message):
            call.kernel.commit(given, accepted, pool, call.slots)


def test_slots_beyond_the_pool_are_refused_where_they_can_be_read(call: Call) -> None:
    factors, accepted = _round(call, layers=1), torch.zeros(3, dtype=INT)
    beyond = torch.tensor([0, 4, -1], dtype=INT)
    for name in ("target_slots", "track_slots"):
        options = {name: beyond} | ({"track_nodes": accepted} if name == "track_slots" else {})
        with pytest.raises(LaunchError, match=f"{name} holds 4, the pool has slots 0 to 3"):
            call.kernel.commit(factors, accepted, call.pool.layer(0), call.slots, **options)
    call.slots = beyond
    with pytest.raises(LaunchError, match="slots holds 4, the pool has slots 0 to 3"):
        call.verify()


def test_track_nodes_and_slots_go_together(call: Call) -> None:
    factors, accepted = _round(call, layers=1), torch.zeros(3, dtype=INT)
    for name, absent in (("track_nodes", "track_slots"), ("track_slots", "track_nodes")):
        with pytest.raises(LaunchError, match=f"{absent} is missing"):
            call.kernel.commit(
                factors, accepted, call.pool.layer(0), call.slots, **{name: call.slots}
            )


def test_layers_with_other_strides_are_committed_apart(call: Call) -> None:
    space = call.kernel.workspace(3, 5, 2)
    call.options |= {"workspace": space, "layer": 0}
    first = call.verify(0)[1]
    call.inputs["q"] = _bf16(5, 128)[:, :64].unflatten(1, (2, 32))
    call.options["layer"] = 1
    second = call.verify(1)[1]
    with pytest.raises(LaunchError, match="layer 1 have other shapes or token strides than"):
        call.kernel.commit([first, second], torch.zeros(3, dtype=INT), call.pool, call.slots)


def test_a_kernel_of_one_tree_makes_its_batches() -> None:
    kernel, _ = recorded()
    with pytest.raises(LaunchError, match="parents are missing"):
        kernel.tree_batch(requests=2)
    assert boleir.TreeBatch is TreeBatch
