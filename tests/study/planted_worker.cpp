// A worker of the remote lane: serves one lane over the whole of a planted device. usage: PROGRAM
// MODEL
#include <unistd.h>

#include <cstdio>

#include "demarc/study/planted.hpp"
#include "demarc/study/remote_lane.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const auto model = demarc::study::planted_model(argv[1]);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  const auto executor = demarc::study::make_planted_executor(*model, 1);
  const auto stage = executor->whole();
  return demarc::study::serve_lane((*stage)->lane(0), STDIN_FILENO, STDOUT_FILENO) ? 0 : 1;
}
