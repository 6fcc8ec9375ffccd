// Fills a Timeline from what a simulation tells its watcher.
#pragma once

#include "part.hpp"

namespace demarc::sim::translation {

[[nodiscard]] Watch timeline_watch(Timeline& timeline);

}  // namespace demarc::sim::translation
