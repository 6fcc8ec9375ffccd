// Generates structured contents of buffers: graphs, meshes, sparse matrices, permutations.
#include "launch_generators.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "aes_tables.hpp"
#include "demarc/base/random.hpp"

namespace demarc::gpu {
namespace {

// What one generator sees: its parameters (all present and within their ranges) and a typed view of
// the buffer.
class GeneratorCall {
 public:
  GeneratorCall(const Launch& launch, const Buffer& buffer, std::span<std::byte> out)
      : launch_(launch), buffer_(buffer), out_(out) {}

  [[nodiscard]] std::uint64_t parameter(std::string_view name) const {
    return static_cast<std::uint64_t>(buffer_.fill.parameters.at(std::string(name)));
  }
  // The stream of a family: equal for all its members, whatever buffer they fill.
  [[nodiscard]] Random random(std::uint64_t salt) const {
    return Random(launch_.seed ^ (salt * 0xd1342543de82ef95ULL));
  }

  template <class T>
  Result<void> store(const std::vector<T>& values) const {
    const std::size_t bytes = values.size() * sizeof(T);
    if (bytes > out_.size()) {
      return invalid_input("generator '{}' makes {} bytes, the buffer has {}",
                           buffer_.fill.generator, bytes, out_.size());
    }
    std::memcpy(out_.data(), values.data(), bytes);
    return {};
  }

