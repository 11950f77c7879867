"""onerow_filters.py - a step of LinearAttention with the causal convolution and the norms of query and key before it, in one launch
(passes/fuse_filter.c, compiler/ops/linear_step.c), and when they stay launches. The states are updated in place. Expected values,
of the states too, by onnxruntime in float32 from the same rounded inputs."""
import numpy as np

from op_models import Graph, random

MS = "com.microsoft"
ONE = {"linear_step": 1, "causal_conv": 0, "reduce": 0, "standardise": 0, "launches": 2}  # and what advances the extents
APART = {"linear_step": 1, "causal_conv": 1, "reduce": 2}


class Filter(Graph):
    """HEADS of query and key, VALUES of the value. NORM: how query and key are normed, by name, or a pair of them; SHOWN: an inner value
    that is an output too, "filtered" or "query"."""

    def __init__(self, name, dtype, kernels=None, batch=1, tokens=1, heads=2, values=4, key=32, value=32, taps=4, bias=True, activation="silu",
                 norm="squares", rule="gated_delta", order="split", shown=(), dilation=None, keep=True, queries=None):
        super().__init__("%s_%s" % (name, dtype), dtype, ONE if kernels is None else kernels, tolerance=(2e-5, 2e-5) if dtype == "f32" else (3e-2, 1e-2))
        self.batch, self.tokens, self.heads, self.values, self.key, self.value = batch, tokens, heads, values, key, value
        self.widths = [(queries or heads) * key, heads * key, values * value]
        if order in ("same", "value_is_key"):  # fewer parts, of which one is read twice
            self.widths = [heads * key, values * value]
        if order == "spare":
            self.widths.append(8)
        self.queries, self.order = queries or heads, order
        x = self.input("x", random(1, (batch, tokens, sum(self.widths)), dtype))
        turned = self.node("Transpose", [x], perm=[0, 2, 1])
        conv = [turned, self.weight((sum(self.widths), 1, taps), 0.5), self.weight((sum(self.widths),)) if bias else ""]
        states = ["past_key_values.0.conv_state", "past_key_values.0.recurrent_state"]
        if keep:
            conv.append(self.input(states[0], random(2, (batch, sum(self.widths), (taps - 1) * (dilation or 1)), dtype)))
        more = {"dilation": dilation} if dilation else {}
        filtered = self.node("CausalConvWithState", conv, ["filtered", "present.0.conv_state" if keep else "unused"], MS, activation=activation, **more)
        self.filtered = filtered[0]
        q, k, v = self.apart()
        norms = norm if isinstance(norm, tuple) else (norm, norm)
        q, k = self.norm(q, self.queries, norms[0], "query"), self.norm(k, heads, norms[1], "key")
        inputs = [q, k, v, self.input(states[1], random(3, (batch, values, key, value), dtype, 0.3))]
        shape = (batch, tokens, values)
        inputs.append(self.input("decay", -np.abs(random(4, shape, dtype))) if "gated" in rule else "")
        if "delta" in rule:
            inputs.append(self.input("beta", np.abs(random(5, shape, dtype, 0.3))))
        self.node("LinearAttention", inputs, ["y", "present.0.recurrent_state"], MS, q_num_heads=self.queries, kv_num_heads=values, update_rule=rule)
        self.output("y", "present.0.recurrent_state", *(["present.0.conv_state"] if keep else []), *shown)

    def apart(self):
        """Query, key and value of the convolution's output, [batch, tokens, width]."""
        widths = self.constant(np.array(self.widths))
        if self.order == "split_first":
            parts = self.node("Split", [self.filtered, widths], 3, axis=1)
            return [self.node("Transpose", [part], perm=[0, 2, 1]) for part in parts]
        whole = self.node("Transpose", [self.filtered], perm=[0, 2, 1])
        parts = self.node("Split", [whole, widths], len(self.widths), axis=-1)
        return parts[:3] if len(parts) > 2 else [parts[0], parts[1 if self.order == "value_is_key" else 0], parts[1]]

    def norm(self, x, heads, kind, name):
        if kind is None:
            return x
        size = [self.batch * self.tokens * heads, self.key] if self.order == "flat" else [self.batch, self.tokens, heads, self.key]
        x = self.node("Reshape", [x, self.constant(np.array(size))])
        made = getattr(self, "norm_" + kind)(x, [name] if name == "query" else 1)
        made = self.node("Reshape", [made, self.constant(np.array([self.batch, self.tokens, heads * self.key]))])
        return self.node("Mul", [made, self.constant(np.asarray(0.25).astype(self.inputs[0][1].dtype))]) if kind == "lp" else made

    def last(self):
        return self.constant(np.array([-1]))

    def small(self, v=0.5):
        return self.constant(np.asarray(v).astype(self.inputs[0][1].dtype))

    def norm_squares(self, x, out):
        return self.node("Div", [x, self.node("Sqrt", [self.node("ReduceSumSquare", [x, self.last()])])], out)

    def norm_epsilon(self, x, out):
        total = self.node("Add", [self.node("ReduceSumSquare", [x, self.last()]), self.small()])
        return self.node("Mul", [x, self.node("Reciprocal", [self.node("Sqrt", [total])])], out)

    def norm_product(self, x, out):
        total = self.node("ReduceSum", [self.node("Mul", [x, x]), self.last()])
        return self.node("Div", [x, self.node("Sqrt", [self.node("Add", [total, self.small()])])], out)

    def norm_root(self, x, out):
        return self.node("Div", [x, self.node("Max", [self.node("ReduceL2", [x, self.last()]), self.small(1e-3)])], out)

    def norm_weighted(self, x, out):
        y = self.node("Div", [x, self.node("ReduceL2", [x, self.last()])])
        return self.node("Mul", [y, self.weight((self.key,))], out)

    def norm_lp(self, x, out):
        return self.node("LpNormalization", [x], out, axis=-1, p=2)

    def norm_whole(self, x, out):
        """Not of a head, but of all channels."""
        whole = self.node("Reshape", [x, self.constant(np.array([self.batch, self.tokens, -1]))])
        return self.norm_squares(whole, out)


