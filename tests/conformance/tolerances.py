"""tolerances.py - how near a result must be to ONNX's expected one. Integers, bools, shapes and dtypes are exact; NaN equals NaN."""
import re

import numpy as np

RTOL, ATOL = 1e-3, 1e-5

# By dtype: where the expected values were rounded differently on the way (numpy computes each step of a function in the dtype).
BY_DTYPE = {}

# By name: (pattern, rtol, atol, reason).
BY_NAME = []


# What these give is another thing each time: of it only dtype and shape are compared, and that Bernoulli's are zeros and ones. The
# distributions have tests of their own (tests/ops_random.py).
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def is_random(model):
    return any(node.op_type in RANDOM for node in model.graph.node)


def tolerance(test, dtype):
    for pattern, rtol, atol, _ in BY_NAME:
        if re.search(pattern, test.name):
            return rtol, atol
    return BY_DTYPE.get(str(dtype), (RTOL, ATOL))


def exact(dtype):
    return dtype.kind in "iub" or str(dtype) in ("int4", "uint4", "int2", "uint2")


def differs(test, name, expected, found):
    """None, or the first difference."""
    if test.random:
        strange = "bernoulli" in test.name and not np.all((found == 0) | (found == 1))
        return "output '%s': expected zeros and ones" % name if strange else None
    if exact(expected.dtype):
        good = expected == found
    else:
        rtol, atol = tolerance(test, expected.dtype)
        wide = np.float64
        with np.errstate(invalid="ignore"):
            good = np.isclose(found.astype(wide), expected.astype(wide), rtol, atol, equal_nan=True)
    if np.all(good):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
    return "output '%s' %s: expected %s, found %s; %d of %d differ" % (name, list(at), expected[at], found[at],
                                                                     np.size(good) - np.count_nonzero(good), np.size(good))
