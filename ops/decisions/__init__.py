"""Decisions: what an op communicates and computes, known before anything runs.

A rule takes `Value`s, which have a spec but no data, and records steps: relay this value out to
that layout, run this function on each device's part. The result is a `Decision` (`decision.py`).
Read `specs.py` first: what is known of a value. It is

* sharded: each device has its part of a layout's storage;
* replicated: every device has all of it; or
* deferred: a broadcast, or a function of logical indices and random keys alone. It is computed
  where an operation requests it, in a `Place` (`place.py`, `deferred.py`), once per place.

Steps are recorded in three layers: steps (`writer.py`), moves of values (`mover.py`), and choices
of layouts (`builder.py`), which is what rules get. `env.py` has what decisions depend on besides
the op. `record.py` is all that is known of a primitive: its rules, FLOPs (`flops.py`), and factors
(`factors.py`): which dims of operands and results correspond. `facts.py` computes the known value
of padding, if every backend computes the same. `reshapes.py` and `blocks.py` find layouts that
describe the same data in another shape.
"""
