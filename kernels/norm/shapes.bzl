# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norm and softmax kernels that are compiled ahead of time for AMD GPUs, as data.

A shape is one set of the macros that README.md explains. These are few; the main ways through the
sources are in them: rows of part of a wave, of a wave and of a workgroup; in registers, or read
again; in whole vectors, or in single columns; weights that are kept in each way, or read again.
"""

_COLUMNS_THREADS = 256  # norm_columns.cpp, norm_long.cpp

def kernels_of(source, macros):
    """The kernels of a source.

    Args:
      source: its name without .cpp.
      macros: dict, of the compile.
    Returns:
      dict: symbol -> work-items per workgroup.
    """
    threads = int(macros.get("ROW_THREADS", _COLUMNS_THREADS))
    if source == "norm_columns":
        return {"norm_backward_reduce": threads}
    if source == "norm_long":
        return {"norm_backward_long": threads, "norm_backward_slices": threads}
    if source == "softmax":
        source += "_backward" if int(macros["SOFTMAX_BACKWARD"]) else "_forward"
    return {source: threads}

def _shape(source, macros):
    return struct(
        kernels = kernels_of(source, macros),
        macros = macros,
        source = source,
    )

def _rows(hidden, threads, lanes, vector, hold = 1):
    return {
        "ROW_CLUSTER": 1,
        "ROW_CTAS_PER_SM": 1,
        "ROW_HIDDEN": hidden,
        "ROW_HOLD": hold,
        "ROW_LANES": lanes,
        "ROW_ON_DEMAND": 0,
        "ROW_SHIFTED": int(hidden % vector > 0),
        "ROW_STAGES": 0,
        "ROW_THREADS": threads,
        "ROW_VECTOR": vector,
    }

def _norm(rows, layer, types, add = 0, zero_centred = 0, keep_weights = 1):
    x, w, y = types
    return rows | {
        "NORM_ADD": add,
        "NORM_KEEP_WEIGHTS": keep_weights,
        "NORM_LAYER": layer,
        "NORM_W": w,
        "NORM_X": x,
        "NORM_Y": y,
        "NORM_ZERO_CENTRED": zero_centred,
    }

def _rare(**macros):
    """Macros that most kernels are without, where they are not None."""
    return {"NORM_" + name.upper(): value for name, value in macros.items() if value != None}

def _forward(*args, gamma = None, in_place = None, scales = None, **kwargs):
    macros = _norm(*args, **kwargs) | _rare(gamma = gamma, in_place = in_place, scales = scales)
    return _shape("norm_forward", macros | {"NORM_BETA": macros["NORM_LAYER"]})

def _backward(*args, lag = 0, few_rows = 0, gamma = None, sums = None, **kwargs):
    own = {"NORM_FEW_ROWS": few_rows, "NORM_LAG": lag} | _rare(gamma = gamma, sums = sums)
    return _shape("norm_backward", _norm(*args, **kwargs) | own)

def _long(hidden, vector, layer, types, add = 0, zero_centred = 0, **rare):
    """A norm's backward pass of rows that are split among workgroups."""
    rows = {"ROW_HIDDEN": hidden, "ROW_VECTOR": vector}
    macros = _norm(rows, layer, types, add, zero_centred) | _rare(**rare)
    macros.pop("NORM_KEEP_WEIGHTS")
    return _shape("norm_long", macros)

def _columns(backward):
    """Of a shape of norm_backward or norm_long: the sums over its rows."""
    names = ["NORM_W", "ROW_HIDDEN"]
    vector = 1 if backward.macros.get("ROW_SHIFTED") else backward.macros["ROW_VECTOR"]
    macros = {name: backward.macros[name] for name in names}
    return _shape("norm_columns", macros | {"ROW_VECTOR": vector})

def _columns_name(macros):
    return "norm_columns_%s_%s" % (macros["NORM_W"], macros["ROW_HIDDEN"])

def _softmax(rows, x, mask):
    masks = ["none", "explicit", "causal"]
    return rows | {
        "SOFTMAX_MASK": masks.index(mask),
        "SOFTMAX_X": x,
    }

def _softmax_pass(macros, backward):
    return _shape("softmax", macros | {"SOFTMAX_BACKWARD": backward})

_BF16 = ["bf16", "bf16", "bf16"]
_FP16 = ["fp16", "fp16", "fp16"]
_FP32 = ["fp32", "fp32", "fp32"]

