#!/usr/bin/env python3
"""make_onerow_decoders.py - writes small random decoders whose steps go through the kernels for one row, with golden answers.

    tests/make_onerow_decoders.py FOLDER

FOLDER/NAME has model.onnx, capacity.txt (rows of the states), kernels.txt (launches of a decode step by kernel), for some tuning.txt, and what plan-run --verify
reads: prompts.txt, tokens.txt, margins.txt and logits_NNN.pb, by onnxruntime in float32 from the same rounded weights."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import op_models  # noqa: E402
from op_models import Graph  # noqa: E402
from ops_attention import tables  # noqa: E402
from ops_moe import quantised  # noqa: E402
from onerow_attention import cut  # noqa: E402
from onerow_products import product, silu  # noqa: E402

MS = "com.microsoft"
VOCABULARY, CAPACITY, STEPS = 48, 256, 70
PROMPTS = (1, 5, 33, 100)  # lengths; a prefill step takes up to 64


class Decoder(Graph):
    """LAYERS of attention and a gated product, as exporters write them. NORMS: head norms as "nodes" or "inputs"; TURNED:
    rotations as nodes, with a row of angles for each token ("rows") or by their positions ("positions"); GATED: half of each query head gates
    what comes of the other; CLUSTERS: blocks and rounds of the attention's clusters (a tuning file), which have few keys then; ATTRS: of
    GroupQueryAttention."""

    def __init__(self, name, dtype, kind="plain", hidden=64, heads=4, kv_heads=2, head=64, half=0, norms=None, packed=False, positions=False,
                 sinks=False, layers=2, wide=96, turned=None, gated=False, capacity=CAPACITY, prompts=PROMPTS, clusters=None, **attrs):
        super().__init__(name, dtype, {})
        self.kind, self.hidden, self.heads, self.kv_heads, self.head, self.norms, self.packed = kind, hidden, heads, kv_heads, head, norms, packed
        self.layers, self.wide, self.sinks, self.positions, self.attrs_ = layers, wide, sinks, positions, attrs
        self.capacity, self.prompts = capacity, prompts
        if clusters:  # for one row and for three (gcc-plan --rows)
            self.tuning = "".join(cut("heads=%dx%d,d=%d" % (rows * kv_heads, heads // kv_heads, head), *clusters) for rows in (1, 3))
        self.tables = [self.constant(t) for t in tables(capacity, half, dtype)] if half else ["", ""]
        self.turned, self.gated, self.half, self.angles = turned, gated, half, None
        self.attrs_.update(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(half > 0 and not turned))
        self.body()

    def body(self):
        lengths, total = self.lengths()
        x = self.node("Gather", [self.weight((VOCABULARY, self.hidden), 2.0), "input_ids"])
        y = self.node("SimplifiedLayerNormalization", [x, self.weight((self.hidden,))], epsilon=1e-6)
        for i in range(self.layers):
            made = product(self, self.kind, self.attention(i, y, lengths, total), self.heads * self.head, self.hidden)
            x, y = self.skip_norm(x, made)
            x, y = self.skip_norm(x, self.wide_part(y))
        product(self, self.kind, y, self.hidden, VOCABULARY, out=["logits"])

    def wide_part(self, y):
        gate, up = product(self, self.kind, y, self.hidden, self.wide), product(self, self.kind, y, self.hidden, self.wide)
        return product(self, self.kind, self.node("Mul", [silu(self, gate), up]), self.wide, self.hidden)

    def lengths(self):
        """Rows of each sequence but one, and of all, from the mask."""
        one = self.constant(np.array([1], np.int64))
        count = self.node("ReduceSum", ["attention_mask", one], keepdims=0)
        shape = self.node("Shape", ["attention_mask"])
        total = self.node("Gather", [shape, self.constant(np.int64(1))])
        return self.node("Cast", [self.node("Sub", [count, one])], to=TensorProto.INT32), self.node("Cast", [total], to=TensorProto.INT32)

    def skip_norm(self, x, made):
        outputs = [self.fresh("normed"), "", "", self.fresh("sum")]
        self.node("SkipSimplifiedLayerNormalization", [x, made, self.weight((self.hidden,))], outputs, MS, epsilon=1e-6)
        return outputs[3], outputs[0]

    def attention(self, i, y, lengths, total):
        widths = [n * self.head for n in (self.heads, self.kv_heads, self.kv_heads)]
        if self.packed:
            q = [product(self, self.kind, y, self.hidden, sum(widths)), "", ""]
        else:
            q = [product(self, self.kind, y, self.hidden, w) for w in [widths[0] * (1 + self.gated)] + widths[1:]]
        gate = None
        if self.gated:
            both = self.node("Reshape", [q[0], self.constant(np.array([0, 0, self.heads, 2 * self.head]))])
            q[0], gate = self.node("Split", [both], 2, axis=-1, num_outputs=2)
            gate = self.node("Reshape", [gate, self.constant(np.array([0, 0, widths[0]]))])
        weights = [self.weight((self.head,)) for _ in range(2)] if self.norms else []
        if self.norms == "nodes":
            q[:2] = [self.head_norm(x, w, scale) for x, w, scale in zip(q, widths, weights)]
        if self.turned:
            q[:2] = [self.turn(x, heads) for x, heads in zip(q, (self.heads, self.kv_heads))]
        inputs = q + ["past_key_values.%d.%s" % (i, kind) for kind in ("key", "value")] + [lengths, total, *(["", ""] if self.turned else self.tables)]
        inputs += ["position_ids" if self.positions and not self.turned else "", "", self.weight((self.heads,)) if self.sinks else "", "", ""]
        inputs += weights if self.norms == "inputs" else []
        while not inputs[-1]:
            inputs.pop()
        outputs = [self.fresh("attended")] + ["present.%d.%s" % (i, kind) for kind in ("key", "value")]
        attended = self.node("GroupQueryAttention", inputs, outputs, MS, **self.attrs_)[0]
        return self.node("Mul", [attended, self.node("Sigmoid", [gate])]) if gate else attended

    def turn(self, x, heads):
        """RotaryEmbedding of ONNX, or of com.microsoft by positions."""
        attrs = {"num_heads": heads, "rotary_embedding_dim": 2 * self.half}
        if self.turned == "positions":
            return self.node("RotaryEmbedding", [x, "position_ids", *self.tables], 1, MS, **attrs)
        if not self.angles:
            self.angles = [self.node("Gather", [table, "position_ids"]) for table in self.tables]
        return self.node("RotaryEmbedding", [x, *self.angles], **attrs)

    def head_norm(self, x, width, scale):
        apart = x if self.gated and width == self.heads * self.head else self.node("Reshape", [x, self.constant(np.array([0, 0, -1, self.head]))])
        normed = self.node("RMSNormalization", [apart, scale], epsilon=1e-6)
        return self.node("Reshape", [normed, self.constant(np.array([0, 0, width]))])

    def states(self, i):
        """Layer i's by name, and their dims behind the batch; None: grows."""
        return {"%d.%s" % (i, part): (self.kv_heads, None, self.head) for part in ("key", "value")}

    def model(self, wide):
        kind = TensorProto.FLOAT if wide else op_models.tensor_type(op_models.TYPES[self.dtype])
        convert = op_models.widen if wide else np.asarray
        info = helper.make_tensor_value_info
        states = [(name, shape) for i in range(self.layers) for name, shape in self.states(i).items()]
        inputs = [info("input_ids", TensorProto.INT64, ["batch", "sequence"]), info("attention_mask", TensorProto.INT64, ["batch", "total"])]
        if self.positions:
            inputs.append(info("position_ids", TensorProto.INT64, ["batch", "sequence"]))
        outputs = [info("logits", kind, ["batch", "sequence", VOCABULARY])]
        for name, shape in states:
            inputs.append(info("past_key_values." + name, kind, ["batch", *("past" if d is None else d for d in shape)]))
            outputs.append(info("present." + name, kind, ["batch", *("total" if d is None else d for d in shape)]))
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, [op_models.to_proto(convert(a), n) for n, a in self.constants])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in op_models.OPSETS.items()])
        model.ir_version = 10
        return model

    def kernel_counts(self):
        """The norms go into the products behind them and into the attention, gates into the product behind it; the length, a sum over the mask, is known;
        positions are fed."""
        return {"gemv": 4 * self.layers + 1, "norm": 0, "attention_one": self.layers, "gqa_prepare": 0, "reduce": 0, "rotary": 0, "copy": 0,
                "pointwise": int(self.positions)}


