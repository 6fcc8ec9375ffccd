// Decides whether a command was at work during a visit.
#include "work_watch.hpp"

namespace demarc::study {

WorkWatch::Verdict WorkWatch::verdict(const WorkSeen& seen) const {
  if (end_.launches > begin_.launches) return Verdict::working;
  const bool same_run = seen.restarts == begin_.restarts;
  if (!same_run || begin_.launches_of_run == 0) return Verdict::not_seen;
  return seen.launches > end_.launches ? Verdict::working : Verdict::waiting;
}

}  // namespace demarc::study
