"""Conventions against fla-core: every shipped recurrence it has an op for, on a chain.

`TRITON_INTERPRET=1 python -m benchmarks.fla_conventions [FOLDER]` prints, as JSON, the worst error
of an output and of the last state, relative to the norm of the reference, for each comparison. Left
stands boleir's sequential walk in float64 of the raw inputs of the `.bole` file; right stands
fla-core in float32, which is given what its op expects: projections gated, normalised and laid out
here, in torch. Scales, norms, gates, the order of decay and read, and layouts must therefore agree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import boleir as bole
from benchmarks.fla_references import load_references
from benchmarks.peers import Kernel, peers_folder
from boleir.check.inputs import convolved
from boleir.ir import Input, Kind, Per, Recurrence
from boleir.library import load_module
from boleir.oracle import sequential

TOKENS, D_K, D_V, GROUPED, EQUAL = 23, 8, 6, (2, 4), (3, 3)

Arrays = dict[str, Tensor]
Result = tuple[Tensor, Tensor | None]
Op = Callable[[Mapping[str, Kernel], Arrays, Tensor], Result]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One op of fla-core against one recurrence; `agrees` is False where it is known to differ."""

    name: str
    recurrence: str
    op: Op
    heads: tuple[int, int] = EQUAL
    agrees: bool = True
    starts_at_zero: bool = False
    sets: tuple[str, ...] = ()
    """Inputs that the op replaces, since its reference fixes or extends them."""
    shows: Callable[[np.ndarray], np.ndarray] = np.asarray
    """What follows our output outside the recurrence."""


COMPARISONS: list[Comparison] = []


