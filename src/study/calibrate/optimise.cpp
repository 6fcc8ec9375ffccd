// Optimises by NLopt: SBPLX (Rowan's subplex) nearby, DIRECT-L (Gablonsky's) over all of an axis.
#include "calibrate/optimise.hpp"

#ifdef DEMARC_NO_OPTIMISER

namespace demarc::study {

Result<Optimum> least_error(const Axis&, double, const std::function<Result<double>(double)>&) {
  return missing_capability(
      "this build cannot fit, because NLopt exists only as a shared library; save the figures "
      "(--save-figures) and fit them with another build (--figures)");
}

}  // namespace demarc::study

#else

#include <algorithm>
#include <cmath>
#include <map>
#include <nlopt.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace demarc::study {
namespace {

// The function as NLopt sees it: of a place on an axis without factors, its values kept.
class Landscape {
 public:
  Landscape(const Axis& axis, double enough, const std::function<Result<double>(double)>& error)
      : axis_(axis), enough_(enough), error_(error) {}

  [[nodiscard]] double place_of(double value) const {
    return axis_.logarithmic ? std::log(value) : value;
  }
  [[nodiscard]] double value_at(double place) const {
    const double value = axis_.logarithmic ? std::exp(place) : place;
    return std::clamp(axis_.whole ? std::round(value) : value, axis_.low, axis_.high);
  }
  // Looks for less nearby or everywhere, at most `most` times.
  void search(nlopt::algorithm algorithm, int most) {
    if (done()) return;
    nlopt::opt search(algorithm, 1);
    const double low = place_of(axis_.low);
    const double high = place_of(axis_.high);
    search.set_lower_bounds(low);
    search.set_upper_bounds(high);
    const double step = axis_.logarithmic ? 0.25 : 0.05 * (high - low);
    search.set_initial_step(axis_.whole && !axis_.logarithmic ? std::max(step, 1.0) : step);
    search.set_stopval(enough_);
    search.set_xtol_abs(axis_.logarithmic ? 0.002 : 0.0005 * (high - low));
    search.set_maxeval(most);
    search.set_min_objective(
        [](const std::vector<double>& at, std::vector<double>&, void* self) {
          auto* const landscape = static_cast<Landscape*>(self);
          return landscape->at(landscape->value_at(at.front()));
        },
        this);
    std::vector<double> place{place_of(best_.at)};
    double least = 0;
    try {
      search.optimize(place, least);
    } catch (const nlopt::forced_stop&) {       // failure() says why
    } catch (const nlopt::roundoff_limited&) {  // what was found counts
    }
  }
  double at(double value) {
    const auto known = known_.find(value);
    if (known != known_.end()) return known->second;
    ++best_.evaluations;
    auto error = error_(value);
    if (!error) {
      failure_ = std::move(error).error();
      throw nlopt::forced_stop();
    }
    known_.emplace(value, *error);
    if (known_.size() == 1 || *error < best_.error) {
      best_.at = value;
      best_.error = *error;
    }
    return *error;
  }
  [[nodiscard]] bool done() const { return failure_ || best_.error <= enough_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] const Optimum& best() const { return best_; }

 private:
  const Axis& axis_;
  double enough_;
  const std::function<Result<double>(double)>& error_;
  std::map<double, double> known_;  // of a value
  Optimum best_;
  std::optional<Error> failure_;
};

}  // namespace

Result<Optimum> least_error(const Axis& axis, double enough,
                            const std::function<Result<double>(double)>& error) {
  Landscape landscape(axis, enough, error);
  try {
    landscape.at(axis.start);
  } catch (const nlopt::forced_stop&) {
    return tl::unexpected(*landscape.failure());
  }
  constexpr int nearby = 24;
  constexpr int everywhere = 21;
  landscape.search(nlopt::LN_SBPLX, nearby);
  landscape.search(nlopt::GN_DIRECT_L, everywhere);
  landscape.search(nlopt::LN_SBPLX, nearby);
  if (landscape.failure()) return tl::unexpected(*landscape.failure());
  return landscape.best();
}

}  // namespace demarc::study

#endif
