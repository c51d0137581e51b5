"""Which schedule is fastest here: a space of schedules, a model, a tuner, and a store of results.

`boleir.compile` asks `lookup.tuned_schedule`; `bolec autotune` runs `autotune`; `bolec cache` looks
after the store. Nothing in this package decides whether a kernel is right: every schedule of the
space is, and the tuner checks each one before it times it.
"""
