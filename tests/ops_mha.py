"""ops_mha.py - cases for compiler/ops/mha.c and for com.microsoft Trilu. Expected values: onnxruntime; by hand where its CPU provider refuses
packed projections."""
import numpy as np

from op_models import TYPES, Case, Const, random

MS = "com.microsoft"


def lengths(*values):
    return np.array(values, np.int32)


def marks(seed, shape):
    """A mask that leaves each row a key."""
    mask = np.random.default_rng(seed).integers(0, 2, shape).astype(np.int32)
    mask[..., 0] = 1
    return mask


def multi(name, dtype="f32", batch=2, heads=3, rows=4, keys=None, head=8, vhead=None, past=None, bias=False, padding=None, scores=None, given=False,
          present=False, oracle="ort", **attrs):
    keys, vhead = rows if keys is None else keys, vhead or head
    new = (lambda seed, d: random(seed, (batch, heads, keys, d), dtype)) if given else lambda seed, d: random(seed, (batch, keys, heads * d), dtype)
    inputs = [("q", random(1, (batch, rows, heads * head), dtype)), ("k", new(2, head)), ("v", new(3, vhead))]
    inputs += [Const(random(4, (heads * (2 * head + vhead),), dtype)) if bias else None, None if padding is None else ("padding", padding),
               None if scores is None else ("scores", random(5, scores, dtype))]
    if past is not None:
        inputs += [("past_key", random(6, (batch, heads, past, head), dtype)), ("past_value", random(7, (batch, heads, past, vhead), dtype))]
    outputs = ["y", "present_key", "present_value"] if past is not None or present else ["y"]
    return Case("multi_" + name, "MultiHeadAttention", inputs, outputs, {"num_heads": heads, **attrs}, MS, dtype=dtype, oracle=oracle)


def multis():
    for dtype in TYPES:
        yield multi("self_" + dtype, dtype)
        yield multi("bias_" + dtype, dtype, bias=True, batch=3)
        yield multi("past_" + dtype, dtype, rows=1, past=5, bias=True)
        yield multi("padding_" + dtype, dtype, padding=marks(8, (2, 4)))
    yield multi("cross", rows=3, keys=7, vhead=16)
    yield multi("cross_bias", rows=1, keys=5, bias=True, head=24)
    yield multi("one", batch=1, heads=1, rows=1, head=5)
    yield multi("given", rows=2, keys=6, given=True)
    yield multi("given_bias", rows=2, keys=6, given=True, bias=True)
    yield multi("empty_past", past=0, rows=3)
    yield multi("present", present=True)
    yield multi("lengths", padding=lengths(2, 4))
    yield multi("lengths_past", padding=lengths(6, 3), past=3, rows=3)
    yield multi("padding_past", padding=marks(9, (2, 9)), past=5)
    yield multi("padding_rows", padding=marks(10, (2, 4, 4)))
    yield multi("padding_filter", padding=marks(11, (2, 4)), mask_filter_value=-2.0)
    yield multi("padding_all", padding=np.zeros((2, 4), np.int32))  # a finite value: the softmax of the scores themselves
    yield multi("scores", scores=(2, 3, 4, 4))
    yield multi("scores_shared", scores=(1, 1, 4, 4))
    yield multi("scores_heads", scores=(1, 3, 4, 9), past=5)
    yield multi("scores_padding", scores=(1, 3, 4, 4), padding=marks(12, (2, 4)))
    yield multi("causal", unidirectional=1)
    yield multi("causal_past", unidirectional=1, past=3, padding=marks(13, (2, 7)))
    yield multi("scale", scale=0.7, bias=True)
    for dtype in ("f32", "f16"):
        yield packed("qkv_" + dtype, dtype, 3)
        yield packed("kv_" + dtype, dtype, 2)
    yield packed("qkv_bias", "f32", 3, bias=True)


