"""fla-core's plain torch references and a few of its kernels, by the names of our recurrences.

They settle conventions: scales, norms, gates, the order of decay and read. Each reference lies in a
file of its own; its package, which would import every kernel, is passed over.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import Kernel, import_fla_file

REFERENCES: dict[str, tuple[str, str]] = {
    "comba_chunk": ("comba.naive", "naive_chunk_comba"),
    "comba_kernel": ("comba.fused_recurrent", "fused_recurrent_comba"),
    "comba_recurrent": ("comba.naive", "naive_recurrent_comba"),
    "delta_rule": ("delta_rule.naive", "delta_rule_recurrence"),
    "dplr": ("generalized_delta_rule.dplr.naive", "dplr_recurrence"),
    "gated_delta_product": ("gated_delta_product.naive", "naive_recurrent_gated_delta_product"),
    "gated_delta_rule": ("gated_delta_rule.naive", "naive_recurrent_gated_delta_rule"),
    "gated_delta_rule_kernel": (
        "gated_delta_rule.fused_recurrent",
        "fused_recurrent_gated_delta_rule",
    ),
    "gated_oja_kernel": ("gated_oja_rule.fused_recurrent", "fused_recurrent_gated_oja_rule"),
    "gdn_gate": ("gated_delta_rule.gate", "naive_gdn_gate"),
    "gla": ("gla.naive", "naive_recurrent_gla"),
    "iplr": ("generalized_delta_rule.iplr.naive", "iplr_recurrence"),
    "kda": ("kda.naive", "naive_recurrent_kda"),
    "kda_bounded_gate": ("kda.gate", "naive_kda_lowerbound_gate"),
    "kda_gate": ("kda.gate", "naive_kda_gate"),
    "linear_attention": ("linear_attn.naive", "naive_recurrent_linear_attn"),
    "retention": ("retention.naive", "naive_retention"),
    "rwkv6": ("rwkv6.recurrent_naive", "naive_recurrent_rwkv6"),
    "rwkv7_key": ("rwkv7.fused_k_update", "k_update_ref"),
    "simple_gla": ("simple_gla.naive", "naive_recurrent_simple_gla"),
}
"""Our name -> (file below fla/ops, function). A `_kernel` needs a GPU or TRITON_INTERPRET=1."""


def load_references(folder: Path) -> dict[str, Kernel]:
    """Every reference of the table; raises `PeersMissingError`."""
    return {
        name: getattr(import_fla_file(folder, file), function)
        for name, (file, function) in REFERENCES.items()
    }
