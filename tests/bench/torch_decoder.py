#!/usr/bin/env python3
"""torch_decoder.py - the peer of tests/bench/decode: a decoder of the same shapes in bf16, torch.compile in max-autotune.

    torch_decoder.py NAME ROWS ITERATIONS [--prompt] [--cpu]       one line of JSON: {"label", "median_us", "p99_us"} or {"skip"}

A step takes a token to the next by argmax, with static key and value caches that hold ROWS rows; with --prompt it takes ROWS tokens at once,
from an empty cache, to the next one. Weights are random. --cpu runs a decoder of two layers eagerly on the CPU, to test this program where
there is no card."""
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


def make_step(torch, shape, rows, prompt, device):
    """The function of one step, of tokens and their positions, [1] each or, of a prompt, [rows]."""
    F = torch.nn.functional
    layers, hidden, heads, kv_heads, head, wide, bias, qk_norm = shape
    capacity = rows + 64
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

    def by_head(x, count):
        return x.view(-1, count, head).transpose(0, 1)[None]

    def step(token, position):
        x = embedding[token]
        mask = None if prompt else (columns <= position).view(1, 1, 1, capacity)
        for b in blocks:
            q, k, v = F.linear(norm(x, b["norm"][0]), b["qkv"], b["bias"]).split([heads * head, kv_heads * head, kv_heads * head], -1)
            q, k, v = by_head(q, heads), by_head(k, kv_heads), by_head(v, kv_heads)
            if qk_norm:
                q, k = norm(q, b["qk"][0]), norm(k, b["qk"][1])
            k = rotate(k, position)
            b["keys"].index_copy_(2, position, k)
            b["values"].index_copy_(2, position, v)
            if not prompt:
                k, v = b["keys"], b["values"]
            y = F.scaled_dot_product_attention(rotate(q, position), k, v, attn_mask=mask, is_causal=prompt, enable_gqa=True)
            x = x + F.linear(y[0].transpose(0, 1).reshape(-1, heads * head), b["o"])
            gate, up = F.linear(norm(x, b["norm"][1]), b["up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, b["down"])
        return F.linear(norm(x[-1:], last), embedding).argmax(-1)

    return step


def measure(torch, step, rows, prompt, iterations, device):
    token, position = (torch.tensor(v, device=device) for v in ((range(rows), range(rows)) if prompt else ([1], [rows])))
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for i in range(iterations + 10):
        wait()
        start = time.perf_counter()
        following = step(token.clone(), position)
        token = token if prompt else following
        wait()
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)


def main():
    name, rows, iterations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cpu, prompt = "--cpu" in sys.argv, "--prompt" in sys.argv
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
        step = make_step(torch, (2, *shape[1:]) if cpu else shape, rows, prompt, device)
        if not cpu:
            step = torch.compile(step, mode="max-autotune", fullgraph=True)
        times = measure(torch, step, rows, prompt, iterations, device)
    print(json.dumps({"label": "torch bf16", "median_us": statistics.median(times), "p99_us": times[(len(times) * 99 + 99) // 100 - 1]}))


if __name__ == "__main__":
    main()
