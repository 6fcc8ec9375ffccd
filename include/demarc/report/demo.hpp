// The main studies on bundled kernels, without a GPU, on a page each: interference on a simulated
// card, and the data locality of the kernels of the paper.
#pragma once

#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"

namespace demarc::report {

struct DemoOptions {
  std::string device = "sim:h100-sxm";  // device whose caches are predicted: sim:NAME
  // Comma lists of bundled kernels, timed on the simulated GTX 1080: the workloads of the paper
  // (Fractional GPUs, section VI).
  std::string victims = "mm,fwt,va,sp,sn,cfd,nn";
  std::string aggressors = "mm,fwt,va";
  std::string command;  // the command that the pages name
  // Names under which each page links to the other; empty: no link.
  std::string interference_link;
  std::string locality_link;
};

// Where the pages go. An empty `locality_html` becomes the name of `html` with "-locality", but
// stays empty, so there is not a second page, if `html` is standard output ("-") or a device. Pages
// in one folder link to each other. Gives the files that are written.
[[nodiscard]] std::vector<std::string> name_pages(const std::string& html,
                                                  std::string& locality_html, DemoOptions& options);

struct Demo {
  std::string page;  // interference
  std::string locality_page;
  std::string summary;    // plain-text tables
  std::string json;       // both studies, demarc.demo/2 (docs/command-line.md)
  Result<void> possible;  // study::check_possible() of the interference study
};

// Runs the interference study in two halves of the simulated card: with nothing divided, with SMs
// divided, and with SMs and memory divided. Then it analyses the seven workloads of the locality
// paper's Table 2 with its grids (KNOM Review 2022). Names that do not exist, and a device of which
// too little is known, are errors.
[[nodiscard]] Result<Demo> run_demo(const DemoOptions& options, const Progress& progress);

}  // namespace demarc::report
