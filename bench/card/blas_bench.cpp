// Products and vectors by whichever cuBLAS the program gets: NVIDIA's, or libdemarc_blas.so in
// front of it. One line of CSV per case: its name, the median of its time in microseconds, the
// largest error of sampled elements next to sums in double precision (over the sum of magnitudes),
// the bytes that have to move and the operations. tools/measure-blas.sh compares several runs.
//   demarc_blas_bench [WORD]   only the cases whose names contain WORD
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;
enum Type : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 14 };

void* driver = nullptr;  // NOLINT: one program

void demand(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, code);
  std::exit(1);
}

template <class... Arguments>
int cuda(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  if (function == nullptr) demand(-1, name);
  return function(arguments...);
}
template <class... Arguments>
int blas(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) demand(-1, name);
  return function(arguments...);
}

std::size_t bytes_of(Type type) {
  return type == f64 ? 8 : type == f32 ? 4 : 2;
}

std::uint16_t half_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, 4);
  const std::uint32_t exponent = bits >> 23U & 0xffU;
  if (exponent < 113) return static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | (exponent - 112U) << 10U |
                                    (bits >> 13U & 0x3ffU));
}

double number_at(const std::byte* at, Type type) {
  if (type == f64) {
    double number = 0;
    std::memcpy(&number, at, 8);
    return number;
  }
  std::uint32_t bits = 0;
  if (type == f32) {
    std::memcpy(&bits, at, 4);
  } else {
    std::uint16_t half = 0;
    std::memcpy(&half, at, 2);
    if (type == bf16) {
      bits = static_cast<std::uint32_t>(half) << 16U;
    } else if ((half & 0x7c00U) == 0) {
      return std::ldexp(half & 0x3ffU, -24) * ((half & 0x8000U) != 0 ? -1 : 1);
    } else if ((half & 0x7c00U) == 0x7c00U) {
      return std::nan("");
    } else {
      bits =
          (half & 0x8000U) << 16U | ((half >> 10U & 0x1fU) + 112U) << 23U | (half & 0x3ffU) << 13U;
    }
  }
  float number = 0;
  std::memcpy(&number, &bits, 4);
  return static_cast<double>(number);
}

// Random numbers, 16 MiB of them over and over.
std::vector<std::byte> random_bytes(std::size_t count, Type type, unsigned seed) {
  const std::size_t own = std::min<std::size_t>(count, (16U << 20U) / bytes_of(type) + 12345);
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count * bytes_of(type));
  for (std::size_t i = 0; i < own; ++i) {
    const float number = static_cast<float>(random()) * 0x1p-31F - 1;
    std::byte* const at = bytes.data() + i * bytes_of(type);
    if (type == f64) {
      const double wide = number;
      std::memcpy(at, &wide, 8);
    } else if (type == f32) {
      std::memcpy(at, &number, 4);
    } else if (type == f16) {
      const std::uint16_t half = half_of(number);
      std::memcpy(at, &half, 2);
    } else {
      std::memcpy(at, reinterpret_cast<const std::byte*>(&number) + 2, 2);
    }
  }
  for (std::size_t at = own * bytes_of(type); at < bytes.size(); at += own * bytes_of(type)) {
    std::memcpy(bytes.data() + at, bytes.data(), std::min(own * bytes_of(type), bytes.size() - at));
  }
  return bytes;
}

