// What the reference of each bundled workload makes of its default size: a digest of integers,
// two weighted sums of floating numbers (bundled_test.cpp).
#pragma once

namespace demarc::workload {

inline constexpr const char* kept_outputs = R"json({
"aes": {"data": "0x684a62199aa10d0f"},
"backprop": {"forward_weights": [19599.9133726, 19599.9133726], "partial_sums": [6173.55724179, 6173.55724179], "weights": [18801.578539, 18801.578539], "old_weights": [6342.75378451, 6342.75378451]},
"bfs": {"frontier": "0x33b202d302b65caa", "updating": "0x33b202d302b65caa", "visited": "0x7b3cf211929a246f", "cost": "0xcbe94063e4d9ec1"},
"bitonic": {"keys": "0x6437c315830a3800"},
"cfd": {"fluxes": [273.673971083, 41321.4558454]},
"conv2d": {"out": [24141.3594902, 42620.2833991]},
"convsep": {"rows": [11887.3818109, 11887.3818109], "result": [11669.5581529, 11669.5581529]},
"fft": {"data": [-210298.233546, 12507766.4063]},
"fir": {"out": [391901.788735, 391901.788735]},
"fwt": {"data": [-21210.4632089, 4075616.77376]},
"gaussian": {"multipliers": [0.0397900090157, 23.8216298522], "a": [6058.442987, 7629.74707946], "b": [44.024664979, 44.1505013572]},
"histogram": {"counts": "0x629566272a65ba66"},
"hotspot": {"a": [129785111.285, 129785111.285], "b": [128756785.584, 128756785.584]},
"kmeans": {"out": [320186.795573, 320186.795573]},
"kmeans_full": {"out": [98318.7203849, 98318.7203849], "membership": "0x8a96c19a9cca35bf"},
"leukocyte": {"matrix": [106469.77327, 106469.77327]},
"matmul_mma": {"c": [-199.847933728, 73469.6777252]},
"matmul_naive": {"c": [-200.011340966, 73470.1077825]},
"matmul_tiled": {"c": [-200.011340966, 73470.1077825]},
"maxpool": {"top": [22067.3710789, 22067.3710789], "mask": "0x4808406f91234fe1"},
"nbody": {"accelerations": [-25844.2968444, 1968461.39518]},
"nn": {"distances": [3802245.94843, 3802245.94843]},
"pagerank": {"x": [41.6892817022, 41.6892817022], "y": [86.7214901875, 86.7214901875]},
"reduction": {"partial": [198059.02022, 198059.02022], "sum": [131063.148438, 131063.148438]},
"relu": {"out": [49014.994437, 49014.994437]},
"scalarprod": {"products": [49525.1247136, 49525.1247136]},
"scan": {"totals": "0x4c0c8dbedfa4834b"},
"spmv": {"y": [24944.8542677, 24944.8542677]},
"stencil2d": {"a": [48996.1027808, 48996.1027808], "b": [48996.4933658, 48996.4933658]},
"stencil3d": {"a": [98337.0589191, 98337.0589191], "b": [98331.5989635, 98331.5989635]},
"stencil9": {"a": [13769.7175604, 13769.7175604], "b": [12107.5024777, 12107.5024777]},
"stress_arithmetic": {"results": [98270.2841398, 98270.2841398]},
"stress_atomics": {"counts": "0xb3502cc1962b448c"},
"stress_chase": {"ends": "0x448bd3be8454f496"},
"stress_dram_read": {"sums": "0xd21a27c394bdb99"},
"stress_dram_write": {"buffer": "0x39d948af19a7432c"},
"stress_host_poll": {"seen": "0xedc3e5f9688b275"},
"stress_host_read": {"sums": "0x9383d99d924bdb04"},
"stress_host_write": {"buffer": "0x2d62a6ca06791144"},
"stress_l2_read": {"sums": "0xf59eb5eb6cbd457b"},
"stress_l2_write": {"buffer": "0x84b2c4af165c74b2"},
"transpose": {"out": "0x539d43b4afc8d78e"},
"transpose_4x4": {"out": "0xc0e6bf3a63c74cf4"},
"vecadd": {"c": [98039.2199786, 98039.2199786]}
})json";

}  // namespace demarc::workload
