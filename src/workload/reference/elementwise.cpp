#include "references.hpp"

namespace demarc::workload {

void vecadd_reference(const ReferenceCall& call) {
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  const auto c = call.floats("c");
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
}

}  // namespace demarc::workload