struct Case {
  const char* name;
  int ta, tb, m, n, k;
  Type type;
  int compute;  // cublasComputeType_t; 0: gemv of `type`
  int batches = 1;
};
// clang-format off
constexpr Case cases[] = {
    {"gemv-t f32 8192", 1, 0, 8192, 1, 8192, f32, 0},
    {"gemv-n f32 8192", 0, 0, 8192, 1, 8192, f32, 0},
    {"gemv-t f64 8192", 1, 0, 8192, 1, 8192, f64, 0},
    {"gemv-n f64 8192", 0, 0, 8192, 1, 8192, f64, 0},
    {"few 1 f16 t 8192", 1, 0, 8192, 1, 8192, f16, 68},
    {"few 1 f16 t 4096", 1, 0, 4096, 1, 4096, f16, 68},
    {"few 1 bf16 t 14336x4096", 1, 0, 14336, 1, 4096, bf16, 68},
    {"few 2 f16 t 8192", 1, 0, 8192, 2, 8192, f16, 68},
    {"few 4 f16 t 8192", 1, 0, 8192, 4, 8192, f16, 68},
    {"few 8 f16 t 8192", 1, 0, 8192, 8, 8192, f16, 68},
    {"few 16 f16 t 8192", 1, 0, 8192, 16, 8192, f16, 68},
    {"few 16 tf32 t 8192", 1, 0, 8192, 16, 8192, f32, 77},
    {"few 1 f16 n 8192", 0, 0, 8192, 1, 8192, f16, 68},
    {"few 16 f16 n 8192", 0, 0, 8192, 16, 8192, f16, 68},
    {"few 16 f32 t 8192", 1, 0, 8192, 16, 8192, f32, 68},
    {"product f16 1024", 1, 0, 1024, 1024, 1024, f16, 68},
    {"product f16 2048", 1, 0, 2048, 2048, 2048, f16, 68},
    {"product f16 4096", 1, 0, 4096, 4096, 4096, f16, 68},
    {"product f16 8192", 1, 0, 8192, 8192, 8192, f16, 68},
    {"product f16 nn 4096", 0, 0, 4096, 4096, 4096, f16, 68},
    {"product f16 nt 4096", 0, 1, 4096, 4096, 4096, f16, 68},
    {"product bf16 4096", 1, 0, 4096, 4096, 4096, bf16, 68},
    {"product tf32 1024", 1, 0, 1024, 1024, 1024, f32, 77},
    {"product tf32 4096", 1, 0, 4096, 4096, 4096, f32, 77},
    {"product tf32 nn 4096", 0, 0, 4096, 4096, 4096, f32, 77},
    {"product f32 1024", 1, 0, 1024, 1024, 1024, f32, 68},
    {"product f32 4096", 1, 0, 4096, 4096, 4096, f32, 68},
    {"product f32 nn 4096", 0, 0, 4096, 4096, 4096, f32, 68},
    {"product f64 2048", 1, 0, 2048, 2048, 2048, f64, 70},
    {"batches 64 f16 256x64x256", 1, 0, 256, 256, 64, f16, 68, 64},
};
// clang-format on

