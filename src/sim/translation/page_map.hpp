// A value for each page of an application. Memory is taken in runs of neighbouring pages, by the
// first of them that is written; pages that are only read take none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/translation/places.hpp"

namespace demarc::sim::translation {

template <class T>
class PageMap {
 public:
  static constexpr std::uint32_t run_pages = 512;

  // Pages that were never written have `otherwise`.
  explicit PageMap(std::size_t pages, T otherwise = T{})
      : otherwise_(run_pages, otherwise), runs_(ceil_div(pages, run_pages), otherwise_.data()) {}

  [[nodiscard, gnu::always_inline]] const T& operator[](PageNumber page) const {
    return runs_[page.raw() / run_pages][page.raw() % run_pages];
  }
  // To write to.
  [[nodiscard]] T& at(PageNumber page) {
    T*& run = runs_[page.raw() / run_pages];
    if (run == otherwise_.data()) {
      written_.push_back(std::make_unique<T[]>(run_pages));
      run = written_.back().get();
      std::copy(otherwise_.begin(), otherwise_.end(), run);
    }
    return run[page.raw() % run_pages];
  }
  [[nodiscard]] std::size_t runs_written() const { return written_.size(); }
  // Every page of a run that was written, in ascending order.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i] == otherwise_.data()) continue;
      for (std::size_t page = i * run_pages; page < (i + 1) * run_pages; ++page)
        visit(PageNumber(page), runs_[i][page % run_pages]);
    }
  }

 private:
  std::vector<T> otherwise_;
  std::vector<T*> runs_;
  std::vector<std::unique_ptr<T[]>> written_;
};

}  // namespace demarc::sim::translation
