# Unpacks the archive of ECharts into `folder`, unless its echarts.min.js is another one than it should be.
function(demarc_unpack_echarts archive folder)
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${folder}")
  # Of dist/echarts.min.js in npm's package echarts 5.6.0.
  set(expected bf4a223524e40b77c304bec67e1222cf551f14880cf42c69dc046558e11c07b1)
  file(SHA256 "${folder}/echarts.min.js" hash)
  if(NOT hash STREQUAL expected)
    file(REMOVE_RECURSE "${folder}")
    message(FATAL_ERROR "demarc: echarts.min.js in ${archive} is not that of ECharts 5.6.0: its SHA-256 is ${hash}")
  endif()
endfunction()