class Run {
 public:
  explicit Run(const Case& of) : case_(of) {
    const std::size_t batches = static_cast<std::size_t>(of.batches);
    a_count_ = static_cast<std::size_t>(of.m) * static_cast<std::size_t>(of.k);
    b_count_ = static_cast<std::size_t>(of.n) * static_cast<std::size_t>(of.k);
    c_count_ = static_cast<std::size_t>(of.m) * static_cast<std::size_t>(of.n);
    a_ = random_bytes(a_count_ * batches, of.type, 1);
    b_ = random_bytes(b_count_ * batches, of.type, 2);
    // Several copies, so that the L2 has none of them.
    copies_ = std::clamp<std::size_t>((512U << 20U) / a_.size(), 1, 16);
    for (std::size_t i = 0; i < copies_; ++i) at_a_.push_back(on_card(a_));
    at_b_ = on_card(b_);
    const std::vector<std::byte> poison(c_count_ * batches * bytes_of(of.type), std::byte{0xff});
    at_c_ = on_card(poison);
  }
  ~Run() {
    for (const Address at : at_a_) cuda("cuMemFree_v2", at);
    cuda("cuMemFree_v2", at_b_);
    cuda("cuMemFree_v2", at_c_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int once(void* handle, std::size_t copy) const {
    const Case& c = case_;
    const float one = 1;
    const float zero = 0;
    const double wide_one = 1;
    const double wide_zero = 0;
    const bool wide = c.type == f64;
    const void* const alpha = wide ? static_cast<const void*>(&wide_one) : &one;
    const void* const beta = wide ? static_cast<const void*>(&wide_zero) : &zero;
    const Address a = at_a_[copy % copies_];
    const int lda = c.ta == 0 ? c.m : c.k;
    const int ldb = c.tb == 0 ? c.k : c.n;
    if (c.compute == 0) {
      const int rows = c.ta == 0 ? c.m : c.k;
      const int columns = c.ta == 0 ? c.k : c.m;
      return blas(wide ? "cublasDgemv_v2" : "cublasSgemv_v2", handle, c.ta, rows, columns, alpha, a,
                  lda, at_b_, 1, beta, at_c_, 1);
    }
    if (c.batches > 1) {
      return blas("cublasGemmStridedBatchedEx", handle, c.ta, c.tb, c.m, c.n, c.k, alpha, a,
                  int{c.type}, lda, static_cast<long long>(a_count_), at_b_, int{c.type}, ldb,
                  static_cast<long long>(b_count_), beta, at_c_, int{c.type}, c.m,
                  static_cast<long long>(c_count_), c.batches, c.compute, -1);
    }
    return blas("cublasGemmEx", handle, c.ta, c.tb, c.m, c.n, c.k, alpha, a, int{c.type}, lda,
                at_b_, int{c.type}, ldb, beta, at_c_, int{c.type}, c.m, c.compute, -1);
  }
  // The largest error of 200 elements.
  [[nodiscard]] double error() const {
    const Case& c = case_;
    std::vector<std::byte> made(c_count_ * bytes_of(c.type));
    demand(cuda("cuMemcpyDtoH_v2", static_cast<void*>(made.data()), at_c_, made.size()), "copy");
    std::mt19937 random(3);
    double worst = 0;
    for (int sample = 0; sample < 200; ++sample) {
      const std::size_t row = random() % static_cast<unsigned>(c.m);
      const std::size_t column = random() % static_cast<unsigned>(c.n);
      double sum = 0;
      double size = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(c.k); ++i) {
        const std::size_t of_a = c.ta == 0 ? i * static_cast<std::size_t>(c.m) + row
                                           : row * static_cast<std::size_t>(c.k) + i;
        const std::size_t of_b = c.tb == 0 ? column * static_cast<std::size_t>(c.k) + i
                                           : i * static_cast<std::size_t>(c.n) + column;
        const double term = number_at(a_.data() + of_a * bytes_of(c.type), c.type) *
                            number_at(b_.data() + of_b * bytes_of(c.type), c.type);
        sum += term;
        size += std::abs(term);
      }
      const double got = number_at(
          made.data() + (column * static_cast<std::size_t>(c.m) + row) * bytes_of(c.type), c.type);
      const double error = std::abs(got - sum) / size;
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }
  [[nodiscard]] double bytes() const {
    return static_cast<double>((a_count_ + b_count_ + c_count_) * bytes_of(case_.type)) *
           case_.batches;
  }
  [[nodiscard]] double operations() const {
    return 2.0 * case_.m * case_.n * case_.k * case_.batches;
  }

 private:
  static Address on_card(const std::vector<std::byte>& bytes) {
    Address at = 0;
    demand(cuda("cuMemAlloc_v2", &at, bytes.size()), "memory");
    demand(cuda("cuMemcpyHtoD_v2", at, static_cast<const void*>(bytes.data()), bytes.size()),
           "copy");
    return at;
  }
  Case case_;
  std::size_t a_count_ = 0, b_count_ = 0, c_count_ = 0, copies_ = 1;
  std::vector<std::byte> a_, b_;
  std::vector<Address> at_a_;
  Address at_b_ = 0, at_c_ = 0;
};

// Milliseconds of `count` launches.
double timed(const Run& run, void* handle, void* stream, int count) {
  void* begin = nullptr;
  void* end = nullptr;
  demand(cuda("cuEventCreate", &begin, 0U), "event");
  demand(cuda("cuEventCreate", &end, 0U), "event");
  demand(cuda("cuEventRecord", begin, stream), "event");
  for (int i = 0; i < count; ++i)
    demand(run.once(handle, static_cast<std::size_t>(i)), "a product");
  demand(cuda("cuEventRecord", end, stream), "event");
  demand(cuda("cuEventSynchronize", end), "a kernel");
  float ms = 0;
  demand(cuda("cuEventElapsedTime", &ms, begin, end), "event");
  cuda("cuEventDestroy_v2", begin);
  cuda("cuEventDestroy_v2", end);
  return static_cast<double>(ms);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string word = count > 1 ? arguments[1] : "";
  driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) demand(-1, "libcuda.so.1");
  // What stands in front of it comes first.
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    if (::dlopen(name, RTLD_NOW | RTLD_GLOBAL) != nullptr) break;
  }
  int device = 0;
  void* context = nullptr;
  void* stream = nullptr;
  void* handle = nullptr;
  demand(cuda("cuInit", 0U), "cuInit");
  demand(cuda("cuDeviceGet", &device, 0), "card");
  demand(cuda("cuDevicePrimaryCtxRetain", &context, device), "context");
  demand(cuda("cuCtxSetCurrent", context), "context");
  demand(cuda("cuStreamCreate", &stream, 1U), "stream");
  demand(blas("cublasCreate_v2", &handle), "cublasCreate");
  demand(blas("cublasSetStream_v2", handle, stream), "stream");
  for (const Case& of : cases) {
    if (std::string(of.name).find(word) == std::string::npos) continue;
    const Run run(of);
    if (const int code = run.once(handle, 0); code != 0) {
      std::printf("%s,,,%.0f,%.0f,code %d\n", of.name, run.bytes(), run.operations(), code);
      continue;
    }
    demand(cuda("cuStreamSynchronize", stream), of.name);
    const double error = run.error();
    const double first = timed(run, handle, stream, 3) / 3;
    const int each = static_cast<int>(std::clamp(12.0 / std::max(first, 1e-3), 3.0, 400.0));
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) times.push_back(timed(run, handle, stream, each) / each * 1e3);
    std::sort(times.begin(), times.end());
    std::printf("%s,%.2f,%.2e,%.0f,%.0f,\n", of.name, times[2], error, run.bytes(),
                run.operations());
    std::fflush(stdout);
  }
  demand(blas("cublasDestroy_v2", handle), "cublasDestroy");
  return 0;
}
