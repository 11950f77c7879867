"""ops_recurrent.py - cases for compiler/ops/recurrent.c.

onnxruntime computes com.microsoft's rows (float32), where it has them; a loop over the tokens, written here after the text
of the specification, computes the rest."""
import numpy as np

from op_models import TYPES, Case, Const, random

RULES = ("linear", "gated", "delta", "gated_delta")


def attend(q, k, v, state, decay, beta, q_heads, kv_heads, rule, scale):
    """Output and state, in float64: A.1 of the facts."""
    q, k, v, state = (np.asarray(a, np.float32).astype(np.float64) for a in (q, k, v, state))
    batch, tokens = q.shape[:2]
    dk, dv = state.shape[2:]
    k_heads, heads = k.shape[2] // dk, max(q_heads, kv_heads)
    q, k, v = q.reshape(batch, tokens, q_heads, dk), k.reshape(batch, tokens, k_heads, dk), v.reshape(batch, tokens, kv_heads, dv)
    out = np.zeros((batch, tokens, heads, dv))
    for b, t, h in np.ndindex(batch, tokens, kv_heads):
        s, key, value = state[b, h], k[b, t, h * k_heads // kv_heads], v[b, t, h]
        if "gated" in rule:
            g = np.asarray(decay, np.float64)[b, t].reshape(kv_heads, -1)[h]
            s = s * np.exp(g)[:, None]
        change = value
        if "delta" in rule:
            rate = np.asarray(beta, np.float64)[b, t]
            change = rate[h if len(rate) > 1 else 0] * (value - key @ s)
        s = s + np.outer(key, change)
        state[b, h] = s
        if q_heads >= kv_heads:
            group = q_heads // kv_heads
            for j in range(group):
                out[b, t, h * group + j] = scale * (q[b, t, h * group + j] @ s)
        else:
            out[b, t, h] = scale * (q[b, t, h * q_heads // kv_heads] @ s)
    return out.reshape(batch, tokens, heads * dv), state


def linear_case(name, rule, seed=0, batch=1, tokens=3, q_heads=2, kv_heads=2, k_heads=None, dk=16, dv=16, wide=False, shared=False,
                past=True, dtype="f32", state_dtype=None, scale=None, domain="com.microsoft", opset=None, oracle=None):
    k_heads, state_dtype = k_heads or kv_heads, state_dtype or dtype
    q, k = random(seed, (batch, tokens, q_heads * dk), dtype), random(seed + 1, (batch, tokens, k_heads * dk), dtype, dk ** -.5)
    v, state = random(seed + 2, (batch, tokens, kv_heads * dv), dtype), random(seed + 3, (batch, kv_heads, dk, dv), state_dtype)
    decay = -np.abs(random(seed + 4, (batch, tokens, kv_heads * (dk if wide else 1)), "f32")).astype(TYPES[dtype])
    beta = 1 / (1 + np.exp(-random(seed + 5, (batch, tokens, 1 if shared else kv_heads), "f32")))
    beta = beta.astype(TYPES[dtype])
    inputs = [("q", q), ("k", k), ("v", v), ("past", state) if past else None, ("decay", decay) if "gated" in rule else None,
              ("beta", beta) if "delta" in rule else None]
    attrs = {"q_num_heads": q_heads, "kv_num_heads": kv_heads, "update_rule": rule}
    if scale is not None:
        attrs["scale"] = scale
    expected = None
    if not oracle:
        start = state if past else np.zeros_like(state)
        y, present = attend(q, k, v, start, decay, beta, q_heads, kv_heads, rule, scale or dk ** -.5)
        expected = [y.astype(TYPES[dtype]), present.astype(TYPES[state_dtype if past else dtype])]
    tolerance = (1e-4, 1e-5) if dtype == "f32" else None
    return Case(name, "LinearAttention", inputs, ["y", "present"], attrs, domain, opset=opset, expected=expected, dtype=dtype,
                oracle=oracle or "ort", tolerance=tolerance)


def linear():
    for rule in RULES:
        for tokens in (1, 5):
            yield linear_case("ort_%s_%d" % (rule, tokens), rule, tokens=tokens, oracle="ort")
        for dtype in ("f32", "f16", "bf16"):
            yield linear_case("%s_%s" % (rule, dtype), rule, seed=10, batch=2, tokens=4, dtype=dtype)
        yield linear_case("none_%s" % rule, rule, seed=20, past=False)
    for rule in ("gated", "gated_delta"):
        yield linear_case("wide_%s" % rule, rule, seed=30, wide=True, q_heads=4, kv_heads=2)
        yield linear_case("ort_wide_%s" % rule, rule, seed=30, wide=True, oracle="ort")
    yield linear_case("shared_beta", "gated_delta", seed=40, shared=True, kv_heads=4, q_heads=4)
    yield linear_case("ort_groups", "gated_delta", seed=50, q_heads=6, kv_heads=2, oracle="ort")
    yield linear_case("many_groups", "gated_delta", seed=51, q_heads=12, kv_heads=1, dk=1000, dv=9) # queries too many for shared memory
    yield linear_case("groups", "gated_delta", seed=50, q_heads=6, kv_heads=2, dk=20, dv=12)
    yield linear_case("ort_inverse", "gated_delta", seed=60, q_heads=2, kv_heads=6, k_heads=2, oracle="ort")
    yield linear_case("inverse", "gated_delta", seed=60, batch=2, q_heads=2, kv_heads=6, k_heads=3, dk=128, dv=72)
    yield linear_case("large", "gated_delta", seed=70, tokens=2, dk=256, dv=33, scale=0.5)
    yield linear_case("zero_scale", "linear", seed=71, scale=0.0)
    yield linear_case("one_row", "gated", seed=72, dk=1, dv=1)
    yield linear_case("state_f32", "gated_delta", seed=80, dtype="f16", state_dtype="f32", domain="", opset=27)
    yield linear_case("standard", "gated_delta", seed=81, q_heads=4, kv_heads=2, domain="", opset=27)


def steps():
    """One token: vectors of columns (linear_step.cu), where they fit."""
    for rule in RULES:
        yield linear_case("step_%s" % rule, rule, seed=90, batch=2, tokens=1, q_heads=2, kv_heads=4, k_heads=2, dk=128, dv=128, dtype="bf16")
    yield linear_case("step_ort", "gated_delta", seed=91, tokens=1, dk=128, dv=72, kv_heads=4, k_heads=2, oracle="ort")
    yield linear_case("step_rows", "gated_delta", seed=92, tokens=1, dk=100, dv=40, dtype="f16")
    yield linear_case("step_wide", "gated_delta", seed=93, tokens=1, wide=True, shared=True, dk=37, dv=8, dtype="bf16")
    yield linear_case("step_state_f32", "gated_delta", seed=94, tokens=1, dk=64, dv=64, dtype="f16", state_dtype="f32", domain="", opset=27)
    yield linear_case("step_none", "gated_delta", seed=95, tokens=1, dk=64, dv=64, past=False)
    yield linear_case("step_groups", "gated_delta", seed=96, tokens=1, q_heads=4, kv_heads=2, dk=64, dv=64)
    yield linear_case("step_large", "gated_delta", seed=97, tokens=1, dk=256, dv=64)
    yield linear_case("step_larger", "gated_delta", seed=98, tokens=1, dk=260, dv=64)


def conv(x, w, bias, past, silu, dilation=1):
    x, w = np.asarray(x, np.float32), np.asarray(w, np.float32)
    taps = w.shape[2]
    before = (taps - 1) * dilation
    old = np.zeros((*x.shape[:2], before), np.float32) if past is None else np.asarray(past, np.float32)
    seq = np.concatenate([old, x], 2)
    y = sum(w[None, :, 0, t, None] * seq[:, :, t * dilation:t * dilation + x.shape[2]] for t in range(taps))
    if bias is not None:
        y = y + np.asarray(bias, np.float32)[None, :, None]
    return y / (1 + np.exp(-y)) if silu else y, seq[:, :, seq.shape[2] - before:]


def conv_case(name, seed=100, batch=2, channels=40, length=7, taps=4, bias=True, past=True, activation="none", dilation=None,
              dtype="f32", domain="com.microsoft", opset=None, ort=False):
    x, w = random(seed, (batch, channels, length), dtype), random(seed + 1, (channels, 1, taps), dtype)
    b = random(seed + 2, (channels,), dtype) if bias else None
    old = random(seed + 3, (batch, channels, (taps - 1) * (dilation or 1)), dtype) if past else None
    attrs = {"activation": activation}
    if dilation:
        attrs["dilation"] = dilation
    expected = None
    if not ort:
        expected = [a.astype(TYPES[dtype]) for a in conv(x, w, b, old, activation != "none", dilation or 1)]
    return Case(name, "CausalConvWithState", [("x", x), Const(w), Const(b) if bias else None, ("past", old) if past else None],
                ["y", "present"], attrs, domain, opset=opset, expected=expected, dtype=dtype)


def convs():
    for length in (1, 2, 7):
        for activation in ("none", "silu", "swish"):
            yield conv_case("conv_ort_%d_%s" % (length, activation), length=length, activation=activation, ort=True)
        for dtype in ("f16", "bf16"):
            yield conv_case("conv_%d_%s" % (length, dtype), length=length, activation="silu", dtype=dtype)
        yield conv_case("conv_plain_%d" % length, length=length, bias=False, past=False)
        yield conv_case("conv_dilated_%d" % length, length=length, dilation=3)
    yield conv_case("conv_long", batch=1, channels=300, length=90, taps=3)
    yield conv_case("conv_one_tap", taps=2, length=1)
    yield conv_case("conv_standard", activation="silu", domain="", opset=27)


def vectors():
    """facts/operators.md section D."""
    one = np.array([[[1, 0]]], np.float32)
    yield Case("vector_gated_delta", "LinearAttention",
               [("q", one), ("k", one), ("v", np.array([[[2, 3]]], np.float32)), ("past", np.array([[[[1, 2], [3, 4]]]], np.float32)),
                ("decay", np.zeros((1, 1, 1), np.float32)), ("beta", np.full((1, 1, 1), .5, np.float32))], ["y", "present"],
               {"q_num_heads": 1, "kv_num_heads": 1, "scale": 1.0}, "com.microsoft",
               expected=[np.array([[[1.5, 2.5]]], np.float32), np.array([[[[1.5, 2.5], [3, 4]]]], np.float32)])
    yield Case("vector_conv", "CausalConvWithState",
               [("x", np.array([[[3]]], np.float32)), Const(np.array([[[.1, .2, .3]]], np.float32)), None,
                ("past", np.array([[[1, 2]]], np.float32))], ["y", "present"], {}, "com.microsoft",
               expected=[np.array([[[1.4]]], np.float32), np.array([[[2, 3]]], np.float32)])


def cases():
    yield from linear()
    yield from steps()
    yield from convs()
    yield from vectors()
