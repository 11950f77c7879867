"""ops_attention.py - cases for compiler/ops/attention.c and gqa.c."""
import numpy as np

from op_models import TYPES, Case, Const, random

CONTRIB = "com.microsoft"


# ---- Attention

def attention(name, dtype="f32", batch=1, heads=4, kv_heads=2, rows=3, past=0, head=16, vhead=None, flat=True, mask=None, keys=None,
              nonpad=None, oracle="ort", expected=None, opset=None, stage=None, **attrs):
    vhead = vhead or head
    keys = rows if keys is None else keys
    def tensor(seed, count, length, width):
        deep = random(seed, (batch, count, length, width), dtype)
        return deep.transpose(0, 2, 1, 3).reshape(batch, length, count * width) if flat else deep
    inputs = [("q", tensor(1, heads, rows, head)), ("k", tensor(2, kv_heads, keys, head)), ("v", tensor(3, kv_heads, keys, vhead))]
    inputs.append(None if mask is None else ("mask", mask))
    outputs = ["y"]
    if past:
        inputs += [("past_key", random(4, (batch, kv_heads, past, head), dtype)), ("past_value", random(5, (batch, kv_heads, past, vhead), dtype))]
        outputs += ["present_key", "present_value"]
    elif nonpad is not None:
        inputs += [None, None, ("lengths", np.array(nonpad, np.int64))]
    if stage is not None:
        outputs += [""] * (3 - len(outputs)) + ["scores"]
        attrs.update(qk_matmul_output_mode=stage)
    if flat:
        attrs.update(q_num_heads=heads, kv_num_heads=kv_heads)
    if expected is not None:
        wide = {i[0]: np.asarray(i[1]).astype(np.float32) for i in inputs if i}
        expected = [expected(wide, heads, kv_heads).astype(TYPES[dtype])]
    return Case("attention_" + name, "Attention", inputs, outputs, attrs, dtype=dtype, oracle=oracle, expected=expected, opset=opset or 24)


