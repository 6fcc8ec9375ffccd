// Compares the outputs of a launch with what its reference, or its files, say they must be.
#include <cmath>
#include <cstring>

#include "demarc/launch/content_file.hpp"
#include "demarc/workload/workload.hpp"
#include "reference/references.hpp"

namespace demarc::workload {
namespace {

gpu::Scalar element_at(const gpu::Buffer& buffer, const std::vector<std::byte>& bytes,
                       std::size_t index) {
  gpu::Scalar scalar{buffer.element, 0};
  const std::size_t size = gpu::size_of(buffer.element);
  std::memcpy(&scalar.bits, bytes.data() + index * size, size);
  return scalar;
}

bool agrees(const gpu::Check& tolerance, const gpu::Scalar& expected, const gpu::Scalar& found) {
  if (expected.bits == found.bits) return true;
  if (!gpu::is_floating(expected.type)) return false;
  const double wanted = gpu::to_double(expected);
  const double difference = std::abs(gpu::to_double(found) - wanted);
  return difference <= tolerance.absolute + tolerance.relative * std::abs(wanted);  // false for NaN
}

Result<void> compare_buffer(const gpu::Check& tolerance, const gpu::Buffer& buffer,
                            const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& found) {
  if (expected.size() != buffer.bytes || found.size() != buffer.bytes) {
    return check_failed("output '{}': {} bytes came back instead of {}", buffer.name, found.size(),
                        buffer.bytes);
  }
  const std::size_t count = buffer.bytes / gpu::size_of(buffer.element);
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (agrees(tolerance, element_at(buffer, expected, i), element_at(buffer, found, i))) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  return check_failed(
      "output '{}' ({}): {} of {} elements differ; the first at [{}]: expected {}, found {}",
      buffer.name, gpu::name_of(buffer.element), wrong, count, first,
      gpu::to_double(element_at(buffer, expected, first)),
      gpu::to_double(element_at(buffer, found, first)));
}

Result<void> read_expected(const gpu::Launch& launch, gpu::Memory& memory) {
  for (const auto& [index, file] : launch.check.files) {
    const gpu::Buffer& buffer = launch.buffers[index];
    DEMARC_TRY(const std::string content, gpu::read_content(file, buffer.element, buffer.bytes));
    if (content.size() != buffer.bytes) {
      return invalid_input("check of '{}': {} holds {} bytes, but the buffer has {}", buffer.name,
                           file, content.size(), buffer.bytes);
    }
    std::memcpy(memory[index].data(), content.data(), content.size());
  }
  return {};
}

}  // namespace

Result<void> run_reference(const gpu::Launch& launch, gpu::Memory& memory) {
  if (!launch.check.files.empty()) return read_expected(launch, memory);
  const Reference reference = find_reference(launch.check.reference);
  if (reference == nullptr) {
    return invalid_input("launch '{}': there is no reference '{}'", launch.name,
                         launch.check.reference);
  }
  reference(ReferenceCall(launch, memory));
  return {};
}

Result<void> compare_outputs(const gpu::Launch& launch, const gpu::Memory& expected,
                             const gpu::Memory& result) {
  if (expected.size() != launch.buffers.size() || result.size() != launch.buffers.size()) {
    return check_failed("launch '{}': {} buffers came back instead of {}", launch.name,
                        result.size(), launch.buffers.size());
  }
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    if (!launch.buffers[i].output) continue;
    auto same = compare_buffer(launch.check, launch.buffers[i], expected[i], result[i]);
    if (!same) return check_failed("launch '{}': {}", launch.name, same.error().message);
  }
  return {};
}

Result<void> check(const gpu::Launch& launch, std::span<const std::uint64_t> addresses,
                   const gpu::Memory& result) {
  if (!launch.check.exists()) return {};
  DEMARC_TRY(gpu::Memory expected, gpu::initial_memory(launch, addresses));
  DEMARC_CHECK(run_reference(launch, expected));
  return compare_outputs(launch, expected, result);
}

}  // namespace demarc::workload