 private:
  const Launch& launch_;
  const Buffer& buffer_;
  std::span<std::byte> out_;
};

// Degrees between 1 and 2*average-1 whose sum is count*average: neighbours 2i and 2i+1 balance each
// other.
std::vector<std::uint32_t> balanced_degrees(Random& random, std::uint64_t count,
                                            std::uint64_t average) {
  std::vector<std::uint32_t> degrees(count, static_cast<std::uint32_t>(average));
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    const auto shift = static_cast<std::uint32_t>(random.below(average));
    degrees[i] += shift;
    degrees[i + 1] -= shift;
  }
  return degrees;
}

Result<void> graph_nodes(const GeneratorCall& call) {
  Random random = call.random(1);
  std::vector<std::uint32_t> records;
  std::uint32_t start = 0;
  for (const std::uint32_t degree :
       balanced_degrees(random, call.parameter("nodes"), call.parameter("degree"))) {
    records.push_back(start);
    records.push_back(degree);
    start += degree;
  }
  return call.store(records);
}

Result<void> graph_edges(const GeneratorCall& call) {
  Random random = call.random(2);
  std::vector<std::uint32_t> edges(call.parameter("nodes") * call.parameter("degree"));
  for (auto& edge : edges) edge = static_cast<std::uint32_t>(random.below(call.parameter("nodes")));
  return call.store(edges);
}

Result<void> csr_offsets(const GeneratorCall& call) {
  Random random = call.random(3);
  std::vector<std::uint32_t> offsets{0};
  for (const std::uint32_t degree :
       balanced_degrees(random, call.parameter("rows"), call.parameter("per_row"))) {
    offsets.push_back(offsets.back() + degree);
  }
  return call.store(offsets);
}

Result<void> csr_columns(const GeneratorCall& call) {
  Random degrees = call.random(3);
  Random random = call.random(4);
  const std::uint64_t columns = call.parameter("columns");
  std::vector<std::uint32_t> indices;
  for (const std::uint32_t degree :
       balanced_degrees(degrees, call.parameter("rows"), call.parameter("per_row"))) {
    if (degree > columns)
      return invalid_input("csr_columns: a row of {} entries in {} columns", degree, columns);
    for (std::uint64_t i = 0; i < degree; ++i) {
      // One draw from each of `degree` slices: sorted and without repetition.
      const std::uint64_t low = i * columns / degree;
      const std::uint64_t high = (i + 1) * columns / degree;
      indices.push_back(static_cast<std::uint32_t>(low + random.below(high - low)));
    }
  }
  return call.store(indices);
}

void shuffle(std::vector<std::uint32_t>& values, std::size_t begin, std::size_t end,
             Random& random) {
  for (std::size_t i = end; i > begin + 1; --i) {
    std::swap(values[i - 1], values[begin + random.below(i - begin)]);
  }
}

std::vector<std::uint32_t> counting(std::uint64_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

Result<void> first_marked(const GeneratorCall& call) {
  std::vector<std::uint8_t> marks(call.parameter("elements"));
  marks[0] = 1;
  return call.store(marks);
}

Result<void> permutation(const GeneratorCall& call) {
  Random random = call.random(5);
  auto values = counting(call.parameter("elements"));
  shuffle(values, 0, values.size(), random);
  return call.store(values);
}

Result<void> pointer_chase(const GeneratorCall& call) {
  Random random = call.random(6);
  const std::uint64_t stride = call.parameter("stride");
  auto order = counting(call.parameter("elements"));
  shuffle(order, 0, order.size(), random);
  std::vector<std::uint32_t> next(order.size() * stride);
  for (std::size_t i = 0; i < order.size(); ++i) {
    next[order[i] * stride] = static_cast<std::uint32_t>(order[(i + 1) % order.size()] * stride);
  }
  return call.store(next);
}

// Elements lie on a width x height grid and are renumbered at random within windows of 64, as mesh
// generators leave them: neighbours are near in memory, not next to each other.
Result<void> mesh_neighbours(const GeneratorCall& call) {
  constexpr std::size_t window = 64;
  Random random = call.random(7);
  const std::uint64_t width = call.parameter("width");
  const std::uint64_t elements = width * call.parameter("height");
  auto number = counting(elements);
  for (std::size_t begin = 0; begin < elements; begin += window) {
    shuffle(number, begin, std::min<std::size_t>(elements, begin + window), random);
  }
  std::vector<std::int32_t> neighbours(4 * elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t x = i % width;
    const auto at = [&](std::size_t other) { return static_cast<std::int32_t>(number[other]); };
    const std::size_t me = number[i];
    neighbours[me] = x == 0 ? -1 : at(i - 1);
    neighbours[elements + me] = x + 1 == width ? -2 : at(i + 1);
    neighbours[2 * elements + me] = i < width ? -1 : at(i - width);
    neighbours[3 * elements + me] = i + width >= elements ? -2 : at(i + width);
  }
  return call.store(neighbours);
}

// Air at rest or in slow motion: pressure stays positive. Density, momenta, energy, each over the
// elements.
Result<void> flow_state(const GeneratorCall& call) {
  Random random = call.random(10);
  std::vector<float> state;
  for (int variable = 0; variable < 5; ++variable) {
    for (std::uint64_t i = 0; i < call.parameter("elements"); ++i) {
      const double base = variable == 0 ? 1.4 : variable == 4 ? 2.5 : 0.0;
      state.push_back(static_cast<float>(base + 0.4 * (random.uniform() - 0.5)));
    }
  }
  return call.store(state);
}

Result<void> dominant_matrix(const GeneratorCall& call) {
  Random random = call.random(8);
  const std::uint64_t n = call.parameter("n");
  std::vector<float> matrix(n * n);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const double diagonal = i % (n + 1) == 0 ? static_cast<double>(n) : 0.0;
    matrix[i] = static_cast<float>(2.0 * random.uniform() - 1.0 + diagonal);
  }
  return call.store(matrix);
}

Result<void> aes_sbox_bytes(const GeneratorCall& call) {
  const auto box = aes_sbox();
  return call.store(std::vector<std::uint8_t>(box.begin(), box.end()));
}

Result<void> aes_key_words(const GeneratorCall& call) {
  Random random = call.random(9);
  std::array<std::uint8_t, 32> key{};
  for (auto& byte : key) byte = static_cast<std::uint8_t>(random.below(256));
  const auto words = aes256_round_keys(key);
  return call.store(std::vector<std::uint8_t>(words.begin(), words.end()));
}

struct Generator {
  GeneratorInfo info;
  std::array<std::string_view, 3> parameters;  // all required, each 1 .. 2^31
  Result<void> (*make)(const GeneratorCall&);
};

constexpr std::array generators{
    Generator{
        {"graph_nodes", "u32 pairs (first edge, edges) of a random graph; nodes, degree (average)"},
        {"nodes", "degree"},
        graph_nodes},
    Generator{{"graph_edges", "u32 target of every edge: nodes*degree of them; nodes, degree"},
              {"nodes", "degree"},
              graph_edges},
    Generator{{"csr_offsets", "u32 row offsets, rows+1 of them; rows, columns, per_row (average)"},
              {"rows", "columns", "per_row"},
              csr_offsets},
    Generator{{"csr_columns",
               "u32 sorted column of every entry, rows*per_row of them; rows, columns, per_row"},
              {"rows", "columns", "per_row"},
              csr_columns},
    Generator{{"first_marked", "u8 one, then zeros; elements"}, {"elements"}, first_marked},
    Generator{{"permutation", "u32 random permutation of 0 .. elements-1; elements"},
              {"elements"},
              permutation},
    Generator{{"pointer_chase",
               "u32 index of the next element of one random cycle, in every stride-th word; "
               "elements, stride"},
              {"elements", "stride"},
              pointer_chase},
    Generator{{"mesh_neighbours",
               "i32 neighbour over face f of element e at [f*elements+e], -1 and -2 at the "
               "borders; width, height"},
              {"width", "height"},
              mesh_neighbours},
    Generator{
        {"dominant_matrix", "f32 n x n matrix, diagonally dominant; n"}, {"n"}, dominant_matrix},
    Generator{{"flow_state",
               "f32 five variables of a compressible flow, each over the elements; elements"},
              {"elements"},
              flow_state},
    Generator{{"aes_sbox", "u8 the 256 entries of the AES S-box"}, {}, aes_sbox_bytes},
    Generator{{"aes_round_keys", "u8 the 240 bytes of the AES-256 key schedule of a random key"},
              {},
              aes_key_words},
};

Result<void> check_parameters(const Generator& generator, const Buffer& buffer) {
  const std::string where = fmt::format("generator '{}'", generator.info.name);
  for (const std::string_view name : generator.parameters) {
    if (name.empty()) continue;
    const auto it = buffer.fill.parameters.find(std::string(name));
    if (it == buffer.fill.parameters.end())
      return invalid_input("{} needs the parameter '{}'", where, name);
    if (it->second < 1 || it->second > INT64_C(1) << 31) {
      return invalid_input("{}: {} = {} is not within 1 .. 2^31", where, name, it->second);
    }
  }
  for (const auto& [name, value] : buffer.fill.parameters) {
    const auto& known = generator.parameters;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return invalid_input("{} has no parameter '{}': {}", where, name, generator.info.meaning);
    }
  }
  return {};
}

}  // namespace

Result<void> generate(const Launch& launch, const Buffer& buffer, std::span<std::byte> out) {
  for (const Generator& generator : generators) {
    if (generator.info.name != buffer.fill.generator) continue;
    DEMARC_CHECK(check_parameters(generator, buffer));
    return generator.make(GeneratorCall(launch, buffer, out));
  }
  std::string known;
  for (const Generator& generator : generators) {
    known += (known.empty() ? "" : ", ") + std::string(generator.info.name);
  }
  return invalid_input("there is no generator '{}'; known are {}", buffer.fill.generator, known);
}

std::span<const GeneratorInfo> generator_names() {
  static const auto names = [] {
    std::array<GeneratorInfo, generators.size()> list{};
    std::transform(generators.begin(), generators.end(), list.begin(),
                   [](const Generator& row) { return row.info; });
    return list;
  }();
  return names;
}

}  // namespace demarc::gpu
