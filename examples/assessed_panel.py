"""Three opinions about a new drug pooled without any data, by what is believed about those who hold them.

A statistical model and two reviewers give the probability that a drug passes its trial. Such drugs pass in 30% of
trials, and all three know that. The reviewers are somewhat too sure of themselves (calibration 0.8), each half as
accurate as the model, and have read the same papers (correlation 0.7); the model has not (0.2).
"""

import numpy as np

import opinionpool as op

panel = op.Panel.from_features(
    calibration=[1.0, 0.8, 0.8],
    correlation=[[1.0, 0.2, 0.2], [0.2, 1.0, 0.7], [0.2, 0.7, 1.0]],
    relative_accuracy=[1.0, 0.5, 0.5],
    names=["model", "alice", "bob"],
)

for name, weight in zip(panel.names, panel.weights, strict=True):
    print(f"weight of {name:<6} {weight:.3f}")

opinions = [0.45, 0.60, 0.55]
print(f"all three say        {panel.pool(opinions, prior=0.3):.3f}")
print(f"without bob          {panel.pool([0.45, 0.60, np.nan], prior=0.3):.3f}")
print(f"where 10% pass       {panel.pool(opinions, prior=0.3, base_rate=0.1):.3f}")
