#!/usr/bin/env python3
"""torch_decoder.py - the peer of tests/bench/decode: a decoder of the same shapes in bf16, torch.compile in max-autotune.

    torch_decoder.py NAME CONTEXT ITERATIONS [--cpu]       one line of JSON: {"label", "median_us", "p99_us"} or {"skip"}

A step takes a token to the next by argmax, with static key and value caches that hold CONTEXT rows; weights are random. --cpu runs a
decoder of two layers eagerly on the CPU, to test this program where there is no card."""
import json
import statistics
import sys
import time

# layers, hidden, heads, key and value heads, head size, feed-forward, bias of q, k and v, norm of q and k
SHAPES = {"qwen2.5-0.5b": (24, 896, 14, 2, 64, 4864, True, False), "qwen3-0.6b": (28, 1024, 16, 8, 128, 3072, False, True)}
VOCABULARY = 151936


def skip(reason):
    print(json.dumps({"skip": reason}))
    sys.exit(0)


def make_step(torch, shape, context, device):
    """The function of one step, of the token [1] and the position [1]."""
    F = torch.nn.functional
    layers, hidden, heads, kv_heads, head, wide, bias, qk_norm = shape
    capacity = context + 64
    kind = torch.bfloat16

    def weight(*dims):
        return torch.randn(*dims, device=device, dtype=kind) * 0.02

    size = (heads + 2 * kv_heads) * head
    blocks = [{"qkv": weight(size, hidden), "bias": weight(size) if bias else None, "o": weight(hidden, heads * head), "up": weight(2 * wide, hidden),
               "down": weight(hidden, wide), "norm": [weight(hidden) for _ in range(2)], "qk": [weight(head) for _ in range(2)],
               "keys": weight(1, kv_heads, capacity, head), "values": weight(1, kv_heads, capacity, head)} for _ in range(layers)]
    embedding, last = weight(VOCABULARY, hidden), weight(hidden)
    angles = torch.outer(torch.arange(capacity, device=device).float(), 1e6 ** (-torch.arange(0, head, 2, device=device).float() / head))
    cos, sin = (torch.cat([f(angles)] * 2, 1).to(kind) for f in (torch.cos, torch.sin))
    columns = torch.arange(capacity, device=device)

    def norm(x, w):
        return F.rms_norm(x.float(), x.shape[-1:], eps=1e-6).to(kind) * w

    def rotate(x, position):
        left, right = x.chunk(2, -1)
        return x * cos[position] + torch.cat([-right, left], -1) * sin[position]

    def step(token, position):
        x = embedding[token]
        mask = (columns <= position).view(1, 1, 1, capacity)
        for b in blocks:
            q, k, v = F.linear(norm(x, b["norm"][0]), b["qkv"], b["bias"]).split([heads * head, kv_heads * head, kv_heads * head], -1)
            q, k, v = q.view(1, heads, 1, head), k.view(1, kv_heads, 1, head), v.view(1, kv_heads, 1, head)
            if qk_norm:
                q, k = norm(q, b["qk"][0]), norm(k, b["qk"][1])
            b["keys"].index_copy_(2, position, rotate(k, position))
            b["values"].index_copy_(2, position, v)
            y = F.scaled_dot_product_attention(rotate(q, position), b["keys"], b["values"], attn_mask=mask, enable_gqa=True)
            x = x + F.linear(y.reshape(1, heads * head), b["o"])
            gate, up = F.linear(norm(x, b["norm"][1]), b["up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, b["down"])
        return F.linear(norm(x, last), embedding).argmax(-1)

    return step


def measure(torch, step, context, iterations, device):
    token, position = (torch.tensor([n], device=device) for n in (1, context))
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for i in range(iterations + 10):
        wait()
        start = time.perf_counter()
        token = step(token.clone(), position)
        wait()
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)


def main():
    name, context, iterations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cpu = "--cpu" in sys.argv
    shape = next((s for prefix, s in SHAPES.items() if name.startswith(prefix)), None)
    if not shape:
        skip("there is no such architecture in torch_decoder.py")
    try:
        import torch
    except ImportError:
        skip("no torch")
    if not cpu and not torch.cuda.is_available():
        skip("this torch sees no card")
    device = "cpu" if cpu else "cuda"
    with torch.no_grad():
        step = make_step(torch, (2, *shape[1:]) if cpu else shape, context, device)
        if not cpu:
            step = torch.compile(step, mode="max-autotune", fullgraph=True)
        times = measure(torch, step, context, iterations, device)
    print(json.dumps({"label": "torch bf16", "median_us": statistics.median(times), "p99_us": times[(len(times) * 99 + 99) // 100 - 1]}))


if __name__ == "__main__":
    main()