def _against(
    recurrence: str,
    name: str = "",
    *,
    heads: tuple[int, int] = EQUAL,
    agrees: bool = True,
    starts_at_zero: bool = False,
    sets: tuple[str, ...] = (),
    shows: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> Callable[[Op], Op]:
    def register(op: Op) -> Op:
        made = Comparison(
            name or recurrence, recurrence, op, heads, agrees, starts_at_zero, sets, shows
        )
        COMPARISONS.append(made)
        return op

    return register


def norm(x: Tensor) -> Tensor:
    """x / sqrt(sum x^2 + 1e-6) over the last axis."""
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def token_first(*tensors: Tensor) -> tuple[Tensor, ...]:
    """[T, H, ...] to [1, T, H, ...]."""
    return tuple(x[None] for x in tensors)


def head_first(*tensors: Tensor) -> tuple[Tensor, ...]:
    """[T, H, ...] to [1, H, T, ...]."""
    return tuple(x.transpose(0, 1)[None] for x in tensors)


def _from_head_first(result: tuple[Tensor, Tensor]) -> Result:
    out, state = result
    return out[0].transpose(0, 1), state[0]


def _from_token_first(result: tuple[Tensor, Tensor]) -> Result:
    out, state = result
    return out[0], state[0]


@_against("linear_attention")
def _linear(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = token_first(x["q"], x["k"], x["v"])
    result = ops["linear_attention"](*given, initial_state=state[None], output_final_state=True)
    return _from_token_first(result)


def quotient(out: np.ndarray) -> np.ndarray:
    """All value columns but the last over the last."""
    return out[..., :-1] / out[..., -1:]


@_against(
    "linear_attention",
    "linear_attention, normalised by a value column of ones",
    starts_at_zero=True,
    sets=("q", "k", "v"),
    shows=quotient,
)
def _normalised(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    values = x["v"][..., :-1]
    x["q"], x["k"] = x["q"].abs(), x["k"].abs()
    x["v"] = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1)
    out, _ = ops["linear_attention"](*token_first(x["q"], x["k"], values), normalize=True)
    return out[0], None


@_against("retention", starts_at_zero=True, sets=("log_gamma",))
def _retention(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    # The reference fixes the decays of the paper; the parameter has to hold their logarithms.
    x["log_gamma"] = torch.log1p(-(2.0 ** (-5.0 - torch.arange(len(x["log_gamma"])))))
    out = ops["retention"](*head_first(x["q"], x["k"], x["v"]))
    return out[0].transpose(0, 1), None


@_against("simple_gla")
def _simple_gla(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = token_first(x["q"], x["k"], x["v"], x["g"])
    return _from_token_first(ops["simple_gla"](*given, initial_state=state[None]))


@_against("mamba2")
def _mamba2(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    delta = functional.softplus(x["dt"] + x["dt_bias"])
    given = token_first(x["C"], x["B"] * delta[..., None], x["x"], -torch.exp(x["A_log"]) * delta)
    out, last = ops["simple_gla"](*given, scale=1.0, initial_state=state[None])
    return out[0] + x["D"][:, None] * x["x"], last[0]


@_against("gla")
def _gla(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = token_first(x["q"], x["k"], x["v"], x["g"])
    return _from_token_first(ops["gla"](*given, initial_state=state[None], output_final_state=True))


@_against("rwkv6")
def _rwkv6(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = head_first(x["r"], x["k"], x["v"], x["w"])
    result = ops["rwkv6"](
        *given, x["u"], scale=1.0, initial_state=state[None], output_final_state=True
    )
    return _from_head_first(result)


@_against("delta_rule")
def _delta_rule(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = head_first(norm(x["q"]), norm(x["k"]), x["v"], x["b"].sigmoid())
    return _from_head_first(ops["delta_rule"](*given, initial_state=state[None]))


def _gated(ops: Mapping[str, Kernel], x: Arrays) -> tuple[Tensor, Tensor]:
    gate = ops["gdn_gate"](x["a"], x["A_log"], x["dt_bias"])
    return token_first(x["b"].sigmoid(), gate)  # type: ignore[return-value]


@_against("gated_delta_rule")
def _gated_delta_rule(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = token_first(norm(x["q"]), norm(x["k"]), x["v"])
    result = ops["gated_delta_rule"](
        *given, *_gated(ops, x), initial_state=state[None], output_final_state=True
    )
    return _from_token_first(result)


@_against("gated_delta_rule", "gated_delta_rule, kernel with grouped heads", heads=GROUPED)
def _gated_delta_rule_kernel(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    beta, gate = _gated(ops, x)
    result = ops["gated_delta_rule_kernel"](
        *token_first(x["q"], x["k"], x["v"]),
        g=gate,
        beta=beta,
        initial_state=state[None].clone(),
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )
    return _from_token_first(result)


@_against("gdn")
def _gdn(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    for name in "qkv":
        tokens, heads, size = x[name].shape
        past = torch.cat([x[f"{name}_window"], x[name].reshape(tokens, -1).T], dim=1)
        taps = x[f"{name}_weight"][:, None]
        mixed = functional.silu(functional.conv1d(past[None], taps, groups=heads * size))[0]
        x[name] = mixed.T.reshape(tokens, heads, size)
    return _gated_delta_rule(ops, x, state)


@_against("kda", heads=GROUPED)
def _kda(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    group = len(state) // x["q"].shape[1]
    raw = x["f"].repeat_interleave(group, dim=1)
    gate = ops["kda_gate"](raw, x["A_log"], x["dt_bias"].flatten())
    return _kda_with(ops, x, state, gate)


@_against("kda_bounded", heads=GROUPED, sets=("lower_bound",))
def _kda_bounded(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    x["lower_bound"] = torch.full_like(x["lower_bound"], -5.0)
    group = len(state) // x["q"].shape[1]
    raw = x["f"].repeat_interleave(group, dim=1)
    gate = ops["kda_bounded_gate"](raw, x["A_log"], x["dt_bias"].flatten(), -5.0)
    return _kda_with(ops, x, state, gate)


def _kda_with(ops: Mapping[str, Kernel], x: Arrays, state: Tensor, gate: Tensor) -> Result:
    given = token_first(norm(x["q"]), norm(x["k"]), x["v"], gate, x["b"].sigmoid())
    return _from_token_first(ops["kda"](*given, initial_state=state[None], output_final_state=True))


def _comba(ops: Mapping[str, Kernel], x: Arrays, state: Tensor, op: str) -> Result:
    beta, gate = _gated(ops, x)
    q, k, v, p = token_first(norm(x["q"]), norm(x["k"]), x["v"], x["p"])
    result = ops[op](
        q=q, k=k, v=v, p=p, g=gate, beta=beta, initial_state=state[None], output_final_state=True
    )
    return _from_token_first(result)


@_against("comba", "comba, chunked reference")
def _comba_chunk(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    return _comba(ops, x, state, "comba_chunk")


@_against("comba", "comba, kernel with grouped heads", heads=GROUPED)
def _comba_kernel(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    return _comba(ops, x, state, "comba_kernel")


@_against("comba", "comba, recurrent reference (decays before it reads)", agrees=False)
def _comba_recurrent(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    return _comba(ops, x, state, "comba_recurrent")


@_against("iplr")
def _iplr(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = head_first(x["q"], x["k"], x["v"], x["a"], x["b"])
    return _from_head_first(ops["iplr"](*given, initial_state=state[None]))


@_against("dplr")
def _dplr(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    given = head_first(x["q"], x["k"], x["v"], x["a"], x["b"], x["g"])
    return _from_head_first(ops["dplr"](*given, initial_state=state[None]))


@_against("rwkv7")
def _rwkv7(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    rate = x["a"].sigmoid()
    kappa = norm(x["k"] * x["k_k"])
    key = ops["rwkv7_key"](x["k"], rate, x["k_a"])
    log_decay = -0.6065306597126334 * x["w"].sigmoid()
    # The op scales its query by d_k^(-1/2), the layer does not.
    query = x["r"] * D_K**0.5
    given = head_first(query, key, x["v"], -kappa, kappa * rate, log_decay)
    return _from_head_first(ops["dplr"](*given, initial_state=state[None]))


@_against("gated_delta_product")
def _gated_delta_product(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    def steps(first: Tensor, second: Tensor) -> Tensor:
        return torch.stack([first, second], dim=1).flatten(0, 1)[None]

    result = ops["gated_delta_product"](
        q=norm(x["q"])[None],
        k=steps(norm(x["k1"]), norm(x["k2"])),
        v=steps(x["v1"], x["v2"]),
        g=ops["gdn_gate"](x["a"], x["A_log"], x["dt_bias"])[None],
        beta=2 * steps(x["b1"], x["b2"]).sigmoid(),
        scale=D_K**-0.5,
        initial_state=state[None],
        num_householder=2,
    )
    return _from_token_first(result)


@_against("gated_oja", "gated_oja, kernel with grouped heads", heads=GROUPED)
def _gated_oja(ops: Mapping[str, Kernel], x: Arrays, state: Tensor) -> Result:
    q, k, v, gate, beta = token_first(x["q"], x["k"], x["v"], x["g"], x["b"].sigmoid())
    result = ops["gated_oja_kernel"](
        q,
        k,
        v,
        gate,
        beta,
        initial_state=state[None],
        output_final_state=True,
        use_q_l2norm=True,
        use_k_l2norm=True,
    )
    return _from_token_first(result)


def draw(recurrence: Recurrence, heads: tuple[int, int]) -> Arrays:
    """Raw inputs [T, heads, size] in float32; log-gates negative; convolution weights and windows.

    They carry the names of the inputs, `NAME_weight` and `NAME_window`.
    """
    form = bole.derive(recurrence)
    rng = torch.Generator().manual_seed(len(recurrence.name))

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    def size(item: Input) -> tuple[int, ...]:
        key_heads, value_heads = heads
        of_key = item.kind is Kind.KEY and item.per is Per.TOKEN
        rows = key_heads if of_key else value_heads
        return {Kind.HEAD: (rows,), Kind.KEY: (rows, D_K), Kind.VALUE: (rows, D_V)}[item.kind]

    made: Arrays = {}
    for item in recurrence.inputs:
        made[item.name] = normal(*([TOKENS] if item.per is Per.TOKEN else []), *size(item))
        if item.per is Per.HEAD and item.kind is Kind.KEY:  # of a key head: its group agrees
            group = heads[1] // heads[0]
            made[item.name] = made[item.name][::group].repeat_interleave(group, dim=0)
        if item.name in ("g", "w", "log_gamma"):
            made[item.name] = -made[item.name].abs()
    for item, width in convolved(form):
        channels = int(np.prod(size(item)))
        made[f"{item.name}_weight"] = normal(channels, width) / width**0.5
        made[f"{item.name}_window"] = normal(channels, width - 1)
    if "a" in made and "b" in made and made["a"].dim() == 3:  # keeps iplr and dplr contracting
        made["a"], made["b"] = norm(made["a"]) / 2, norm(made["b"]) / 2
    return made


def errors(comparison: Comparison, ops: Mapping[str, Kernel]) -> dict[str, float]:
    """Worst error per token of the output, and that of the last state, both relative."""
    recurrence = next(
        item
        for module in map(load_module, bole.names())
        for item in module.recurrences
        if item.name == comparison.recurrence
    )
    made = draw(recurrence, comparison.heads)
    state = torch.randn(comparison.heads[1], D_K, D_V, generator=torch.Generator().manual_seed(1))
    if comparison.starts_at_zero:
        state = torch.zeros_like(state)
    given = {name: value.clone() for name, value in made.items()}
    out, last = comparison.op(ops, given, state.clone())
    fixed = {name: given[name] for name in comparison.sets}
    arrays = {name: value.double().numpy() for name, value in (made | fixed).items()}
    walked = sequential(
        recurrence,
        arrays,
        [i - 1 for i in range(TOKENS)],
        state.double().numpy(),
        weights={n.removesuffix("_weight"): x for n, x in arrays.items() if n.endswith("_weight")},
        windows={n.removesuffix("_window"): x for n, x in arrays.items() if n.endswith("_window")},
        keep=(TOKENS - 1,),
    )
    found = {"output": _relative(out.double().numpy(), comparison.shows(walked.output))}
    if last is not None:
        found["state"] = _relative(last.double().numpy()[None], walked.states[TOKENS - 1][None])
    return found


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Worst over the first axis of the norm of the difference over the norm."""
    rows = len(theirs)
    difference = np.linalg.norm((ours - theirs).reshape(rows, -1), axis=1)
    return float((difference / np.linalg.norm(theirs.reshape(rows, -1), axis=1)).max())


def main(arguments: list[str]) -> int:
    """Command line: the folder of the peers, if not the usual one."""
    ops = load_references(peers_folder(arguments[0] if arguments else None))
    found = {c.name: {**errors(c, ops), "agrees": c.agrees} for c in COMPARISONS}
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
