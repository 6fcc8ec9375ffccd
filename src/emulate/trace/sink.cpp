// Lets a trace sink ignore what it does not need, and keeps whole traces in memory.
#include "demarc/emulate/trace.hpp"

namespace demarc::emulate {

Result<void> TraceSink::begin_kernel(const TraceHeader&) {
  return {};
}
Result<void> TraceSink::end_kernel() {
  return {};
}
Result<void> TraceSink::end() {
  return {};
}

Result<void> TraceRecorder::begin_kernel(const TraceHeader& header) {
  kernels_.push_back({header, {}});
  return {};
}

Result<void> TraceRecorder::consume(const TraceChunk& chunk) {
  std::vector<Block>& blocks = kernels_.back().blocks;
  if (blocks.empty() || blocks.back().block != chunk.block) blocks.push_back({chunk.block, {}});
  blocks.back().words.insert(blocks.back().words.end(), chunk.words.begin(), chunk.words.end());
  return {};
}

}  // namespace demarc::emulate
