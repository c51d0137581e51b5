"""Emission: lines of readable Triton from a plan and a schedule. One file per kernel."""
