// Computes what sums and products of vectors and matrices must give.
#include <numeric>
#include <vector>

#include "references.hpp"

namespace demarc::workload {
namespace {

template <class Value>
void multiply(const ReferenceCall& call, Value value) {
  const std::size_t n = call.parameter("n");
  const auto c = call.floats("c");
  std::vector<double> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    row.assign(n, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      const double left = value("a", i * n + k);
      for (std::size_t j = 0; j < n; ++j) row[j] += left * value("b", k * n + j);
    }
    for (std::size_t j = 0; j < n; ++j) c[i * n + j] = static_cast<float>(row[j]);
  }
}

void multiply_sparse(const ReferenceCall& call, std::span<const float> x, std::span<float> y) {
  const auto offsets = call.words("offsets");
  const auto columns = call.words("columns");
  const auto values = call.floats("values");
  for (std::size_t row = 0; row < y.size(); ++row) {
    double sum = 0;
    for (std::size_t i = offsets[row]; i < offsets[row + 1]; ++i)
      sum += double{values[i]} * x[columns[i]];
    y[row] = static_cast<float>(sum);
  }
}

}  // namespace

void vecadd_reference(const ReferenceCall& call) {
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  const auto c = call.floats("c");
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
}

void matmul_reference(const ReferenceCall& call) {
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  multiply(call,
           [&](const char* name, std::size_t at) { return double{*name == 'a' ? a[at] : b[at]}; });
}

void matmul_half_reference(const ReferenceCall& call) {
  const auto decode = [](std::span<const std::uint16_t> halves) {
    std::vector<double> values;
    for (const std::uint16_t bits : halves)
      values.push_back(gpu::to_double({gpu::ScalarType::f16, bits}));
    return values;
  };
  const auto a = decode(call.buffer<std::uint16_t>("a"));
  const auto b = decode(call.buffer<std::uint16_t>("b"));
  multiply(call, [&](const char* name, std::size_t at) { return *name == 'a' ? a[at] : b[at]; });
}

void reduction_reference(const ReferenceCall& call) {
  constexpr std::size_t threads = 256;
  const auto in = call.floats("in");
  const std::size_t stride = call.parameter("blocks") * threads;
  std::vector<double> sums(call.parameter("blocks"));
  for (std::size_t i = 0; i < in.size(); ++i) sums[i % stride / threads] += in[i];
  for (std::size_t block = 0; block < sums.size(); ++block) {
    call.floats("partial")[block] = static_cast<float>(sums[block]);
  }
  call.floats("sum")[0] = static_cast<float>(std::accumulate(sums.begin(), sums.end(), 0.0));
}

// Sums start anew every `length` totals.
void scan_reference(const ReferenceCall& call) {
  constexpr std::size_t stretch = 1024;
  const auto totals = call.words("totals");
  const auto scanned = call.words("scanned");
  const auto source = call.words("source");
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (i % call.parameter("length") == 0) sum = 0;
    totals[i] = sum;
    sum += scanned[stretch - 1 + stretch * i] + source[stretch - 1 + stretch * i];
  }
}

void scalarprod_reference(const ReferenceCall& call) {
  const std::size_t elements = call.parameter("elements");
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  const auto products = call.floats("products");
  for (std::size_t pair = 0; pair < products.size(); ++pair) {
    double sum = 0;
    for (std::size_t i = pair * elements; i < (pair + 1) * elements; ++i)
      sum += double{a[i]} * b[i];
    products[pair] = static_cast<float>(sum);
  }
}

void spmv_reference(const ReferenceCall& call) {
  multiply_sparse(call, call.floats("x"), call.floats("y"));
}

void pagerank_reference(const ReferenceCall& call) {
  for (std::size_t i = 0; i < call.parameter("iterations"); ++i) {
    multiply_sparse(call, call.floats(i % 2 == 0 ? "x" : "y"), call.floats(i % 2 == 0 ? "y" : "x"));
  }
}

}  // namespace demarc::workload