def static_cache(causal):
    """Attention over a cache of fixed length of which a part is valid; causality is at the end of that part."""
    def compute(x, heads, kv_heads):
        batch, rows = x["q"].shape[:2]
        split = lambda t, n: t.reshape(t.shape[0], t.shape[1], n, -1).transpose(0, 2, 1, 3)
        q, k, v = split(x["q"], heads), split(x["k"], kv_heads), split(x["v"], kv_heads)
        k, v = np.repeat(k, heads // kv_heads, 1), np.repeat(v, heads // kv_heads, 1)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        for b in range(batch):
            total = int(x["lengths"][b])
            for i in range(rows):
                scores[b, :, i, total - rows + i + 1 if causal else total:] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        y = (weights / weights.sum(-1, keepdims=True)) @ v
        return y.transpose(0, 2, 1, 3).reshape(batch, rows, -1)
    return compute


def causal_with_mask(rows, past, dtype="f32"):
    mask = np.random.default_rng(9).random((1, 1, rows, past + rows)) < 0.7
    mask[..., 0] = True
    return mask


def attentions():
    for dtype in ("f32", "f16", "bf16"):
        yield attention("plain_" + dtype, dtype)
        yield attention("causal_past_" + dtype, dtype, past=5, is_causal=1)
        yield attention("decode_" + dtype, dtype, rows=1, past=300, head=64, is_causal=1)
        yield attention("additive_" + dtype, dtype, past=4, mask=random(8, (1, 4, 3, 7), dtype))
        yield attention("bool_causal_" + dtype, dtype, past=4, mask=causal_with_mask(3, 4), is_causal=1)
        yield attention("static_" + dtype, dtype, batch=2, rows=1, keys=40, nonpad=[7, 40], is_causal=1, expected=static_cache(True))
    for flat in (True, False):
        label = "3d" if flat else "4d"
        yield attention("heads_" + label, flat=flat, heads=6, kv_heads=3, past=2, is_causal=1)
        yield attention("batch_" + label, flat=flat, batch=3, past=2, is_causal=1)
        yield attention("cross_" + label, flat=flat, rows=3, keys=9)
        yield attention("vhead_" + label, flat=flat, head=24, vhead=16, past=3, oracle="onnx")
    for head in (4, 20, 64, 96, 128, 256):
        yield attention("head%d" % head, head=head, past=70, is_causal=1)
    yield attention("long", rows=2, past=1030, head=32, is_causal=1)
    yield attention("scale", past=2, scale=0.3)
    yield attention("softcap", past=2, softcap=2.0, oracle="onnx")
    yield attention("softcap_mask", past=2, softcap=2.0, mask=causal_with_mask(3, 2), oracle="onnx")
    for stage in range(4): # what attention computes on its way
        capped = {"softcap": 2.0} if stage else {} # the reference caps stage 0 as well, the schema does not
        yield attention("stage%d" % stage, past=5, **capped, mask=random(8, (3, 8)), stage=stage, oracle="onnx")
        yield attention("stage%d_causal" % stage, "f16", flat=False, past=70, batch=2, is_causal=1, stage=stage, oracle="onnx")
        yield attention("stage%d_bool" % stage, "bf16", rows=1, past=200, mask=causal_with_mask(1, 200), stage=stage, oracle="onnx")
        yield attention("stage%d_lengths" % stage, keys=9, nonpad=[5], stage=stage, oracle="onnx")
    yield attention("mask_2d", past=4, mask=random(8, (3, 7)))
    yield attention("mask_heads", batch=2, past=4, mask=random(8, (1, 4, 3, 7)))
    yield attention("mask_batch", batch=2, past=4, mask=random(8, (2, 1, 3, 7)))
    yield attention("mask_one_row", past=4, mask=random(8, (1, 1, 1, 7)), oracle="onnx")
    yield attention("mask_short", past=4, mask=random(8, (3, 5)), oracle="onnx")
    dead = np.ones((1, 1, 3, 7), bool)
    dead[0, 0, 1] = False
    yield attention("masked_row_0", past=4, mask=dead, expected=None)
    huge = np.zeros((1, 1, 3, 7), np.float32)
    huge[..., 3:] = np.finfo(np.float32).min
    yield attention("mask_lowest", past=4, mask=huge)
    yield attention("static_rows", batch=2, rows=3, keys=12, nonpad=[5, 12], is_causal=1, expected=static_cache(True))
    yield attention("static_plain", batch=2, rows=3, keys=12, nonpad=[5, 12], expected=static_cache(False))
    yield attention("since_23", past=4, is_causal=1, opset=23)


# ---- GroupQueryAttention

def tables(length, half, dtype):
    angle = np.outer(np.arange(length), 1.0 / 100.0 ** (np.arange(half) / half))
    return np.cos(angle).astype(np.float32).astype(TYPES[dtype]), np.sin(angle).astype(np.float32).astype(TYPES[dtype])


def rotate(x, positions, cosine, sine, interleaved):
    """x [B, heads, S, D]; positions [B, S]."""
    half = cosine.shape[1]
    c, s = cosine.astype(np.float32)[positions][:, None], sine.astype(np.float32)[positions][:, None]
    y = x.copy()
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x[..., first], x[..., second]
    y[..., first], y[..., second] = a * c - b * s, a * s + b * c
    return y


def gqa(name, dtype="f32", batch=1, heads=4, kv_heads=2, rows=1, past=5, head=16, packed=False, rotary=False, table=64, half=None, positions=None,
        lengths=None, total=None, buffer=None, bias=None, sink=None, norms=False, oracle="ort", expected=None, scalar=False, check=None, cache=None, kernels=None, **attrs):
    def tensor(seed, count):
        return random(seed, (batch, rows, count * head), dtype)
    q, k, v = tensor(1, heads), tensor(2, kv_heads), tensor(3, kv_heads)
    inputs = [("q", np.concatenate([q, k, v], -1)), None, None] if packed else [("q", q), ("k", k), ("v", v)]
    stored = past if buffer is None else buffer
    inputs += [(name, random(seed, (batch, kv_heads, stored, head), cache or dtype)) for seed, name in ((4, "past_key"), (5, "past_value"))]
    if not stored:
        inputs[-2:] = [None, None]
    lengths = np.full((batch,), past + rows - 1, np.int32) if lengths is None else np.array(lengths, np.int32)
    total = np.int32(past + rows if total is None else total)
    inputs += [("seqlens_k", np.int32(lengths[0]).reshape(()) if scalar else lengths), Const(total)]
    if rotary:
        cosine, sine = tables(table, half or head // 2, dtype)
        inputs += [Const(cosine), Const(sine)]
        attrs["do_rotary"] = 1
    else:
        inputs += [None, None]
    inputs += [None if positions is None else ("positions", np.array(positions, np.int64)), None if bias is None else ("bias", bias)]
    inputs += [None if sink is None else Const(sink), None, None]
    inputs += [Const(random(6, (head,), dtype)), Const(random(7, (head,), dtype))] if norms else []
    attrs.update(num_heads=heads, kv_num_heads=kv_heads)
    shapes = ["y", "present_key", "present_value"]
    if expected is not None:
        expected = gqa_by_hand(inputs, attrs, dtype, q, k, v, past, lengths)
    case = Case("gqa_" + name, "GroupQueryAttention", inputs, shapes, attrs, CONTRIB, dtype=dtype, oracle=oracle, expected=expected,
                check=check)
    case.kernels = kernels or {}
    return case


def gqa_by_hand(inputs, attrs, dtype, q, k, v, past, lengths):
    """For what onnxruntime's CPU kernel refuses: head norms. One past for all sequences. Rounds where the unfused graph does."""
    def split(t, n):
        return t.astype(np.float32).reshape(t.shape[0], t.shape[1], n, -1).transpose(0, 2, 1, 3)
    round_to = lambda t: t.astype(TYPES[dtype]).astype(np.float32)
    heads, kv_heads = attrs["num_heads"], attrs["kv_num_heads"]
    q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    if len(inputs) > 14 and inputs[14]:
        for index, weight in ((0, inputs[14].array), (1, inputs[15].array)):
            t = (q, k)[index]
            t = t / np.sqrt((t * t).mean(-1, keepdims=True) + attrs.get("qk_norm_epsilon", 1e-6)) * weight.astype(np.float32)
            q, k = (round_to(t), k) if index == 0 else (q, round_to(t))
    rows = q.shape[2]
    if attrs.get("do_rotary"):
        at = inputs[9][1] if inputs[9] else np.broadcast_to(np.arange(past, past + rows), (q.shape[0], rows))
        cosine, sine = inputs[7].array, inputs[8].array
        beyond = ((0, past + rows), (0, 0)) # a position without a row in the tables is not rotated
        cosine, sine = np.pad(cosine, beyond, constant_values=1), np.pad(sine, beyond)
        q, k = (round_to(rotate(t, at, cosine, sine, attrs.get("rotary_interleaved", 0))) for t in (q, k))
    stored = inputs[3][1].dtype
    k, v = (np.concatenate([old, new.astype(stored)], 2).astype(np.float32) for old, new in ((inputs[3][1], k), (inputs[4][1], v)))
    scores = q @ np.repeat(k, heads // kv_heads, 1).transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    for i in range(rows):
        scores[:, :, i, past + i + 1:] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = (weights / weights.sum(-1, keepdims=True)) @ np.repeat(v, heads // kv_heads, 1)
    return [y.transpose(0, 2, 1, 3).reshape(y.shape[0], rows, -1).astype(TYPES[dtype]), k.astype(stored), v.astype(stored)]


def gqas():
    for dtype in ("f32", "f16", "bf16"):
        yield gqa("decode_" + dtype, dtype)
        yield gqa("prefill_" + dtype, dtype, rows=6, past=0)
        yield gqa("rotary_" + dtype, dtype, rotary=True, past=9)
        yield gqa("packed_rotary_" + dtype, dtype, rotary=True, packed=True, past=200, table=256, head=64, heads=14)
        yield gqa("norms_" + dtype, dtype, rotary=True, rows=2, norms=True, expected=True, qk_norm_epsilon=1e-6)
        yield from many_gqas(dtype)
    yield gqa("packed_prefill", rows=5, past=0, packed=True, rotary=True)
    yield gqa("interleaved", rotary=True, rotary_interleaved=1)
    yield gqa("partial", rotary=True, head=64, half=8)
    yield gqa("partial_interleaved", rotary=True, head=64, half=8, rotary_interleaved=1)
    yield gqa("window", past=20, local_window_size=8)
    yield gqa("window_prefill", rows=12, past=0, local_window_size=4, rotary=True)
    yield gqa("softcap", past=20, softcap=1.5)
    yield gqa("scale", past=20, scale=0.7)
    yield gqa("smooth", past=20, smooth_softmax=1)
    yield gqa("sink", past=20, sink=random(11, (4,)))
    yield gqa("bias", past=5, rows=1, bias=random(12, (1, 4, 1, 6)))
    yield gqa("bias_shared", batch=2, past=5, bias=random(12, (1, 1, 1, 6)))
    yield gqa("positions", rotary=True, positions=[[5]])
    yield gqa("batch", batch=3, past=7)
    yield gqa("batch_lengths", batch=2, past=7, lengths=[7, 4], rotary=True, check={1: "1, :, :5", 2: "1, :, :5"})  # rows beyond a length are undefined
    yield gqa("norms_plain", rows=3, norms=True, expected=True)
    for head in (8, 64, 96, 128, 256):
        yield gqa("head%d" % head, head=head, past=150, heads=8, kv_heads=2)
    yield from shared_keys()
    yield gqa("column_lengths", batch=2, lengths=[[5], [5]])
    yield gqa("lengths_in_a_row", batch=2, past=7, lengths=[[7, 4]], rotary=True, check={1: "1, :, :5", 2: "1, :, :5"})


def many_gqas(dtype):
    """Many rows of heads: gqa_prepare takes them in vectors."""
    def many(name, batch=3, heads=16, kv_heads=8, rows=45, past=7, **more):
        return gqa("many_%s_%s" % (name, dtype), dtype, batch=batch, heads=heads, kv_heads=kv_heads, rows=rows, past=past, **more)
    for head in (16, 96, 128) if dtype == "f32" else (16, 96, 128, 256):
        yield many("head%d" % head, head=head, rotary=True, expected=True)
    yield many("append", batch=1, kv_heads=16, rows=133, head=32)
    yield many("packed", head=64, packed=True, rotary=True, past=0)
    yield many("interleaved", head=64, rotary=True, rotary_interleaved=1, expected=True)
    yield many("partial", head=64, rotary=True, half=8, expected=True)
    yield many("partial_interleaved", head=64, rotary=True, half=16, rotary_interleaved=1, expected=True)
    yield many("positions", head=64, rotary=True, positions=np.arange(135).reshape(3, 45) * 7 % 64, expected=True)
    yield many("half4", head=64, rotary=True, half=4, table=1, positions=np.zeros((3, 45)), expected=True) # no vector of halves
    yield many("odd", head=20 if dtype == "f32" else 24, rotary=True, half=8, expected=True) # an odd number of vectors
    yield many("beyond", head=64, rotary=True, table=30, expected=True)
    yield many("norms", head=64, rotary=True, norms=True, expected=True)
    threads = 101 * 48 * (4 if dtype == "f32" else 2)
    yield many("one", batch=1, heads=32, rows=101, past=0, head=32, rotary=True, table=128, kernels={"gqa_prepare": 1, "blocks": -(-threads // 256)})
    yield many("cache", head=64, rotary=True, cache="f16" if dtype == "f32" else "f32", expected=True) # of another type


def shared_keys():
    """No new keys: the past is another layer's present. As the same node with the last rows taken out of the past."""
    for rows in (1, 3):
        given = gqa("shared_%d" % rows, rows=rows, past=9, rotary=True, expected=True)
        y, key, value = given.expected
        empty = np.zeros((1, 0, 32), np.float32)
        names = ["q", "k", "v", "past_key", "past_value"]
        given.inputs[1:5] = [(names[1], empty), (names[2], empty), (names[3], key), (names[4], value)]
        given.outputs, given.expected = ["y"], [y]
        yield given


def tensor_attentions(dtype):
    """Many query rows of heads of 64, 128 or 256: the kernel for tensor cores (the suite `tensor` runs these under
    --emulate-gpu)."""
    def many(name, rows=20, head=64, **more):
        return attention("mma_%s_%s" % (name, dtype), dtype, rows=rows, head=head, **more)
    dead = causal_with_mask(20, 45)
    dead[0, 0, 7] = False
    yield many("plain", keys=100)
    yield many("causal", rows=70, past=61, head=128, is_causal=1)
    yield many("deep", rows=130, past=3, batch=2, flat=False, is_causal=1)
    yield many("broad_plain", rows=128, keys=300, head=128)
    yield many("broad_causal", rows=260, past=61, is_causal=1)
    yield many("broad_both", rows=300, past=200, batch=2, flat=False, head=128, vhead=64, is_causal=1, oracle="onnx")
    yield many("broad_vhead128", rows=200, past=40, vhead=128, is_causal=1, oracle="onnx")
    yield many("broad_additive", rows=140, past=61, mask=random(8, (1, 4, 140, 201), dtype))
    yield many("broad_bool", rows=130, past=300, mask=random(8, (1, 1, 130, 430), "f32") > 0, is_causal=1)
    yield many("broad_softcap", rows=150, past=60, softcap=2.0, is_causal=1, oracle="onnx")
    yield many("head256", rows=33, past=50, head=256, is_causal=1)
    yield many("vhead64", rows=17, past=3, head=128, vhead=64, is_causal=1, oracle="onnx")
    yield many("vhead256", rows=17, past=40, vhead=256, is_causal=1, oracle="onnx")
    yield many("additive", past=61, mask=random(8, (1, 4, 20, 81), dtype))
    yield many("bool", past=45, mask=dead, is_causal=1)
    yield many("short_mask", past=4, mask=random(8, (20, 5), dtype), oracle="onnx")
    yield many("softcap", past=60, softcap=2.0, is_causal=1, oracle="onnx")
    yield many("static", batch=2, rows=17, keys=90, nonpad=[17, 81], is_causal=1, expected=static_cache(True))
    yield many("static_plain", batch=2, rows=17, keys=90, nonpad=[5, 90], expected=static_cache(False))


def tensor_gqas(dtype):
    def many(name, rows=20, head=64, **more):
        return gqa("mma_%s_%s" % (name, dtype), dtype, rows=rows, head=head, **more)
    yield many("packed", rows=100, past=0, heads=6, packed=True, rotary=True, table=128)
    yield many("norms", rows=17, past=70, head=128, rotary=True, table=128, norms=True, expected=True, qk_norm_epsilon=1e-6)
    yield many("window", rows=90, past=0, local_window_size=20)
    yield many("broad_window", rows=300, past=0, local_window_size=20)
    yield many("broad_window_past", rows=140, past=270, local_window_size=150)
    yield many("broad_sink", rows=150, past=50, sink=random(11, (4,), dtype))
    yield many("broad_lengths", batch=2, rows=140, past=0, lengths=[139, 139])
    yield many("window_past", rows=66, past=70, local_window_size=64)
    yield many("softcap", past=20, softcap=1.5)
    yield many("smooth", past=20, smooth_softmax=1)
    yield many("sink", past=50, sink=random(11, (4,), dtype))
    yield many("bias", rows=18, past=60, bias=random(12, (1, 4, 18, 78), dtype))
    yield many("lengths", batch=2, rows=40, past=0, lengths=[39, 39])


def gqa_vectors():
    """facts/operators.md section D: two query heads, one key head, all ones, past values 5, new value 2."""
    ones = lambda *shape: np.ones(shape, np.float32)
    for name, stored in (("grown", 2), ("buffer", 4)):
        past_value = np.full((1, 1, stored, 8), 5, np.float32)
        key, value = ones(1, 1, max(stored, 3), 8), np.full((1, 1, max(stored, 3), 8), 5, np.float32)
        value[0, 0, 2] = 2
        yield Case("gqa_vector_" + name, "GroupQueryAttention",
                   [("q", ones(1, 1, 16)), ("k", ones(1, 1, 8)), ("v", 2 * ones(1, 1, 8)), ("past_key", ones(1, 1, stored, 8)),
                    ("past_value", past_value), ("seqlens_k", np.array([2], np.int32)), Const(np.int32(3))],
                   ["y", "present_key", "present_value"], {"num_heads": 2, "kv_num_heads": 1}, CONTRIB,
                   expected=[4 * ones(1, 1, 16), key, value])


# ---- RotaryEmbedding

def rotary(name, domain, dtype="f32", shape=(2, 3, 64), heads=4, half=None, interleaved=0, positions=None, table=16, oracle="ort", **attrs):
    head = shape[-1] if len(shape) == 4 else shape[-1] // heads
    rows = shape[2] if len(shape) == 4 else shape[1]
    half = half or head // 2
    cosine, sine = tables(table, half, dtype)
    x = ("x", random(1, shape, dtype))
    attrs["interleaved"] = interleaved
    if len(shape) == 3:
        attrs["num_heads"] = heads
    if 2 * half != head:
        attrs["rotary_embedding_dim"] = 2 * half
        attrs["num_heads"] = heads
    if positions is None:
        cosine, sine = (np.stack([t[:rows]] * shape[0]) for t in (cosine, sine))
        inputs = [x, ("cos", cosine), ("sin", sine)]
    elif domain:
        inputs = [x, ("ids", np.array(positions, np.int64)), Const(cosine), Const(sine)]
    else:
        inputs = [x, Const(cosine), Const(sine), ("ids", np.array(positions, np.int64))]
    return Case("rotary_" + name, "RotaryEmbedding", inputs, ["y"], attrs, domain, dtype=dtype, oracle=oracle)


def rotaries():
    ids = [[0, 3, 7], [2, 1, 15]]
    for dtype in ("f32", "f16", "bf16"):
        for interleaved in (0, 1):
            label = "%s_%s" % ("pairs" if interleaved else "halves", dtype)
            yield rotary("standard_" + label, "", dtype, interleaved=interleaved, positions=ids, oracle="onnx")
            yield rotary("contrib_" + label, CONTRIB, dtype, interleaved=interleaved, positions=ids)
    for domain in ("", CONTRIB):
        label = "contrib" if domain else "standard"
        oracle = "ort" if domain else "onnx"
        yield rotary(label + "_4d", domain, shape=(2, 4, 3, 16), positions=ids, oracle=oracle)
        yield rotary(label + "_partial", domain, half=4, positions=ids, oracle=oracle)
    yield rotary("standard_no_ids", "", oracle="onnx")
    yield rotary("standard_no_ids_4d", "", shape=(2, 4, 3, 16), oracle="onnx")
    yield rotary("contrib_offset", CONTRIB, positions=[4])
    yield Case("rotary_vector", "RotaryEmbedding",
               [("x", np.array([[[[1, 2, 3, 4]]]], np.float32)), ("ids", np.array([[1]], np.int64)), Const(np.array([[1, 1], [0, .5]], np.float32)),
                Const(np.array([[0, 0], [1, .5]], np.float32))], ["y"], {}, CONTRIB, expected=[np.array([[[[-3, -1, 1, 3]]]], np.float32)])


# ---- MRotaryEmbedding: three rows of positions

def mrotary(name, dtype="f32", shape=(2, 3, 64), heads=4, sections=(4, 2, 2), layout=0, interleaved=0, **attrs):
    ids = np.random.default_rng(3).integers(0, 16, (3, shape[0], shape[2] if len(shape) == 4 else shape[1]))
    cosine, sine = tables(16, sum(sections), dtype)
    attrs.update(mrope_section=list(sections), mrope_layout=layout, interleaved=interleaved)
    if len(shape) == 3:
        attrs.setdefault("num_heads", heads)
    return Case("mrotary_" + name, "MRotaryEmbedding", [("x", random(1, shape, dtype)), ("ids", ids), Const(cosine), Const(sine)], ["y"], attrs, CONTRIB,
                dtype=dtype)


def mrotaries():
    for dtype in ("f32", "f16"):
        for layout in (0, 1):
            for interleaved in (0, 1):
                yield mrotary("%d%d_%s" % (layout, interleaved, dtype), dtype, layout=layout, interleaved=interleaved)
    for layout in (0, 1):
        yield mrotary("4d_%d" % layout, shape=(2, 3, 5, 16), layout=layout)
        yield mrotary("partial_%d" % layout, shape=(1, 4, 64), heads=2, layout=layout, num_heads=2, rotary_embedding_dim=16)
        yield mrotary("first_alone_%d" % layout, sections=(8, 0, 0), layout=layout)
        yield mrotary("even_%d" % layout, shape=(1, 2, 48), sections=(4, 4, 4), layout=layout, num_heads=2)


# ---- TensorScatter

def scatters():
    for dtype in ("f32", "f16", "bf16"):
        cache, update = random(1, (2, 8, 6), dtype), random(2, (2, 3, 6), dtype)
        yield Case("scatter_%s" % dtype, "TensorScatter", [("cache", cache), ("update", update), ("at", np.array([0, 4], np.int64))], ["y"],
                   {"axis": 1}, oracle="onnx", dtype=dtype)
    cache, update, at = random(3, (2, 3, 8, 6)), random(4, (2, 3, 2, 6)), np.array([1, 6], np.int64)
    yield Case("scatter_4d", "TensorScatter", [("cache", cache), ("update", update), ("at", at)], ["y"], {}, oracle="onnx")
    yield Case("scatter_default", "TensorScatter", [("cache", cache), ("update", update)], ["y"], {}, oracle="onnx")
    expected = cache.copy()
    for b, start in enumerate((1, 7)):
        for t in range(2):
            expected[b, :, (start + t) % 8] = update[b, :, t]
    yield Case("scatter_circular", "TensorScatter", [("cache", cache), ("update", update), ("at", np.array([1, 7], np.int64))], ["y"],
               {"mode": "circular"}, expected=[expected])


def cases():
    for dtype in ("f16", "bf16"):
        yield from tensor_attentions(dtype)
        yield from tensor_gqas(dtype)
    yield from attentions()
    yield from gqas()
    yield from gqa_vectors()
    yield from rotaries()
    yield from mrotaries()
    yield from scatters()
