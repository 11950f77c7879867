"""ops_random.py - cases for compiler/ops/random.c whose result is certain; tests/random_draws.py looks at the distributions."""
import numpy as np

from op_models import TYPES, Case


def cases():
    for dtype, kind in TYPES.items():
        one = np.ones((2, 3), kind)
        yield Case("bernoulli_never_" + dtype, "Bernoulli", [("p", 0 * one)], ["y"], opset=15 if dtype != "bf16" else 22, dtype=dtype, expected=[0 * one])
        yield Case("bernoulli_always_" + dtype, "Bernoulli", [("p", one)], ["y"], opset=15 if dtype != "bf16" else 22, dtype=dtype, expected=[one])
    yield Case("bernoulli_type", "Bernoulli", [("p", np.ones(4, np.float32))], ["y"], {"dtype": 7}, opset=15, expected=[np.ones(4, np.int64)])
    like = np.zeros((3, 4), np.float32)
    yield Case("uniform_point", "RandomUniform", [], ["y"], {"shape": [3, 4], "low": 2.5, "high": 2.5}, opset=7, expected=[like + 2.5])
    yield Case("uniform_like_point", "RandomUniformLike", [("x", like)], ["y"], {"low": -1.0, "high": -1.0}, opset=7, expected=[like - 1])
    yield Case("normal_point", "RandomNormal", [], ["y"], {"shape": [5], "mean": 1.5, "scale": 0.0, "dtype": 11}, opset=7, expected=[np.full(5, 1.5)])
    yield Case("normal_like_point", "RandomNormalLike", [("x", like)], ["y"], {"mean": 0.5, "scale": 0.0}, opset=7, expected=[like + 0.5])
    certain = np.array([[-100, 0, -100], [0, -100, -100]], np.float32)
    yield Case("multinomial_certain", "Multinomial", [("p", certain)], ["y"], {"sample_size": 4}, opset=7,
               expected=[np.repeat(np.array([[1], [0]], np.int32), 4, 1)])