class Mixture(Decoder):
    """A router and experts, and a shared one that a number between 0 and 1 scales, made behind them."""

    EXPERTS, TOP = 24, 3

    def wide_part(self, y):
        rows = self.node("Reshape", [product(self, self.kind, y, self.hidden, self.EXPERTS), self.constant(np.array([-1, self.EXPERTS]))])
        rng, inputs, zeros = np.random.default_rng(3000 + self.made), [], []
        for shape in ((self.EXPERTS, 2 * self.wide, self.hidden), (self.EXPERTS, self.hidden, self.wide)):
            packed, scale, zero, *_ = quantised(rng, shape, 4, 32, True)
            inputs += [self.constant(packed), self.constant((scale / 2).astype(op_models.TYPES[self.dtype])), ""]
            zeros.append(self.constant(zero))
        # What onnxruntime's CPU provider computes: shares are normalised, gates and what they scale lie in turns.
        experts = self.node("QMoE", [y, rows] + inputs + ["", "", ""] + zeros, 1, MS, k=self.TOP, activation_type="swiglu", swiglu_fusion=1,
                            expert_weight_bits=4, block_size=32, normalize_routing_weights=1, weights_prepacked=0)
        shared = super().wide_part(y)
        scale = self.node("Sigmoid", [product(self, "plain", y, self.hidden, 1)])
        return self.node("Add", [experts, self.node("Mul", [shared, scale])])

    def kernel_counts(self):
        beside = self.kind.endswith("z")  # the shared one's last product has zero points, as the experts' have
        return {"gemv": (4 - beside) * self.layers + 1, "norm": 0, "moe_route": 0, "moe_up": self.layers, "moe_down": self.layers, "pointwise": 0}


