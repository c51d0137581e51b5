"""`compile` and `load_compiled`: from a recurrence, or from a compiled folder, to a `Kernel`."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from boleir.codegen.artifact import Artifact
from boleir.codegen.interface import Interface, interface_of
from boleir.errors import CacheError, CompileError, ScheduleError
from boleir.runtime.jit import compiled, interpreted, interpreting
from boleir.runtime.kernel import Kernel
from boleir.runtime.program import SIZES, BinaryProgram

if TYPE_CHECKING:
    from boleir.codegen.pipeline import Lowered
    from boleir.codegen.request import Shapes
    from boleir.codegen.schedule import Schedule
    from boleir.codegen.targets import Target
    from boleir.ir import Recurrence
    from boleir.language.tree_spec import TreeSpec
    from boleir.runtime.driver import Driver


def compile(
    recurrence: Recurrence | str,
    *,
    key_heads: int,
    value_heads: int,
    d_k: int,
    d_v: int,
    max_nodes: int | None = None,
    max_depth: int | None = None,
    dtype: str | torch.dtype | None = None,
    state_dtype: str | torch.dtype = "float32",
    out_dtype: str | torch.dtype | None = None,
    target: str | Target | None = None,
    schedule: Schedule | None = None,
    batch: int = 1,
    tree: TreeSpec | str | None = None,
) -> Kernel:
    """Kernels for one recurrence and shape.

    Args:
        recurrence: a `Recurrence`, or the name of one in the library.
        key_heads, value_heads: value head h uses key head h // (value_heads // key_heads).
        d_k, d_v: entries of a key and of a value.
        max_nodes, max_depth: bounds of every request's tree, 64 nodes (at most 256) and max_nodes
            - 1 edges below a root by default. Not given with `tree`.
        dtype: of token inputs and convolution windows: "bfloat16" (by default), "float16" or
            "float32" (by default when interpreted); torch's own names are taken too.
        state_dtype, out_dtype: of the states and of the outputs (by default that of the inputs).
        target: the GPU to compile for, such as "sm_90" (`boleir.codegen.targets` lists them); by
            default the one present. With TRITON_INTERPRET=1 and no target, kernels are interpreted
            on the CPU: slow, for tests and study.
        schedule: how to compute; by default the tuned one for this GPU where there is one (see
            `boleir.runtime.tuning.settings`), else one chosen from the shapes and from `batch`.
        batch: about how many requests come at once; any number may.
        tree: a static tree, then a constant of the kernels, or a bounded one; or its text.

    Raises:
        BoleirError: `DerivationError`, `ScheduleError` and `CompileError` name what is wrong.
    """
    from boleir.codegen.pipeline import lower
    from boleir.codegen.request import Shapes
    from boleir.library import resolve

    recurrence = resolve(recurrence)
    interpret = target is None and interpreting()
    chosen = None if interpret else _target(target)
    nodes, depth, parents = _bounds(tree, max_nodes, max_depth)
    shapes = Shapes(
        key_heads,
        value_heads,
        d_k,
        d_v,
        nodes,
        depth,
        _spelled(dtype) or ("float32" if interpret else "bfloat16"),
        _spelled(state_dtype) or "float32",
        parents,
        _spelled(out_dtype),
    )
    _require_schedule(schedule)
    _require_batch(batch)
    if interpret:
        _refuse_interpreted(shapes)
        schedule = schedule or _exact_schedule(recurrence, shapes)
        return _interpreted(lower(recurrence, shapes, schedule=schedule))
    assert chosen is not None
    if schedule is None:
        from boleir.runtime.tuning.lookup import tuned_schedule

        schedule = tuned_schedule(recurrence, shapes, chosen, batch)
    lowered = lower(recurrence, shapes, schedule=schedule, target=chosen, batch=batch)
    return _from_artifact(compiled(lowered, chosen), chosen.name, interface_of(lowered))


def load_compiled(
    folder: str | Path | Artifact,
    *,
    target: str | None = None,
    device: int | None = None,
    driver: Driver | None = None,
) -> Kernel:
    """The kernel of a compiled folder, loaded on a GPU; no compiler is imported.

    Args:
        folder: what `bolec compile` or `Kernel.save` wrote, or its content in memory.
        target: which of the folder's binaries to take; by default those for the device.
        device: number of the GPU, by default torch's current one.
        driver: stands in for the CUDA driver, in tests.

    Raises `CacheError` for a bad folder or one without binaries for this GPU.
    """
    from boleir.codegen.artifact_folder import read

    at = _current_device() if device is None else device
    artifact = folder if isinstance(folder, Artifact) else read(folder)
    name = _fitting(artifact, at) if target is None else target
    return _from_artifact(artifact, name, device=at, driver=driver)


def _fitting(artifact: Artifact, device: int) -> str:
    """The newest target of a compiled folder whose binaries run on a GPU."""
    from boleir.codegen.targets import TARGETS
    from boleir.runtime.loader import device_target

    own = device_target(device).name
    there = {variant.target for variant in artifact.variants}
    if own in there:
        return own
    capability = torch.cuda.get_device_capability(device)
    fitting = [x.name for x in TARGETS.values() if x.name in there and x.runs_on(capability)]
    return fitting[-1] if fitting else artifact.variant(own).target


def _from_artifact(
    artifact: Artifact,
    target: str,
    face: Interface | None = None,
    *,
    device: int | None = None,
    driver: Driver | None = None,
) -> Kernel:
    """A kernel from compiled binaries; it runs if the GPU present is its target."""
    variant = artifact.variant(target)
    if face is None:
        faces = artifact.extra.get("interfaces")
        if not isinstance(faces, dict) or target not in faces:
            raise CacheError(
                f"{artifact.name}: the compiled folder does not describe its arguments",
                mend="compile again",
            )
        face = Interface.from_json(faces[target])
    program, where = None, torch.device("cpu")
    if device is None and _present(target):
        device = _current_device()
    if device is not None:
        from boleir.runtime.loader import load

        loaded = load(artifact, SIZES, device=device, target=target, driver=driver)
        if driver is None:
            program = BinaryProgram(loaded.launchers, device)
            where = torch.device("cuda", device)
        else:
            program = BinaryProgram(loaded.launchers, device, stream=lambda _: 0)
    text = artifact.files[variant.source].decode()
    return Kernel(face, program, where, text=text, target=target, artifact=artifact)


def _interpreted(lowered: Lowered) -> Kernel:
    face = interface_of(lowered)
    return Kernel(face, interpreted(lowered), torch.device("cpu"), text=lowered.text)


def _target(target: str | Target | None) -> Target:
    from boleir.codegen.targets import target as find_target

    if target is not None:
        return find_target(target)
    if not torch.cuda.is_available():
        raise CompileError(
            "no GPU is present to compile for",
            mend="name a target such as sm_90 to compile without running, or set "
            "TRITON_INTERPRET=1 to interpret the kernels on the CPU",
        )
    from boleir.runtime.loader import device_target

    return device_target(_current_device())


def _bounds(
    tree: TreeSpec | str | None, max_nodes: int | None, max_depth: int | None
) -> tuple[int, int, tuple[int, ...] | None]:
    if tree is None:
        nodes = 64 if max_nodes is None else max_nodes
        return nodes, nodes - 1 if max_depth is None else max_depth, None
    if max_nodes is not None or max_depth is not None:
        raise CompileError("max_nodes and max_depth come from the tree when one is given")
    if isinstance(tree, str):
        from boleir.language.parser import parse_tree

        tree = parse_tree(tree)
    if not hasattr(tree, "max_nodes"):
        raise CompileError(
            f"tree is a {type(tree).__name__}, expected a tree of the language or its text",
            mend="boleir.parents(-1, 0, 0)",
        )
    return tree.max_nodes, tree.max_depth, getattr(tree, "parents", None)


def _spelled(dtype: str | torch.dtype | None) -> str | None:
    """The name of a format."""
    return str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype


def _require_schedule(schedule: object) -> None:
    from boleir.codegen.schedule import Schedule

    if schedule is not None and not isinstance(schedule, Schedule):
        raise ScheduleError(
            f"schedule is a {type(schedule).__name__}, expected a Schedule",
            mend="boleir.codegen.schedule.Schedule(solver='horner', ...)",
        )


def _require_batch(batch: object) -> None:
    from boleir.codegen.request import RequestError

    if isinstance(batch, bool) or not isinstance(batch, Integral) or batch < 1:
        raise RequestError(f"batch must be a whole number of at least 1, not {batch!r}")


def _exact_schedule(recurrence: Recurrence, shapes: Shapes) -> Schedule:
    """The default schedule without tensor-core tricks: the interpreter has no bfloat16."""
    from boleir.codegen.defaults import default_schedule
    from boleir.codegen.planner import make_plan
    from boleir.derive.derive import derive

    normal = derive(recurrence).normal
    plan = make_plan(normal, shapes.d_k, shapes.d_v, shapes.key_heads, shapes.value_heads)
    return replace(default_schedule(plan, shapes), precision="ieee")


def _refuse_interpreted(shapes: Shapes) -> None:
    for name in ("dtype", "state_dtype", "out_dtype"):
        if getattr(shapes, name) == "bfloat16":
            raise CompileError(
                f"{name} bfloat16: the interpreter computes wrong numbers with it",
                mend=f"{name}='float32'",
            )


def _present(target: str) -> bool:
    from boleir.codegen.targets import target as find_target

    if not torch.cuda.is_available():
        return False
    return find_target(target).runs_on(torch.cuda.get_device_capability())


def _current_device() -> int:
    return torch.cuda.current_device() if torch.cuda.is_available() else 0
