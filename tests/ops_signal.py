"""ops_signal.py - cases for compiler/ops/signal.c. numpy computes the transforms, onnxruntime or the reference the rest."""
import numpy as np

from op_models import Case, Const, random


def parts(z, dtype):
    return np.stack([z.real, z.imag], -1).astype(dtype)


def dft(name, points, seed=0, lines=2, given=None, complex_in=False, inverse=0, onesided=0, kind=np.float32, opset=20):
    x = random(seed, (lines, points, 2 if complex_in else 1)).astype(kind)
    z, length = x[..., 0] + (1j * x[..., 1] if complex_in else 0), given or points
    if inverse and onesided:
        length = given or 2 * (points - 1)
        expected = np.fft.irfft(z, length, axis=1)[..., None].astype(kind)
    elif inverse:
        expected = parts(np.fft.ifft(z, length, axis=1), kind)
    else:
        expected = parts((np.fft.fft(z, length, axis=1))[:, :length // 2 + 1 if onesided else length], kind)
    inputs = [("x", x), Const(np.int64(given)) if given else None]
    attrs = {"inverse": inverse, "onesided": onesided}
    if opset < 20:
        attrs["axis"] = 1
    else:
        inputs.append(Const(np.int64(1)))
    return Case(name, "DFT", inputs, ["y"], attrs, opset=opset, expected=[expected], tolerance=(1e-3, 2e-4))


def transforms():
    for points in (1, 2, 8, 10, 64, 100, 1024, 2048, 3000):
        yield dft("dft_%d" % points, points)
        yield dft("inverse_%d" % points, points, seed=1, complex_in=True, inverse=1)
    for points in (10, 16):
        for onesided in (0, 1):
            yield dft("f64_%d_%d" % (points, onesided), points, seed=2, kind=np.float64, onesided=onesided, opset=17)
        yield dft("padded_%d" % points, points, seed=3, given=points + 6)
        yield dft("cut_%d" % points, points, seed=4, given=points - 3, complex_in=True)
        yield dft("half_%d" % points, points // 2 + 1, seed=5, complex_in=True, inverse=1, onesided=1)
    yield dft("half_odd", 6, seed=6, complex_in=True, inverse=1, onesided=1, given=11)


def frames():
    for window in (True, False):
        for onesided in (0, 1):
            x, w = random(7, (2, 100, 1)), np.hanning(16).astype(np.float32)
            z = np.stack([x[:, s:s + 16, 0] * (w if window else 1) for s in range(0, 85, 6)], 1)
            expected = np.fft.fft(z, axis=-1)[..., :9 if onesided else 16]
            yield Case("stft_%d_%d" % (window, onesided), "STFT", [("x", x), Const(np.int64(6)), Const(w) if window else None, Const(np.int64(16))],
                       ["y"], {"onesided": onesided}, opset=17, expected=[parts(expected, np.float32)], tolerance=(1e-3, 2e-4))


def cases():
    yield from transforms()
    yield from frames()
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            for size in (2, 10, 33):
                yield Case("%s_%d_%d" % (op.lower(), size, periodic), op, [Const(np.int64(size))], ["y"], {"periodic": periodic}, opset=17,
                           oracle="ort")
    for bands, points, rate, low, high in ((8, 16, 8192, 0, 4096), (40, 400, 16000, 20, 7600), (3, 64, 8000, 100, 3000)):
        yield Case("mel_%d" % bands, "MelWeightMatrix", [Const(np.int64(bands)), Const(np.int64(points)), Const(np.int64(rate)),
                                                         Const(np.float32(low)), Const(np.float32(high))], ["y"], opset=17, oracle="reference")