class Hybrid(Decoder):
    """Its first layers but one have a recurrence, whose step is one launch from the convolution's input on."""

    RECURRENT = {"heads": 2, "values": 4, "key": 32, "value": 40, "taps": 4}

    def attention(self, i, y, lengths, total):
        if i == self.layers - 1:
            return super().attention(i, y, lengths, total)
        r = self.RECURRENT
        widths = [r["heads"] * r["key"], r["heads"] * r["key"], r["values"] * r["value"]]
        mixed = product(self, self.kind, y, self.hidden, sum(widths))
        past, present = ["past_key_values.%d." % i, "present.%d." % i]
        conv = [self.node("Transpose", [mixed], perm=[0, 2, 1]), self.weight((sum(widths), 1, r["taps"]), 0.5), "", past + "conv_state"]
        filtered = self.node("CausalConvWithState", conv, [self.fresh("filtered"), present + "conv_state"], MS, activation="silu")[0]
        parts = self.node("Split", [self.node("Transpose", [filtered], perm=[0, 2, 1]), self.constant(np.array(widths))], 3, axis=-1)
        parts[:2] = [self.l2_norm(part, r["key"]) for part in parts[:2]]
        decay = self.node("Neg", [self.node("Softplus", [product(self, self.kind, y, self.hidden, r["values"])])])
        beta = self.node("Sigmoid", [product(self, self.kind, y, self.hidden, r["values"])])
        outputs = [self.fresh("recurred"), present + "recurrent_state"]
        made = self.node("LinearAttention", [*parts, past + "recurrent_state", decay, beta], outputs, MS, q_num_heads=r["heads"], kv_num_heads=r["values"])
        return product(self, self.kind, made[0], widths[2], self.heads * self.head)

    def l2_norm(self, x, size):
        apart = self.node("Reshape", [x, self.constant(np.array([0, 0, -1, size]))])
        total = self.node("ReduceSumSquare", [apart, self.constant(np.array([-1]))])
        total = self.node("Add", [total, self.constant(np.asarray(1e-3).astype(op_models.TYPES[self.dtype]))])
        normed = self.node("Div", [apart, self.node("Sqrt", [total])])
        return self.node("Reshape", [normed, self.constant(np.array([0, 0, self.RECURRENT["heads"] * size]))])

    def states(self, i):
        if i == self.layers - 1:
            return super().states(i)
        r = self.RECURRENT
        channels = 2 * r["heads"] * r["key"] + r["values"] * r["value"]
        return {"%d.conv_state" % i: (channels, r["taps"] - 1), "%d.recurrent_state" % i: (r["values"], r["key"], r["value"])}

    def kernel_counts(self):
        return {"linear_step": self.layers - 1, "causal_conv": 0, "reduce": 0, "attention_one": 1}


