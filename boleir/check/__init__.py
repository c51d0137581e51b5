"""Proof and measurement: is the closed form the recurrence, and do the kernels compute it?

`check` runs everything; `inputs` makes the adversarial cases, which GPU tests use as well;
`mutants` holds the wrong rules that the checks must be able to see."""