_NORMS = {
    "layer_backward_bf16_1000": _backward(_rows(1000, 128, 64, 8, hold = 0), 1, _BF16),
    "layer_backward_bf16_1003": _backward(_rows(1003, 128, 64, 8), 1, _BF16),
    "layer_long_bf16_20477": _long(20477, 1, 1, _BF16),
    "layer_backward_bf16_4096": _backward(_rows(4096, 256, 256, 8), 1, _BF16),
    "layer_long_fp16_20480": _long(20480, 8, 1, _FP16),
    "layer_backward_few_bf16_1000": _backward(_rows(1000, 128, 128, 8), 1, _BF16, few_rows = 8),
    "layer_backward_fp32_127": _backward(_rows(127, 64, 16, 1), 1, _FP32),
    "layer_forward_bf16_1000": _forward(_rows(1000, 128, 64, 8), 1, _BF16),
    "layer_forward_bf16_1003": _forward(_rows(1003, 128, 64, 8), 1, _BF16, keep_weights = 3),
    "layer_forward_bf16_1005": _forward(
        _rows(1005, 128, 128, 8, hold = 0),
        1,
        _BF16,
        keep_weights = 0,
    ),
    # The mean is that of the row's sum, in a part of a warp and in a whole one.
    "layer_forward_bf16_128": _forward(_rows(128, 64, 8, 8), 1, _BF16),
    "layer_forward_fp16_2040": _forward(_rows(2040, 128, 64, 8), 1, _FP16, keep_weights = 0),
    "layer_forward_bf16_20477": _forward(_rows(20477, 256, 256, 8), 1, _BF16, keep_weights = 0),
    "layer_forward_bf16_20480": _forward(_rows(20480, 256, 256, 8), 1, _BF16),
    "layer_forward_fp32_127": _forward(_rows(127, 64, 16, 1), 1, _FP32),
    "layer_forward_fp8_769": _forward(
        _rows(769, 128, 128, 8),
        1,
        ["fp16", "fp32", "fp8_e4m3"],
        keep_weights = 3,
        zero_centred = 1,
    ),
    "layer_forward_fp8_768": _forward(
        _rows(768, 128, 128, 4),
        1,
        ["fp32", "fp32", "fp8_e5m2"],
        keep_weights = 3,
    ),
    "rms_add_backward_bf16_768": _backward(
        _rows(768, 256, 64, 8),
        0,
        _BF16,
        add = 1,
        zero_centred = 1,
    ),
    "rms_add_backward_few_fp32_508": _backward(
        _rows(508, 128, 64, 4),
        0,
        _FP32,
        add = 1,
        few_rows = 32,
    ),
    "rms_add_forward_bf16_1001": _forward(
        _rows(1001, 128, 64, 8),
        0,
        _BF16,
        add = 1,
        keep_weights = 0,
    ),
    "rms_add_forward_bf16_20480": _forward(_rows(20480, 256, 256, 8), 0, _BF16, add = 1),
    "rms_add_forward_fp16_512": _forward(
        _rows(512, 128, 32, 8),
        0,
        _FP16,
        add = 1,
        zero_centred = 1,
    ),
    "rms_add_backward_fp32_251": _backward(
        _rows(251, 128, 16, 4),
        0,
        _FP32,
        add = 1,
        keep_weights = 2,
    ),
    "rms_backward_few_bf16_1001": _backward(_rows(1001, 128, 128, 8), 0, _BF16, few_rows = 8),
    "rms_backward_bf16_2045": _backward(
        _rows(2045, 256, 256, 8),
        0,
        ["fp32", "bf16", "bf16"],
        keep_weights = 2,
        lag = 1,
    ),
    "rms_backward_bf16_2048": _backward(
        _rows(2048, 256, 256, 8),
        0,
        _BF16,
        keep_weights = 2,
        lag = 1,
    ),
    "rms_add_long_fp32_5000": _long(5000, 4, 0, _FP32, add = 1, zero_centred = 1),
    "rms_long_no_sums_bf16_4100": _long(4100, 4, 0, _BF16, gamma = 0, sums = 0),
    "rms_forward_bf16_4096": _forward(_rows(4096, 256, 256, 8), 0, _BF16),
    "rms_forward_fp16_2048": _forward(
        _rows(2048, 256, 256, 8, hold = 0),
        0,
        _FP16,
        keep_weights = 2,
    ),
    "layer_backward_no_gamma_bf16_1000": _backward(_rows(1000, 128, 64, 8), 1, _BF16, gamma = 0),
    "layer_backward_no_sums_bf16_1003": _backward(
        _rows(1003, 128, 64, 8),
        1,
        _BF16,
        gamma = 0,
        sums = 0,
    ),
    "layer_forward_blocks_fp8_1024": _forward(
        _rows(1024, 128, 128, 8),
        1,
        ["bf16", "bf16", "fp8_e4m3"],
        scales = 2,
    ),
    "layer_forward_no_gamma_bf16_1003": _forward(
        _rows(1003, 128, 64, 8),
        1,
        _BF16,
        gamma = 0,
        keep_weights = 3,
    ),
    "rms_add_forward_blocks_fp8_20480": _forward(
        _rows(20480, 256, 256, 8),
        0,
        ["bf16", "bf16", "fp8_e5m2"],
        add = 1,
        scales = 2,
    ),
    "rms_add_forward_rows_fp8_20480": _forward(
        _rows(20480, 256, 256, 8),
        0,
        ["bf16", "bf16", "fp8_e4m3"],
        add = 1,
        in_place = 1,
        keep_weights = 0,
        scales = 1,
    ),
    "rms_backward_no_sums_bf16_2048": _backward(
        _rows(2048, 256, 256, 8),
        0,
        _BF16,
        keep_weights = 2,
        lag = 1,
        sums = 0,
    ),
    "rms_forward_blocks_fp8_64": _forward(
        _rows(64, 64, 32, 1),
        0,
        ["bf16", "bf16", "fp8_e4m3"],
        scales = 2,
    ),
    "rms_forward_blocks_fp8_96": _forward(
        _rows(96, 128, 16, 4),
        0,
        ["fp32", "fp32", "fp8_e4m3"],
        scales = 2,
    ),
    "rms_forward_no_gamma_fp16_2048": _forward(
        _rows(2048, 256, 256, 8),
        0,
        _FP16,
        gamma = 0,
    ),
    "rms_forward_rows_fp8_1001": _forward(
        _rows(1001, 128, 128, 8),
        0,
        ["bf16", "fp32", "fp8_e4m3"],
        keep_weights = 3,
        scales = 1,
    ),
    "rms_forward_rows_fp8_20477": _forward(
        _rows(20477, 256, 256, 8),
        0,
        ["bf16", "bf16", "fp8_e5m2"],
        keep_weights = 0,
        scales = 1,
    ),
    "rms_forward_rows_fp8_96": _forward(
        _rows(96, 128, 16, 8),
        0,
        ["fp16", "fp16", "fp8_e5m2"],
        scales = 1,
    ),
    "rms_in_place_bf16_20480": _forward(
        _rows(20480, 256, 256, 8),
        0,
        _BF16,
        add = 1,
        in_place = 1,
    ),
    "rms_forward_fp8_768": _forward(_rows(768, 128, 128, 4), 0, ["bf16", "fp32", "fp8_e4m3"]),
}

