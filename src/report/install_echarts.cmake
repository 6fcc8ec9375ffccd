# cmake -DNPM=… -DSOURCE=… -DWORK=… -DRESULT=… -P install_echarts.cmake
# Installs what package-lock.json pins into WORK/node_modules.
file(MAKE_DIRECTORY "${WORK}")
file(COPY "${SOURCE}/package.json" "${SOURCE}/package-lock.json" "${SOURCE}/.npmrc" DESTINATION "${WORK}")
execute_process(COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
                WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT status EQUAL 0 OR NOT EXISTS "${RESULT}")
  message(FATAL_ERROR "demarc: npm could not install Apache ECharts. Connect to an npm registry once, or configure with "
                      "-DDEMARC_ECHARTS=/path/to/echarts.min.js.\n${out}${err}")
endif()
file(TOUCH "${RESULT}")