class Oracle:
    def __init__(self, decoder):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self.decoder = decoder
        self.session = onnxruntime.InferenceSession(decoder.model(True).SerializeToString(), options, providers=["CPUExecutionProvider"])

    def answer(self, prompt):
        """Logits of the prompt's last token and of STEPS - 1 greedy ones behind it."""
        d, ids, found = self.decoder, np.array([prompt]), []
        shapes = {name: shape for i in range(d.layers) for name, shape in d.states(i).items()}
        states = {"past_key_values." + name: np.zeros([1] + [n or 0 for n in shape], np.float32) for name, shape in shapes.items()}
        past = 0
        for _ in range(STEPS):
            feeds = {"input_ids": ids, "attention_mask": np.ones((1, past + ids.shape[1]), np.int64), **states}
            if d.positions:
                feeds["position_ids"] = np.arange(past, past + ids.shape[1])[None]
            logits, *presents = self.session.run(None, feeds)
            states, past = dict(zip(states, presents)), past + ids.shape[1]
            found.append(logits[0, -1])
            ids = np.array([[int(found[-1].argmax())]])
        return found


def decoders():
    yield Decoder("nodes_f16", "f16", "nbits32", half=32, norms="nodes")
    yield Decoder("window_bf16", "bf16", "nbits32z", heads=4, kv_heads=1, half=8, rotary_interleaved=1, local_window_size=20, sinks=True)
    yield Decoder("packed_f16", "f16", "plain", heads=6, kv_heads=6, half=16, packed=True, positions=True, softcap=4.0)
    yield Mixture("experts_f16", "f16", "nbits32z", half=32)
    yield Mixture("experts_bf16", "bf16", "nbits32", half=32)
    yield Decoder("turned_f16", "f16", "nbits32", half=16, norms="nodes", positions=True, turned="rows", gated=True)
    yield Decoder("gated_bf16", "bf16", "nbits32z", head=128, heads=6, half=32, norms="nodes", gated=True)
    yield Decoder("turned_bf16", "bf16", "plain", head=128, heads=4, half=64, positions=True, turned="positions")
    yield Decoder("nodes_bf16", "bf16", "plain", head=128, heads=2, kv_heads=2, half=64, norms="nodes", smooth_softmax=1)
    # heads that few keys fill a block of: one part, several, more than a merge fetches at once
    yield Decoder("split_f16", "f16", "nbits32", head=256, half=32, layers=1, capacity=1024, prompts=(1, 250, 600))
    yield Decoder("split_bf16", "bf16", "plain", head=256, heads=6, half=128, layers=1, capacity=1024, prompts=(1, 130, 700), local_window_size=640)
    # clusters of blocks of 64 and 16 keys: steps within the first block's, within one cluster's, and beyond
    yield Decoder("cluster_f16", "f16", "nbits32", half=32, norms="nodes", layers=1, capacity=512, prompts=(1, 40, 210), clusters=(4, 1))
    yield Decoder("cluster_bf16", "bf16", "plain", head=256, heads=5, kv_heads=1, half=128, sinks=True, layers=1, capacity=384, prompts=(1, 100, 230), local_window_size=300,
                  clusters=(8, 2))
    yield Hybrid("hybrid_f16", "f16", "nbits32", half=32, layers=3)
    yield Hybrid("hybrid_bf16", "bf16", "plain", layers=2)


def save(decoder, folder):
    os.makedirs(folder)
    onnx.save(decoder.model(False), os.path.join(folder, "model.onnx"))
    rng = np.random.default_rng(1)
    oracle = Oracle(decoder)
    lines = {"prompts": [], "tokens": [], "margins": []}
    for number, length in enumerate(decoder.prompts):
        prompt = rng.integers(0, VOCABULARY, length).tolist()
        found = oracle.answer(prompt)
        order = [np.sort(logits) for logits in found]
        lines["prompts"].append(" ".join(map(str, prompt)))
        lines["tokens"].append(" ".join(str(int(logits.argmax())) for logits in found))
        lines["margins"].append(" ".join("%.6f" % (o[-1] - o[-2]) for o in order))
        for step, logits in enumerate(found if number == 0 else []):
            op_models.write(os.path.join(folder, "logits_%03d.pb" % step), op_models.to_proto(logits, "logits"))
    for name, text in lines.items():
        with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as out:
            out.write("\n".join(text) + "\n")
    with open(os.path.join(folder, "capacity.txt"), "w", encoding="ascii") as out:
        out.write("%d\n" % decoder.capacity)
    with open(os.path.join(folder, "kernels.txt"), "w", encoding="ascii") as out:
        out.writelines("%s %d\n" % item for item in decoder.kernel_counts().items())
    if decoder.tuning:
        with open(os.path.join(folder, "tuning.txt"), "w", encoding="ascii") as out:
            out.write(decoder.tuning)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for decoder in decoders():
        save(decoder, os.path.join(sys.argv[1], decoder.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
