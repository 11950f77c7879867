"""ops_embed.py - cases for compiler/ops/embed.c; expected values: onnxruntime's."""
import numpy as np

from op_models import TYPES, Case, Const, random


def embed(name, dtype="f32", batch=2, rows=5, width=12, segments=False, mask=False, positions=None, outputs=("y", "index"), **attrs):
    rng = np.random.default_rng(1)
    ids = lambda shape, count: rng.integers(0, count, shape).astype(np.int32)
    inputs = [("ids", ids((batch, rows), 20)), ("segments", ids((batch, rows), 2)) if segments else None, Const(random(2, (20, width), dtype)),
              Const(random(3, (9, width), dtype)), Const(random(4, (2, width), dtype)) if segments else None, Const(random(5, (width,), dtype)),
              Const(random(6, (width,), dtype)), ("mask", ids((batch, rows), 2)) if mask else None,
              None if positions is None else ("positions", ids((positions, rows), 9))]
    return Case("embed_" + name, "EmbedLayerNormalization", inputs, list(outputs), {"epsilon": 1e-5, **attrs}, "com.microsoft", dtype=dtype)


def cases():
    for dtype in TYPES:
        yield embed("plain_" + dtype, dtype)
        yield embed("all_" + dtype, dtype, segments=True, mask=True, positions=2, outputs=("y", "index", "sum"))
    yield embed("segments", segments=True)
    yield embed("mask", mask=True)
    yield embed("positions_shared", positions=1, batch=3)
    yield embed("one_row", batch=1, rows=1, width=1)
    yield embed("odd", batch=3, rows=7, width=33, segments=True)
    yield embed("wide", width=1030, mask=True)
    yield embed("sum", outputs=("y", "", "sum"))