def attend(q, k, v):
    """[B, heads, rows, D] each, in float64."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ v


def packed(name, dtype, parts, bias=False):
    batch, rows, keys, heads, head = 2, 3, 3 if parts == 3 else 5, 2, 8
    both = random(1, (batch, keys, heads, parts, head), dtype)
    alone = random(2, (batch, rows, heads * head), dtype)
    vector = random(3, (3, heads, 1, head), dtype)
    views = [both[:, :, :, i].transpose(0, 2, 1, 3).astype(np.float64) for i in range(parts)]
    if parts == 2:
        views.insert(0, alone.reshape(batch, rows, heads, head).transpose(0, 2, 1, 3).astype(np.float64))
    if bias:
        views = [v + b.astype(np.float64) for v, b in zip(views, vector)]
    y = attend(*views).transpose(0, 2, 1, 3).reshape(batch, rows, heads * head).astype(np.float32).astype(TYPES[dtype])
    inputs = [("qkv", both), None, None] if parts == 3 else [("q", alone), ("kv", both), None]
    return Case("packed_" + name, "MultiHeadAttention", inputs + ([Const(vector.reshape(-1))] if bias else []), ["y"], {"num_heads": heads}, MS, dtype=dtype,
                expected=[y])


def whole(name, dtype="f32", batch=2, rows=4, width=12, heads=3, sizes=None, bias=True, mask=None, past=None, scores=None, present=False, **attrs):
    hidden = sizes or [24, 24, 24]
    inputs = [("x", random(1, (batch, rows, width), dtype)), Const(random(2, (width, sum(hidden)), dtype, 0.3)),
              Const(random(3, (sum(hidden),), dtype)) if bias else None, None if mask is None else ("mask", mask)]
    inputs += [None if past is None else ("past", random(4, (2, batch, heads, past, hidden[0] // heads), dtype)),
               None if scores is None else ("scores", random(5, scores, dtype))]
    attrs.update(num_heads=heads, **({"qkv_hidden_sizes": sizes} if sizes else {}))
    return Case("whole_" + name, "Attention", inputs, ["y", "present"] if past is not None or present else ["y"], attrs, MS, dtype=dtype)


def wholes():
    for dtype in TYPES:
        yield whole("plain_" + dtype, dtype)
        yield whole("past_" + dtype, dtype, rows=1, past=5, batch=3)
        yield whole("mask_" + dtype, dtype, mask=marks(6, (2, 4)))
    yield whole("no_bias", bias=False)
    yield whole("one", batch=1, rows=1, width=5, heads=1, sizes=[7, 7, 7])
    yield whole("sizes", sizes=[24, 24, 48])
    yield whole("empty_past", past=0)
    yield whole("present", present=True)
    yield whole("lengths", mask=lengths(3, 4))
    yield whole("mask_past", mask=marks(7, (2, 7)), past=3)
    yield whole("mask_rows", mask=marks(8, (2, 4, 4)))
    yield whole("causal", unidirectional=1)
    yield whole("causal_past", unidirectional=1, past=6, rows=3)
    yield whole("scores", scores=(2, 3, 4, 4))
    yield whole("scores_mask", scores=(1, 3, 4, 4), mask=marks(9, (2, 4)), mask_filter_value=-5.0)
    yield whole("scale", scale=0.2)


def trilus():
    for i, (shape, kind) in enumerate((((4, 4), np.float32), ((3, 1, 7), np.float32), ((2, 5, 3), np.int64), ((1, 1), np.float16), ((0, 3), np.float32))):
        x = np.random.default_rng(i).integers(1, 9, shape).astype(kind)
        for upper, k in ((1, None), (0, -1), (1, 2)):
            y = np.triu(x, k or 0) if upper else np.tril(x, k or 0)
            yield Case("trilu_%d_%d_%s" % (i, upper, k), "Trilu", [("x", x)] + ([] if k is None else [("k", np.array(k))]), ["y"], {"upper": upper}, MS,
                       expected=[y])


def cases():
    yield from multis()
    yield from wholes()
    yield from trilus()