def taken(dtype):
    yield Filter("plain", dtype, key=128, value=128, heads=1, values=3)
    yield Filter("batch", dtype, batch=3)
    yield Filter("alike", dtype, heads=4, values=4, key=16, value=16)
    yield Filter("columns", dtype, heads=1, values=2, key=64, value=72)
    yield Filter("odd", dtype, key=40, value=24, taps=3)
    yield Filter("large", dtype, heads=1, values=2, key=256, value=64, batch=2)
    yield Filter("taps", dtype, taps=2, bias=False, activation="none")
    for kind in ("epsilon", "product", "root", "weighted", "lp"):
        yield Filter(kind, dtype, norm=kind, batch=2)
    yield Filter("bare", dtype, norm=None)
    yield Filter("query", dtype, norm=("squares", None))
    yield Filter("key", dtype, norm=(None, "lp"))
    yield Filter("mixed", dtype, norm=("epsilon", "weighted"), order="flat")
    yield Filter("split_first", dtype, order="split_first", rule="delta")
    yield Filter("gated", dtype, order="flat", rule="gated")
    yield Filter("fresh", dtype, keep=False)
    yield Filter("same", dtype, order="same", batch=2)


def kept(dtype):
    yield Filter("shown", dtype, APART, shown=["filtered"])
    yield Filter("shown_query", dtype, APART, shown=["query"])
    yield Filter("tokens", dtype, {"linear_step": 0, "linear_attention": 1}, tokens=2)
    yield Filter("dilated", dtype, APART, dilation=2)
    yield Filter("long", dtype, APART, key=256, value=32, taps=5)
    yield Filter("whole", dtype, {"linear_step": 1, "causal_conv": 1}, norm="whole")
    yield Filter("value_is_key", dtype, {"linear_step": 1, "causal_conv": 1}, order="value_is_key", values=2)
    yield Filter("spare", dtype, APART, order="spare")
    yield Filter("queries", dtype, {"linear_step": 1, "causal_conv": 1}, queries=4)


def cases():
    for dtype in ("f32", "f16", "bf16"):
        yield from taken(dtype)
    yield from kept("bf16")