# Both passes of each are compiled.
_SOFTMAX = {
    "softmax_bf16_1024": _softmax(_rows(1024, 256, 64, 8), "bf16", "none"),
    "softmax_bf16_20480": _softmax(_rows(20480, 256, 256, 8), "bf16", "none"),
    "softmax_causal_bf16_1024": _softmax(_rows(1024, 256, 256, 8), "bf16", "causal"),
    "softmax_bf16_1003": _softmax(_rows(1003, 256, 64, 8), "bf16", "none"),
    "softmax_bf16_20477": _softmax(_rows(20477, 256, 256, 8), "bf16", "none"),
    "softmax_causal_fp32_126": _softmax(_rows(126, 128, 16, 4), "fp32", "causal"),
    "softmax_causal_fp32_127": _softmax(_rows(127, 128, 32, 1), "fp32", "causal"),
    "softmax_explicit_bf16_1001": _softmax(_rows(1001, 128, 128, 8, hold = 0), "bf16", "explicit"),
    "softmax_explicit_bf16_20480": _softmax(_rows(20480, 256, 256, 8), "bf16", "explicit"),
    "softmax_explicit_fp16_1000": _softmax(_rows(1000, 128, 128, 8), "fp16", "explicit"),
}

# Name -> its source without .cpp, its kernels with their threads, and its macros.
SHAPES = _NORMS | {
    _columns_name(shape.macros): _columns(shape)
    for shape in _NORMS.values()
    if (
        shape.source in ["norm_backward", "norm_long"] and
        not shape.macros.get("NORM_FEW_ROWS") and
        shape.macros.get("NORM_SUMS", 1)
    )
} | {
    name.replace("softmax_", "softmax_forward_"): _softmax_pass(macros, 0)
    for name, macros in _SOFTMAX.items()
} | {
    name.replace("softmax_", "softmax_backward_"): _softmax_pass(macros, 1)
    for name, macros in _SOFTMAX.items()
}

# Name -> the flags that make the kernel, in the order in which they enter its key.
MACROS = {
    name: sorted(["-D%s=%s" % macro for macro in shape.macros.items()])
    for name, shape in SHAPES.items()
}
